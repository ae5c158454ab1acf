//! Other users of the machine can do nothing with the server of an experiment. Needs root.

use servers::{Error, Mariadb, MariadbPrograms, Postgres, PostgresPrograms};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// User and group.
type Ids = (u32, u32);
const ROOT: Ids = (0, 0);
const NOBODY: Ids = (65_534, 65_534);
const PORT: u16 = 5432;

/// A directory that every user may enter, as a workspace with a server in it, and a home for a server below it.
struct Place {
    directory: tempfile::TempDir,
    home: PathBuf,
}

impl Place {
    /// `None`, with a message, where this is not root.
    fn new() -> Option<Place> {
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            eprintln!("skipped: needs root");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let home = directory.path().join("home");
        fs::create_dir(&home).unwrap();
        Some(Place { directory, home })
    }

    fn initialise_postgres(&self) -> Option<Result<Postgres, Error>> {
        let programs = PostgresPrograms::find().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
        let data = self.home.join("data");
        fs::create_dir(&data).unwrap();
        let server = Postgres::initialise(&programs, &self.home, &data, PORT, Vec::new());
        Some(server.map(Postgres::tied_to_thread))
    }

    fn initialise_mariadb(&self) -> Option<Result<Mariadb, Error>> {
        let programs = MariadbPrograms::find().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
        Some(Mariadb::initialise(&programs, &self.home, &self.home.join("data"), &[]))
    }

    /// A file of root that a link of the server's user may point to.
    fn precious_file(&self) -> PathBuf {
        let path = self.directory.path().join("precious");
        fs::write(&path, "precious").unwrap();
        path
    }
}

/// The output of a program that this user runs; its errors if it fails.
fn run_as((uid, gid): Ids, command: &mut Command) -> Result<String, String> {
    let done = command.uid(uid).gid(gid).current_dir("/").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

fn psql(server: &Postgres, statement: &str) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-XAtq", "-d", &server.connection(), "-c", statement]);
    psql
}

fn mariadb(server: &Mariadb, statement: &str) -> Command {
    let mut client = Command::new("mariadb");
    client.arg("--no-defaults").arg(format!("--socket={}", server.socket().display()));
    client.args(["--user=root", "--batch", "--skip-column-names", "-e", statement]);
    client
}

fn user_of(pid: u32) -> Ids {
    let metadata = fs::metadata(format!("/proc/{pid}")).unwrap();
    (metadata.uid(), metadata.gid())
}

/// Each name below a home that another user can list or read.
fn open_to_nobody(home: &Path) -> Vec<String> {
    let names = ["", "run", "data", "postgres.log", "error.log", "my.cnf"].map(|name| home.join(name));
    let opened = |path: &&PathBuf| {
        run_as(NOBODY, Command::new("ls").arg("-l").arg(path)).is_ok()
            || run_as(NOBODY, Command::new("cat").arg(path)).is_ok()
    };
    names.iter().filter(opened).map(|path| path.display().to_string()).collect()
}

fn has_least_privileges(pid: u32) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"].map(|set| format!("{set}:\t0000000000000000"));
    for line in sets.iter().map(String::as_str).chain(["NoNewPrivs:\t1", "Groups:\t \n"]) {
        assert!(status.contains(line), "{line}: {status}");
    }
    let first_to_end = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    assert_eq!(first_to_end.trim(), "1000", "where memory is out, the kernel ends it first");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(!environment.contains("CARGO"), "root's environment is not the server's: {environment}");
}

/// The sockets of a server's processes, as inode numbers.
fn sockets(pids: &[u32]) -> Vec<String> {
    let links = |pid: &u32| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let target = |entry: fs::DirEntry| fs::read_link(entry.path()).ok()?.to_str().map(str::to_owned);
    let inode = |link: String| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    pids.iter().flat_map(links).filter_map(target).filter_map(inode).collect()
}

/// The sockets of a protocol in the network of a process, as their inode numbers; "tcp6".
fn sockets_of(protocol: &str, pid: u32) -> Vec<String> {
    let table = fs::read_to_string(format!("/proc/{pid}/net/{protocol}")).unwrap();
    table.lines().skip(1).map(|line| line.split_whitespace().nth(9).unwrap().to_owned()).collect()
}

/// The server has no socket of a network, and where this machine allows it, none to have one in.
fn has_no_network(pid: u32) {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut pids = vec![pid];
    pids.extend(children.split_whitespace().map(|child| child.parse::<u32>().unwrap()));
    let own = sockets(&pids);
    assert!(!own.is_empty(), "its clients come through a socket");
    for protocol in ["tcp", "tcp6", "udp", "udp6"] {
        for network in [pid, std::process::id()] {
            let found = sockets_of(protocol, network);
            assert!(found.iter().all(|socket| !own.contains(socket)), "{protocol}: {found:?}");
        }
    }
    if !Command::new("unshare").args(["--net", "true"]).status().unwrap().success() {
        eprintln!("skipped: this machine gives no network namespace");
        return;
    }
    let routes = fs::read_to_string(format!("/proc/{pid}/net/route")).unwrap();
    assert_eq!(routes.lines().skip(1).count(), 0, "only the table's head: {routes}");
    let devices = fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap();
    let names = devices.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim);
    assert!(names.clone().any(|name| name == "lo") && !names.clone().any(|name| name.starts_with('e')));
    let reached = Command::new("nsenter")
        .args([
            format!("--net=/proc/{pid}/ns/net"),
            "bash".into(),
            "-c".into(),
            "echo >/dev/tcp/127.0.0.1/1".into(),
        ])
        .output()
        .unwrap();
    let refused = String::from_utf8_lossy(&reached.stderr);
    assert!(refused.contains("unreachable"), "even the loopback device is down: {refused}");
}

