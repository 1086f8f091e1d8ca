//! Numbers as people read them.

use std::borrow::Borrow;

/// A number with a comma every three digits.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number and what it counts: `1 page`, `2 pages`.
///
/// Templates pass references.
pub(crate) fn counted(number: impl Borrow<u64>, noun: &str) -> String {
    let number = *number.borrow();
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// A share as percent with one digit.
pub(crate) fn percent(part: impl Borrow<u64>, whole: impl Borrow<u64>) -> String {
    format!("{:.1} %", *part.borrow() as f64 * 100.0 / (*whole.borrow()).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_nouns_agree() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(999), "999");
        assert_eq!([0, 1, 2000].map(|number| counted(number, "page")), ["0 pages", "1 page", "2,000 pages"]);
        assert_eq!(percent(1, 3), "33.3 %");
    }
}
