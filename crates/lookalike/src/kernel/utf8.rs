//! Bytes as text, checked by vectors.
#![allow(unsafe_code)]

/// The text that the bytes are, if they are UTF-8.
#[must_use]
pub fn text_of_utf8(bytes: Vec<u8>) -> Option<String> {
    simdutf8::basic::from_utf8(&bytes).ok()?;
    // SAFETY: it was checked that the bytes are UTF-8.
    Some(unsafe { String::from_utf8_unchecked(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_check_of_the_standard_library(
            text in "\\PC{0,80}",
            damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut bytes = text.into_bytes();
            if let Some((at, byte)) = damage && !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            prop_assert_eq!(text_of_utf8(bytes.clone()), String::from_utf8(bytes).ok());
        }
    }
}
