//! The names of a store's files on the simulated disk: which of them a crash leaves.
//!
//! A new name and a removal may be durable or not, each by itself, until the directory that holds the name is synced. What is
//! below a directory whose name is lost is lost.

use crate::op::NameOp;
use crate::{Chance, Medium, Op, SimDisk};
use pagestore_disk::{FileId, Names};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// A directory or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    /// The file of this number.
    File(u32),
}

/// Names and the contents of files, on the medium and waiting for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedMedium {
    durable: BTreeMap<PathBuf, Node>,
    /// Changes of names, in order; `None`: removed.
    waiting: Vec<(PathBuf, Option<Node>)>,
    /// Contents of the store's lock files, by their numbers.
    locks: BTreeMap<u32, Vec<u8>>,
    /// The store's files.
    medium: Medium,
    /// A file of the store that was removed: its number and its content.
    removed: [Option<(u32, Vec<u8>)>; 3],
}

/// The file of the store that a name is for.
fn file_of(path: &Path) -> Option<FileId> {
    FileId::ALL.into_iter().find(|file| path.ends_with(file.name()))
}

impl NamedMedium {
    /// Takes in a completed operation.
    pub(crate) fn apply(&mut self, op: &Op) {
        let Op::Name(op) = op else { return self.medium.apply(op) };
        match op {
            NameOp::MakeDirectory(path) => self.waiting.push((path.clone(), Some(Node::Directory))),
            NameOp::Create(path, number) => {
                self.waiting.push((path.clone(), Some(Node::File(*number))));
                match file_of(path) {
                    Some(file) => self.medium.replace(file, Vec::new()),
                    None => drop(self.locks.insert(*number, Vec::new())),
                }
            }
            NameOp::Remove(path) => {
                if let (Some(Node::File(number)), Some(file)) = (self.node(path), file_of(path)) {
                    self.removed[file as usize] = Some((number, self.medium.durable(file).to_vec()));
                }
                self.waiting.push((path.clone(), None));
            }
            NameOp::SyncDirectory(directory) => {
                let (synced, waiting) = std::mem::take(&mut self.waiting)
                    .into_iter()
                    .partition(|(path, _)| path.parent() == Some(directory.as_path()));
                self.waiting = waiting;
                Self::change(&mut self.durable, synced);
            }
            NameOp::Replace(number, content) => drop(self.locks.insert(*number, content.clone())),
        }
    }

    fn change(names: &mut BTreeMap<PathBuf, Node>, changes: Vec<(PathBuf, Option<Node>)>) {
        for (path, node) in changes {
            match node {
                Some(node) => drop(names.insert(path, node)),
                None => drop(names.remove(&path)),
            }
        }
    }

    /// The names as programs see them.
    fn cached(&self) -> BTreeMap<PathBuf, Node> {
        let mut names = self.durable.clone();
        Self::change(&mut names, self.waiting.clone());
        names
    }

    fn node(&self, path: &Path) -> Option<Node> {
        let newest = self.waiting.iter().rev().find(|(own, _)| own == path).map(|(_, node)| *node);
        newest.unwrap_or_else(|| self.durable.get(path).copied())
    }

    /// The names and files that a power failure during `in_flight` may leave.
    pub(crate) fn crash(&self, in_flight: Option<&Op>, chance: &mut Chance) -> Self {
        let mut left = self.clone();
        if let Some(op @ Op::Name(_)) = in_flight
            && chance.once_in(2)
        {
            left.apply(op);
        }
        // Sometimes all of them, sometimes none, mostly some.
        let landing = [0, 4, 4, 8, 6, 2][chance.below(6) as usize];
        let mut landed = std::mem::take(&mut left.waiting);
        landed.retain(|_| chance.below(8) < landing);
        Self::change(&mut left.durable, landed);
        let names = left.durable.clone();
        let is_reachable = |path: &Path| {
            path.ancestors().skip(1).all(|own| own == Path::new("/") || names.contains_key(own))
        };
        left.durable.retain(|path, _| is_reachable(path));
        let files = left.medium.crash(in_flight.filter(|op| !matches!(op, Op::Name(_))), chance);
        left.medium = Medium::holding(files);
        for file in FileId::ALL {
            let node =
                left.durable.iter().find(|(path, _)| file_of(path) == Some(file)).map(|(_, node)| *node);
            match (node, left.removed[file as usize].take()) {
                (Some(Node::File(number)), Some((removed, content))) if number == removed => {
                    left.medium.replace(file, content);
                }
                (None, _) => left.medium.replace(file, Vec::new()),
                _ => {}
            }
        }
        left
    }

