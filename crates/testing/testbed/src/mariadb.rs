use crate::cleaning::{output, scratch, signal, wait_until};
use rustix::process::Signal;
use servers::{Mariadb, MariadbPrograms};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A MariaDB server for one test. Dropping it kills and deletes it. It must stay in the thread that started it: the server
/// ends with that thread, so that a killed test leaves nothing.
#[derive(Debug)]
pub struct MariadbServer {
    home: PathBuf,
    port: u16,
    server: Mariadb,
    /// Open for its lock.
    _alive: File,
}

impl MariadbServer {
    /// A server with these lines in its `[mysqld]` section, in `parent` (a throttled file system) or in the temporary
    /// directory; `None`, with a message, if MariaDB is not installed.
    ///
    /// # Panics
    /// As all its methods, if the server fails.
    pub fn start(parent: Option<&Path>, lines: &[&str]) -> Option<MariadbServer> {
        let programs = MariadbPrograms::find();
        let programs =
            programs.inspect_err(|error| eprintln!("skipped: {error} (Debian: mariadb-server)")).ok()?;
        let (scratch, alive) = scratch().expect("a directory for the server");
        let home = match parent {
            Some(parent) => {
                let home = parent.join(scratch.file_name().expect("a name"));
                fs::create_dir(&home).expect("a directory below the parent");
                home
            }
            None => scratch.clone(),
        };
        let free =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        let port = format!("port={}", free.port());
        let usual = ["bind-address=127.0.0.1", "innodb_buffer_pool_size=16M", "innodb_log_file_size=16M"];
        let all = [&[port.as_str()], &usual[..], lines].concat();
        let server =
            Mariadb::initialise(&programs, &home, &home.join("data"), &all).expect("mariadb-install-db");
        let mut server = MariadbServer { home, port: free.port(), server, _alive: alive };
        server.launch();
        Some(server)
    }

    /// Starts it, if it does not run, and waits until it answers.
    pub fn launch(&mut self) {
        if self.server.pid().is_some() {
            return;
        }
        self.server.launch().expect("a server");
        self.try_sql("SELECT 1").expect("a server that answers");
    }

    /// Shuts it down.
    pub fn stop(&mut self) {
        self.server.end(Signal::TERM.as_raw());
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        self.server.end(Signal::KILL.as_raw());
    }

    /// Shuts it down and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.launch();
    }

    /// Kills it and starts it again: it recovers.
    pub fn crash(&mut self) {
        self.kill();
        self.launch();
    }

    /// Stops all its threads (SIGSTOP): the kernel accepts connections, and no thread answers.
    pub fn freeze(&self) {
        signal(self.pid(), Signal::STOP);
        // Each thread stops when it is next scheduled.
        wait_until("the server does not stop", || {
            let threads = host::threads_of(self.pid()).expect("the server's threads");
            threads.into_iter().all(host::ProcessStat::is_stopped)
        });
    }

    /// Continues its threads.
    pub fn thaw(&self) {
        signal(self.pid(), Signal::CONT);
    }

    /// Runs statements as root. Returns rows as lines, columns separated by tabs.
    pub fn sql(&self, statements: &str) -> String {
        self.try_sql(statements).unwrap_or_else(|error| panic!("{error}\n{}", self.server.log_text()))
    }

    fn try_sql(&self, statements: &str) -> Result<String, String> {
        output(self.session("root", statements).args(["--database=mysql", "--skip-column-names"]))
    }

    /// A command that runs statements in a session of a user without a password.
    pub fn session(&self, user: &str, statements: &str) -> Command {
        let mut client = Command::new("mariadb");
        client.arg("--no-defaults").arg(format!("--socket={}", self.socket().display()));
        client.args([&format!("--user={user}"), "--batch", "-e", statements]).stdin(Stdio::null());
        client
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.server.pid().expect("a running server")
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.server.socket()
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.home.join("data")
    }

    /// The URL that `headroom` connects to, as superuser.
    pub fn url(&self) -> String {
        self.server.url()
    }
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.home);
    }
}
