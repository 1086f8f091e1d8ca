//! Numbers as people read them.

/// What can be counted. Templates pass references.
pub(crate) trait Count {
    /// The count.
    fn count(&self) -> u64;
}

impl Count for u64 {
    fn count(&self) -> u64 {
        *self
    }
}

impl Count for u32 {
    fn count(&self) -> u64 {
        u64::from(*self)
    }
}

impl Count for usize {
    fn count(&self) -> u64 {
        *self as u64
    }
}

impl<C: Count> Count for &C {
    fn count(&self) -> u64 {
        (*self).count()
    }
}

/// A number with a comma every three digits.
pub(crate) fn thousands(number: impl Count) -> String {
    let digits = number.count().to_string();
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
pub(crate) fn counted(number: impl Count, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number.count()), if number.count() == 1 { "" } else { "s" })
}

/// A share as percent with one digit.
pub(crate) fn percent(part: impl Count, whole: impl Count) -> String {
    format!("{:.1} %", part.count() as f64 * 100.0 / whole.count().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_nouns_agree() {
        assert_eq!(thousands(1_234_567u64), "1,234,567");
        assert_eq!(thousands(999u32), "999");
        assert_eq!([0u64, 1, 2000].map(|number| counted(number, "page")), ["0 pages", "1 page", "2,000 pages"]);
        assert_eq!(percent(1u64, 3usize), "33.3 %");
    }
}
