//! Sizes in bytes, read and written for people.

/// A size such as `512MB`, `2GiB`, `1.5g` or `4096` in bytes.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let help = || format!("'{text}' is not a size; write for example 512MB, 2GiB or 4096");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..split].parse().map_err(|_| help())?;
    let unit: f64 = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "tb" => 1e12,
        _ => return Err(help()),
    };
    let bytes = number * unit;
    if !bytes.is_finite() || bytes < 0.0 || bytes > 2f64.powi(60) {
        return Err(help());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 ..= 2^60, checked above
    Ok(bytes as u64)
}

/// Bytes for people: `1.5 GiB`, `320 MiB`, `17 B`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 100.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_both_kinds_of_units() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("1k"), Ok(1024));
        assert_eq!(parse_bytes("2MB"), Ok(2_000_000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(1_610_612_736));
        assert!(parse_bytes("lots").is_err());
        assert!(parse_bytes("").is_err());
        assert!(parse_bytes("5 parsec").is_err());
    }

    #[test]
    fn sizes_are_written_for_people() {
        assert_eq!(format_bytes(17), "17 B");
        assert_eq!(format_bytes(1536), "1.5 KiB");
        assert_eq!(format_bytes(320 << 20), "320 MiB");
    }
}
