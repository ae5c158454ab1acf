//! Parsing that the connection texts of several servers have in common.

/// Why a text with a password is refused.
pub(crate) const PASSWORD_IS_VISIBLE: &str =
    "a password in the connection text is visible to everybody on this machine";

/// Splits `HOST[:PORT]` or `[IPV6][:PORT]`, with this separator in place of the colon.
pub(crate) fn host_and_port(text: &str, separator: char) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((ipv6, rest)) => (ipv6, rest.strip_prefix(separator)),
        None => text.split_once(separator).map_or((text, None), |(host, port)| (host, Some(port))),
    };
    match port.map(|port| port.parse().ok().filter(|port| *port > 0)) {
        Some(None) => Err("the port is not a number from 1 to 65535"),
        port => Ok((host, port.flatten())),
    }
}

/// Why an option is refused. Its name is not repeated: it may be a piece of a password.
pub(crate) fn no_such_option(options: &[&str]) -> String {
    format!("there is no such option; there are {}", options.join(", "))
}

/// Decodes percent-encoding: `%2F` is a slash. The error names the defect of the text.
pub(crate) fn percent_decode(text: &str) -> Result<String, &'static str> {
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
    use super::percent_decode;

    #[test]
    fn encoded_texts_are_decoded_and_malformed_ones_refused() {
        assert_eq!(percent_decode("caf%C3%A9%2Fdb%25").unwrap(), "café/db%");
        for wrong in ["50%", "%4", "%zz", "%+1", "%C3"] {
            assert!(percent_decode(wrong).is_err(), "{wrong}");
        }
    }
}
