use crate::cleaning::{clean, run, scratch};
use crate::postgres_binaries;
use rustix::process::{Pid, Signal, kill_process};
use servers::{Postgres, PostgresPrograms};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A PostgreSQL server of a test's own, empty at first. Dropping it ends and deletes it.
///
/// It listens on a socket in its own directory, where everybody is trusted, and on a port of 127.0.0.1, where a
/// password is asked for.
#[derive(Debug)]
pub struct PostgresServer {
    scratch: PathBuf,
    data: PathBuf,
    port: u16,
    server: Postgres,
    /// Open for its lock.
    _alive: File,
}

const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// From 20,000 on.
const PORTS: u16 = 12_000;
/// In the scratch directory: the data, which may lie on another volume, by a link.
const DATA: &str = "postgres-data";

impl PostgresServer {
    /// A server of that major version; `None`, after saying so, where there is none.
    ///
    /// # Panics
    /// As all of its methods: if the server does not do what it must, since a test cannot go on then.
    pub fn start(version: u32) -> Option<PostgresServer> {
        PostgresServer::begin(version, None)
    }

    /// The same with its data in a directory of `parent`, such as a slow volume. Drop it before the volume.
    pub fn start_in(version: u32, parent: &Path) -> Option<PostgresServer> {
        PostgresServer::begin(version, Some(parent))
    }

    fn begin(version: u32, parent: Option<&Path>) -> Option<PostgresServer> {
        let programs = found(version)?;
        let (scratch, alive) = scratch().expect("a directory for the server");
        let data = parent.unwrap_or(&scratch).join(DATA);
        fs::create_dir(&data).expect("a directory for the data");
        if parent.is_some() {
            std::os::unix::fs::symlink(&data, scratch.join(DATA)).expect("a link to the data");
        }
        let port = free_port();
        let settings = ["listen_addresses=127.0.0.1", "max_connections=50"].map(str::to_owned).to_vec();
        let server = Postgres::initialise(&programs, &scratch, &data, port, settings).expect("initdb");
        let mut server = PostgresServer { scratch, data, port, server, _alive: alive };
        server.launch();
        Some(server)
    }

