use crate::answer::Refused;

/// The part of an address behind the question mark.
pub(crate) struct Query<'a>(pub &'a str);

impl Query<'_> {
    /// The value of a key, decoded; the first where there are several.
    pub fn text(&self, key: &str) -> Option<String> {
        let pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| decoded(value))
    }

    /// A number, or `otherwise` where there is none.
    pub fn number(&self, key: &str, otherwise: i128) -> Result<i128, Refused> {
        let Some(text) = self.text(key) else { return Ok(otherwise) };
        text.parse().map_err(|_| {
            Refused::wrong(
                format!("{key} is not a whole number: {text}"),
                "nanoseconds since 1970, or negative ones before now",
            )
        })
    }
}

/// Percent-encoding as in RFC 3986, and + for a space.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, left) = match (first, after) {
            (b'%', [high, low, left @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high * 16 + low, left),
                _ => (b'%', after),
            },
            (b'+', _) => (b' ', after),
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_decoded_and_a_broken_escape_is_kept() {
        let query = Query("volume=ab12&path=/data/a%20b+c%C3%A9%2&path=second&from=-900");
        assert_eq!(query.text("path").unwrap(), "/data/a b cé%2");
        assert_eq!((query.number("from", 0).unwrap(), query.number("to", 7).unwrap()), (-900, 7));
        assert!(query.number("volume", 0).is_err() && query.text("none").is_none());
    }
}
