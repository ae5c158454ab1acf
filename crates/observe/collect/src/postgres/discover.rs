//! Finds PostgreSQL servers among the processes of this host.
//!
//! ```text
//! process   first of those whose program is `postgres`; not one that initdb started
//! data      its working directory, else -D, else PGDATA
//! socket    where it listens (/proc/PID/net/unix), else lines 4 and 5 of postmaster.pid, else -k and -p
//! name      the cluster's name in the titles of its children ("postgres: 15/main: checkpointer"), else the data directory
//! sources   the role of this user, or the configured one; as root, the role of the server's own user, as that user (peer)
//! ```

use super::settings::Settings;
use crate::discovery::{
    Attempt, Engine, Finder, Instance, Program, Programs, Role, is_trusted, option_value,
};
use crate::environment::{self, own_user};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const PROGRAMS: [&str; 3] = ["postgres", "postmaster", "edb-postgres"];
/// The user that a package of PostgreSQL makes.
const USER: &str = "postgres";
/// First arguments of processes that serve no clients.
const NO_SERVER: [&str; 7] =
    ["--boot", "--check", "--single", "--describe-config", "--version", "-V", "--help"];
const SOCKET_PREFIX: &str = ".s.PGSQL.";
/// Sockets that are tried: a server listens in one or two directories.
const SOCKETS_MAX: usize = 8;
/// PG_VERSION has one number, and postmaster.pid eight lines.
const BYTES_MAX: u64 = 4096;
/// More tablespaces are left out.
const TABLESPACES_MAX: usize = 256;

pub(super) fn find(programs: &Programs) -> Vec<Instance> {
    let servers = programs.first_of(&PROGRAMS).filter(|program| is_server(program));
    servers.map(|program| instance(program, programs)).collect()
}

/// Not a child whose parent has ended, and not a program that only prints or initialises.
fn is_server(program: &Program) -> bool {
    let first = program.arguments().into_iter().next().unwrap_or_default();
    !program.title().starts_with("postgres:") && !NO_SERVER.contains(&first.as_str())
}

fn instance(program: &Program, programs: &Programs) -> Instance {
    let arguments = program.arguments();
    let mut finder = Finder::new(program.pid);
    let data = data_directory(program, &arguments);
    let version = data.as_ref().and_then(|data| read_line(&finder, &data.join("PG_VERSION")));
    if let Some(data) = &data {
        add_files(&mut finder, data);
    }
    let sockets = sockets(program, &arguments, data.as_deref(), &finder);
    let mut notes: Vec<String> = finder.note().into_iter().collect();
    let mut attempts = Vec::new();
    for socket in &sockets {
        attempts.extend(attempts_at(program.user, socket, &finder));
    }
    match (sockets.is_empty(), attempts.is_empty()) {
        (true, _) => notes.push("no socket of it is known".into()),
        (false, true) => notes.push(not_tried(program.user)),
        _ => {}
    }
    let titles = programs.children_of(program.pid).map(Program::title);
    let name = titles.into_iter().find_map(|title| cluster_name(&title).map(str::to_owned));
    Instance {
        engine: Engine::Postgres,
        pid: program.pid,
        start_ticks: program.start_ticks,
        user: program.user,
        name: name.or_else(|| data.map(|data| data.to_string_lossy().into_owned())),
        part: None,
        version,
        files: finder.finish(),
        attempts,
        notes,
    }
}

fn data_directory(program: &Program, arguments: &[String]) -> Option<PathBuf> {
    let given = || option_value(arguments, &["-D", "--data_directory"]).map(PathBuf::from);
    let variable = || host::variable_of(program.pid, "PGDATA").map(PathBuf::from);
    host::working_directory(program.pid).or_else(given).or_else(variable).filter(|data| data.is_absolute())
}

fn read_line(finder: &Finder, path: &Path) -> Option<String> {
    let text = finder.files.read(path, BYTES_MAX)?;
    let line = String::from_utf8_lossy(&text).lines().next()?.trim().to_owned();
    // A version, or another user's text in its place.
    (line.len() <= 8 && line.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')).then_some(line)
}

/// Sorts spill below the data directory, or in a tablespace.
fn add_files(finder: &mut Finder, data: &Path) {
    finder.add(Role::Data, data);
    finder.add(Role::Temp, data);
    let log = data.join("pg_wal");
    let target = finder.files.read_link(&log).map(|target| data.join(target));
    finder.add(Role::Log, &target.unwrap_or(log));
    for link in finder.files.list(&data.join("pg_tblspc"), TABLESPACES_MAX) {
        if let Some(target) = finder.files.read_link(&link) {
            finder.add(Role::Tablespace, &data.join("pg_tblspc").join(target));
        }
    }
}

/// A socket, as the server names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Socket {
    directory: PathBuf,
    port: u16,
}

impl Socket {
    /// `/run/postgresql/.s.PGSQL.5432`
    fn parse(path: &Path) -> Option<Socket> {
        let port = path.file_name()?.to_str()?.strip_prefix(SOCKET_PREFIX)?.parse().ok()?;
        Some(Socket { directory: path.parent()?.to_path_buf(), port })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(format!("{SOCKET_PREFIX}{}", self.port))
    }
}

