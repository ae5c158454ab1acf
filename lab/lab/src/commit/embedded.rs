use super::{Committer, Processes};
use crate::Error;
use experiments::Durability;
use filestats::{FileKind, Snapshot};
use peers::{Engine, Peer};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Another embedded engine in this program. Each step has a database of its own, counted in the kernel.
pub(super) struct Embedded {
    engine: Engine,
    processes: Processes,
    /// Of the step.
    dir: PathBuf,
    peer: Option<(Box<dyn Peer>, Durability)>,
}

impl Embedded {
    /// Opens and closes a database, so that an unusable engine fails before any step.
    pub(super) fn open(dir: &Path, engine: Engine) -> Result<Embedded, Error> {
        let trial = dir.join("trial");
        fs::create_dir(&trial).map_err(Error::io("make", &trial))?;
        drop(engine.open(&trial)?);
        fs::remove_dir_all(&trial).map_err(Error::io("remove", &trial))?;
        let processes = Processes::open(engine.name(), Some(std::process::id()));
        Ok(Embedded { engine, processes, dir: trial, peer: None })
    }

    fn peer(&self) -> (&dyn Peer, Durability) {
        let (peer, durability) = self.peer.as_ref().expect("begun");
        (peer.as_ref(), *durability)
    }
}

impl Committer for Embedded {
    fn begin(&mut self, dir: &Path, durability: Durability) -> Result<(), Error> {
        self.dir = dir.into();
        let peer = self.engine.open(dir)?;
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
        for sample in snapshot.iter_mut().flat_map(|snapshot| &mut snapshot.samples) {
            let path = Path::new(&sample.file.path);
            if path.starts_with(&self.dir) {
                let log = self.engine.is_log(path);
                sample.file_mut().kind = if log { FileKind::Log } else { FileKind::Data };
            }
        }
        Ok(snapshot)
    }

    fn end(&mut self) -> Result<(), Error> {
        self.peer = None;
        Ok(())
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
