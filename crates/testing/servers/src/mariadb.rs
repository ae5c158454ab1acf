use crate::user::Network;
use crate::{Error, User, child, user};
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const WHAT: &str = "MariaDB";
/// Longest path of a socket.
const SOCKET_BYTES_MAX: usize = 107;
/// A server that is busy starting answers later.
const GREETING_MAX: Duration = Duration::from_secs(1);

/// An installed mariadbd.
#[derive(Clone, Debug)]
pub struct MariadbPrograms {
    /// The user that it runs as.
    pub user: User,
}

/// A server that ends with the thread that launches it. Dropping it ends it; its directory stays.
///
/// Its superuser has the name of this program's user, and the kernel names that user to the server (`unix_socket`): no other
/// user logs in, and only the server's user may enter the directory of the socket.
///
/// ```text
/// HOME/             of this program's user; the server's user may only traverse it
///     error.log     of this program's user
///     my.cnf        of this program's user, readable by the server's
///     run/          of the server's user alone: the socket, the pid file, temporary files
/// DATA/             of the server's user alone
/// ```
#[derive(Debug)]
pub struct Mariadb {
    programs: MariadbPrograms,
    home: PathBuf,
    data: PathBuf,
    network: Network,
    superuser: String,
    log: File,
    child: Option<Child>,
}

impl MariadbPrograms {
    /// The programs installed on this machine.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], [`Error::NoUser`].
    pub fn find() -> Result<MariadbPrograms, Error> {
        for program in ["mariadbd", "mariadb-install-db"] {
            let found = Command::new(program).arg("--help").stdin(Stdio::null()).output();
            if found.is_err() {
                return Err(Error::NotInstalled { what: WHAT, package: "mariadb-server" });
            }
        }
        Ok(MariadbPrograms { user: User::find(WHAT, "mysql")? })
    }

    /// Whether the server has a setting of this name.
    ///
    /// # Errors
    /// If mariadbd cannot be run.
    pub fn has_setting(&self, name: &str) -> Result<bool, Error> {
        let help = self.user.command("mariadbd").args(["--no-defaults", "--verbose", "--help"]).output();
        let text = help
            .map_err(|error| Error::Program { program: "mariadbd".into(), output: error.to_string() })?
            .stdout;
        // A line of its table of settings: "innodb-page-size    16384".
        Ok(String::from_utf8_lossy(&text).lines().any(|line| line.split_whitespace().next() == Some(name)))
    }
}

impl Mariadb {
    /// A server with its data in `data`, which is created if it is missing, its log and socket in `home`, an empty directory;
    /// `lines` go into its `[mysqld]` section. It listens on the socket only, unless they set more.
    ///
    /// # Errors
    /// [`Error::LongName`]; the output of mariadb-install-db.
    pub fn initialise(
        programs: &MariadbPrograms,
        home: &Path,
        data: &Path,
        lines: &[&str],
    ) -> Result<Mariadb, Error> {
        if home.as_os_str().len() + "/run/s.sock".len() > SOCKET_BYTES_MAX {
            return Err(Error::LongName { home: home.into() });
        }
        let superuser = user::own_name()?;
        let log = child::make_log(&log_path(home))?;
        let run = home.join("run");
        programs.user.give(home, &[data, &run])?;
        let run = run.display();
        // The data directory is given at each launch: it may be moved. The log is standard error.
        let mut text = format!("[mysqld]\nsocket={run}/s.sock\npid-file={run}/pid\ntmpdir={run}\n");
        let listens = lines.iter().any(|line| line.starts_with("port="));
        let network = if listens { Network::OfThisProgram } else { Network::None };
        if network == Network::None {
            text.push_str("skip-networking\n");
        }
        lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        let (programs, home, data) = (programs.clone(), home.into(), data.into());
        let server = Mariadb { programs, home, data, network, superuser, log, child: None };
        let options = server.options();
        let readable = || fs::set_permissions(&options, Permissions::from_mode(0o644));
        fs::write(&options, text).and_then(|()| readable()).map_err(|source| Error::Io {
            doing: "write",
            path: options.clone(),
            source,
        })?;
        let mut install = server.programs.user.command("mariadb-install-db");
        install.args([server.defaults(), server.datadir()]);
        install.arg("--auth-root-authentication-method=socket");
        install.arg(format!("--auth-root-socket-user={}", server.superuser));
        child::run(install.args(["--skip-test-db", "--skip-name-resolve"]))?;
        Ok(server)
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// [`Error::NotReady`] with the end of its log.
    pub fn launch(&mut self) -> Result<(), Error> {
        let mut command = self.programs.user.command_in("mariadbd", self.network);
        command.args([self.defaults(), self.datadir()]);
        child::ends_with_thread(&mut command, libc::SIGKILL);
        let mut child = child::spawn(&mut command, &self.log)?;
        let socket = self.socket();
        let launched = child::wait_until_ready(WHAT, &mut child, &self.home, &self.log, || greets(&socket));
        self.child = Some(child);
        launched
    }

    /// Uses this data directory, a copy of the last one, from the next launch on.
    pub fn move_data(&mut self, data: &Path) {
        self.data = data.into();
    }

    /// Ends it: SIGTERM for an orderly shutdown, SIGKILL for a crash.
    pub fn end(&mut self, signal: i32) {
        if let Some(mut child) = self.child.take() {
            child::end(&mut child, signal);
        }
    }

    /// Its pid while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.home.join("run/s.sock")
    }

    /// The URL that `headroom` connects to, as superuser.
    pub fn url(&self) -> String {
        format!("mysql://{}@{}", self.superuser, self.socket().display())
    }

    /// Its log so far.
    pub fn log_text(&self) -> String {
        child::read_text(&log_path(&self.home)).unwrap_or_default()
    }

    fn options(&self) -> PathBuf {
        self.home.join("my.cnf")
    }

    fn datadir(&self) -> String {
        format!("--datadir={}", self.data.display())
    }

    fn defaults(&self) -> String {
        format!("--defaults-file={}", self.options().display())
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        self.end(libc::SIGKILL);
    }
}

fn log_path(home: &Path) -> PathBuf {
    home.join("error.log")
}

/// Whether the server sends the first packet of the protocol.
fn greets(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket) else { return false };
    let is_limited = stream.set_read_timeout(Some(GREETING_MAX)).is_ok();
    is_limited && matches!(stream.read(&mut [0; 64]), Ok(1..))
}
