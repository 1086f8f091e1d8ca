//! Numbers as the bytes that are stored of them.
#![allow(unsafe_code)]

/// The bytes of `numbers`, each little-endian; where the machine has them otherwise, they are made in `room`.
#[inline]
#[must_use]
pub fn le_bytes<'a>(numbers: &'a [u64], room: &'a mut Vec<u8>) -> &'a [u8] {
    if cfg!(target_endian = "little") {
        // SAFETY: every byte of a number is a byte, and the slice has as many as the numbers take.
        return unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) };
    }
    le_bytes_safe(numbers, room)
}

/// The same on any machine.
#[must_use]
pub fn le_bytes_safe<'a>(numbers: &[u64], room: &'a mut Vec<u8>) -> &'a [u8] {
    room.clear();
    room.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_give_the_same_bytes() {
        let numbers: Vec<u64> = (0..20u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for length in 0..numbers.len() {
            let (mut one, mut other) = (Vec::new(), vec![7]);
            assert_eq!(le_bytes(&numbers[..length], &mut one), le_bytes_safe(&numbers[..length], &mut other));
        }
    }
}
