//! A crashed engine opened again: when it serves, when all is where it belongs, and the I/Os that it took.

use crate::{RecoveryIo, Strategy, counted, rounded};
use filestats::Figure;
use serde::{Deserialize, Serialize};
use workload::{format_bytes, format_count, format_ns};

/// Pages that each commit of the workload writes.
pub const PAGES_A_COMMIT: u64 = 64;

/// One engine recovered the crashed image with one strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoverResult {
    /// "pagestore", "sqlite-wal".
    pub engine: String,
    /// How it was recovered.
    pub strategy: Strategy,
    /// Until the engine was open, seconds.
    pub opened_s: f64,
    /// Until a page of those written had been read, seconds since opening began.
    pub first_read_s: f64,
    /// Until a change of such a page was committed durably.
    pub first_write_s: f64,
    /// Until all pages were in the data file, synced, and the log could be used again.
    pub full_s: f64,
    /// Pages that acknowledged commits had written and no checkpoint had covered, as far as the engine tells.
    pub pages: Figure<u64>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Of these pages, those that were not yet written when the first read was answered.
    pub pages_left: Figure<u64>,
    /// Bytes of log at the crash.
    pub log_bytes: u64,
    /// Commits that had been acknowledged.
    pub commits: u64,
    /// Pages whose content was compared afterwards, and was right.
    pub checked: u64,
    /// Its I/Os.
    pub io: RecoveryIo,
    /// The counter of these I/Os: "the page store".
    pub counted_by: String,
}

/// Where the crashed image lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatedDisk {
    /// Time of an I/O, nanoseconds.
    pub latency_ns: u64,
    /// I/Os that it serves at the same time.
    pub width: u32,
}

/// All of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoverStudy {
    /// Where the engines' files lay.
    pub dir: String,
    /// The emulated disk below that directory, if one was made.
    pub emulated: Option<EmulatedDisk>,
    /// Pages that the workload wrote to, in a random order.
    pub pages: u64,
    /// Pages of the data file.
    pub data_pages: u64,
    /// The length of log at which each engine was killed.
    pub log_bytes: u64,
    /// In the order in which they were measured.
    pub results: Vec<RecoverResult>,
    /// Engines that were unavailable.
    pub left_out: Vec<LeftOut>,
    /// Notes for reading the results.
    pub notes: Vec<String>,
}

/// An engine that was to be crashed and was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// "mariadb".
    pub engine: String,
    /// "there is no MariaDB on this machine (install it (Debian: mariadb-server))".
    pub why: String,
}

impl RecoverResult {
    /// Mean I/Os in flight until recovery was complete: their summed time by the time that passed (Little 1961).
    pub fn n(&self) -> Figure<f64> {
        self.io.stall_ns.map(|ns| ns as f64 / 1e9 / self.full_s.max(1e-9))
    }

    /// Pages a second, over full recovery.
    pub fn pages_per_s(&self) -> Figure<f64> {
        self.pages.map(|pages| pages as f64 / self.full_s.max(1e-9))
    }

    /// MiB of pages a second, over full recovery.
    pub fn mib_per_s(&self) -> Figure<f64> {
        self.pages_per_s().map(|rate| rate * self.page_bytes as f64 / 1_048_576.0)
    }

    /// "pagestore, instant".
    pub fn name(&self) -> String {
        match self.strategy {
            Strategy::Own => self.engine.clone(),
            strategy => format!("{}, {strategy}", self.engine),
        }
    }

    /// "256,000 pages waited for 257,064 reads, writes and syncs one after another: the first read was answered ...".
    fn sentence(&self) -> String {
        let pages = match self.pages {
            Figure::Known(0) => return self.nothing_to_redo(),
            Figure::Known(pages) => counted(pages, "page", "pages"),
            Figure::Unknown { .. } => "what was left in the log".into(),
        };
        let (read, full) = (format_ns(self.first_read_s * 1e9), format_ns(self.full_s * 1e9));
        let times = format!("the first read was answered after {read}, all was written after {full}");
        let left = self.pages_left.known().filter(|left| *left > 0);
        let n = self.n().known();
        let flight = n.map_or(String::new(), |n| match self.io.ios().known() {
            Some(ios) if n < 1.5 => {
                let ios = counted(ios, "read, write or sync", "reads, writes and syncs");
                format!("{ios} one after another (N {n:.1})")
            }
            Some(ios) => format!("{}, {n:.1} in flight on average", counted(ios, "I/O", "I/Os")),
            None => String::new(),
        });
        match (left, flight.is_empty()) {
            (Some(left), _) => {
                let rest = if flight.is_empty() { String::new() } else { format!(", by {flight}") };
                let still = format!("{} of {pages} still to be written", format_count(left));
                format!("the first read was answered after {read} with {still}; all were after {full}{rest}")
            }
            (None, false) => format!("{pages} waited for {flight}: {times}"),
            (None, true) => format!("{times}; the I/Os were not counted"),
        }
    }

