//! Everything that can stop a run, with the facts a person needs to go on.
//!
//! A record that cannot be used does not stop a run: it becomes a [`SkippedRecord`], is counted by
//! kind and listed. Only `strict` turns the first one into [`Error::Strict`].

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting has a value that it cannot have.
    #[error("`{setting}` {value}: {expected}")]
    InvalidSetting {
        /// The setting's name; see [`Error::message`].
        setting: Cow<'static, str>,
        /// The value, as it was given.
        value: String,
        /// What it must be, as in "must be between 1 and 32".
        expected: String,
    },
    /// A setting does not go with another one, or with what is there.
    #[error("`{setting}`: {reason}")]
    Conflict {
        /// The setting's name; see [`Error::message`].
        setting: Cow<'static, str>,
        /// What it does not go with, and what to do instead.
        reason: String,
    },
    /// A file that was given for a purpose is not what that purpose needs.
    #[error("{}: {}{reason}", path.display(), at_line(*line))]
    BadInput {
        /// The file or directory.
        path: PathBuf,
        /// The line, from 1, where one line is wrong.
        line: Option<u64>,
        /// What is wrong and what to do.
        reason: String,
    },
    /// What is stored is damaged, incomplete, or of a version that cannot be read.
    #[error("{}: {reason}", path.display())]
    Corrupt {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Something that must hold does not: a fault in lookalike itself.
    #[error("internal error: {reason}; this is a bug in lookalike, please report it")]
    Internal {
        /// What does not hold.
        reason: String,
    },
    /// An input that was named does not exist.
    #[error("{}: no such file or directory", path.display())]
    NotFound {
        /// The input as it was given.
        path: PathBuf,
    },
    /// A file that was named on purpose is in no format we read.
    #[error("{}: {reason}\n  formats: {}\n  use `format` to say which one it is", path.display(), formats)]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What was found in it.
        reason: String,
        /// The names of all formats.
        formats: String,
    },
    /// A store could not be asked, or has no such object.
    #[error("{url}: {cause}{}", remote_remedy(cause))]
    Remote {
        /// The object, as it was given.
        url: String,
        /// What the store said.
        #[source]
        cause: io::Error,
    },
    /// There was nothing to work on.
    #[error("no pages found in {inputs}{hint}")]
    NoPages {
        /// The inputs as they were given.
        inputs: String,
        /// What may have gone wrong, or nothing.
        hint: String,
    },
    /// There is something at the place of the output that is not a result of ours.
    #[error("{}: {reason}", path.display())]
    OutputNotOurs {
        /// The output directory.
        path: PathBuf,
        /// What is there, and what to do.
        reason: &'static str,
    },
    /// There is a result of another job at the place of the output.
    #[error("{}: holds a result of other inputs or settings; choose another `output`, or use `replace` to overwrite it", path.display())]
    OtherResult {
        /// The output directory.
        path: PathBuf,
    },
    /// A job that was to go on is over already: there is nothing to do.
    #[error("{}: is complete; there is nothing to resume", path.display())]
    Complete {
        /// The output directory.
        path: PathBuf,
    },
    /// Another run holds the lock on the output directory.
    #[error("{}: another lookalike run is writing here; wait for it or choose another `output`", path.display())]
    Locked {
        /// The output directory.
        path: PathBuf,
    },
    /// Another program writes to the index.
    #[error(
        "{}: another lookalike has this index open for writing (a server, or a command); ask that server, or wait until it has stopped",
        path.display()
    )]
    IndexLocked {
        /// The index.
        path: PathBuf,
    },
    /// There is no room for what is to be stored.
    #[error("{}: no space left to store anything; make room, and try again", path.display())]
    StoreFull {
        /// The index.
        path: PathBuf,
    },
    /// The store of an index cannot be used.
    #[error("{}: the store: {reason}", path.display())]
    Store {
        /// The index.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// An index that is served without being written to.
    #[error("{}: nothing is stored here: {reason}", path.display())]
    ReadOnly {
        /// The index.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The run was stopped by its [`Observer`](crate::Observer).
    #[error("the run was cancelled")]
    Cancelled,
    /// More is waiting to be stored than can wait.
    #[error("too many pages are waiting to be stored; try again in a moment")]
    Overloaded,
    /// Reading or writing failed.
    #[error("{}: cannot {action}: {cause}{}", path.display(), remedy(cause))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The verb: "read", "write", "create", ….
        action: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A record was unusable and `strict` was set.
    #[error("{0}; stopped here because of `strict` (without it, the record is skipped and counted)")]
    Strict(SkippedRecord),
    /// An input is not the same as it was a moment ago.
    #[error(
        "{source_name}: record {record} changed while the run was reading it; run again when nothing writes to the input"
    )]
    InputChanged {
        /// The source that changed.
        source_name: String,
        /// The record whose text is different now.
        record: u64,
    },
    /// The memory ceiling is below what the pages need at the least.
    #[error("`memory` {} is too little: {pages} pages need at least {} (base + {bytes_per_page} bytes per page)", crate::size::format_bytes(*given), crate::size::format_bytes(*needed))]
    MemoryFloor {
        /// The ceiling that was given.
        given: u64,
        /// The least that would do.
        needed: u64,
        /// Pages seen when the floor was reached.
        pages: u64,
        /// The cost of one page.
        bytes_per_page: u64,
    },
}

