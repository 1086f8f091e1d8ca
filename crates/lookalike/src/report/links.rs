//! Where the original of a page is: what a page for people links to.

use std::path::{Component, Path, PathBuf};

/// The address of a page, if a browser can go there without running anything.
pub(crate) fn web_address(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once("://")?;
    ["http", "https", "ftp"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(url)
}

/// The way from a directory to a file, both as they were given, with slashes; none where there is no way, as between two
/// drives. Browsers resolve `..` by names alone, and so does this.
pub(crate) fn relative_path(directory: &Path, file: &Path) -> Option<String> {
    let (from, to) = (plain(directory)?, plain(file)?);
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    // At least the root, or the drive.
    if shared == 0 {
        return None;
    }
    let up = from.components().skip(shared).map(|_| "..".to_owned());
    let down = to.components().skip(shared).map(|part| part.as_os_str().to_string_lossy().into_owned());
    Some(up.chain(down).collect::<Vec<_>>().join("/"))
}

/// An absolute path without `.` and `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path).ok()?.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// A relative path as a link, for templates.
pub(crate) fn path_link(path: &str) -> String {
    let mut link = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            link.push(char::from(byte));
        } else {
            link.push_str(&format!("%{byte:02X}"));
        }
    }
    // A first part with a colon would be taken for a scheme.
    if link.starts_with('/') { link } else { format!("./{link}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_run_something_are_not_linked() {
        assert_eq!(web_address("https://a.example/x"), Some("https://a.example/x"));
        assert_eq!(web_address("HTTP://a.example/"), Some("HTTP://a.example/"));
        for bad in ["javascript:alert(1)", "data:text/html,x", "a.example/x", "", "javascript://a.example/%0aalert(1)"]
        {
            assert_eq!(web_address(bad), None, "{bad}");
        }
    }

    #[test]
    fn files_are_found_from_the_directory_of_the_page() {
        let way = |from: &str, to: &str| relative_path(Path::new(from), Path::new(to)).unwrap();
        assert_eq!(way("/data/out", "/data/pages/a b.html"), "../pages/a b.html");
        assert_eq!(way("out", "pages/a.html"), "../pages/a.html");
        assert_eq!(way("./x/../out", "./out/a.html"), "a.html");
        assert_eq!(path_link("../pages/a b#1.html"), "./../pages/a%20b%231.html");
    }
}
