//! Numbers and sizes, read strictly: what is left over is an error.

/// Splits off leading digits: their value, and the rest. `Err` says why there is none.
pub fn leading(text: &str) -> Result<(u64, &str), &'static str> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return Err("a number is missing");
    }
    let value = text[..end].parse().map_err(|_| "the number is too large")?;
    Ok((value, &text[end..]))
}

/// A whole number within bounds.
pub fn whole(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let (value, rest) = leading(text)?;
    if !rest.is_empty() {
        return Err(format!("'{rest}' stands after the number"));
    }
    match u32::try_from(value) {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ if most == u32::MAX => Err(format!("give a whole number of at least {least}, below 2^32")),
        _ => Err(format!("give a whole number from {least} to {most}")),
    }
}

/// Splits off a size: digits and at most one of K M G T b, in either case.
pub fn leading_size(text: &str, block_bytes: u64) -> Result<(u64, &str), &'static str> {
    let (value, rest) = leading(text)?;
    let scale = match rest.bytes().next().map(|byte| byte.to_ascii_uppercase()) {
        Some(b'K') => 1 << 10,
        Some(b'M') => 1 << 20,
        Some(b'G') => 1 << 30,
        Some(b'T') => 1 << 40,
        Some(b'B') => block_bytes,
        _ => return Ok((value, rest)),
    };
    let bytes = value.checked_mul(scale).ok_or("the size is 2^64 bytes or more")?;
    Ok((bytes, &rest[1..]))
}

/// A size and nothing after it.
pub fn size(text: &str, block_bytes: u64) -> Result<u64, String> {
    let (bytes, rest) = leading_size(text, block_bytes)?;
    if rest.is_empty() {
        Ok(bytes)
    } else {
        Err(format!("'{rest}' stands after the size; a size ends in one of K M G T b, or in none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_with_one_suffix() {
        let sizes = [("0", 0), ("4096", 4096), ("4k", 4096), ("4K", 4096), ("1m", 1 << 20), ("2G", 2 << 30)];
        for (text, bytes) in sizes.into_iter().chain([("3t", 3 << 40), ("8b", 65536), ("8B", 65536)]) {
            assert_eq!(size(text, 8192), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "K",
            "4KK",
            "4KiB",
            "1.5G",
            "-1",
            "+1",
            " 4",
            "4 ",
            "4x",
            "16777216T",
            "99999999999999999999",
        ] {
            assert!(size(text, 8192).is_err(), "{text}");
        }
        assert_eq!(size("16777215T", 1), Ok(16_777_215 << 40));
    }

    #[test]
    fn counts_have_bounds_and_nothing_behind_them() {
        assert_eq!(whole("4", 1, 100), Ok(4));
        assert_eq!(whole("4294967295", 0, u32::MAX), Ok(u32::MAX));
        for text in ["", "0", "101", "4x", "x4", "1e2", "4294967296", "99999999999999999999999"] {
            assert!(whole(text, 1, 100).is_err(), "{text}");
        }
    }
}
