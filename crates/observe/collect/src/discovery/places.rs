use super::instance::{Role, RoleFile};
use crate::environment;
use host::{FilePlace, MountView, ProcessFiles};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Finds the volumes of one database.
pub(crate) struct Finder {
    pid: u32,
    pub files: ProcessFiles,
    known: BTreeSet<(Role, PathBuf)>,
    found: Vec<RoleFile>,
}

impl Finder {
    /// For the database of a process.
    pub fn new(pid: u32) -> Finder {
        Finder { pid, files: ProcessFiles::of_process(pid), known: BTreeSet::new(), found: Vec::new() }
    }

    /// Adds a file or directory, as the process names it.
    pub fn add(&mut self, role: Role, path: &Path) {
        // A link in the name would lead to the wrong mount; it can be followed where names mean the same.
        let real = match self.files.view() {
            MountView::Other => None,
            _ => self.files.real_path(path),
        };
        if let Some(place) = self.files.place_of(real.as_deref().unwrap_or(path)) {
            self.add_place(role, place);
        }
    }

    /// Adds the files that the process has open, each with the role that `role_of` gives it; `None` leaves one out.
    pub fn add_open(&mut self, role_of: impl Fn(&host::OpenFile) -> Option<Role>) {
        for file in host::open_files(self.pid) {
            if let (Some(role), Some(place)) = (role_of(&file), self.files.place_of_open(&file)) {
                self.add_place(role, place);
            }
        }
    }

    fn add_place(&mut self, role: Role, place: FilePlace) {
        if place.is_stored() && self.known.insert((role, place.mount.clone())) {
            self.found.push(RoleFile { role, place });
        }
    }

    /// The files that were found, one for each role and volume.
    pub fn finish(self) -> Vec<RoleFile> {
        self.found
    }

    /// A note where the mount namespace hides the open files of the process.
    pub fn note(&self) -> Option<String> {
        let note = match self.files.view() {
            MountView::Shared | MountView::Other => return None,
            MountView::Unknown => {
                "it is another user's process: its open files and sockets are seen by root only, or with CAP_SYS_PTRACE and \
                 CAP_DAC_READ_SEARCH; its volumes are those that its arguments name"
            }
        };
        Some(note.into())
    }

    /// The name of a socket by which this process can connect to it.
    pub fn socket(&self, path: &Path) -> Option<PathBuf> {
        match self.files.view() {
            MountView::Other if self.files.place_of(path)?.path.as_deref() != Some(path) => {
                Some(Path::new(&format!("/proc/{}/root", self.pid)).join(path.strip_prefix("/").ok()?))
            }
            _ => Some(path.to_path_buf()),
        }
    }
}

/// Whether credentials may be sent to a server of a user: root's, this user's own, or that of the user that the server's
/// package makes. A program of any other user may be no such server, and keep a password that it is sent.
pub(crate) fn is_trusted(user: u32, of_package: &str) -> bool {
    user == 0 || user == environment::own_user() || environment::user_id(of_package) == Some(user)
}
