//! The configurations of a dataset: which of its files can be loaded together.
//!
//! In: a directory of records, as it was written. Out: its files in groups that have the same columns, the largest group
//! first: a loader takes the columns of the first file for those of all. JSON lines say their fields record by record, and
//! are one group.

use std::fs;
use std::path::Path;

use arrow_schema::Schema;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::page::SourceId;
use crate::read::{Annotations, ArrowStream, Corpus, Input, known_source, open_typed_parquet};
use crate::report::sinks::kept_dataset;

/// The names of a file's columns with their types; with the delimiter in tables, which have no types.
type Columns = Vec<(String, String)>;

/// Files with the same columns, by their paths below the directory, ascending.
pub(super) struct Group {
    pub(super) files: Vec<String>,
    columns: Columns,
    rows: u64,
}

/// The files of a directory by their columns. What cannot be read is in none of the groups.
pub(super) fn groups(directory: &Path, config: &Config) -> Result<Vec<Group>> {
    let mut files = Vec::new();
    list(directory, "", &mut files)?;
    files.sort_unstable();
    let mut groups: Vec<Group> = Vec::new();
    for name in files {
        let path = directory.join(&name);
        let Ok(source) = known_source(&path.to_string_lossy(), &name, None) else { continue };
        let Some((columns, rows)) = columns(&config.corpus(vec![source])) else { continue };
        match groups.iter_mut().find(|group| group.columns == columns) {
            Some(group) => {
                group.files.push(name);
                group.rows += rows;
            }
            None => groups.push(Group { files: vec![name], columns, rows }),
        }
    }
    // Among equals, the order of the names stays.
    groups.sort_by_key(|group| std::cmp::Reverse((group.rows, group.files.len())));
    Ok(groups)
}

fn list(directory: &Path, before: &str, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(directory).map_err(Error::io(directory, "read"))? {
        let path = entry.map_err(Error::io(directory, "read"))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            list(&path, &format!("{before}{name}/"), files)?;
        } else if !kept_dataset::DESCRIPTIONS.contains(&name.as_str()) {
            files.push(format!("{before}{name}"));
        }
    }
    Ok(())
}

/// The columns of the one file of a corpus, and its rows where the file says their number.
fn columns(corpus: &Corpus) -> Option<(Columns, u64)> {
    let source = corpus.sources.first()?;
    match source.format.reader().annotations()? {
        Annotations::Object => Some((Columns::new(), 0)),
        Annotations::Table(open) => {
            let head = open(&Input { corpus, id: SourceId::from_index(0) })?;
            let delimiter = char::from(head.delimiter).to_string();
            Some((head.names.into_iter().map(|name| (name, delimiter.clone())).collect(), 0))
        }
        Annotations::Rows => {
            let opened = open_typed_parquet(&source.location).ok()?;
            let rows = u64::try_from(opened.metadata().file_metadata().num_rows()).unwrap_or(0);
            Some((of_schema(opened.schema()), rows))
        }
        Annotations::ArrowRows => {
            let file = source.location.open().and_then(|file| source.compression.decode(file)).ok()?;
            Some((of_schema(&ArrowStream::open(file).ok()?.schema), 0))
        }
    }
}

fn of_schema(schema: &Schema) -> Columns {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
}
