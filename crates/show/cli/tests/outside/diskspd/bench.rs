//! A disk of a test's own, `headroom diskspd` on it, and the kernel's record of its requests.

use programs::Headroom;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::{BlockTrace, Issued, LoopDisk, Traced};

/// Small enough that a second of I/Os goes over it several times.
pub const DISK_BYTES: u64 = 16 << 20;

/// One disk, unformatted, and headroom.
pub struct Bench {
    pub headroom: Headroom,
    pub disk: LoopDisk,
}

/// A run's own figures, and the I/Os that the kernel saw.
pub struct Seen {
    /// The whole answer of `--json`.
    pub json: Value,
    pub traced: Traced,
}

impl Bench {
    /// `None`, after saying so, where this user may not set up a disk or trace it.
    pub fn new() -> Option<Bench> {
        let disk = LoopDisk::new(DISK_BYTES)?;
        BlockTrace::start(disk.number())?;
        Some(Bench { headroom: Headroom::new(), disk })
    }

    /// Its device as an argument.
    pub fn device(&self) -> String {
        self.disk.device().to_str().unwrap().into()
    }

    /// `headroom diskspd` on the whole disk, for a second without warm-up unless the flags say otherwise.
    pub fn command(&self, flags: &str) -> Command {
        self.command_on(flags, &[self.device()])
    }

    /// ... on these targets, which may be written over.
    pub fn command_on(&self, flags: &str, targets: &[String]) -> Command {
        let mut arguments = vec!["diskspd", "-W0", "-d1"];
        // The last of two equal flags would count; diskspd has no such rule for these.
        arguments.retain(|default| {
            !flags.split(' ').any(|flag| flag.starts_with(&default[..2])) || *default == "diskspd"
        });
        arguments.extend(flags.split(' ').filter(|flag| !flag.is_empty()));
        for target in targets {
            arguments.extend(["--destroy-data", target]);
        }
        arguments.extend(targets.iter().map(String::as_str));
        self.headroom.command(&arguments)
    }

    /// Runs it traced; fails the test where it fails.
    pub fn run(&self, flags: &str) -> Seen {
        let trace = BlockTrace::start(self.disk.number()).expect("traced before");
        let json = answer(self.command(flags).arg("--json"));
        Seen { json, traced: trace.stop() }
    }

    /// ... traced with completions and priorities.
    pub fn run_in_full(&self, flags: &str) -> Seen {
        let trace = BlockTrace::start_in_full(self.disk.number()).expect("traced before");
        let json = answer(self.command(flags).arg("--json"));
        Seen { json, traced: trace.stop() }
    }

    /// The current content of the disk.
    pub fn content(&self) -> Vec<u8> {
        let content = std::fs::read(self.disk.device()).unwrap();
        assert_eq!(content.len() as u64, DISK_BYTES);
        content
    }
}

/// Runs a command that must succeed, and reads its JSON.
pub fn answer(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {:?}: {errors}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command:?}: {error}: {errors}"))
}

impl Seen {
    /// The result of the only target of the only time span.
    pub fn result(&self) -> &Value {
        &self.json["phases"][0]["results"][0]
    }

    /// The run's own counts: reads, writes.
    pub fn counts(&self) -> (u64, u64) {
        let of = |direction: &str| self.result()[direction]["count"].as_u64().unwrap();
        (of("read"), of("write"))
    }

    pub fn ios(&self) -> &[Issued] {
        &self.traced.ios
    }

    pub fn offsets(&self) -> Vec<u64> {
        self.ios().iter().map(Issued::offset).collect()
    }

    /// The offsets of each thread, the threads in the order in which they were started.
    pub fn offsets_of_threads(&self) -> Vec<Vec<u64>> {
        let mut threads: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for io in self.ios() {
            threads.entry(io.thread).or_default().push(io.offset());
        }
        threads.into_values().collect()
    }

    /// Share of the I/Os that the condition holds for, in percent.
    pub fn percent(&self, holds: impl Fn(&Issued) -> bool) -> f64 {
        let count = self.ios().iter().filter(|io| holds(io)).count();
        100.0 * count as f64 / self.ios().len() as f64
    }

    /// Nanoseconds from each I/O to the next.
    pub fn gaps_ns(&self) -> Vec<u64> {
        self.ios().windows(2).map(|pair| pair[1].at_ns.saturating_sub(pair[0].at_ns)).collect()
    }
}

/// Asserts that a figure lies in a range, and says which figure where not.
#[track_caller]
pub fn within(what: &str, value: f64, range: std::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{what}: {value} is not in {range:?}");
}

/// A profile of two time spans or targets that no flags can say, as a file.
pub fn profile(place: &Path, spans: &str) -> PathBuf {
    let file = place.join("profile.xml");
    std::fs::write(&file, format!("<Profile><TimeSpans>{spans}</TimeSpans></Profile>")).unwrap();
    file
}
