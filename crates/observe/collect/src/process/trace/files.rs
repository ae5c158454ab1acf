use super::super::names;
use super::super::program::Programs;
use super::super::tables::{FileId, Name};
use super::exclude;
use super::pattern::FilePattern;
use crate::error::SourceError;
use host::Mounts;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Number of files that are remembered; a forgotten one is looked up again.
const FILES_MAX: usize = 16_384;
/// Mounts that are older are read again for a new file.
const MOUNTS_LAST: Duration = Duration::from_millis(200);

/// The files that were seen: the name of each, or `None` where it is not wanted. A file keeps the name that it had when it
/// was first seen.
pub(super) struct Files {
    patterns: Vec<FilePattern>,
    known: HashMap<FileId, Option<Rc<str>>>,
    /// Names that the programs recorded and that are not used yet.
    written: HashMap<FileId, Box<Name>>,
    mounts: Mounts,
    mounts_read: Option<Instant>,
}

impl Files {
    pub fn new(patterns: Vec<FilePattern>) -> Files {
        Files {
            patterns,
            known: HashMap::new(),
            written: HashMap::new(),
            mounts: Mounts::default(),
            mounts_read: None,
        }
    }

    /// The name of a file that a process used; `None` where it is not wanted.
    pub fn wanted(
        &mut self,
        programs: &mut Programs,
        id: FileId,
        pid: u32,
    ) -> Result<Option<Rc<str>>, SourceError> {
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        if !self.written.contains_key(&id) {
            let written = programs.take_names()?;
            self.keep(written);
        }
        if self.mounts_read.is_none_or(|read| read.elapsed() > MOUNTS_LAST) {
            (self.mounts, self.mounts_read) = (Mounts::read().unwrap_or_default(), Some(Instant::now()));
        }
        let written = self.written.remove(&id);
        let path = names::find_name(id, written.as_deref(), &[pid], &self.mounts).path;
        let wanted = FilePattern::any(&self.patterns, &path);
        if !wanted {
            exclude(programs, id)?;
        }
        let name = wanted.then(|| Rc::from(Path::to_string_lossy(&path)));
        if self.known.len() >= FILES_MAX {
            self.known.clear();
        }
        self.known.insert(id, name.clone());
        Ok(name)
    }

    /// Keeps names until they are used.
    pub fn keep(&mut self, written: HashMap<FileId, Box<Name>>) {
        if self.written.len() >= FILES_MAX {
            self.written.clear();
        }
        self.written.extend(written.into_iter().filter(|(id, _)| !self.known.contains_key(id)));
    }
}
