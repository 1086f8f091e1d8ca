//! Two texts → what they share and where they differ, word by word.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Words of each text that are compared; the rest is said to be left out.
const MOST_WORDS: usize = 3000;
/// Shared words shown on each side of a difference.
const CONTEXT_WORDS: usize = 12;
/// Differing words shown in one place.
const SHOWN_WORDS: usize = 150;

/// A piece of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// In both.
    Shared(String),
    /// Words of both that are not shown.
    Omitted(usize),
    /// Only in the left text.
    Left(String),
    /// Only in the right text.
    Right(String),
}

/// Compares two texts.
pub(super) fn pieces(left: &str, right: &str) -> Vec<Piece> {
    let left: Vec<&str> = left.split_whitespace().take(MOST_WORDS).collect();
    let right: Vec<&str> = right.split_whitespace().take(MOST_WORDS).collect();
    let mut pieces = Vec::new();
    let operations = capture_diff_slices(Algorithm::Myers, &left, &right);
    let last = operations.len().saturating_sub(1);
    for (at, operation) in operations.iter().enumerate() {
        match *operation {
            DiffOp::Equal { old_index, len, .. } => {
                let words = &left[old_index..old_index + len];
                let before = if at == 0 { 0 } else { CONTEXT_WORDS };
                let after = if at == last { 0 } else { CONTEXT_WORDS };
                if len <= before + after + CONTEXT_WORDS {
                    pieces.push(Piece::Shared(words.join(" ")));
                    continue;
                }
                if before > 0 {
                    pieces.push(Piece::Shared(words[..before].join(" ")));
                }
                pieces.push(Piece::Omitted(len - before - after));
                if after > 0 {
                    pieces.push(Piece::Shared(words[len - after..].join(" ")));
                }
            }
            DiffOp::Delete { old_index, old_len, .. } => {
                pieces.push(Piece::Left(shorten(&left[old_index..old_index + old_len])));
            }
            DiffOp::Insert { new_index, new_len, .. } => {
                pieces.push(Piece::Right(shorten(&right[new_index..new_index + new_len])));
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                pieces.push(Piece::Left(shorten(&left[old_index..old_index + old_len])));
                pieces.push(Piece::Right(shorten(&right[new_index..new_index + new_len])));
            }
        }
    }
    pieces
}

fn shorten(words: &[&str]) -> String {
    if words.len() <= SHOWN_WORDS {
        return words.join(" ");
    }
    format!("{} … ({} more words)", words[..SHOWN_WORDS].join(" "), words.len() - SHOWN_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_shown_with_a_little_of_what_surrounds_them() {
        let words: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
        let left = words.join(" ");
        let right = left.replace("w50", "changed");
        let found = pieces(&left, &right);
        assert_eq!(found[0], Piece::Omitted(38));
        assert_eq!(found[2], Piece::Left("w50".to_owned()));
        assert_eq!(found[3], Piece::Right("changed".to_owned()));
        assert_eq!(found[5], Piece::Omitted(37));
    }

    #[test]
    fn equal_and_empty_texts() {
        assert_eq!(pieces("a b", "a b"), [Piece::Shared("a b".to_owned())]);
        assert_eq!(pieces("", "x"), [Piece::Right("x".to_owned())]);
        assert!(pieces("", "").is_empty());
    }
}
