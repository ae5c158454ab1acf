use crate::{Moment, demand};
use filestats::{Figure, Ops};
use seen::{Commits, LIMITED, Limit, Second, Side};
use workload::CapKind;

impl Moment {
    /// Second of the storage as it was seen meanwhile; `None` where the device's counters are unknown.
    ///
    /// Rates are the device's: the I/O of all processes. The database's waits are longer where a limit holds its I/Os back
    /// above the device.
    pub fn second(&self) -> Option<Second> {
        let device = self.device()?;
        let database = self.database();
        let seconds = |ns: Figure<u64>| ns.known().unwrap_or(0) as f64 / 1e9;
        let waited = |stall: fn(&filestats::Counters) -> f64| {
            database.as_ref().map_or(0.0, |database| stall(&database.counters))
        };
        let side = |ops: Ops, waited_s: f64| Side {
            ios: ops.count as f64,
            bytes: ops.bytes as f64,
            served_s: seconds(ops.stall_ns),
            waited_s,
        };
        let stall_s = |ops: &Ops| ops.stall_ns.known().unwrap_or(0) as f64 / 1e9;
        let synced_s = waited(|counters| {
            let sync = counters.sync.known();
            sync.and_then(|sync| sync.stall_ns.known()).unwrap_or(0) as f64 / 1e9
        });
        let read_s = database.as_ref().map_or(0.0, |database| stall_s(&database.counters.read));
        let written_s = database.as_ref().map_or(0.0, |database| stall_s(&database.counters.write));
        Some(Second {
            ended_unix_ns: self.ended_unix_ns,
            elapsed_s: device.elapsed_s(),
            reads: side(device.counters.read, read_s),
            writes: side(device.counters.write, written_s + synced_s),
            commits: self.timed_commits(),
            busy_s: device.counters.busy_ns.known().map(|ns| ns as f64 / 1e9),
            limits: LIMITED.map(|(kind, _)| self.limit(kind, device.elapsed_s())),
        })
    }

    /// The limit of this kind that is used most, and its count in `seconds`.
    fn limit(&self, kind: CapKind, seconds: f64) -> Option<Limit> {
        let caps = self.caps.iter().filter(|used| used.cap.kind == kind);
        let used = caps.max_by(|a, b| a.share().total_cmp(&b.share()))?;
        Some(Limit { per_second: used.cap.per_second as f64, counted: used.per_second() * seconds })
    }

    /// Commits of the database as it or the kernel timed them: the device's writes, which may stand for them, are counted anyway.
    fn timed_commits(&self) -> Commits {
        let commits = demand::commits(std::slice::from_ref(self));
        let took_ns = commits.ops.stall_ns.known().filter(|_| !commits.by_device);
        took_ns.map_or(Commits::default(), |took_ns| Commits {
            count: commits.ops.count as f64,
            bytes: commits.ops.bytes as f64,
            took_s: took_ns as f64 / 1e9,
        })
    }
}
