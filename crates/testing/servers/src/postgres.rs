use crate::user::Network;
use crate::{Error, User, child, user};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;

const WHAT: &str = "PostgreSQL";
/// Directories of Debian, Red Hat and builds from source.
const ROOTS: [&str; 2] = ["/usr/lib/postgresql", "/usr/pgsql"];
const DIRECTORIES: [&str; 3] = ["/usr/bin", "/usr/local/pgsql/bin", "/usr/local/bin"];
/// Longest path of a socket.
const SOCKET_BYTES_MAX: usize = 107;

/// initdb and postgres of one version.
#[derive(Clone, Debug)]
pub struct PostgresPrograms {
    /// Their directory.
    pub directory: PathBuf,
    /// The user that they run as.
    pub user: User,
}

/// A server. Dropping it ends it; its directory stays.
///
/// Its superuser has the name of this program's user, and the kernel names that user to the server (`peer`): no other user
/// logs in, and only the server's user may enter the directory of the socket.
///
/// ```text
/// HOME/               of this program's user; the server's user may only traverse it
///     postgres.log    of this program's user
///     run/            of the server's user alone: the socket
/// DATA/               of the server's user alone
/// ```
#[derive(Debug)]
pub struct Postgres {
    programs: PostgresPrograms,
    home: PathBuf,
    data: PathBuf,
    port: u16,
    settings: Vec<String>,
    superuser: String,
    log: File,
    ends_with_thread: bool,
    child: Option<Child>,
}

impl PostgresPrograms {
    /// The newest version on this machine.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], [`Error::NoUser`].
    pub fn find() -> Result<PostgresPrograms, Error> {
        let versions = ROOTS.iter().filter_map(|root| fs::read_dir(root).ok()).flatten().flatten();
        let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
        found.sort_by_key(|directory| version(directory));
        found.reverse();
        found.extend(DIRECTORIES.iter().map(PathBuf::from));
        let directory = found.into_iter().find(|directory| directory.join("initdb").exists());
        let package = "postgresql";
        PostgresPrograms::in_directory(directory.ok_or(Error::NotInstalled { what: WHAT, package })?)
    }

    /// The programs in a directory.
    ///
    /// # Errors
    /// [`Error::NoUser`].
    pub fn in_directory(directory: PathBuf) -> Result<PostgresPrograms, Error> {
        Ok(PostgresPrograms { directory, user: User::find(WHAT, "postgres")? })
    }
}

/// 17 of /usr/lib/postgresql/17/bin.
fn version(directory: &Path) -> Option<u32> {
    directory.parent()?.file_name()?.to_str()?.parse().ok()
}

impl Postgres {
    /// A server with its data in `data`, its log and socket in `home`: two empty directories. It listens on the socket only,
    /// which has `port` in its name, unless `settings` ("NAME=VALUE") set more.
    ///
    /// # Errors
    /// [`Error::LongName`]; the output of initdb.
    pub fn initialise(
        programs: &PostgresPrograms,
        home: &Path,
        data: &Path,
        port: u16,
        settings: Vec<String>,
    ) -> Result<Postgres, Error> {
        if home.as_os_str().len() + "/run/.s.PGSQL.65535.lock".len() > SOCKET_BYTES_MAX {
            return Err(Error::LongName { home: home.into() });
        }
        let superuser = user::own_name()?;
        let log = child::make_log(&log_path(home))?;
        programs.user.give(home, &[data, &socket_directory(home)])?;
        let mut initdb = programs.user.command(programs.directory.join("initdb"));
        initdb.args([&format!("--username={superuser}"), "--auth-local=peer", "--auth-host=scram-sha-256"]);
        initdb.args(["--no-locale", "--encoding=UTF8", "--no-sync", "--no-instructions", "--pgdata"]);
        child::run(initdb.arg(data))?;
        Ok(Postgres {
            programs: programs.clone(),
            home: home.into(),
            data: data.into(),
            port,
            settings,
            superuser,
            log,
            ends_with_thread: false,
            child: None,
        })
    }

