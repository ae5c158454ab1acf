//! Resources that an agent uses of the machine over time, from /proc.

use std::fs;
use std::time::{Duration, Instant};

/// Samples of one process.
pub struct Usage {
    pid: u32,
    began: Instant,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    age: Duration,
    resident_kib: u64,
    files: u64,
    threads: u64,
}

/// An agent reads what it needs, and fills what has bounds, within this time.
const WARM_UP: Duration = Duration::from_secs(60);
/// Memory that an allocator keeps for other threads varies by as much.
const RESIDENT_SLACK_KIB: u64 = 24 << 10;
/// A source that is opened again has a connection, a thread and BPF programs more for a moment.
const COUNT_SLACK: u64 = 12;
/// However young it is.
const FILES_MAX: u64 = 400;
const THREADS_MAX: u64 = 60;

impl Usage {
    pub fn new(pid: u32) -> Usage {
        Usage { pid, began: Instant::now(), samples: Vec::new() }
    }

    /// Adds a sample.
    pub fn sample(&mut self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let figure = |key: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim_matches([':', '\t', ' ', 'k', 'B']).parse().unwrap()
        };
        let files = fs::read_dir(format!("/proc/{}/fd", self.pid)).unwrap().count() as u64;
        let (resident_kib, threads) = (figure("VmRSS"), figure("Threads"));
        assert!(files < FILES_MAX && threads < THREADS_MAX, "{files} files, {threads} threads");
        self.samples.push(Sample { age: self.began.elapsed(), resident_kib, files, threads });
    }

    /// Nothing grew from the first third to the last one.
    pub fn check_bounded(&self) {
        let warm: Vec<Sample> = self.samples.iter().copied().filter(|one| one.age > WARM_UP).collect();
        let third = warm.len() / 3;
        if third < 3 {
            println!("too short to compare its beginning with its end: HEADROOM_SOAK_SECONDS=600");
            return;
        }
        let median = |samples: &[Sample], figure: fn(&Sample) -> u64| {
            let mut figures: Vec<u64> = samples.iter().map(figure).collect();
            figures.sort_unstable();
            figures[figures.len() / 2]
        };
        let check = |name: &str, figure: fn(&Sample) -> u64, slack: u64| {
            let (first, last) = (median(&warm[..third], figure), median(&warm[warm.len() - third..], figure));
            println!("{name}: {first} in the first third, {last} in the last one");
            assert!(last <= first + slack, "{name} grew from {first} to {last}: {warm:#?}");
        };
        check("KiB resident", |one| one.resident_kib, RESIDENT_SLACK_KIB);
        check("files", |one| one.files, COUNT_SLACK);
        check("threads", |one| one.threads, COUNT_SLACK);
    }
}
