use crate::profile::{CacheMode, Target};

/// The letters of `-S` and `-h` of the whole command line; each property may be set once.
#[derive(Default)]
pub struct Caching {
    cache: Option<CacheMode>,
    write_through: bool,
    mapped: bool,
}

impl Caching {
    /// Takes the letters after `-S`; none are `u`. `d` and `s` are the names of
    /// `u` and `w` in the Linux port of diskspd.
    pub fn add(&mut self, letters: &str) -> Result<(), String> {
        for letter in if letters.is_empty() { "u" } else { letters }.chars() {
            match letter {
                'b' => self.cache(CacheMode::Cached, letter)?,
                'r' => self.cache(CacheMode::RemoteOnly, letter)?,
                'u' | 'd' => self.cache(CacheMode::Unbuffered, letter)?,
                'w' | 's' => self.write_through(letter)?,
                'h' => {
                    self.cache(CacheMode::Unbuffered, letter)?;
                    self.write_through(letter)?;
                }
                'm' if self.mapped => return Err(twice(letter)),
                'm' if self.cache == Some(CacheMode::Unbuffered) => return Err(MAPPED.into()),
                'm' => self.mapped = true,
                other => return Err(format!("'{other}' is none of b h m r u w")),
            }
        }
        Ok(())
    }

    /// Applies them to a target.
    pub fn apply(&self, target: &mut Target) {
        target.cache = self.cache.unwrap_or_default();
        target.write_through = self.write_through;
        target.mapped = self.mapped;
    }

    fn cache(&mut self, mode: CacheMode, letter: char) -> Result<(), String> {
        if self.cache.is_some() {
            return Err(twice(letter));
        }
        if mode == CacheMode::Unbuffered && self.mapped {
            return Err(MAPPED.into());
        }
        self.cache = Some(mode);
        Ok(())
    }

    fn write_through(&mut self, letter: char) -> Result<(), String> {
        if std::mem::replace(&mut self.write_through, true) { Err(twice(letter)) } else { Ok(()) }
    }
}

const MAPPED: &str = "a mapped file goes through the software cache; leave m, or u and h, out";

fn twice(letter: char) -> String {
    format!("'{letter}' says again, or otherwise, what was said before; say it once")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(letters: &[&str]) -> Result<(CacheMode, bool, bool), String> {
        let (mut caching, mut target) = (Caching::default(), Target::new("t"));
        letters.iter().try_for_each(|one| caching.add(one))?;
        caching.apply(&mut target);
        Ok((target.cache, target.write_through, target.mapped))
    }

    #[test]
    fn letters_combine_in_any_order() {
        use CacheMode::{Cached, RemoteOnly, Unbuffered};
        for (letters, expected) in [
            (&[][..], (Cached, false, false)),
            (&[""], (Unbuffered, false, false)),
            (&["u"], (Unbuffered, false, false)),
            (&["d"], (Unbuffered, false, false)),
            (&["b"], (Cached, false, false)),
            (&["r"], (RemoteOnly, false, false)),
            (&["w"], (Cached, true, false)),
            (&["bw"], (Cached, true, false)),
            (&["uw"], (Unbuffered, true, false)),
            (&["wu"], (Unbuffered, true, false)),
            (&["u", "w"], (Unbuffered, true, false)),
            (&["h"], (Unbuffered, true, false)),
            (&["m"], (Cached, false, true)),
            (&["mw"], (Cached, true, true)),
            (&["bm"], (Cached, false, true)),
        ] {
            assert_eq!(applied(letters), Ok(expected), "{letters:?}");
        }
    }

    #[test]
    fn what_contradicts_is_refused() {
        for letters in [
            &["b", "b"][..],
            &["bu"],
            &["ub"],
            &["ru"],
            &["", "u"],
            &["ww"],
            &["hw"],
            &["wh"],
            &["hh"],
            &["hb"],
            &["mm"],
            &["mu"],
            &["um"],
            &["m", ""],
            &["mh"],
            &["hm"],
            &["x"],
            &["ä"],
        ] {
            assert!(applied(letters).is_err(), "{letters:?}");
        }
    }
}
