//! Entities in a text → the characters that they stand for.
//!
//! In: a piece of text from markup. Out: the same with every entity decoded, as the HTML standard says. Those that are in
//! use everywhere are decoded here; all others are left to a library that knows the two thousand there are, and what
//! may follow them.

use memchr::memchr;

/// Entities that are in use everywhere, and what each stands for.
const USUAL: [(&str, &str); 8] = [
    ("lt;", "<"),
    ("gt;", ">"),
    ("amp;", "&"),
    ("quot;", "\""),
    ("nbsp;", "\u{a0}"),
    ("#39;", "'"),
    ("#160;", "\u{a0}"),
    ("#x27;", "'"),
];

/// Adds a text with its entities decoded.
pub(super) fn push_unescaped(mut text: &str, out: &mut String) {
    while let Some(at) = memchr(b'&', text.as_bytes()) {
        let entity = &text[at + 1..];
        let usual = USUAL.iter().find_map(|(name, what)| Some((entity.strip_prefix(name)?, what)));
        if let Some((rest, what)) = usual {
            out.push_str(&text[..at]);
            out.push_str(what);
            text = rest;
        } else {
            // No entity goes beyond the start of the next one.
            let end = memchr(b'&', entity.as_bytes()).map_or(text.len(), |next| at + 1 + next);
            out.push_str(&htmlize::unescape(&text[..end]));
            text = &text[end..];
        }
    }
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unescaped(text: &str) -> String {
        let mut out = String::new();
        push_unescaped(text, &mut out);
        out
    }

    #[test]
    fn usual_entities_are_what_the_standard_says() {
        for (name, what) in USUAL {
            let entity = format!("&{name}");
            assert_eq!(htmlize::unescape(&entity), what);
            assert_eq!(unescaped(&format!("a{entity}{entity}b")), format!("a{what}{what}b"));
        }
    }

    proptest! {
        #[test]
        fn equals_the_library(text in "(&|lt|gt;|amp;|amp|#39|#x27;|#0|;|nbsp;|notin;|copy|hellip;|x|é| ){0,30}") {
            prop_assert_eq!(unescaped(&text), htmlize::unescape(&text));
        }
    }
}
