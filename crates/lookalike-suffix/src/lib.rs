//! The public suffix list, compiled once.
//!
//! `psl` is 9,000 rules as generic code, which the compiler writes anew into every crate that calls it. A sixth of all
//! that was compiled for the library was this one list; here, it is compiled once, and beside other crates.

/// The registrable domain of a host: `bbc.co.uk` of `news.bbc.co.uk`; none if the host is a public suffix itself.
#[inline(never)]
#[must_use]
pub fn registrable_domain(host: &str) -> Option<&str> {
    psl::domain_str(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_below_suffixes_of_one_and_more_labels() {
        assert_eq!(registrable_domain("news.bbc.co.uk"), Some("bbc.co.uk"));
        assert_eq!(registrable_domain("example.org"), Some("example.org"));
        assert_eq!(registrable_domain("a.b.github.io"), Some("b.github.io"));
        assert_eq!(registrable_domain("co.uk"), None);
    }
}
