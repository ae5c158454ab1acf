//! Whether the server times its I/O, and did so in all of an interval: a time of a part of it is unknown.

use super::answer::Columns;

/// The two settings, or something known of each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timing<T = bool> {
    /// track_io_timing.
    pub io: T,
    /// track_wal_io_timing.
    pub wal: T,
}

/// Follows the settings from one snapshot of a view to the next.
#[derive(Default)]
pub(super) struct TimingWatch(Timing<Switch>);

#[derive(Clone, Copy, Default)]
struct Switch {
    /// It was off at the last snapshot or since.
    off: bool,
    /// There was a snapshot with times.
    timed: bool,
    /// There was a later one without.
    gap: bool,
    /// When times began again after the last gap.
    since_unix_ns: Option<u64>,
}

impl Timing {
    /// Reads the settings. One that is missing is off.
    pub fn from_row(row: &impl Columns) -> Timing {
        let on = |name: &str| row.flag(name).unwrap_or(false);
        Timing { io: on("io_timing"), wal: on("wal_timing") }
    }
}

impl TimingWatch {
    /// Adds the settings between two snapshots.
    pub fn sample(&mut self, now: Timing) {
        self.0.io.off |= !now.io;
        self.0.wal.off |= !now.wal;
    }

    /// Whether everything since the last snapshot was timed, and when times began again after the last gap: a difference
    /// across a gap would lack the time of some operations.
    pub fn snapshot(&mut self, now: Timing, unix_ns: u64) -> (Timing, Timing<Option<u64>>) {
        let (io, io_hole) = self.0.io.snapshot(now.io, unix_ns);
        let (wal, wal_hole) = self.0.wal.snapshot(now.wal, unix_ns);
        (Timing { io, wal }, Timing { io: io_hole, wal: wal_hole })
    }
}

impl Switch {
    fn snapshot(&mut self, now: bool, unix_ns: u64) -> (bool, Option<u64>) {
        let whole = now && !self.off;
        self.off = !now;
        self.gap |= self.timed && !whole;
        if whole && self.gap {
            self.since_unix_ns = Some(unix_ns);
            self.gap = false;
        }
        self.timed |= whole;
        (whole, self.since_unix_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Timing = Timing { io: true, wal: true };
    const OFF: Timing = Timing { io: false, wal: true };

    #[test]
    fn times_are_known_only_if_every_sample_found_timing_on() {
        let mut watch = TimingWatch::default();
        assert_eq!(watch.snapshot(ON, 1).0, ON);
        watch.sample(OFF);
        assert_eq!(watch.snapshot(ON, 2).0, OFF, "off in between");
        assert_eq!(watch.snapshot(ON, 3).0, ON);
    }

    #[test]
    fn there_is_a_gap_only_after_earlier_times() {
        let mut watch = TimingWatch::default();
        let gap = |(_, gap): (Timing, Timing<Option<u64>>)| gap.io;
        assert_eq!(gap(watch.snapshot(OFF, 1)), None);
        watch.sample(ON);
        watch.snapshot(ON, 2);
        assert_eq!(gap(watch.snapshot(ON, 3)), None, "switched on for the first time");
        assert_eq!(gap(watch.snapshot(OFF, 4)), None, "counts go on in the same epoch");
        watch.snapshot(ON, 5);
        assert_eq!(gap(watch.snapshot(ON, 6)), Some(6));
        assert_eq!(gap(watch.snapshot(ON, 7)), Some(6));
    }
}
