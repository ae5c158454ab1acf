use crate::Error;
use std::ffi::OsStr;
use std::io;
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
    /// [`Error::NoUser`] if this is root and neither that user nor "nobody" exists.
    pub fn find(what: &'static str, user: &'static str) -> Result<User, Error> {
        // SAFETY: it takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(User(None));
        }
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let ids = ids(&users, user).or_else(|| ids(&users, "nobody"));
        ids.map(|ids| User(Some(ids))).ok_or(Error::NoUser { what, user })
    }

    /// Whether it is not the user of this program.
    pub fn is_other(self) -> bool {
        self.0.is_some()
    }

    /// A command that runs a program as that user.
    pub fn command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").env("LC_ALL", "C");
        if let Some(Ids { user, group }) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }

    /// Makes the user the owner of a file.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn own(self, path: &Path) -> io::Result<()> {
        match self.0 {
            Some(Ids { user, group }) => std::os::unix::fs::chown(path, Some(user), Some(group)),
            None => Ok(()),
        }
    }
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
}