#[test]
fn only_the_user_of_this_program_logs_in_to_its_postgres() {
    let Some(place) = Place::new() else { return };
    let Some(server) = place.initialise_postgres() else { return };
    let mut server = server.unwrap();
    server.launch().unwrap();
    let statement = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user";
    assert_eq!(run_as(ROOT, &mut psql(&server, statement)).as_deref(), Ok("t"));
    let refused = run_as(NOBODY, &mut psql(&server, statement)).unwrap_err();
    assert!(refused.contains("Permission denied"), "{refused}");
    // The directory is the server's: another server of the same user must not get in either.
    let pid = server.pid().unwrap();
    let refused = run_as(user_of(pid), &mut psql(&server, statement)).unwrap_err();
    assert!(refused.contains("Peer authentication failed"), "{refused}");
    assert_eq!(open_to_nobody(&place.home), [] as [String; 0]);
    assert_eq!(run_as(ROOT, &mut psql(&server, "SHOW listen_addresses")).as_deref(), Ok(""));
    assert_eq!(run_as(ROOT, &mut psql(&server, "SHOW unix_socket_permissions")).as_deref(), Ok("0700"));
    has_least_privileges(pid);
    has_no_network(pid);
}

#[test]
fn only_the_user_of_this_program_logs_in_to_its_mariadb() {
    let Some(place) = Place::new() else { return };
    let Some(server) = place.initialise_mariadb() else { return };
    let mut server = server.unwrap();
    server.launch().unwrap();
    assert_eq!(run_as(ROOT, &mut mariadb(&server, "SELECT CURRENT_USER()")).as_deref(), Ok("root@localhost"));
    let refused = run_as(NOBODY, &mut mariadb(&server, "SELECT 1")).unwrap_err();
    assert!(refused.contains("(13)"), "EACCES: {refused}");
    let pid = server.pid().unwrap();
    let refused = run_as(user_of(pid), &mut mariadb(&server, "SELECT 1")).unwrap_err();
    assert!(refused.contains("Access denied"), "{refused}");
    assert_eq!(open_to_nobody(&place.home), [] as [String; 0]);
    assert_eq!(run_as(ROOT, &mut mariadb(&server, "SELECT @@skip_networking")).as_deref(), Ok("1"));
    has_least_privileges(pid);
    has_no_network(pid);
}

#[test]
fn a_server_s_user_makes_nothing_where_root_writes_its_log() {
    let Some(place) = Place::new() else { return };
    let Some(server) = place.initialise_postgres() else { return };
    let mut server = server.unwrap();
    server.launch().unwrap();
    let (user, precious) = (user_of(server.pid().unwrap()), place.precious_file());
    let planted = run_as(user, Command::new("ln").arg("-s").arg(precious).arg(place.home.join("planted")));
    assert!(planted.unwrap_err().contains("Permission denied"));
    let moved = run_as(user, Command::new("mv").arg(server.log()).arg(place.home.join("run/moved")));
    assert!(moved.unwrap_err().contains("Permission denied"));
}

#[test]
fn a_log_is_never_written_through_a_link() {
    let Some(place) = Place::new() else { return };
    let precious = place.precious_file();
    for name in ["postgres.log", "error.log"] {
        symlink(&precious, place.home.join(name)).unwrap();
    }
    let Some(server) = place.initialise_postgres() else { return };
    assert!(server.and_then(|mut server| server.launch()).is_err());
    let Some(server) = place.initialise_mariadb() else { return };
    assert!(server.and_then(|mut server| server.launch()).is_err());
    assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
}

#[test]
fn what_the_server_s_user_puts_at_its_pid_file_neither_blocks_nor_ends_this_program() {
    let Some(place) = Place::new() else { return };
    let Some(server) = place.initialise_postgres() else { return };
    let mut server = server.unwrap();
    let pid_file = place.home.join("data/postmaster.pid");
    // The server ends at once on these: it is not ready, and that is reported.
    assert!(Command::new("mkfifo").arg(&pid_file).status().unwrap().success());
    fs::set_permissions(&pid_file, Permissions::from_mode(0o666)).unwrap();
    fs::write(place.home.join("data/PG_VERSION"), "1").unwrap();
    assert!(matches!(server.launch(), Err(Error::NotReady { .. })));
    fs::remove_file(&pid_file).unwrap();
    symlink("/dev/zero", &pid_file).unwrap();
    assert!(matches!(server.launch(), Err(Error::NotReady { .. })));
}
