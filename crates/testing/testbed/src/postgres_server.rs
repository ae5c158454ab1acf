use crate::cleaning::{clean, must, output, run, scratch, signal, wait_until};
use crate::postgres_binaries;
use rustix::process::Signal;
use servers::{Postgres, PostgresPrograms};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A PostgreSQL server for one test, empty at first. Dropping it ends and deletes it.
///
/// It listens on a socket in a directory that only its own user and root may enter, where a test logs in as any role, and on
/// a port of 127.0.0.1, where a password is needed.
#[derive(Debug)]
pub struct PostgresServer {
    scratch: PathBuf,
    data: PathBuf,
    port: u16,
    server: Postgres,
    /// Open for its lock.
    _alive: File,
}

/// Ports of test servers: below those that the kernel gives to outgoing connections.
const PORT_MIN: u16 = 20_000;
const PORTS: u32 = 12_000;
/// The data in the scratch directory: a directory, or a link to another volume.
const DATA: &str = "postgres-data";
/// A test logs in as roles that are no users of the system.
const LOGINS: &str = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n\
                      host all all ::1/128 scram-sha-256\n";
const SUPERUSER: &str = "postgres";

impl PostgresServer {
    /// A server of that major version; `None`, with a message, if it is not available.
    ///
    /// # Panics
    /// As all its methods, if the server fails.
    pub fn start(version: u32) -> Option<PostgresServer> {
        PostgresServer::create(version, None)
    }

    /// Starts a server with its data in a directory of `parent`, such as a slow volume. Drop it before the volume.
    pub fn start_in(version: u32, parent: &Path) -> Option<PostgresServer> {
        PostgresServer::create(version, Some(parent))
    }

    fn create(version: u32, parent: Option<&Path>) -> Option<PostgresServer> {
        let programs = find_programs(version)?;
        let (scratch, alive) = scratch().expect("a directory for the server");
        let data = parent.unwrap_or(&scratch).join(DATA);
        fs::create_dir(&data).expect("a directory for the data");
        if parent.is_some() {
            std::os::unix::fs::symlink(&data, scratch.join(DATA)).expect("a link to the data");
        }
        let port = free_port();
        let settings = ["listen_addresses=127.0.0.1", "max_connections=300"].map(str::to_owned).to_vec();
        let server = Postgres::initialise(&programs, &scratch, &data, port, settings).expect("initdb");
        fs::write(data.join("pg_hba.conf"), LOGINS).expect("the rules of logins");
        let mut server = PostgresServer { scratch, data, port, server, _alive: alive };
        server.server.launch().expect("a server");
        let role =
            format!("CREATE ROLE {SUPERUSER} SUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS LOGIN");
        must("psql", &["-Xq", "-d", &server.server.connection(), "-c", &role]);
        server.wait_until_ready();
        Some(server)
    }

    /// Starts it, or starts it again after [`kill`](Self::kill) or [`stop`](Self::stop), and waits until it answers.
    pub fn launch(&mut self) {
        self.server.launch().expect("a server");
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        wait_until("the server is not ready", || {
            let has_ended = self.server.has_ended();
            let log = || fs::read_to_string(self.server.log()).unwrap_or_default();
            assert!(!has_ended, "the server ended: {}", log());
            self.try_sql("SELECT 1").is_ok()
        });
    }

