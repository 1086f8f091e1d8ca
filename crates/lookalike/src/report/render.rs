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

/// Writes a whole file.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, text).map_err(Error::io(path, "write"))
}
