//! Temporary errors that must not harm the store: failing reads, and no space.

use std::fmt;

/// Refuses some of the next operations of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The type.
    pub refused: Refused,
    /// This many of them succeed first.
    pub after: u32,
    /// This many are refused then.
    pub times: u32,
}

/// Operations that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Reads of any file, with `EIO`.
    Reads,
    /// Operations that extend the log or its directory, with `ENOSPC`.
    Growth,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { refused, after, times } = self;
        let what = match refused {
            Refused::Reads => "reads fail with EIO",
            Refused::Growth => "the log cannot grow (ENOSPC)",
        };
        write!(f, "{what}, {times} times, after {after} times without")
    }
}

/// The trouble of a disk.
#[derive(Default)]
pub(crate) struct Troubles {
    coming: Option<Trouble>,
    /// Something was refused since `begin`.
    pub met: bool,
    pub ever_met: bool,
    /// Nothing is refused for now.
    pub suspended: bool,
}

impl Troubles {
    pub(crate) fn begin(&mut self, trouble: Trouble) {
        (self.coming, self.met) = (Some(trouble), false);
    }

    /// Ends the trouble; returns whether anything was refused.
    pub(crate) fn end(&mut self) -> bool {
        self.coming = None;
        std::mem::take(&mut self.met)
    }

    /// Whether the next operation is refused.
    pub(crate) fn refuses(&mut self, operation: Refused) -> bool {
        let Some(trouble) = self.coming.as_mut().filter(|own| own.refused == operation && !self.suspended)
        else {
            return false;
        };
        if trouble.after > 0 {
            trouble.after -= 1;
            return false;
        }
        let refused = trouble.times > 0;
        trouble.times = trouble.times.saturating_sub(1);
        self.met |= refused;
        self.ever_met |= refused;
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operations_of_its_type_are_refused_the_given_number_of_times() {
        let mut troubles = Troubles::default();
        troubles.begin(Trouble { refused: Refused::Reads, after: 2, times: 1 });
        assert!(!troubles.refuses(Refused::Growth));
        let met = [false; 5].map(|_| troubles.refuses(Refused::Reads));
        assert_eq!(met, [false, false, true, false, false]);
        assert!(troubles.end() && !troubles.end() && troubles.ever_met);
    }
}