    /// Shuts it down and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.launch();
    }

    /// Shuts it down (fast, with a checkpoint).
    pub fn stop(&mut self) {
        self.server.end(Signal::INT.as_raw());
    }

    /// Kills all its processes at once, as a power failure that loses no volatile cache.
    pub fn kill(&mut self) {
        let processes = self.processes();
        for process in &processes {
            signal(*process, Signal::KILL);
        }
        self.server.end(Signal::KILL.as_raw());
        // No server starts on this directory while a process is attached to the shared memory.
        wait_until("a killed server has not ended", || {
            processes.iter().all(|process| host::start_ticks(*process).is_none())
        });
    }

    /// Kills one of its processes, so that the postmaster drops all sessions and statistics and recovers from the log; waits
    /// until the server answers again.
    pub fn crash(&mut self) {
        let writer = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'";
        let victim = self.sql(writer);
        signal(victim.parse().expect("a process"), Signal::KILL);
        wait_until("the server does not notice its crash", || {
            !self.try_sql(writer).is_ok_and(|pid| pid == victim)
        });
        self.wait_until_ready();
    }

    /// Stops all its processes (SIGSTOP), the postmaster first.
    pub fn pause(&self) {
        self.processes().into_iter().for_each(|process| signal(process, Signal::STOP));
    }

    /// Continues them.
    pub fn resume(&self) {
        self.processes().into_iter().for_each(|process| signal(process, Signal::CONT));
    }

    /// The postmaster and its children.
    pub fn processes(&self) -> Vec<u32> {
        let Some(postmaster) = self.server.pid() else { return Vec::new() };
        family(postmaster)
    }

    /// The rows of the statements as lines, columns separated by '|'.
    pub fn sql(&self, statements: &str) -> String {
        self.try_sql(statements).unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// Runs statements; returns their output, or the error text of psql.
    pub fn try_sql(&self, statements: &str) -> Result<String, String> {
        output(&mut self.session(statements))
    }

    /// Changes a setting for all sessions and waits until new sessions have it, or the server reports that it needs a restart.
    pub fn set(&self, setting: &str, value: &str) {
        self.sql(&format!("ALTER SYSTEM SET {setting} = '{value}'"));
        self.sql("SELECT pg_reload_conf()");
        let pending = format!("SELECT pending_restart FROM pg_settings WHERE name = '{setting}'");
        wait_until(&format!("{setting} does not become {value}"), || {
            self.sql(&format!("SHOW {setting}")) == value || self.sql(&pending) == "t"
        });
    }

    /// A command that runs the statements in a session.
    pub fn session(&self, statements: &str) -> Command {
        let mut psql = Command::new("psql");
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &self.connection(), "-c", statements]);
        psql.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        psql
    }

    /// Runs Debian's pgbench, of the version of psql, against it.
    pub fn pgbench(&self, arguments: &[&str]) {
        let done = output(self.pgbench_command().args(arguments).arg("postgres"));
        done.unwrap_or_else(|error| panic!("pgbench {arguments:?}: {error}"));
    }

    /// The command for that, without pgbench's own arguments and the database.
    pub fn pgbench_command(&self) -> Command {
        let mut pgbench =
            Command::new(newest_of_debian("pgbench").expect("pgbench comes with Debian's server"));
        pgbench.arg("-h").arg(self.server.socket_directory()).args([
            "-U",
            SUPERUSER,
            "-p",
            &self.port.to_string(),
        ]);
        pgbench.stdin(Stdio::null());
        pgbench
    }

    /// The connection string: to the socket, as superuser, to database postgres.
    pub fn connection(&self) -> String {
        self.server.connection_as(SUPERUSER)
    }

    /// The port, of 127.0.0.1 and in the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its data directory.
    pub fn data_directory(&self) -> &Path {
        &self.data
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // A stopped process does not act on SIGQUIT.
        self.resume();
        self.server.end(Signal::QUIT.as_raw());
        let _ = fs::remove_dir_all(&self.data);
        clean(&self.scratch);
    }
}

/// The programs, if the user may run them and psql is there; `None`, with a message.
fn find_programs(version: u32) -> Option<PostgresPrograms> {
    let find = || -> Result<PostgresPrograms, String> {
        let binaries = postgres_binaries::directory(version)?;
        let programs = PostgresPrograms::in_directory(binaries.clone()).map_err(|error| error.to_string())?;
        output(programs.user.command(binaries.join("postgres")).arg("--version"))
            .map_err(|error| format!("{} as another user: {error}", binaries.display()))?;
        run("psql", &["--version"])?;
        Ok(programs)
    };
    find().inspect_err(|why| eprintln!("skipped: PostgreSQL {version}: {why}")).ok()
}

/// Kills the server of a test that was killed.
pub(crate) fn end_left_over(scratch: &Path) {
    let data = scratch.join(DATA);
    let Ok(lines) = fs::read_to_string(data.join("postmaster.pid")) else { return };
    let Some(postmaster) = lines.lines().next().and_then(|pid| pid.parse::<u32>().ok()) else { return };
    // The pid may belong to another process by now.
    let working_directory = fs::read_link(format!("/proc/{postmaster}/cwd"));
    let data = fs::canonicalize(&data);
    if working_directory.is_ok_and(|directory| data.is_ok_and(|data| data == directory)) {
        family(postmaster).into_iter().for_each(|process| signal(process, Signal::KILL));
    }
}

fn family(postmaster: u32) -> Vec<u32> {
    std::iter::once(postmaster).chain(host::children_of(postmaster)).collect()
}

fn newest_of_debian(program: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(program)).collect();
    found.retain(|path| path.exists());
    found.sort();
    found.pop()
}

/// A port that is free now. Tests start their search at different ports, so that two of them rarely pick the same.
fn free_port() -> u16 {
    static SEARCHES: AtomicU32 = AtomicU32::new(0);
    let search = SEARCHES.fetch_add(1, Ordering::Relaxed);
    let first = std::process::id().wrapping_mul(97).wrapping_add(search.wrapping_mul(13));
    let ports = (0..PORTS).map(|step| PORT_MIN + (first.wrapping_add(step) % PORTS) as u16);
    let mut free = ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("a free port")
}
