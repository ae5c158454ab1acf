//! Percent-encoding in the connection texts of servers: `%2F` is a slash.

/// Decodes a text; the error says what is wrong with it.
pub(crate) fn decode(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
            let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.ok_or("a % is followed by two hexadecimal digits")?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn encoded_texts_are_decoded_and_malformed_ones_refused() {
        assert_eq!(decode("caf%C3%A9%2Fdb%25").unwrap(), "café/db%");
        for wrong in ["50%", "%4", "%zz", "%+1", "%C3"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