impl Error {
    /// An [`Error::InvalidSetting`].
    pub fn invalid(
        setting: impl Into<Cow<'static, str>>,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Error {
        Error::InvalidSetting { setting: setting.into(), value: value.to_string(), expected: expected.into() }
    }

    /// An [`Error::Conflict`].
    pub fn conflict(setting: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Error {
        Error::Conflict { setting: setting.into(), reason: reason.into() }
    }

    /// An [`Error::BadInput`] about a whole file.
    pub fn bad_input(path: &Path, reason: impl Into<String>) -> Error {
        Error::BadInput { path: path.to_path_buf(), line: None, reason: reason.into() }
    }

    /// An [`Error::BadInput`] about one line, counted from 1.
    pub fn bad_line(path: &Path, line: u64, reason: impl Into<String>) -> Error {
        Error::BadInput { path: path.to_path_buf(), line: Some(line), reason: reason.into() }
    }

    /// An [`Error::Corrupt`].
    pub fn corrupt(path: &Path, reason: impl Into<String>) -> Error {
        Error::Corrupt { path: path.to_path_buf(), reason: reason.into() }
    }

    /// An [`Error::Internal`].
    pub fn internal(reason: impl Into<String>) -> Error {
        Error::Internal { reason: reason.into() }
    }

    /// Whether whoever asked must ask for something else; everything else may work another time.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::InvalidSetting { .. } | Error::Conflict { .. } | Error::BadInput { .. })
    }

    /// The message, with settings named as the caller's users know them.
    ///
    /// Messages name settings in backquotes and snake case: `` `max_page` ``. The command line turns them into
    /// flags, the service into fields.
    ///
    /// ```
    /// use lookalike::Error;
    ///
    /// let error = Error::invalid("min_tokens", 0, "must be at least 1");
    /// assert_eq!(error.to_string(), "`min_tokens` 0: must be at least 1");
    /// let flag = |setting: &str| format!("--{}", setting.replace('_', "-"));
    /// assert_eq!(error.message(flag), "--min-tokens 0: must be at least 1");
    /// ```
    #[must_use]
    pub fn message(&self, name: impl Fn(&str) -> String) -> String {
        name_settings(&self.to_string(), name)
    }

    /// An [`Error::Io`] at `path`, shaped for `map_err`.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |cause| Error::Io { path, action, cause }
    }
}

/// Names in a message: the first ten, one per line, and how many more there are.
pub(crate) fn first_names<T: fmt::Display>(names: &[T]) -> String {
    const NAMED: usize = 10;
    let mut lines: Vec<String> = names.iter().take(NAMED).map(|name| format!("  {name}")).collect();
    if names.len() > NAMED {
        lines.push(format!("  … and {} more", names.len() - NAMED));
    }
    lines.join("\n")
}

/// A text with settings named as the caller's users know them; see [`Error::message`].
#[must_use]
pub fn name_settings(text: &str, name: impl Fn(&str) -> String) -> String {
    let is_setting = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let mut named = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        named.push_str(before);
        match after.split_once('`') {
            Some((word, behind)) if is_setting(word) => {
                named.push_str(&name(word));
                rest = behind;
            }
            _ => {
                named.push('`');
                rest = after;
            }
        }
    }
    named + rest
}

