//! A text as the words that are compared.

use crate::text::is_unspaced;

/// A word, and whether white space follows it. In scripts without spaces every character is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    space_after: bool,
}

/// The words of a text.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for chunk in text.split_whitespace() {
        let mut from = 0;
        for (at, c) in chunk.char_indices().filter(|(_, c)| is_unspaced(*c)) {
            if at > from {
                words.push(Word { text: &chunk[from..at], space_after: false });
            }
            from = at + c.len_utf8();
            words.push(Word { text: &chunk[at..from], space_after: false });
        }
        if from < chunk.len() {
            words.push(Word { text: &chunk[from..], space_after: false });
        }
        if let Some(last) = words.last_mut() {
            last.space_after = true;
        }
    }
    words
}

/// Words as a text again, with single spaces.
pub(super) fn join(words: &[Word<'_>]) -> String {
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        text.push_str(word.text);
        if word.space_after && at + 1 < words.len() {
            text.push(' ');
        }
    }
    text
}
