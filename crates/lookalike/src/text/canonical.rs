//! Text → the canonical form that is cut into chunks.
//!
//! In: text, as a page shows it. Out: lower case; no bullets, no numbering such as `a.1`, `1.2.3` or
//! `(b)`, no colons; dashes and quotes are blanks; white space is one blank. So that a page that was
//! only reformatted stays the same. Jain et al. 2005, §3.

/// Appends the canonical form of `text` to `canonical`.
pub fn canonical(text: &str, canonical: &mut String) {
    if text.is_ascii() {
        ascii(text, canonical);
    } else {
        unicode(text, canonical);
    }
}

/// The same for plain ASCII: whole words at a time.
fn ascii(text: &str, canonical: &mut String) {
    let from = canonical.len();
    let is_blank = |byte: &u8| matches!(byte, b'\t'..=b'\r' | b' ' | b'-' | b'"' | b'\'' | b'`');
    let mut rest = text;
    while let Some(start) = rest.as_bytes().iter().position(|byte| !is_blank(byte)) {
        let word = &rest[start..];
        let end = word.as_bytes().iter().position(is_blank).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        rest = behind;
        let before = canonical.len();
        if before > 0 {
            canonical.push(' ');
        }
        let start = canonical.len();
        word.split([':', '*']).for_each(|part| canonical.push_str(part));
        if is_left_out(&canonical[start..]) {
            canonical.truncate(before);
        }
    }
    canonical.as_mut_str()[from..].make_ascii_lowercase();
}

fn unicode(text: &str, canonical: &mut String) {
    for word in text.split(is_blank) {
        let before = canonical.len();
        if before > 0 {
            canonical.push(' ');
        }
        let start = canonical.len();
        for c in word.chars().filter(|&c| !is_dropped(c)) {
            if c.is_ascii() {
                canonical.push(c.to_ascii_lowercase());
            } else {
                canonical.extend(c.to_lowercase());
            }
        }
        if is_left_out(&canonical[start..]) {
            canonical.truncate(before);
        }
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '-' | '"' | '\'' | '`' | '\u{2010}'..='\u{2015}' | '\u{2018}'..='\u{201f}' | '«' | '»' | '‹' | '›')
}

fn is_dropped(c: char) -> bool {
    matches!(
        c,
        ':' | '*' | '•' | '‣' | '◦' | '▪' | '▫' | '■' | '□' | '●' | '○' | '·' | '➢' | '►' | '\u{2212}' | '\u{ff1a}'
    )
}

/// Whether nothing of a word stays. Bullets and colons are gone by then, as a numbering may stand behind a bullet: `*1.`
fn is_left_out(word: &str) -> bool {
    word.is_empty() || is_numbering(word)
}

/// Characters of a part of a numbering, at the most.
const LONGEST_PART: usize = 4;

/// `a.1`, `1.2.3`, `1.`, `a)`, `(iv)`, but not `3.5` or `e.g.`.
fn is_numbering(word: &str) -> bool {
    let inner = word.strip_prefix('(').unwrap_or(word);
    let ended = inner.strip_suffix([')', '.']);
    let is_marked = ended.is_some_and(|rest| !rest.is_empty());
    let inner = ended.unwrap_or(inner);
    // Nearly all words end here: one part, and not short or not marked.
    if !inner.contains('.') && (!is_marked || inner.len() > LONGEST_PART) {
        return false;
    }
    let is_number = |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let is_letter = |part: &str| part.len() == 1 && part.bytes().all(|b| b.is_ascii_alphabetic());
    let is_roman =
        |part: &str| part.len() <= LONGEST_PART && word.ends_with(')') && part.bytes().all(|b| b"ivxIVX".contains(&b));
    let parts: Vec<&str> = inner.split('.').collect();
    if !parts.iter().all(|part| is_number(part) || is_letter(part) || is_roman(part)) {
        return false;
    }
    match parts.len() {
        1 => is_marked,
        // `3.5` is a number, `e.g.` an abbreviation.
        2 => parts.iter().any(|part| is_number(part)) && (is_marked || !parts.iter().all(|part| is_number(part))),
        _ => parts.iter().any(|part| is_number(part)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> String {
        let mut out = String::new();
        canonical(text, &mut out);
        out
    }

    #[test]
    fn bullets_numbering_colons_dashes_and_quotes() {
        assert_eq!(of("a.1 Apples: the “red”  ones"), "apples the red ones");
        assert_eq!(of("• One\n* Two\n1.2.3 Three\n(b) four iv) five 2. six"), "one two three four five six");
        assert_eq!(of("•1. One\n*a) Two\n2.: Three (b): four \u{212a}. five"), "one two three four five");
        assert_eq!(of("long—dash and re-use"), "long dash and re use");
        assert_eq!(of("pi is 3.5, e.g. about 3.14"), "pi is 3.5, e.g. about 3.14");
        assert_eq!(of(""), "");
        assert_eq!(of(" : * "), "");
        assert_eq!(of("ÄRGER 日本語：テスト"), "ärger 日本語テスト");
    }

    proptest! {
        #[test]
        fn plain_ascii_is_no_exception(text in "[ -~\t\n]{0,80}|([a-c1-3(). :*'-]{0,30})") {
            let (mut fast, mut slow) = ("x".to_owned(), "x".to_owned());
            ascii(&text, &mut fast);
            unicode(&text, &mut slow);
            prop_assert_eq!(fast, slow);
        }
    }

    proptest! {
        #[test]
        fn white_space_and_case_do_not_matter(words in prop::collection::vec("[a-zA-Z]{2,9}", 0..20)) {
            prop_assert_eq!(of(&words.join(" ")), of(&words.join("\n \t").to_ascii_uppercase()));
        }

        #[test]
        fn the_canonical_form_is_its_own(text in "\\PC{0,60}|[aAiIvX\u{212a}İ1-3.():*•·− \t'–-]{0,30}") {
            let once = of(&text);
            prop_assert_eq!(of(&once), once.as_str());
            prop_assert!(!once.contains("  ") && !once.starts_with(' ') && !once.ends_with(' '));
            prop_assert!(!once.contains(|c: char| is_dropped(c) || (is_blank(c) && c != ' ')), "{}", once);
            prop_assert!(!once.split(' ').any(is_numbering), "{}", once);
            prop_assert!(once.chars().all(|c| c.to_lowercase().eq([c])), "{}", once);
        }
    }
}
