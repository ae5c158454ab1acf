//! Whether it pays: log writes by turns with the processor kept awake and without, and what they took.
//!
//! ```text
//! asleep, awake, asleep, awake …   16 writes each, the first two of a turn not counted
//!   the median is a tenth less  -> awake for 8,192 writes, then again
//!   it is not                   -> asleep for 1,024 writes, then again; four times as many each time, up to 65,536
//! ```
//! What changes, such as who else has the machine, is noticed within seconds of commits. What a trial costs: where it
//! pays, 64 of 8,320 writes that are as slow as without it; where it does not, processor time for 64 of 65,664. On a
//! machine that others use too, one trial in ten finds the contrary of the others; hence soon another.

/// Writes of a turn, and how many begin it that are not counted: what was before has not ended.
const TURN: usize = 16;
const NOT_COUNTED: usize = 2;
/// Turns of each kind.
const TURNS: usize = 4;
/// It pays when writes take at most so much of what they take else.
const PAYS_PERCENT: u64 = 90;
/// Writes until the next trial.
const AWAKE_FOR: u32 = 8_192;
const ASLEEP_FOR: u32 = 1_024;
const ASLEEP_FOR_MAX: u32 = 65_536;
const ASLEEP_GROWS: u32 = 4;

/// What a trial found: the median times of log writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwakeTrial {
    /// With the processor left to sleep, in nanoseconds.
    pub asleep_ns: u64,
    /// With it kept awake.
    pub awake_ns: u64,
}

impl AwakeTrial {
    /// Whether it is kept awake after this.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.awake_ns * 100 <= self.asleep_ns * PAYS_PERCENT
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Writes of the trial that goes on.
    written: usize,
    /// What was counted of them: asleep, awake.
    took: [Vec<u64>; 2],
    /// Writes until the next one.
    left: u32,
    /// As many as were slept through after the last one.
    asleep_for: u32,
    last: Option<AwakeTrial>,
}

impl Trial {
    /// Whether the processor is to be awake in the next write.
    pub(super) fn is_awake(&self) -> bool {
        if self.left > 0 { self.last.is_some_and(|last| last.pays()) } else { self.written / TURN % 2 == 1 }
    }

    /// The next write was done, as `is_awake` said, and took so long.
    pub(super) fn note(&mut self, took_ns: u64) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        let kind = usize::from(self.is_awake());
        if self.written % TURN >= NOT_COUNTED {
            self.took[kind].push(took_ns);
        }
        self.written += 1;
        if self.written < 2 * TURNS * TURN {
            return;
        }
        let [asleep_ns, awake_ns] = self.took.each_mut().map(|took| {
            took.sort_unstable();
            let median = took[took.len() / 2];
            took.clear();
            median
        });
        self.written = 0;
        let found = AwakeTrial { asleep_ns, awake_ns };
        self.asleep_for = match found.pays() {
            true => 0,
            false => (self.asleep_for * ASLEEP_GROWS).clamp(ASLEEP_FOR, ASLEEP_FOR_MAX),
        };
        self.left = if found.pays() { AWAKE_FOR } else { self.asleep_for };
        self.last = Some(found);
    }

    pub(super) fn last(&self) -> Option<AwakeTrial> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many writes, which take what is told for asleep and awake; how many of them were awake.
    fn write(trial: &mut Trial, writes: usize, took: [u64; 2]) -> usize {
        (0..writes)
            .filter(|_| {
                let awake = trial.is_awake();
                trial.note(took[usize::from(awake)]);
                awake
            })
            .count()
    }

    const TRIAL: usize = 2 * TURNS * TURN;

    #[test]
    fn it_is_kept_awake_where_that_pays_and_tried_again() {
        let mut trial = Trial::default();
        assert_eq!(trial.last(), None);
        assert_eq!(write(&mut trial, TRIAL, [100, 70]), TRIAL / 2);
        assert_eq!(trial.last(), Some(AwakeTrial { asleep_ns: 100, awake_ns: 70 }));
        assert_eq!(write(&mut trial, AWAKE_FOR as usize, [100, 70]), AWAKE_FOR as usize);
        // Others have come, and keep it awake.
        assert_eq!(write(&mut trial, TRIAL, [70, 69]), TRIAL / 2);
        for asleep in [ASLEEP_FOR, 4 * ASLEEP_FOR, 16 * ASLEEP_FOR, ASLEEP_FOR_MAX, ASLEEP_FOR_MAX] {
            assert_eq!(write(&mut trial, asleep as usize, [70, 69]), 0);
            assert_eq!(write(&mut trial, TRIAL, [70, 69]), TRIAL / 2);
        }
        assert_eq!(write(&mut trial, ASLEEP_FOR_MAX as usize, [70, 69]), 0);
        assert_eq!(write(&mut trial, TRIAL, [100, 90]), TRIAL / 2);
        assert!(trial.is_awake());
    }

    #[test]
    fn a_few_slow_writes_decide_nothing() {
        let mut trial = Trial::default();
        for number in 0..TRIAL {
            let slow = if number % TURN < 5 { 10 } else { 1 };
            let own = if trial.is_awake() { 70 } else { 100 };
            trial.note(own * slow);
        }
        assert_eq!(trial.last(), Some(AwakeTrial { asleep_ns: 100, awake_ns: 70 }));
    }

    #[test]
    fn the_first_writes_of_a_turn_do_not_count() {
        let mut trial = Trial::default();
        for number in 0..TRIAL {
            let own = if trial.is_awake() { 70 } else { 100 };
            trial.note(if number % TURN < NOT_COUNTED { 1 } else { own });
        }
        assert_eq!(trial.last().map(|last| last.asleep_ns), Some(100));
    }
}
