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

/// A share with some digits, as tables show it. What is less than 1 is never shown as 1.
#[must_use]
pub fn shown_share(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if value < 1.0 && text == format!("{:.digits$}", 1.0) { format!("0.{}", "9".repeat(digits)) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_one_is_not_shown_as_one() {
        let shown = [1.0, 0.9997, 0.999_999_9, 0.9994, 0.0, f64::NAN].map(|value| shown_share(value, 3));
        assert_eq!(shown, ["1.000", "0.999", "0.999", "0.999", "0.000", "NaN"]);
        assert_eq!([1.0, 0.99999].map(|value| shown_share(value, 4)), ["1.0000", "0.9999"]);
    }

    #[test]
    fn numbers_are_grouped_and_nouns_agree() {
        assert_eq!(thousands(1_234_567u64), "1,234,567");
        assert_eq!(thousands(999u32), "999");
        assert_eq!([0u64, 1, 2000].map(|number| counted(number, "page")), ["0 pages", "1 page", "2,000 pages"]);
        assert_eq!(percent(1u64, 3usize), "33.3 %");
    }
}