    /// Ends with the thread that launches it.
    #[must_use]
    pub fn tied_to_thread(mut self) -> Postgres {
        self.ends_with_thread = true;
        self
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// [`Error::NotReady`] with the end of its log.
    pub fn launch(&mut self) -> Result<(), Error> {
        let program = self.programs.directory.join("postgres");
        let mut command = self.programs.user.command_in(program, network(&self.settings));
        command.arg("-D").arg(&self.data).arg("-k").arg(self.socket_directory());
        command.arg(format!("-p{}", self.port)).args(["-c", "listen_addresses="]);
        command.args(["-c", "unix_socket_permissions=0700"]);
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        if self.ends_with_thread {
            // An immediate shutdown, which ends its children too.
            child::ends_with_thread(&mut command, libc::SIGQUIT);
        }
        let mut child = child::spawn(&mut command, &self.log)?;
        let pid = child.id();
        let launched = child::wait_until_ready(WHAT, &mut child, &self.home, &self.log, || {
            ready_pid(&self.data) == Some(pid)
        });
        self.child = Some(child);
        launched
    }

    /// Uses this data directory, a copy of the last one, from the next launch on.
    pub fn move_data(&mut self, data: &Path) {
        self.data = data.into();
    }

    /// Ends it: SIGINT for a fast shutdown with a checkpoint, SIGQUIT for an immediate one.
    pub fn end(&mut self, signal: i32) {
        if let Some(mut child) = self.child.take() {
            child::end(&mut child, signal);
        }
    }

    /// Kills all its processes with SIGKILL, as a crash would: no process of it writes when this returns.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let others = host::children_of(child.id());
            let _ = child.kill();
            others.iter().for_each(|pid| child::send(*pid, libc::SIGKILL));
            let _ = child.wait();
            child::wait_until_gone(&others);
        }
    }

    /// The pid of its postmaster while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Whether it ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))))
    }

    /// The connection string, `name=value` pairs: to the socket, as superuser, to database postgres.
    pub fn connection(&self) -> String {
        self.connection_as(&self.superuser)
    }

    /// Connection string of another role.
    pub fn connection_as(&self, role: &str) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
        let (socket, role) = (quoted(&self.socket_directory().to_string_lossy()), quoted(role));
        format!("host='{socket}' port={} user={role} dbname=postgres", self.port)
    }

    /// The directory of its socket.
    pub fn socket_directory(&self) -> PathBuf {
        socket_directory(&self.home)
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        log_path(&self.home)
    }

    /// Its programs.
    pub fn programs(&self) -> &PostgresPrograms {
        &self.programs
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end(libc::SIGQUIT);
    }
}

/// The network that a server needs to listen on the addresses in its settings.
fn network(settings: &[String]) -> Network {
    let mut addresses = settings.iter().filter_map(|setting| setting.strip_prefix("listen_addresses="));
    // The last one counts.
    if addresses.next_back().is_none_or(str::is_empty) { Network::None } else { Network::OfThisProgram }
}

fn socket_directory(home: &Path) -> PathBuf {
    home.join("run")
}

fn log_path(home: &Path) -> PathBuf {
    home.join("postgres.log")
}

/// The pid of the postmaster once it accepts connections: pg_ctl waits for the same line (LOCK_FILE_LINE_PM_STATUS of
/// src/include/utils/pidfile.h).
fn ready_pid(data: &Path) -> Option<u32> {
    let text = child::read_text(&data.join("postmaster.pid")).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    (lines.nth(6)?.trim() == "ready").then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_its_pid_file_says_so() {
        let data = tempfile::tempdir().unwrap();
        let pid_of = |text: &str| {
            fs::write(data.path().join("postmaster.pid"), text).unwrap();
            ready_pid(data.path())
        };
        let lines = "4711\n/data\n1762000000\n5432\n/run\n127.0.0.1\n  8 0\n";
        assert_eq!(pid_of(&format!("{lines}ready   \n")), Some(4711));
        assert_eq!(pid_of(&format!("{lines}starting\n")), None);
        assert_eq!(pid_of(lines), None);
        assert_eq!(pid_of(""), None);
    }

    #[test]
    fn only_a_server_that_listens_on_an_address_has_a_network() {
        let network =
            |settings: &[&str]| network(&settings.iter().map(|text| (*text).into()).collect::<Vec<_>>());
        assert_eq!(network(&["autovacuum=off"]), Network::None);
        assert_eq!(network(&["listen_addresses="]), Network::None);
        assert_eq!(network(&["listen_addresses=127.0.0.1"]), Network::OfThisProgram);
    }

    #[test]
    fn the_newest_version_is_the_highest_number() {
        let mut directories = ["/usr/lib/postgresql/9/bin", "/usr/lib/postgresql/17/bin"].map(PathBuf::from);
        directories.sort_by_key(|directory| version(directory));
        assert_eq!(version(&directories[1]), Some(17));
    }

    #[test]
    fn a_name_too_long_for_a_socket_is_refused_before_anything_is_made() {
        let programs =
            PostgresPrograms { directory: "/nowhere".into(), user: User::find(WHAT, "postgres").unwrap() };
        let home = PathBuf::from(format!("/{}", "x".repeat(100)));
        let refused = Postgres::initialise(&programs, &home, &home, 5432, Vec::new());
        assert!(matches!(refused, Err(Error::LongName { .. })));
    }
}