fn sockets(program: &Program, arguments: &[String], data: Option<&Path>, finder: &Finder) -> Vec<Socket> {
    let mut sockets: Vec<Socket> =
        host::unix_listeners_of(program.pid).iter().filter_map(|path| Socket::parse(path)).collect();
    if sockets.is_empty() {
        let file = data.and_then(|data| finder.files.read(&data.join("postmaster.pid"), BYTES_MAX));
        sockets.extend(file.and_then(|file| parse_pid_file(&file)));
    }
    if sockets.is_empty() {
        let port = option_value(arguments, &["-p", "--port"]).and_then(|port| port.parse().ok());
        let directory = option_value(arguments, &["-k", "--unix_socket_directories"]);
        // Several are separated by commas.
        let directory = directory.and_then(|all| all.split(',').next()).map(str::trim);
        let defaults = ["/var/run/postgresql", "/tmp"].map(PathBuf::from);
        let directories = directory.map_or_else(|| defaults.to_vec(), |one| vec![one.into()]);
        let port = port.unwrap_or(5432);
        let all = directories.into_iter().map(|directory| Socket { directory, port });
        sockets.extend(all.filter(|socket| socket.path().exists()));
    }
    sockets.retain(|socket| socket.directory.is_absolute());
    sockets.truncate(SOCKETS_MAX);
    sockets
}

/// Lines of postmaster.pid: pid, data directory, start, port, socket directory, address, shared memory, status.
fn parse_pid_file(text: &[u8]) -> Option<Socket> {
    let mut lines = text.split(|byte| *byte == b'\n').skip(3);
    let port = std::str::from_utf8(lines.next()?).ok()?.trim().parse().ok()?;
    let directory = Path::new(std::ffi::OsStr::from_bytes(lines.next()?));
    Some(Socket { directory: directory.into(), port }).filter(|socket| socket.directory.is_absolute())
}

/// The ways to log in at a socket, the one with the least rights first.
fn attempts_at(user: u32, socket: &Socket, finder: &Finder) -> Vec<Attempt> {
    let Some(path) = finder.socket(&socket.path()) else { return Vec::new() };
    let Some(directory) = path.parent().and_then(Path::to_str) else { return Vec::new() };
    let owner = environment::name_of_user(user);
    let source = |role: &str| {
        let mut settings = Settings::default();
        settings.set("host", directory);
        settings.set("port", &socket.port.to_string());
        settings.set("dbname", "postgres");
        settings.set("user", role);
        if let Some(owner) = &owner {
            settings.set("requirepeer", owner);
        }
        Attempt { source: format!("postgres:{}", settings.to_text()), socket: Some(path.clone()) }
    };
    let mut attempts = Vec::new();
    let own = environment::of_process("PGUSER").or_else(environment::user_name);
    if let Some(own) = own.filter(|_| is_trusted(user, USER)) {
        attempts.push(source(&own));
    }
    // As the server's user, without a password: a program that is no such server learns nothing.
    if let Some(owner) = owner.as_ref().filter(|_| own_user() == 0 && user != 0) {
        attempts.push(source(owner));
    }
    attempts.dedup();
    attempts
}

fn not_tried(user: u32) -> String {
    format!(
        "no connection is tried: it runs as user {user}, who is neither root, nor this user, nor {USER}, and could keep a \
         password that it is sent"
    )
}

/// The cluster's name in a child's title: "postgres: 15/main: checkpointer "; none in "postgres: checkpointer ".
fn cluster_name(title: &str) -> Option<&str> {
    const CHILDREN: [&str; 6] = [
        "checkpointer",
        "background writer",
        "walwriter",
        "autovacuum launcher",
        "logical replication launcher",
        "startup",
    ];
    let rest = title.strip_prefix("postgres: ")?.trim_end();
    let (name, child) = rest.rsplit_once(": ")?;
    (CHILDREN.contains(&child) && !name.is_empty() && !name.contains(": ")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_cluster_is_named_in_titles_of_its_children() {
        assert_eq!(cluster_name("postgres: 15/main: checkpointer "), Some("15/main"));
        assert_eq!(cluster_name("postgres: checkpointer "), None);
        assert_eq!(cluster_name("postgres: 15/main: ann shop [local] idle"), None);
        assert_eq!(
            cluster_name("postgres: ann shop 127.0.0.1(5): checkpointer"),
            Some("ann shop 127.0.0.1(5)")
        );
    }

    #[test]
    fn a_socket_is_known_by_its_name_or_from_the_pid_file() {
        let socket = Socket { directory: "/run/postgresql".into(), port: 5433 };
        assert_eq!(Socket::parse(Path::new("/run/postgresql/.s.PGSQL.5433")), Some(socket.clone()));
        assert_eq!(Socket::parse(Path::new("/run/postgresql/.s.PGSQL.5433.lock")), None);
        assert_eq!(Socket::parse(Path::new("/run/mysqld/mysqld.sock")), None);
        let file = b"812\n/srv/pg\n1763000000\n5433\n/run/postgresql\nlocalhost\n  5433001  5\nready   \n";
        assert_eq!(parse_pid_file(file), Some(socket));
        assert_eq!(parse_pid_file(b"812\n/srv/pg\n1763000000\n5433\n\n"), None, "no socket");
        assert_eq!(parse_pid_file(b"812\n"), None);
    }

    proptest! {
        #[test]
        fn any_title_and_any_file_is_parsed(title in ".*|postgres: .*", bytes in any::<Vec<u8>>()) {
            cluster_name(&title);
            parse_pid_file(&bytes);
            Socket::parse(Path::new(std::ffi::OsStr::from_bytes(&bytes)));
        }
    }
}
