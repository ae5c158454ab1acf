use super::super::names;
use super::super::program::Programs;
use super::super::tables::{FileId, Name};
use super::pattern::FilePattern;
use super::refuse;
use crate::error::SourceError;
use host::Mounts;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// So many files are known at a time; one that is forgotten is looked up again.
const FILES_MAX: usize = 16_384;
/// Mounts are looked at again so often, for files that are new.
const MOUNTS_LAST: Duration = Duration::from_millis(200);

/// The files that were seen: the name of each, or that it is not wanted. A file has the name that it had when it was first
/// seen.
#[derive(Debug)]
pub(super) struct Files {
    patterns: Vec<FilePattern>,
    known: HashMap<FileId, Option<Rc<str>>>,
    /// Written down by the kernel, not asked for yet.
    written: HashMap<FileId, Box<Name>>,
    mounts: Mounts,
    looked: Option<Instant>,
}

impl Files {
    pub fn new(patterns: Vec<FilePattern>) -> Files {
        Files {
            patterns,
            known: HashMap::new(),
            written: HashMap::new(),
            mounts: Mounts::default(),
            looked: None,
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
        if self.looked.is_none_or(|looked| looked.elapsed() > MOUNTS_LAST) {
            (self.mounts, self.looked) = (Mounts::read().unwrap_or_default(), Some(Instant::now()));
        }
        let written = self.written.remove(&id);
        let path = names::first(id, written.as_deref(), &[pid], &self.mounts).path;
        let wanted = FilePattern::any(&self.patterns, &path);
        if !wanted {
            refuse(programs, id)?;
        }
        let name = wanted.then(|| Rc::from(Path::to_string_lossy(&path)));
        if self.known.len() >= FILES_MAX {
            self.known.clear();
        }
        self.known.insert(id, name.clone());
        Ok(name)
    }

    /// Keeps names for when they are asked for.
    pub fn keep(&mut self, written: HashMap<FileId, Box<Name>>) {
        if self.written.len() >= FILES_MAX {
            self.written.clear();
        }
        self.written.extend(written.into_iter().filter(|(id, _)| !self.known.contains_key(id)));
    }
}