    fn nothing_to_redo(&self) -> String {
        let (read, full) = (format_ns(self.first_read_s * 1e9), format_ns(self.full_s * 1e9));
        let ios = self.io.ios().known().map(|ios| format!(", by {}", counted(ios, "I/O", "I/Os")));
        let ios = ios.unwrap_or_default();
        format!(
            "nothing had to be redone: the first read was answered after {read}, and all was settled after {full}{ios}"
        )
    }
}

impl RecoverStudy {
    /// "this storage", "an emulated disk of 5 ms, 64 wide".
    pub fn storage(&self) -> String {
        match self.emulated {
            None => "this storage".into(),
            Some(disk) => format!(
                "an emulated disk on which an I/O takes {} and {} go on at once",
                format_ns(disk.latency_ns as f64),
                disk.width
            ),
        }
    }

    /// "256,000 pages of 512,000 in a random order, killed at 1 GiB of log"; fewer pages where the log reached its length
    /// before all were written.
    pub fn work(&self) -> String {
        let (least, most) = self.written().unwrap_or((self.pages, self.pages));
        let fewer = if least < most { format!("{} to ", format_count(least)) } else { String::new() };
        let not_all = match least < self.pages {
            true => format!(" before all {} were written", format_count(self.pages)),
            false => String::new(),
        };
        format!(
            "{fewer}{} of {} in a random order, killed at {} of log{not_all}",
            counted(most, "page", "pages"),
            format_count(self.data_pages),
            format_bytes(self.log_bytes)
        )
    }

    /// Different pages that the engines' acknowledged commits had written: the fewest and the most.
    fn written(&self) -> Option<(u64, u64)> {
        let of_each = || self.results.iter().map(|result| (result.commits * PAGES_A_COMMIT).min(self.pages));
        Some((of_each().min()?, of_each().max()?))
    }

    /// The notes, and the engines that were left out with the reason.
    pub fn all_notes(&self) -> Vec<String> {
        let left_out = self.left_out.iter().map(|out| format!("{} was left out: {}", out.engine, out.why));
        self.notes.iter().cloned().chain(left_out).collect()
    }

    /// A sentence for each recovery, and one that compares an engine's fast strategies with its serial one.
    pub fn sentences(&self) -> Vec<String> {
        let mut all = self.recoveries();
        all.extend(self.comparisons());
        all
    }

    /// A sentence for each recovery.
    pub fn recoveries(&self) -> Vec<String> {
        self.results.iter().map(|result| format!("{}: {}.", result.name(), result.sentence())).collect()
    }

