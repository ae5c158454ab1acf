use super::{Committer, Processes};
use crate::Error;
use experiments::Durability;
use filestats::{FileInterval, FileKind, Snapshot};
use peers::{Engine, Peer};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Another embedded engine in this program. Each step has a database of its own, counted in the kernel.
pub(super) struct Embedded {
    dir: PathBuf,
    engine: Engine,
    processes: Processes,
    step: u32,
    peer: Option<(Box<dyn Peer>, Durability)>,
}

impl Embedded {
    /// Opens and closes a database, so that an unusable engine fails before any step.
    pub(super) fn open(dir: PathBuf, engine: Engine) -> Result<Embedded, Error> {
        let mut embedded = Embedded {
            dir,
            engine,
            processes: Processes { source: None, notes: Vec::new() },
            step: 0,
            peer: None,
        };
        embedded.make_step_dir()?;
        drop(engine.open(&embedded.step_dir())?);
        embedded.end()?;
        embedded.processes = Processes::open(engine.name(), Some(std::process::id()));
        Ok(embedded)
    }

    fn step_dir(&self) -> PathBuf {
        self.dir.join(self.step.to_string())
    }

    fn make_step_dir(&self) -> Result<(), Error> {
        let dir = self.step_dir();
        fs::create_dir(&dir).map_err(|source| Error::Io { doing: "make", path: dir, source })
    }

    fn peer(&self) -> (&dyn Peer, Durability) {
        let (peer, durability) = self.peer.as_ref().expect("begun");
        (peer.as_ref(), *durability)
    }
}

impl Committer for Embedded {
    fn begin(&mut self, durability: Durability) -> Result<(), Error> {
        self.step += 1;
        self.make_step_dir()?;
        let peer = self.engine.open(&self.step_dir())?;
        // The first commit creates the table, and the log if there is one; no row has this key.
        peer.commit(Durability::Full, &mut |rows| rows.put(b"first", b""))?;
        self.peer = Some((peer, durability));
        // A file is counted from the first snapshot that has it.
        self.processes.counters().map(drop)
    }

    fn commit(&mut self, rows: Range<u64>) -> Result<(), Error> {
        let (peer, durability) = self.peer();
        peer.commit(durability, &mut |batch| {
            rows.clone().map(|n| (n as u32).to_be_bytes()).try_for_each(|n| batch.put(&n, &n))
        })?;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Error> {
        Ok(self.peer().0.settle()?)
    }

    fn counters(&mut self) -> Result<Option<Snapshot>, Error> {
        let mut snapshot = self.processes.counters()?;
        let step = self.step_dir();
        for sample in snapshot.iter_mut().flat_map(|snapshot| &mut snapshot.samples) {
            let path = Path::new(&sample.file.path);
            if path.starts_with(&step) {
                let log = self.engine.is_log(path);
                sample.file.kind = if log { FileKind::Log } else { FileKind::Data };
            }
        }
        Ok(snapshot)
    }

    fn is_counted(&self, file: &FileInterval) -> bool {
        Path::new(&file.file.path).starts_with(self.step_dir())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.peer = None;
        let dir = self.step_dir();
        fs::remove_dir_all(&dir).map_err(|source| Error::Io { doing: "remove", path: dir, source })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.processes.notes.clone();
        if !self.engine.has_log() {
            let name = self.engine.name();
            notes.push(format!("{name} has no log: a commit writes pages of the data, and waits for them"));
        }
        notes
    }
}
