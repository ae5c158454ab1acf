//! Where the counters of a history began anew. A table tells the start of the server, or nothing; what it does not
//! tell, counters that fell do.
//!
//! * The start is told: it names the run.
//! * It is not: tempdb is made anew by each start and can neither be detached nor restored, so that a counter of its
//!   files that fell is a restart.
//! * A counter of another file that fell within a run is a reset of that file: detached, restored, offline, closed.
//!
//! A reset after which all counters passed their old values before the next capture leaves no trace.

use super::series::Capture;
use filestats::{Counters, Sample, Snapshot};
use std::collections::HashMap;

/// Names the epochs of captures in the order of their times, after the newest one that is kept.
pub(super) fn follow(captures: &mut [Capture], last: Option<&Snapshot>) {
    let mut before: HashMap<Key, Sample> = HashMap::new();
    let mut run = NOT_TOLD.to_owned();
    let mut clock: Option<Clock> = None;
    if let Some(last) = last {
        before.extend(last.samples.iter().map(|sample| (key(sample), sample.clone())));
        if let Some(sample) = last.samples.first() {
            run.clone_from(&sample.epoch.run);
            clock = Some(Clock::of(last, &sample.epoch.run));
        }
    }
    for Capture { snapshot, .. } in captures {
        let at = snapshot.taken_unix_ns;
        let fell = |sample: &Sample| before.get(&key(sample)).is_some_and(|then| has_fallen(then, sample));
        let told = snapshot.samples.first().is_some_and(|sample| !sample.epoch.run.is_empty());
        if told {
            run.clone_from(&snapshot.samples[0].epoch.run);
        } else if run.is_empty() || run.starts_with("started ") {
            run = NOT_TOLD.into();
        } else if snapshot
            .samples
            .iter()
            .any(|sample| sample.file.database_id == Some(super::file_stats::TEMPDB) && fell(sample))
        {
            run = format!("a restart before {}", time(at));
        }
        for sample in &mut snapshot.samples {
            sample.epoch.run.clone_from(&run);
            let key = key(sample);
            if let Some(then) = before.get(&key).filter(|then| then.epoch.run == run) {
                // Another handle says by itself that the file was opened again.
                let told = then.file.handle.is_some() && then.file.handle != sample.file.handle;
                sample.epoch.reset = match has_fallen(then, sample) && !told {
                    true => format!("counters fell before {}", time(at)),
                    false => then.epoch.reset.clone(),
                };
            }
            before.insert(key, sample.clone());
        }
        for wait in &mut snapshot.waits {
            wait.epoch.run.clone_from(&run);
        }
        clock = Some(Clock::after(clock, snapshot, &run));
    }
}

const NOT_TOLD: &str = "start not told";

type Key = (String, String, String);

fn key(sample: &Sample) -> Key {
    let file = &sample.file;
    (file.instance.clone(), file.path.clone(), file.file_id.clone())
}

fn has_fallen(then: &Sample, now: &Sample) -> bool {
    let figures = |counters: &Counters| {
        let ops = [counters.read, counters.write];
        ops.map(|ops| [Some(ops.count), Some(ops.bytes), ops.stall_ns.known()])
    };
    let pairs =
        figures(&then.counters).into_iter().flatten().zip(figures(&now.counters).into_iter().flatten());
    pairs.into_iter().any(|pair| matches!(pair, (Some(then), Some(now)) if now < then))
}

fn time(unix_ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default().to_string()
}

/// The server's own clock at a capture.
struct Clock {
    run: String,
    taken_unix_ns: u64,
    clock_ns: u64,
}

/// An `int` of milliseconds runs over after so long; whether it shows its sign or not, this divides it.
const ROUND_NS: u64 = (1 << 31) * super::file_stats::NS_PER_MS;

impl Clock {
    fn of(snapshot: &Snapshot, run: &str) -> Clock {
        let Snapshot { taken_unix_ns, clock_ns, .. } = *snapshot;
        Clock { run: run.into(), taken_unix_ns, clock_ns }
    }

    /// Adds the rounds that the clock has run over within one run: where the time of day went on by weeks more than
    /// the clock did.
    fn after(before: Option<Clock>, snapshot: &mut Snapshot, run: &str) -> Clock {
        if let Some(before) = before.filter(|before| before.run == run) {
            let passed_ns = snapshot.taken_unix_ns.saturating_sub(before.taken_unix_ns);
            let expected_ns = before.clock_ns.saturating_add(passed_ns);
            let behind_ns = expected_ns.saturating_sub(snapshot.clock_ns);
            let rounds = behind_ns.saturating_add(ROUND_NS / 2) / ROUND_NS;
            snapshot.clock_ns = snapshot.clock_ns.saturating_add(rounds.saturating_mul(ROUND_NS));
        }
        Clock::of(snapshot, run)
    }
}