    /// "pagestore instant: first read 28,333 x earlier, all pages written 43 x sooner than serial.": a sentence for each fast
    /// strategy of an engine that was opened serially as well.
    pub fn comparisons(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for serial in self.results.iter().filter(|result| result.strategy == Strategy::Serial) {
            let others = self.results.iter().filter(|other| {
                other.engine == serial.engine && matches!(other.strategy, Strategy::Wide | Strategy::Instant)
            });
            for other in others {
                let factor = |theirs: f64, ours: f64| format!("{} x", rounded(theirs / ours.max(1e-9)));
                sentences.push(format!(
                    "{}: first read {} earlier, all pages written {} sooner than serial.",
                    other.name(),
                    factor(serial.first_read_s, other.first_read_s),
                    factor(serial.full_s, other.full_s),
                ));
            }
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::{Ops, Reason};

    fn result(strategy: Strategy, first_read_s: f64, full_s: f64, n: f64) -> RecoverResult {
        let known = Figure::Known;
        RecoverResult {
            engine: "pagestore".into(),
            strategy,
            opened_s: first_read_s,
            first_read_s,
            first_write_s: first_read_s + 0.001,
            full_s,
            pages: known(256_000),
            page_bytes: 4_096,
            pages_left: known(if strategy == Strategy::Instant { 256_000 } else { 0 }),
            log_bytes: 1 << 30,
            commits: 4_000,
            checked: 4_000,
            io: RecoveryIo {
                reads: known(1_000),
                read_bytes: known(1 << 30),
                writes: known(256_000),
                write_bytes: known(1_048_576_000),
                syncs: known(64),
                stall_ns: known((n * full_s * 1e9) as u64),
                n_max: known(1),
            },
            counted_by: "the store's files".into(),
        }
    }

    fn study(results: Vec<RecoverResult>) -> RecoverStudy {
        RecoverStudy {
            dir: "/data".into(),
            emulated: None,
            pages: 256_000,
            data_pages: 512_000,
            log_bytes: 1 << 30,
            results,
            left_out: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The study of Voron: about 3 MB/s one page after the other, and what worked was not to wait.
    #[test]
    fn serial_waits_and_instant_does_not() {
        let serial = result(Strategy::Serial, 340.0, 340.1, 1.0);
        let instant = result(Strategy::Instant, 0.012, 8.0, 60.0);
        assert!((serial.mib_per_s().known().unwrap() - 2.94).abs() < 0.01);
        assert_eq!(
            study(vec![serial, instant]).sentences(),
            [
                "pagestore, serial: 256,000 pages waited for 257,064 reads, writes and syncs one after another (N 1.0): \
                 the first read was answered after 340 s, all was written after 340 s.",
                "pagestore, instant: the first read was answered after 12.0 ms with 256,000 of 256,000 pages still to be \
                 written; all were after 8.00 s, by 257,064 I/Os, 60.0 in flight on average.",
                "pagestore, instant: first read 28,333 x earlier, all pages written 43 x sooner than serial.",
            ]
        );
    }

    #[test]
    fn what_was_not_counted_has_no_n() {
        let io = RecoveryIo::unknown(Reason::NotCounted);
        let result = RecoverResult {
            io,
            pages_left: Figure::unknown(Reason::NotCounted),
            ..result(Strategy::Own, 1.0, 2.0, 1.0)
        };
        assert_eq!(result.n(), Figure::unknown(Reason::NotCounted));
        assert!(study(vec![result]).sentences()[0].ends_with("the I/Os were not counted."));
    }

    #[test]
    fn who_has_no_log_has_nothing_to_redo() {
        let result = RecoverResult { pages: Figure::Known(0), ..result(Strategy::Own, 0.002, 0.02, 1.0) };
        let sentence = &study(vec![result]).sentences()[0];
        assert!(
            sentence.contains("nothing had to be redone: the first read was answered after 2.00 ms"),
            "{sentence}"
        );
    }

    #[test]
    fn the_work_is_what_was_written() {
        assert!(study(Vec::new()).work().starts_with("256,000 pages of 512,000 in a random order"));
        let done = |commits| RecoverResult { commits, ..result(Strategy::Own, 0.002, 0.02, 1.0) };
        assert!(study(vec![done(4_000), done(9_000)]).work().starts_with("256,000 pages of 512,000 "));
        let work = study(vec![done(4), done(4)]).work();
        assert!(work.starts_with("256 pages of 512,000 in a random order, killed at "), "{work}");
        assert!(work.ends_with(" of log before all 256,000 were written"), "{work}");
        let work = study(vec![done(4_000), done(4), done(5)]).work();
        assert!(work.starts_with("256 to 256,000 pages of 512,000 "), "{work}");
    }

    #[test]
    fn all_files_are_one_sum_and_n_is_their_time_by_the_time_that_passed() {
        let file = crate::io::tests::file(
            filestats::FileKind::Data,
            filestats::Cache::Included,
            Ops::timed(3, 12_288, 3_000_000_000),
            Ops::timed(1, 0, 1_000_000_000),
        );
        let filestats::Interval::Known(delta) = &file.interval else { unreachable!() };
        let io = RecoveryIo::from_counters([delta.counters; 2]);
        assert_eq!((io.writes, io.syncs, io.ios()), (Figure::Known(6), Figure::Known(2), Figure::Known(8)));
        let result = RecoverResult { io, ..result(Strategy::Wide, 1.0, 4.0, 1.0) };
        assert_eq!(result.n(), Figure::Known(2.0));
    }
}
