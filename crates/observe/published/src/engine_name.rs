use crate::layout::ENGINE_BYTES_MAX;
use std::fmt;

/// The name of an engine: 1 to 16 of a-z and 0-9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineName {
    /// Filled up with zeros.
    bytes: [u8; ENGINE_BYTES_MAX],
}

impl EngineName {
    /// A name; `None` for any other text.
    pub fn parse(text: &str) -> Option<EngineName> {
        let mut bytes = [0; ENGINE_BYTES_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        EngineName::from_bytes(bytes).filter(|name| name.as_str() == text)
    }

    /// The name in a head, which is filled up with zeros.
    pub(crate) fn from_bytes(bytes: [u8; ENGINE_BYTES_MAX]) -> Option<EngineName> {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(ENGINE_BYTES_MAX);
        let (name, rest) = bytes.split_at(length);
        let is_part = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = length > 0 && name.iter().all(is_part) && rest.iter().all(|byte| *byte == 0);
        is_name.then_some(EngineName { bytes })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(ENGINE_BYTES_MAX);
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl fmt::Debug for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lower_case_letters_and_digits() {
        assert_eq!(EngineName::parse("sqlite").unwrap().as_str(), "sqlite");
        assert_eq!(EngineName::parse("abcdefgh01234567").unwrap().to_string(), "abcdefgh01234567");
        for text in ["", "SQLite", "a b", "\u{202e}", "abcdefgh012345678", "a\0b"] {
            assert!(EngineName::parse(text).is_none(), "{text:?}");
        }
    }
}
