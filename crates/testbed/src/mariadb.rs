use crate::cleaning::{run, scratch};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A MariaDB server of a test's own, with a data directory, a socket and a port of its own. Dropping it kills and
/// deletes. It must live in the thread that started it: the server ends with that thread, so that nothing is left of
/// a test that was killed.
#[derive(Debug)]
pub struct MariadbServer {
    home: PathBuf,
    port: u16,
    child: Option<Child>,
    /// Open for its lock.
    _alive: File,
}

impl MariadbServer {
    /// A server with these lines in its `[mysqld]` section, below `parent` (a throttled file system) or among the
    /// temporary files; `None`, after saying so, where MariaDB is not installed.
    ///
    /// # Panics
    /// As all of its methods: if the server does not do what it must, since a test cannot go on then.
    pub fn start(parent: Option<&Path>, lines: &[&str]) -> Option<MariadbServer> {
        if Command::new("mariadbd").arg("--version").output().is_err() {
            eprintln!("skipped: no mariadbd here (Debian: mariadb-server)");
            return None;
        }
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
        let mut server = MariadbServer { home, port: free.port(), child: None, _alive: alive };
        server.configure(lines);
        server.install();
        server.begin();
        Some(server)
    }

    fn configure(&self, lines: &[&str]) {
        let home = self.home.display();
        let mut text = format!(
            "[mysqld]\ndatadir={home}/data\nsocket={home}/s.sock\npid-file={home}/data/pid\nport={}\n\
             bind-address=127.0.0.1\nlog-error={home}/error.log\ntmpdir={home}/tmp\ninnodb_buffer_pool_size=16M\n\
             innodb_log_file_size=16M\n",
            self.port
        );
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        fs::write(self.home.join("my.cnf"), text).expect("an option file");
        fs::create_dir(self.home.join("tmp")).expect("a directory for temporary files");
        let home = self.home.to_string_lossy();
        if is_root() {
            must(run("chown", &["-R", "mysql:", &home]));
        }
    }

    fn install(&self) {
        let defaults = format!("--defaults-file={}", self.home.join("my.cnf").display());
        let mut arguments = vec!["mariadb-install-db", &defaults, "--auth-root-authentication-method=normal"];
        arguments.extend(["--skip-test-db", "--skip-name-resolve"]);
        let all = self.unprivileged(&arguments);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        must(run(all[0], &all[1..]));
    }

    /// The program, as the user that servers run as, and to be killed when this thread ends.
    fn unprivileged(&self, program: &[&str]) -> Vec<String> {
        let mut all = vec!["setpriv"];
        if is_root() {
            all.extend(["--reuid=mysql", "--regid=mysql", "--clear-groups"]);
        }
        all.extend(["--pdeathsig=KILL", "--"]);
        all.extend(program);
        all.into_iter().map(str::to_owned).collect()
    }

    /// Starts it, if it does not run, and waits until it answers.
    pub fn begin(&mut self) {
        if self.child.is_some() {
            return;
        }
        let defaults = format!("--defaults-file={}", self.home.join("my.cnf").display());
        let all = self.unprivileged(&["mariadbd", &defaults]);
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("setpriv of util-linux"));
        let began = Instant::now();
        while self.try_sql("SELECT 1").is_err() {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            assert!(ended.is_none() && began.elapsed() < START_MAX, "no server: {}", self.log());
            thread::sleep(POLL);
        }
    }

    /// Ends it in good order.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        must(run("kill", &["-TERM", &child.id().to_string()]));
        let began = Instant::now();
        while child.try_wait().expect("a child of ours").is_none() {
            assert!(began.elapsed() < STOP_MAX, "the server does not stop: {}", self.log());
            thread::sleep(POLL);
        }
    }

    /// Ends it as a power cut would (kill -9).
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it in good order and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.begin();
    }

    /// Kills it and starts it again, which recovers.
    pub fn crash(&mut self) {
        self.kill();
        self.begin();
    }

    /// Stops all its threads where they are: it accepts connections and answers nobody.
    pub fn freeze(&self) {
        must(run("kill", &["-STOP", &self.pid().to_string()]));
        // The signal is told to each thread, which stops when it is next scheduled.
        let began = Instant::now();
        while !self.is_frozen() {
            assert!(began.elapsed() < Duration::from_secs(20), "the server does not stop");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_frozen(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).expect("the server's threads");
        let states = threads.flatten().filter_map(|each| fs::read_to_string(each.path().join("stat")).ok());
        states.into_iter().all(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        must(run("kill", &["-CONT", &self.pid().to_string()]));
    }

    /// Runs statements as root; rows as lines, columns parted by tabs.
    pub fn sql(&self, statements: &str) -> String {
        match self.try_sql(statements) {
            Ok(rows) => rows,
            Err(error) => panic!("{error}\n{}", self.log()),
        }
    }

    fn try_sql(&self, statements: &str) -> Result<String, String> {
        let socket = format!("--socket={}", self.socket().display());
        run(
            "mariadb",
            &[
                "--no-defaults",
                &socket,
                "--user=root",
                "--database=mysql",
                "--batch",
                "--skip-column-names",
                "-e",
                statements,
            ],
        )
    }

    /// A session of a user without a password that runs statements, to be spawned.
    pub fn session(&self, user: &str, statements: &str) -> Command {
        let mut client = Command::new("mariadb");
        client.arg("--no-defaults").arg(format!("--socket={}", self.socket().display()));
        client.args([&format!("--user={user}"), "--batch", "-e", statements]).stdin(Stdio::null());
        client
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a running server").id()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.home.join("s.sock")
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.home.join("data")
    }

    /// What `headroom` connects to it by, as root, who has no password here.
    pub fn url(&self) -> String {
        format!("mysql://root@{}", self.socket().display())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.join("error.log")).unwrap_or_default()
    }
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn must(result: Result<String, String>) {
    if let Err(error) = result {
        panic!("{error}");
    }
}
