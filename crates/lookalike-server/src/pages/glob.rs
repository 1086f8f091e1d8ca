//! Patterns for URLs: `*` is any text, `?` any character, everything else itself.

/// Whether a text matches a pattern as a whole. Takes time in proportion to the product of their lengths at most.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut of_text) = (0, 0);
    // The last star, and where the text behind it was tried to begin.
    let mut star: Option<(usize, usize)> = None;
    while of_text < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, of_text));
                at += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == text[of_text] => {
                at += 1;
                of_text += 1;
            }
            _ => {
                // The star takes one character more.
                let Some((star_at, begin)) = star else { return false };
                star = Some((star_at, begin + 1));
                (at, of_text) = (star_at + 1, begin + 1);
            }
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a pattern means, without regard to time.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=text.len()).any(|taken| by_definition(rest, &text[taken..])),
            (Some((&wanted, rest)), Some((&first, others))) => {
                (wanted == '?' || wanted == first) && by_definition(rest, others)
            }
            _ => false,
        }
    }

    #[test]
    fn all_short_patterns_match_what_they_mean() {
        let words = |letters: &[char], length: u32| -> Vec<Vec<char>> {
            let count = letters.len().pow(length);
            let letter = |number: usize, at: u32| letters[number / letters.len().pow(at) % letters.len()];
            (0..count).map(|number| (0..length).map(|at| letter(number, at)).collect()).collect()
        };
        let patterns: Vec<Vec<char>> = (0..=4).flat_map(|length| words(&['a', 'é', '*', '?'], length)).collect();
        let texts: Vec<Vec<char>> = (0..=4).flat_map(|length| words(&['a', 'é'], length)).collect();
        for pattern in &patterns {
            for text in &texts {
                let (one, other): (String, String) = (pattern.iter().collect(), text.iter().collect());
                assert_eq!(matches(&one, &other), by_definition(pattern, text), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_pattern_of_many_stars_ends() {
        let text = "a".repeat(2000);
        assert!(!matches(&format!("{}b", "a*".repeat(200)), &text));
    }
}
