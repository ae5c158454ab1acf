use crate::{Error, child};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    UnshareFlags, set_no_new_privs, set_thread_gid, set_thread_groups, set_thread_uid, unshare_unsafe,
};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The user that a server runs as: the user of this program, or if that is root, the user that the server's package created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User(Option<Ids>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ids {
    user: u32,
    group: u32,
}

impl User {
    /// The user for a server, "PostgreSQL" with "postgres".
    ///
    /// # Errors
    /// [`Error::NoUser`] if this is root and that user does not exist. A user that other programs run as too, such as
    /// "nobody", will not do: they could change the server's files.
    pub fn find(what: &'static str, user: &'static str) -> Result<User, Error> {
        if !geteuid().is_root() {
            return Ok(User(None));
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        ids(&users, user).map(|ids| User(Some(ids))).ok_or(Error::NoUser { what, user })
    }

    /// Whether it is not the user of this program.
    pub fn is_other(self) -> bool {
        self.0.is_some()
    }

    /// A command that runs a program as that user with minimal privileges: without the groups, capabilities and environment
    /// of this program, unable to gain privileges, and without a network where this program is root.
    pub fn command(self, program: impl AsRef<OsStr>) -> Command {
        self.command_in(program, Network::None)
    }

    pub(crate) fn command_in(self, program: impl AsRef<OsStr>, network: Network) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").env_clear().env("LC_ALL", "C");
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        // SAFETY: what runs between fork and exec only makes system calls on its own process, and allocates nothing.
        unsafe { command.pre_exec(move || give_up_privileges(self.0, network)) };
        command
    }

    /// Makes the working directories of a server, where missing, and gives them to its user. No other user may enter them.
    /// The server's user may traverse `home`, the directory above them, but not list or change it.
    pub(crate) fn give(self, home: &Path, directories: &[&Path]) -> Result<(), Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { doing: "give away", path, source }
        };
        let (user, group) = self.0.map(|ids| (ids.user, ids.group)).unzip();
        std::os::unix::fs::chown(home, None, group).map_err(failed(home))?;
        fs::set_permissions(home, Permissions::from_mode(0o710)).map_err(failed(home))?;
        for directory in directories {
            match fs::create_dir(directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => std::os::unix::fs::chown(directory, user, group),
            }
            .and_then(|()| fs::set_permissions(directory, Permissions::from_mode(0o700)))
            .map_err(failed(directory))?;
        }
        Ok(())
    }
}

/// Which networks a server reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// None, not even that of the loopback device: its clients use its socket in the file system.
    None,
    /// All that this program reaches.
    OfThisProgram,
}

/// Runs in the process of a server before it becomes the server. The user is set last: the steps before need root.
fn give_up_privileges(ids: Option<Ids>, network: Network) -> io::Result<()> {
    // When memory is out, the kernel ends an experiment's server before anything else. Fails only without /proc.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    if let Some(Ids { user, group }) = ids {
        if network == Network::None {
            // SAFETY: gives this process another network namespace, and shares its descriptors on. A container may refuse it;
            // the server still listens on its socket alone, by its settings.
            let _ = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
        }
        set_thread_groups(&[])?;
        set_thread_gid(Gid::from_raw(group))?;
        set_thread_uid(Uid::from_raw(user))?;
    }
    Ok(set_no_new_privs(true)?)
}

/// The name of the user that runs this program; servers authenticate it by this name.
pub(crate) fn own_name() -> Result<String, Error> {
    let name = child::run(Command::new("id").arg("-un"))?;
    Ok(name.trim().to_owned())
}

/// "postgres:x:101:104:..." of /etc/passwd.
fn ids(users: &str, name: &str) -> Option<Ids> {
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<&str>>());
    let found = fields.into_iter().find(|fields| fields.first() == Some(&name))?;
    Some(Ids { user: found.get(2)?.parse().ok()?, group: found.get(3)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_known_by_the_whole_name() {
        let users = "root:x:0:0:root:/root:/bin/bash\npostgres2:x:9:9::/:/bin/sh\npostgres:x:101:104:,,,:/var/lib:/bin/sh\nbad:x:\n";
        assert_eq!(ids(users, "postgres"), Some(Ids { user: 101, group: 104 }));
        assert_eq!(ids(users, "bad"), None);
        assert_eq!(ids(users, "mysql"), None);
    }

    #[test]
    fn a_server_has_a_user_of_its_own_or_is_not_run_by_root() {
        match geteuid().is_root() {
            true => assert!(matches!(User::find("server", "no-such-user"), Err(Error::NoUser { .. }))),
            false => assert!(!User::find("server", "no-such-user").unwrap().is_other()),
        }
    }
}
