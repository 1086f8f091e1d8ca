//! Templates and values → text → files.

use std::path::Path;

use askama::Template;
use serde::Serialize;

use crate::error::{Error, Result};

/// A page from its template.
pub(crate) fn html(template: &impl Template) -> Result<String> {
    template.render().map_err(|error| Error::internal(format!("a template could not be rendered: {error}")))
}

/// Pretty-printed JSON that ends with a newline.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::internal(format!("a value could not be serialised: {error}")))?;
    Ok(text + "\n")
}

/// One line of JSON lines.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::internal(format!("a value could not be serialised: {error}")))?;
    Ok(text + "\n")
}

/// Refuses a name for a page that one of the files beside it would take.
pub(crate) fn check_page_name(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|ending| ending == "json" || ending == "csv") {
        let expected = "must name the page; a JSON and a CSV file are written beside it, with these endings";
        return Err(Error::invalid("report", path.display(), expected));
    }
    Ok(())
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, text).map_err(Error::io(path, "write"))
}