    /// The names and files of a process that is killed during `in_flight`: nothing is lost yet.
    pub(crate) fn killed(&self, in_flight: Option<&Op>, chance: &mut Chance) -> Self {
        let mut left = self.clone();
        match in_flight {
            Some(op @ Op::Name(_)) if chance.once_in(2) => left.apply(op),
            op => left.medium = left.medium.killed(op.filter(|op| !matches!(op, Op::Name(_))), chance),
        }
        left
    }
}

/// The names as a program sees them, and the disk that records their operations.
pub(crate) struct SimNames {
    pub disk: Arc<SimDisk>,
    state: Mutex<View>,
}

struct View {
    names: BTreeMap<PathBuf, Node>,
    locks: BTreeMap<u32, Vec<u8>>,
    next: u32,
}

/// The path without `..`; there are no symbolic links.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

impl SimNames {
    pub(crate) fn caching(medium: &NamedMedium) -> Self {
        let names = medium.cached();
        let number = |node: &Node| if let Node::File(number) = node { *number } else { 0 };
        let waiting = medium.waiting.iter().filter_map(|(_, node)| node.as_ref());
        let next = names.values().chain(waiting).map(number).max().unwrap_or(0) + 1;
        let state = View { names, locks: medium.locks.clone(), next };
        Self { disk: Arc::new(SimDisk::caching(&medium.medium)), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, View> {
        self.state.lock().expect("no thread panics with the names locked")
    }

    fn make(&self, path: &Path, op: impl FnOnce(PathBuf, &mut View) -> (Node, NameOp)) -> io::Result<()> {
        let (path, mut view) = (plain(path), self.lock());
        if view.names.contains_key(&path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let parent = path.parent().unwrap_or(Path::new("/"));
        if parent != Path::new("/") && view.names.get(parent) != Some(&Node::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (node, op) = op(path.clone(), &mut view);
        view.names.insert(path, node);
        self.disk.name(op);
        Ok(())
    }
}

impl Names for SimNames {
    fn is_there(&self, path: &Path) -> bool {
        let path = plain(path);
        path == Path::new("/") || self.lock().names.contains_key(&path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let directory = plain(directory);
        let view = self.lock();
        let within = view.names.keys().filter(|path| path.parent() == Some(&directory));
        Ok(within.filter_map(|path| Some(path.file_name()?.to_owned())).collect())
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.make(path, |path, _| (Node::Directory, NameOp::MakeDirectory(path)))
    }

    fn create(&self, path: &Path) -> io::Result<()> {
        self.make(path, |path, view| {
            let number = view.next;
            view.next += 1;
            if file_of(&path).is_none() {
                view.locks.insert(number, Vec::new());
            }
            (Node::File(number), NameOp::Create(path, number))
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = plain(path);
        self.lock().names.remove(&path).ok_or(io::ErrorKind::NotFound)?;
        self.disk.name(NameOp::Remove(path));
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        if !self.is_there(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.disk.name(NameOp::SyncDirectory(plain(path)));
        Ok(())
    }

    fn read(&self, path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
        let view = self.lock();
        let Some(Node::File(number)) = view.names.get(&plain(path)) else { return None };
        view.locks.get(number).filter(|content| (content.len() as u64) < bytes_max).cloned()
    }

    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut view = self.lock();
        let Some(Node::File(number)) = view.names.get(&plain(path)).copied() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        view.locks.insert(number, content.to_vec());
        self.disk.name(NameOp::Replace(number, content.to_vec()));
        Ok(())
    }
}
