use verdict::VerdictKind;

/// Meaning of a judgement for an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Somebody has to act.
    Bad(VerdictKind),
    /// The newest part of the window is fine, but a notable part of all of it was at the operating limit: it was a burst. That may open an
    /// incident; one that is open is over.
    WasBurst,
    /// No bad verdict holds: healthy, no session waits, or the database is idle.
    Fine,
    /// Nothing can be said.
    Unknown,
}

/// Verdicts that decide a standing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdicts {
    /// On the newest part of the window.
    pub newest: VerdictKind,
    /// On all of it.
    pub whole: VerdictKind,
    /// In the newest part the counters are known, and no session waits for I/O.
    pub idle: bool,
    /// The part of the window in which the demand was at the knee or beyond.
    pub share_at_knee: f64,
}

/// A shorter part of the window at the operating limit opens no incident: a server that writes its pages back does that for a second
/// or two without being in trouble.
const BURST_SHARE_MIN: f64 = 0.1;

impl Standing {
    /// By the verdict on the newest part of the window, and where that has too little I/O by the verdict on all of it.
    pub fn new(verdicts: Verdicts) -> Standing {
        let Verdicts { newest, whole, idle, share_at_knee } = verdicts;
        let was_burst = whole == VerdictKind::Burst && share_at_knee >= BURST_SHARE_MIN;
        let fine = if was_burst { Standing::WasBurst } else { Standing::Fine };
        let decided = |kind: VerdictKind| match kind {
            VerdictKind::CannotSay => None,
            kind if kind.needs_action() => Some(Standing::Bad(kind)),
            _ => Some(fine),
        };
        let when_unknown = if idle { Some(fine) } else { decided(whole) };
        decided(newest).or(when_unknown).unwrap_or(Standing::Unknown)
    }

    /// Whether it was decided by the whole window.
    pub fn is_of_whole(self, newest: VerdictKind) -> bool {
        self == Standing::WasBurst || newest == VerdictKind::CannotSay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use VerdictKind::{Burst, CannotSay, Healthy, NobodyWaits, Throttled};

    fn standing(newest: VerdictKind, whole: VerdictKind, idle: bool) -> Standing {
        Standing::new(Verdicts { newest, whole, idle, share_at_knee: 0.0 })
    }

    #[test]
    fn the_newest_part_decides_and_the_whole_window_where_that_has_too_little_io() {
        assert_eq!(standing(Healthy, Throttled, false), Standing::Fine);
        assert_eq!(standing(Throttled, Healthy, false), Standing::Bad(Throttled));
        assert_eq!(standing(CannotSay, Throttled, false), Standing::Bad(Throttled));
        assert_eq!(standing(CannotSay, NobodyWaits, false), Standing::Fine);
        assert_eq!(standing(CannotSay, CannotSay, false), Standing::Unknown);
    }

    #[test]
    fn a_database_that_became_idle_is_not_bad_any_more() {
        assert_eq!(standing(CannotSay, Throttled, true), Standing::Fine);
        assert_eq!(standing(CannotSay, CannotSay, true), Standing::Fine);
    }

    #[test]
    fn a_burst_of_a_tenth_of_the_window_is_one_and_a_second_of_it_is_not() {
        let after = |share_at_knee| {
            Standing::new(Verdicts { newest: Healthy, whole: Burst, idle: false, share_at_knee })
        };
        assert_eq!((after(1.0 / 60.0), after(0.1)), (Standing::Fine, Standing::WasBurst));
        let during = Verdicts { newest: Burst, whole: Burst, idle: false, share_at_knee: 0.02 };
        assert_eq!(Standing::new(during), Standing::Bad(Burst));
    }
}