fn at_line(line: Option<u64>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}

fn remote_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; check the name (a folder ends with /)",
        io::ErrorKind::Unsupported => "",
        io::ErrorKind::PermissionDenied => {
            "; give credentials in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME …), or AWS_SKIP_SIGNATURE=true for a public bucket"
        }
        _ => {
            "; check the address and the environment (AWS_ENDPOINT_URL, AWS_REGION, …; AWS_ALLOW_HTTP=true for a store without TLS)"
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => {
            "; free some space and run again, or choose an `output` on another disk (nothing half-written was left)"
        }
        io::ErrorKind::PermissionDenied => "; check the permissions, or choose another path",
        _ => "",
    }
}

/// Why one record could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipKind {
    /// The line is not JSON, or not an object.
    BadJson,
    /// The record cannot be parsed as CSV.
    BadCsv,
    /// The record of a crawl or a marked-up corpus is not one.
    BadRecord,
    /// A revisit refers to a record that is not in the input.
    Revisit,
    /// The record has no text field.
    MissingField,
    /// A field is there, but is not of a type we can use.
    WrongType,
    /// The bytes are not UTF-8 where they must be.
    InvalidUtf8,
    /// The record is larger than `max_page`.
    TooLarge,
    /// Compressed data ends early or is damaged.
    Damaged,
    /// The file could not be read.
    Unreadable,
}

impl SkipKind {
    /// The name used in `skipped.jsonl` and `summary.json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SkipKind::BadJson => "bad_json",
            SkipKind::BadCsv => "bad_csv",
            SkipKind::BadRecord => "bad_record",
            SkipKind::Revisit => "revisit",
            SkipKind::MissingField => "missing_field",
            SkipKind::WrongType => "wrong_type",
            SkipKind::InvalidUtf8 => "invalid_utf8",
            SkipKind::TooLarge => "too_large",
            SkipKind::Damaged => "damaged",
            SkipKind::Unreadable => "unreadable",
        }
    }
}

/// A record that could not be used: what, where, why.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SkippedRecord {
    /// The kind it is counted under.
    pub kind: SkipKind,
    /// The source file.
    pub source: String,
    /// The record's number in the source, from 1; none if the whole source is meant.
    pub record: Option<u64>,
    /// The byte at which it starts, in the decompressed source.
    pub byte: Option<u64>,
    /// What is wrong, for a person.
    pub reason: String,
    /// Its first bytes, readable.
    pub first_bytes: String,
}

impl SkippedRecord {
    /// The first bytes of a record as printable text of bounded length.
    #[must_use]
    pub fn excerpt(bytes: &[u8]) -> String {
        const EXCERPT_BYTES: usize = 80;
        String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_BYTES)]).into_owned()
    }
}

impl fmt::Display for SkippedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(record) = self.record {
            write!(f, ": record {record}")?;
        }
        if let Some(byte) = self.byte {
            write!(f, " at byte {byte}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_as_the_caller_says_and_nothing_else_is_touched() {
        let flag = |setting: &str| format!("--{}", setting.replace('_', "-"));
        let error = Error::conflict("against", "is also the `output`; `A` and `a b` stay, and so does ` alone");
        assert_eq!(error.message(flag), "--against: is also the --output; `A` and `a b` stay, and so does ` alone");
        let error = Error::bad_line(Path::new("gold.tsv"), 3, "has no cluster");
        assert_eq!(error.message(flag), "gold.tsv: line 3: has no cluster");
    }

    #[test]
    fn what_the_system_said_is_the_source_of_an_error() {
        let error = Error::io(Path::new("x"), "read")(io::Error::other("gone"));
        assert_eq!(std::error::Error::source(&error).map(ToString::to_string).as_deref(), Some("gone"));
    }

    #[test]
    fn a_fault_of_ours_is_not_wrong_usage() {
        assert!(!Error::internal("a page without a number").is_usage());
        assert!(Error::invalid("radius", 99, "must be at most 15").is_usage());
    }
}
