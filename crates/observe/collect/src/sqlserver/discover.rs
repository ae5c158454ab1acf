//! Finds SQL Server among the processes of this host: the program `sqlservr`, its data files by their extensions, and a
//! connection where SQLCMDUSER gives a login and the server listens on this host.

use crate::discovery::{Attempt, Engine, Finder, Instance, Program, Programs, Role, is_trusted};
use crate::environment;
use host::OpenFile;

const PROGRAM: &str = "sqlservr";
/// Ports that are tried: a server listens on one.
const PORTS_MAX: usize = 8;
/// The user that the package makes.
const USER: &str = "mssql";

pub(super) fn find(programs: &Programs) -> Vec<Instance> {
    programs.first_of(&[PROGRAM]).map(|program| instance(program, programs)).collect()
}

/// The first process starts the one that does the work.
fn instance(program: &Program, programs: &Programs) -> Instance {
    let child = programs.children_of(program.pid).find(|child| child.name == PROGRAM);
    let worker = child.map_or(program.pid, |child| child.pid);
    let mut finder = Finder::new(worker);
    finder.add_open(role_of);
    let mut notes: Vec<String> = finder.note().into_iter().collect();
    let login = environment::of_process("SQLCMDUSER");
    let mut attempts = Vec::new();
    match login {
        Some(_) if is_trusted(program.user, USER) => {
            let ports = host::tcp_listeners_of(worker).into_iter().filter(|address| !address.ip().is_loopback());
            let mut ports: Vec<u16> = ports.map(|address| address.port()).collect();
            ports.sort_unstable();
            ports.dedup();
            ports.truncate(PORTS_MAX);
            let source = |port| format!("sqlserver://localhost:{port}/?certificate=trust");
            attempts.extend(ports.into_iter().map(|port| Attempt { source: source(port), socket: None }));
        }
        Some(_) => notes.push(format!("no connection is tried: it runs as user {}, not as {USER}", program.user)),
        None => notes.push(
            "no connection is tried without a login: SQLCMDUSER=headroom and SQLCMDPASSWORD; CREATE LOGIN headroom WITH \
             PASSWORD = '...'; GRANT VIEW SERVER STATE TO headroom; GRANT VIEW ANY DEFINITION TO headroom;"
                .into(),
        ),
    }
    Instance {
        engine: Engine::SqlServer,
        pid: program.pid,
        start_ticks: program.start_ticks,
        user: program.user,
        name: None,
        part: None,
        version: None,
        files: finder.finish(),
        attempts,
        notes,
    }
}

fn role_of(file: &OpenFile) -> Option<Role> {
    let name = file.path.file_name()?.to_str()?.to_ascii_lowercase();
    let is_temporary = name.starts_with("temp");
    match name.rsplit_once('.')?.1 {
        "mdf" | "ndf" | "ldf" if is_temporary => Some(Role::Temp),
        "mdf" | "ndf" => Some(Role::Data),
        "ldf" => Some(Role::Log),
        _ => None,
    }
}
