//! The epochs of a history: where its counters restarted from zero.
//!
//! * A table with the start time of the server names each run by it.
//! * Without a start time, a counter of tempdb that fell is a restart: each start creates tempdb again, and it can be
//!   neither detached nor restored.
//! * A counter of another file that fell within a run is a reset of that file: detached, restored, offline, closed.
//!
//! A reset cannot be seen where all counters passed their old values before the next capture.

use super::capture::{Capture, NS_PER_MS, TEMPDB};
use filestats::{Counters, Sample, Snapshot};
use std::collections::HashMap;

/// Names the epochs of captures in order of time, continuing from the newest kept snapshot.
pub(super) fn assign(captures: &mut [Capture], last: Option<&Snapshot>) {
    let mut before: HashMap<Key, Sample> = HashMap::new();
    let mut run = START_UNKNOWN.to_owned();
    let mut clock: Option<Clock> = None;
    if let Some(last) = last {
        before.extend(last.samples.iter().map(|sample| (key(sample), sample.clone())));
        if let Some(sample) = last.samples.first() {
            run.clone_from(&sample.epoch.run);
            clock = Some(Clock::new(last, &sample.epoch.run));
        }
    }
    for Capture { snapshot, .. } in captures {
        let at = snapshot.taken_unix_ns;
        let fell = |sample: &Sample| before.get(&key(sample)).is_some_and(|then| has_fallen(then, sample));
        let start_known = snapshot.samples.first().is_some_and(|sample| !sample.epoch.run.is_empty());
        if start_known {
            run.clone_from(&snapshot.samples[0].epoch.run);
        } else if run.is_empty() || run.starts_with("started ") {
            run = START_UNKNOWN.into();
        } else if snapshot
            .samples
            .iter()
            .any(|sample| sample.file.database_id == Some(TEMPDB) && fell(sample))
        {
            run = format!("a restart before {}", time(at));
        }
        for sample in &mut snapshot.samples {
            sample.epoch.run.clone_from(&run);
            let key = key(sample);
            if let Some(then) = before.get(&key).filter(|then| then.epoch.run == run) {
                // A new handle already shows that the file was opened again.
                let reopened = then.file.handle.is_some() && then.file.handle != sample.file.handle;
                sample.epoch.reset = match has_fallen(then, sample) && !reopened {
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

const START_UNKNOWN: &str = "start not reported";

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

/// The period after which an `int` of milliseconds overflows; it also divides the period of an unsigned one.
const OVERFLOW_NS: u64 = (1 << 31) * NS_PER_MS;

impl Clock {
    fn new(snapshot: &Snapshot, run: &str) -> Clock {
        let Snapshot { taken_unix_ns, clock_ns, .. } = *snapshot;
        Clock { run: run.into(), taken_unix_ns, clock_ns }
    }

    /// Adds the overflows of the clock within one run: where the time of day advanced by weeks more than the clock.
    fn after(before: Option<Clock>, snapshot: &mut Snapshot, run: &str) -> Clock {
        if let Some(before) = before.filter(|before| before.run == run) {
            let passed_ns = snapshot.taken_unix_ns.saturating_sub(before.taken_unix_ns);
            let expected_ns = before.clock_ns.saturating_add(passed_ns);
            let behind_ns = expected_ns.saturating_sub(snapshot.clock_ns);
            let overflows = behind_ns.saturating_add(OVERFLOW_NS / 2) / OVERFLOW_NS;
            snapshot.clock_ns = snapshot.clock_ns.saturating_add(overflows.saturating_mul(OVERFLOW_NS));
        }
        Clock::new(snapshot, run)
    }
}
