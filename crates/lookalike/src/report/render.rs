//! Templates and values → text → files.
//!
//! Every page carries a Content-Security-Policy that lets nothing in but the page's own style and script, by their
//! hashes: whatever a crawled page smuggles into its title or its id, a browser neither runs nor loads it.

use std::path::Path;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// What stands in a template for the policy, until the hashes are known.
pub(crate) const POLICY: &str = "content-security-policy";

/// A page from its template.
pub(crate) fn html(template: &impl Template) -> Result<String> {
    let page =
        template.render().map_err(|error| Error::internal(format!("a template could not be rendered: {error}")))?;
    // The first one is that of the template: what pages say comes later.
    Ok(page.replacen(POLICY, &policy(&page), 1))
}

/// The policy of a page. Its own elements are written without attributes, and what it quotes is escaped.
fn policy(page: &str) -> String {
    let hashes = |name: &str| {
        let (start, end) = (format!("<{name}>"), format!("</{name}>"));
        let bodies = page.split(&start).skip(1).filter_map(|rest| rest.split_once(&end));
        let hashes: String =
            bodies.map(|(body, _)| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(body)))).collect();
        if hashes.is_empty() { " 'none'".to_owned() } else { hashes }
    };
    format!(
        "default-src 'none'; style-src{}; script-src{}; base-uri 'none'; form-action 'none'",
        hashes("style"),
        hashes("script")
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_has_the_hash_of_every_style_and_script_of_the_page() {
        // As `printf 'alert(1)' | openssl dgst -sha256 -binary | base64` has it.
        let page = "<style>b{}</style><script>alert(1)</script><script type=\"text/plain\">x</script>&lt;script>y";
        let found = policy(page);
        assert!(found.contains("script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';"), "{found}");
        assert_eq!(found.matches("sha256-").count(), 2, "{found}");
        assert!(policy("<p>").contains("style-src 'none'; script-src 'none'"));
    }
}
