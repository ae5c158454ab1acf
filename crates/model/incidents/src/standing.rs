use verdict::VerdictKind;

/// What a judgement means for an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Somebody has to act.
    Bad(VerdictKind),
    /// No bad verdict holds: healthy, no session waits, or the database is idle.
    Fine,
    /// Nothing can be said.
    Unknown,
}

impl Standing {
    /// By the verdict on the newest part of the window, and where that has too little I/O by the verdict on all of it. `idle`:
    /// the counters are known, and no session waits for I/O.
    pub fn new(newest: VerdictKind, whole: VerdictKind, idle: bool) -> Standing {
        let decided = |kind: VerdictKind| match kind {
            VerdictKind::CannotSay => None,
            kind if kind.is_bad_news() => Some(Standing::Bad(kind)),
            _ => Some(Standing::Fine),
        };
        let when_unknown = if idle { Some(Standing::Fine) } else { decided(whole) };
        decided(newest).or(when_unknown).unwrap_or(Standing::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use VerdictKind::{CannotSay, Healthy, NobodyWaits, Throttled};

    #[test]
    fn the_newest_part_decides_and_the_whole_window_where_that_has_too_little_io() {
        let standing = Standing::new;
        assert_eq!(standing(Healthy, Throttled, false), Standing::Fine);
        assert_eq!(standing(Throttled, Healthy, false), Standing::Bad(Throttled));
        assert_eq!(standing(CannotSay, Throttled, false), Standing::Bad(Throttled));
        assert_eq!(standing(CannotSay, NobodyWaits, false), Standing::Fine);
        assert_eq!(standing(CannotSay, CannotSay, false), Standing::Unknown);
    }

    #[test]
    fn a_database_that_became_idle_is_not_bad_any_more() {
        assert_eq!(Standing::new(CannotSay, Throttled, true), Standing::Fine);
        assert_eq!(Standing::new(CannotSay, CannotSay, true), Standing::Fine);
    }
}
