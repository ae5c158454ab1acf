//! Measures whether spinning pays: log writes with the spinning thread and without it, in alternating phases.
//!
//! ```text
//! idle, spin, idle, spin …         16 writes each, the first two of a phase not counted
//!   the median is a tenth less  -> spin for 8,192 writes, then a new trial
//!   it is not                   -> idle for 1,024 writes, then a new trial; four times as many each time, up to 65,536
//! ```
//! So a change of conditions, such as other load on the machine, is noticed within seconds of commits. The cost of
//! trials: where it pays, 64 of 8,320 writes are as slow as without it; where it does not, processor time during 64
//! of 65,664. On a machine with other load, one trial in ten contradicts the others; hence the first pause is
//! short.

/// Writes of a phase, and how many at its beginning are not counted, because the effect of the phase before has not
/// ended.
const PHASE_WRITES: usize = 16;
const PHASE_WARMUP_WRITES: usize = 2;
/// Phases of each kind.
const PHASES: usize = 4;
/// It pays if the median of the writes is at most this share of what it is otherwise.
const PAYS_PERCENT: u64 = 90;
/// Writes until the next trial.
const SPIN_WRITES: u32 = 8_192;
const IDLE_WRITES_MIN: u32 = 1_024;
const IDLE_WRITES_MAX: u32 = 65_536;
const IDLE_GROWTH: u32 = 4;

/// The result of a trial: the median times of log writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwakeTrial {
    /// With the processor left to go idle, in nanoseconds.
    pub asleep_ns: u64,
    /// With a thread that keeps the processor from going idle, in nanoseconds.
    pub awake_ns: u64,
}

impl AwakeTrial {
    /// Whether spinning pays, and goes on after this trial.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.awake_ns * 100 <= self.asleep_ns * PAYS_PERCENT
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Writes of the trial in progress.
    written: usize,
    /// The times counted in it: without and with spinning.
    took: [Vec<u64>; 2],
    /// Writes until the next trial.
    writes_left: u32,
    /// The length of the pause after the last trial.
    idle_writes: u32,
    last: Option<AwakeTrial>,
}

impl Trial {
    /// Whether to spin during the next write.
    pub(super) fn spins(&self) -> bool {
        if self.writes_left > 0 {
            self.last.is_some_and(|last| last.pays())
        } else {
            self.written / PHASE_WRITES % 2 == 1
        }
    }

    /// Records the time of a write that was done as `spins` said.
    pub(super) fn record(&mut self, took_ns: u64) {
        if self.writes_left > 0 {
            self.writes_left -= 1;
            return;
        }
        let phase = usize::from(self.spins());
        if self.written % PHASE_WRITES >= PHASE_WARMUP_WRITES {
            self.took[phase].push(took_ns);
        }
        self.written += 1;
        if self.written < 2 * PHASES * PHASE_WRITES {
            return;
        }
        let [asleep_ns, awake_ns] = self.took.each_mut().map(|took| {
            took.sort_unstable();
            let median = took[took.len() / 2];
            took.clear();
            median
        });
        self.written = 0;
        let result = AwakeTrial { asleep_ns, awake_ns };
        self.idle_writes = match result.pays() {
            true => 0,
            false => (self.idle_writes * IDLE_GROWTH).clamp(IDLE_WRITES_MIN, IDLE_WRITES_MAX),
        };
        self.writes_left = if result.pays() { SPIN_WRITES } else { self.idle_writes };
        self.last = Some(result);
    }

    pub(super) fn last(&self) -> Option<AwakeTrial> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does this many writes, which take `took[0]` without spinning and `took[1]` with it; returns how many were done with it.
    fn write(trial: &mut Trial, writes: usize, took: [u64; 2]) -> usize {
        (0..writes)
            .filter(|_| {
                let spins = trial.spins();
                trial.record(took[usize::from(spins)]);
                spins
            })
            .count()
    }

    const TRIAL: usize = 2 * PHASES * PHASE_WRITES;

    #[test]
    fn spinning_goes_on_where_it_pays_and_the_trial_is_repeated() {
        let mut trial = Trial::default();
        assert_eq!(trial.last(), None);
        assert_eq!(write(&mut trial, TRIAL, [100, 70]), TRIAL / 2);
        assert_eq!(trial.last(), Some(AwakeTrial { asleep_ns: 100, awake_ns: 70 }));
        assert_eq!(write(&mut trial, SPIN_WRITES as usize, [100, 70]), SPIN_WRITES as usize);
        // Other load has begun and keeps the processor from idling.
        assert_eq!(write(&mut trial, TRIAL, [70, 69]), TRIAL / 2);
        for idle in
            [IDLE_WRITES_MIN, 4 * IDLE_WRITES_MIN, 16 * IDLE_WRITES_MIN, IDLE_WRITES_MAX, IDLE_WRITES_MAX]
        {
            assert_eq!(write(&mut trial, idle as usize, [70, 69]), 0);
            assert_eq!(write(&mut trial, TRIAL, [70, 69]), TRIAL / 2);
        }
        assert_eq!(write(&mut trial, IDLE_WRITES_MAX as usize, [70, 69]), 0);
        assert_eq!(write(&mut trial, TRIAL, [100, 90]), TRIAL / 2);
        assert!(trial.spins());
    }

    #[test]
    fn a_few_slow_writes_decide_nothing() {
        let mut trial = Trial::default();
        for number in 0..TRIAL {
            let slow = if number % PHASE_WRITES < 5 { 10 } else { 1 };
            let took_ns = if trial.spins() { 70 } else { 100 };
            trial.record(took_ns * slow);
        }
        assert_eq!(trial.last(), Some(AwakeTrial { asleep_ns: 100, awake_ns: 70 }));
    }

    #[test]
    fn the_warmup_writes_of_a_phase_do_not_count() {
        let mut trial = Trial::default();
        for number in 0..TRIAL {
            let took_ns = if trial.spins() { 70 } else { 100 };
            trial.record(if number % PHASE_WRITES < PHASE_WARMUP_WRITES { 1 } else { took_ns });
        }
        assert_eq!(trial.last().map(|last| last.asleep_ns), Some(100));
    }
}
