//! Bearer tokens: a file with one a line.

use ring::hmac;
use ring::rand::SystemRandom;

/// One for each server that scrapes.
const TOKENS_MAX: usize = 1000;
const BYTES_MAX: usize = 4096;

/// The accepted tokens, by hashes with a key of this process.
pub(super) struct Tokens {
    key: hmac::Key,
    tags: Vec<hmac::Tag>,
}

impl Tokens {
    /// Reads the text of a file. Empty lines and those that begin with # are left out.
    ///
    /// # Errors
    /// The defect, without the token.
    pub fn parse(text: &str, random: &SystemRandom) -> Result<Tokens, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, random).map_err(|_| "no random numbers")?;
        let mut tags = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.len() > BYTES_MAX || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!("line {} is not a token: it has spaces or is too long", number + 1));
            }
            tags.push(hmac::sign(&key, line.as_bytes()));
        }
        match tags.len() {
            0 => Err("it has no token".into()),
            count if count > TOKENS_MAX => Err(format!("it has {count} tokens: give up to {TOKENS_MAX}")),
            _ => Ok(Tokens { key, tags }),
        }
    }

    /// Whether it is one of them. The time depends on the hashes, which reveal nothing about a token without the key.
    pub fn accept(&self, token: &[u8]) -> bool {
        let tag = hmac::sign(&self.key, token);
        self.tags.iter().any(|accepted| accepted.as_ref() == tag.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Tokens, String> {
        Tokens::parse(text, &SystemRandom::new())
    }

    #[test]
    fn each_line_is_a_token() {
        let tokens = parse("# of Prometheus\nabc123\n\n  def/456+==  \r\n").unwrap();
        for (token, accepted) in [
            ("abc123", true),
            ("def/456+==", true),
            ("abc12", false),
            ("abc1234", false),
            ("", false),
            ("# of Prometheus", false),
            ("abc123\n", false),
        ] {
            assert_eq!(tokens.accept(token.as_bytes()), accepted, "{token:?}");
        }
    }

    #[test]
    fn a_file_without_a_token_or_with_another_text_is_refused_without_showing_it() {
        for (text, expected) in [
            ("\n# only this\n".to_owned(), "it has no token"),
            ("fine\nsesame opens\n".into(), "line 2 is not a token"),
            ("sesäme".into(), "line 1 is not a token"),
            ("sesame".repeat(BYTES_MAX), "line 1 is not a token"),
            ("sesame\n".repeat(TOKENS_MAX + 1), "it has 1001 tokens"),
        ] {
            let error = parse(&text).err().unwrap();
            assert!(error.contains(expected) && !error.contains("sesame"), "{error}");
        }
    }
}
