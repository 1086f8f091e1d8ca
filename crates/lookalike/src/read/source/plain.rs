//! Small text files that are read whole: judgments, lists, labels.

use std::path::Path;

use crate::error::{Error, Result};

/// The text of a file, without a byte order mark.
///
/// # Errors
/// When it is not there, cannot be read, or is not UTF-8; with the line, where it is known.
pub(crate) fn plain_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound { path: path.to_path_buf() },
        _ => Error::io(path, "read")(cause),
    })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            let reason = format!("is not UTF-8 text (byte {at}); convert it, or unpack it if it is compressed");
            Err(Error::bad_line(path, line as u64, reason))
        }
    }
}