    /// Starts it, or starts it again after [`kill`](Self::kill) or [`stop`](Self::stop), and waits until it answers.
    pub fn launch(&mut self) {
        self.server.launch().expect("a server");
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let began = Instant::now();
        while self.try_sql("SELECT 1").is_err() {
            let ended = self.server.has_ended();
            let log = || fs::read_to_string(self.server.log()).unwrap_or_default();
            assert!(!ended, "the server ended: {}", log());
            assert!(began.elapsed() < READY_WITHIN, "the server is not ready: {}", log());
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Ends it in order and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.launch();
    }

    /// Ends it in order (a fast shutdown, with a checkpoint).
    pub fn stop(&mut self) {
        self.server.end(Signal::INT.as_raw());
    }

    /// Ends all its processes at once, as a machine that loses power does but for its volatile caches.
    pub fn kill(&mut self) {
        let processes = self.processes();
        for process in &processes {
            signal(*process, Signal::KILL);
        }
        self.server.end(Signal::KILL.as_raw());
        // Until the last has let go of the shared memory, no server starts on this directory.
        let began = Instant::now();
        while processes.iter().any(|process| is_running(*process)) {
            assert!(began.elapsed() < READY_WITHIN, "a killed server has not ended");
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Kills one of its processes, so that it drops all sessions and statistics, recovers from its log and goes on
    /// under the same postmaster; waits until it answers again.
    pub fn crash(&mut self) {
        let victim = self.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'");
        signal(victim.parse().expect("a process"), Signal::KILL);
        let began = Instant::now();
        let successor = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'";
        while self.try_sql(successor).is_ok_and(|pid| pid == victim) {
            assert!(began.elapsed() < READY_WITHIN, "the server does not notice its crash");
            thread::sleep(LOOK_EVERY);
        }
        self.wait_until_ready();
    }

    /// Stops all its processes where they are, the postmaster first, as a machine that hangs does.
    pub fn pause(&self) {
        self.processes().into_iter().for_each(|process| signal(process, Signal::STOP));
    }

    /// Lets them go on.
    pub fn resume(&self) {
        self.processes().into_iter().for_each(|process| signal(process, Signal::CONT));
    }

    /// The postmaster and its children.
    pub fn processes(&self) -> Vec<u32> {
        let Some(postmaster) = self.server.pid() else { return Vec::new() };
        family(postmaster)
    }

    /// What the statements answer, without headings; columns are separated by '|'.
    pub fn sql(&self, statements: &str) -> String {
        self.try_sql(statements).unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// The same; the error is what psql said.
    pub fn try_sql(&self, statements: &str) -> Result<String, String> {
        let done = self.session(statements).output().map_err(|error| format!("psql: {error}"))?;
        if done.status.success() {
            Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
        } else {
            Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
        }
    }

    /// Sets one of its settings for all sessions, and waits until a new one has it. Some need a restart first.
    pub fn set(&self, setting: &str, value: &str) {
        self.sql(&format!("ALTER SYSTEM SET {setting} = '{value}'"));
        self.sql("SELECT pg_reload_conf()");
        let pending = format!("SELECT pending_restart FROM pg_settings WHERE name = '{setting}'");
        let began = Instant::now();
        while self.sql(&format!("SHOW {setting}")) != value && self.sql(&pending) != "t" {
            assert!(began.elapsed() < READY_WITHIN, "{setting} does not become {value}");
            thread::sleep(LOOK_EVERY);
        }
    }

    /// A session that runs them, to be spawned.
    pub fn session(&self, statements: &str) -> Command {
        let mut psql = Command::new("psql");
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &self.connection(), "-c", statements]);
        psql.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        psql
    }

    /// Runs Debian's pgbench against it, which is of one version with psql and speaks to all.
    pub fn pgbench(&self, arguments: &[&str]) {
        let done = self.pgbench_command().args(arguments).arg("postgres").output().expect("pgbench");
        assert!(done.status.success(), "pgbench {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// The same to be spawned: its own arguments and the database are to be added.
    pub fn pgbench_command(&self) -> Command {
        let mut pgbench =
            Command::new(newest_of_debian("pgbench").expect("pgbench comes with Debian's server"));
        pgbench.arg("-h").arg(&self.scratch).args(["-U", "postgres", "-p", &self.port.to_string()]);
        pgbench.stdin(Stdio::null());
        pgbench
    }

    /// To the socket, as superuser, to database postgres.
    pub fn connection(&self) -> String {
        self.server.connection()
    }

    /// The port, of 127.0.0.1 and in the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its data is.
    pub fn data_directory(&self) -> &Path {
        &self.data
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // One that is stopped does not hear it otherwise.
        self.resume();
        self.server.end(Signal::QUIT.as_raw());
        let _ = fs::remove_dir_all(&self.data);
        clean(&self.scratch);
    }
}

/// A server that the user may run, and psql; says what is missing.
fn found(version: u32) -> Option<PostgresPrograms> {
    let looked = || {
        let binaries = postgres_binaries::directory(version)?;
        let programs = PostgresPrograms::of(binaries.clone()).map_err(|error| error.to_string())?;
        let runs = programs.user.command(binaries.join("postgres")).arg("--version").output();
        let runs = runs.map_err(|error| format!("{} as another user: {error}", binaries.display()))?;
        if !runs.status.success() {
            return Err(String::from_utf8_lossy(&runs.stderr).into_owned());
        }
        run("psql", &["--version"])?;
        Ok(programs)
    };
    match looked() {
        Ok(found) => Some(found),
        Err(why) => {
            let why: String = why;
            eprintln!("skipped: PostgreSQL {version}: {why}");
            None
        }
    }
}

/// Ends the server of a test that was killed.
pub(crate) fn end_left_over(scratch: &Path) {
    let data = scratch.join(DATA);
    let Ok(lines) = fs::read_to_string(data.join("postmaster.pid")) else { return };
    let Some(postmaster) = lines.lines().next().and_then(|pid| pid.parse::<u32>().ok()) else { return };
    // The number may be another process's by now.
    let there = fs::read_link(format!("/proc/{postmaster}/cwd"));
    if there.is_ok_and(|there| fs::canonicalize(&data).is_ok_and(|data| data == there)) {
        family(postmaster).into_iter().for_each(|process| signal(process, Signal::KILL));
    }
}

fn family(postmaster: u32) -> Vec<u32> {
    std::iter::once(postmaster).chain(host::children_of(postmaster)).collect()
}

/// It may be gone already.
fn signal(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn newest_of_debian(program: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(program)).collect();
    found.retain(|path| path.exists());
    found.sort();
    found.pop()
}

/// Free now, and hardly taken by another in the next moment: below those that the kernel gives to outgoing
/// connections, and each test begins to look elsewhere.
fn free_port() -> u16 {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let asked = ASKED.fetch_add(1, Ordering::Relaxed);
    let first = std::process::id().wrapping_mul(97).wrapping_add(asked.wrapping_mul(13));
    let ports =
        (0..u32::from(PORTS)).map(|step| 20_000 + (first.wrapping_add(step) % u32::from(PORTS)) as u16);
    let mut free = ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("a free port")
}

/// Whether it still has its memory: a zombie has none.
fn is_running(process: u32) -> bool {
    host::start_ticks(process).is_some()
}
