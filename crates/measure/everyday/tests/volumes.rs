//! Volumes that an observer finds from the places of files. Needs root; says so elsewhere.

use collect::{Source, SourceError};
use everyday::{Observer, Scope};
use filestats::{Counters, Epoch, FileIdentity, FileKind, Meaning, Ops, Sample, Snapshot};
use std::path::{Path, PathBuf};
use std::process::Command;
use storage::Target;
use testbed::LoopDisk;
use verdict::Observation;

/// Each snapshot counts one more read of each file, from its own first snapshot on.
struct Files {
    files: Vec<(FileKind, PathBuf, u64)>,
    snapshots: u64,
    undivided: Vec<String>,
}

impl Source for Files {
    fn name(&self) -> &str {
        "files"
    }

    fn undivided_mounts(&self) -> &[String] {
        &self.undivided
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        self.snapshots += 1;
        let sample = |(kind, drive, since): &(FileKind, PathBuf, u64)| {
            let drive = drive.to_str().unwrap().to_owned();
            let path = format!("{drive}/{kind}");
            let file = FileIdentity { path, drive: Some(drive), kind: *kind, ..FileIdentity::default() };
            let counters = Counters { read: Ops::timed(self.snapshots - since, 8192, 1), ..Counters::ZERO };
            Sample::new(file, Epoch::for_run("1"), Meaning::REQUESTS, counters)
        };
        let there = self.files.iter().filter(|(.., since)| self.snapshots > *since);
        Ok(Snapshot {
            source: "files".into(),
            taken_unix_ns: host::unix_ns(),
            clock_ns: host::monotonic_ns(),
            samples: there.map(sample).collect(),
            ..Snapshot::default()
        })
    }
}

fn observed(source: Files, dir: &Path, scope: Scope) -> Vec<(PathBuf, Observation)> {
    let mut observer = Observer::new(Box::new(source), Target::open(dir).unwrap(), scope);
    for _ in 0..4 {
        observer.sample(None).unwrap();
    }
    let found = observer.observations().into_iter();
    found.map(|(target, observation)| (target.path().to_owned(), observation)).collect()
}

fn kinds(observation: &Observation) -> Vec<FileKind> {
    observation.files().iter().map(|file| file.file.kind).collect()
}

fn mount(arguments: &[&str]) {
    assert!(Command::new("mount").args(arguments).status().unwrap().success(), "{arguments:?}");
}

/// Unmounted when dropped.
struct Mounted(tempfile::TempDir);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_device_is_one_volume_wherever_it_is_mounted_and_one_that_appears_is_found() {
    let (Some(mut one), Some(mut two)) = (LoopDisk::new(32 << 20), LoopDisk::new(32 << 20)) else { return };
    let (data, log) = (one.format_and_mount().to_owned(), two.format_and_mount().to_owned());
    let again = Mounted(tempfile::tempdir().unwrap());
    mount(&["--bind", data.to_str().unwrap(), again.0.path().to_str().unwrap()]);
    let memory = Mounted(tempfile::tempdir().unwrap());
    mount(&["-t", "tmpfs", "tmpfs", memory.0.path().to_str().unwrap()]);
    let files = || Files {
        files: vec![
            (FileKind::Data, data.clone(), 0),
            (FileKind::Temp, again.0.path().to_owned(), 0),
            (FileKind::Other, memory.0.path().to_owned(), 0),
            (FileKind::Log, log.clone(), 1),
        ],
        snapshots: 0,
        undivided: Vec::new(),
    };
    let all = observed(files(), &data, Scope::All);
    let places: Vec<&Path> = all.iter().map(|(path, _)| path.as_path()).collect();
    assert_eq!(places, [&data, &log]);
    assert_eq!(kinds(&all[0].1), [FileKind::Data, FileKind::Temp]);
    assert_eq!(kinds(&all[1].1), [FileKind::Log]);
    let log_elsewhere = |at: usize| all[at].1.moments.last().unwrap().log_elsewhere;
    assert_eq!((log_elsewhere(0), log_elsewhere(1)), (true, false));
    assert!(all.iter().all(|(_, observation)| observation.moments.last().unwrap().device().is_some()));

    let alone = observed(files(), &data, Scope::One);
    assert_eq!(alone.len(), 1);
    assert_eq!(kinds(&alone[0].1), [FileKind::Data, FileKind::Temp]);
    assert!(alone[0].1.moments.last().unwrap().log_elsewhere);
}

#[test]
fn a_volume_whose_files_are_counted_with_others_is_listed_only_if_its_device_did_something() {
    let (Some(mut one), Some(mut two)) = (LoopDisk::new(32 << 20), LoopDisk::new(32 << 20)) else { return };
    let (data, space) = (one.format_and_mount().to_owned(), two.format_and_mount().to_owned());
    let files = Files {
        files: vec![(FileKind::Data, data.clone(), 0)],
        snapshots: 0,
        undivided: vec![space.to_str().unwrap().to_owned()],
    };
    let all = observed(files, &data, Scope::All);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(!all[0].1.divided);
}
