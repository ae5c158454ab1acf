//! Finds MySQL and MariaDB servers among the processes of this host.
//!
//! ```text
//! process   the program `mariadbd` or `mysqld`; not one that initialises a data directory
//! data      its working directory, else --datadir
//! files     those that it has open: data, redo and binary logs, temporary tables
//! socket    where it listens (/proc/PID/net/unix), else --socket
//! sources   the user of the option files (~/.my.cnf), then the one with the name of this user (unix_socket)
//! ```

use super::address::Address;
use super::option_file::ClientOptions;
use crate::discovery::{
    Attempt, Engine, Finder, Instance, Program, Programs, Role, is_trusted, option_value,
};
use crate::environment;
use host::OpenFile;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const MARIADB: &str = "mariadbd";
const PROGRAMS: [&str; 2] = [MARIADB, "mysqld"];
/// The user that a package of either makes.
const USER: &str = "mysql";
/// Sockets that are tried: a server listens on one.
const SOCKETS_MAX: usize = 8;
const NO_SERVER: [&str; 4] = ["--bootstrap", "--initialize", "--initialize-insecure", "--help"];

pub(super) fn find(programs: &Programs) -> Vec<Instance> {
    programs.first_of(&PROGRAMS).filter_map(instance).collect()
}

fn instance(program: &Program) -> Option<Instance> {
    let arguments = program.arguments();
    if arguments.iter().any(|argument| NO_SERVER.contains(&argument.as_str())) {
        return None;
    }
    let mut finder = Finder::new(program.pid);
    let given = || option_value(&arguments, &["-h", "--datadir"]).map(PathBuf::from);
    let data = host::working_directory(program.pid).or_else(given).filter(|data| data.is_absolute());
    if let Some(data) = &data {
        finder.add(Role::Data, data);
    }
    finder.add_open(role_of);
    let sockets = sockets(program, &arguments, data.as_deref());
    let mut notes: Vec<String> = finder.note().into_iter().collect();
    let trusted = is_trusted(program.user, USER);
    let attempts: Vec<Attempt> = match trusted {
        true => sockets
            .iter()
            .filter_map(|socket| finder.socket(socket))
            .flat_map(|at| attempts_at(program.user, &at))
            .collect(),
        false => Vec::new(),
    };
    match (sockets.is_empty(), trusted) {
        (true, _) => notes.push("no socket of it is known".into()),
        (false, false) => notes.push(format!(
            "no connection is tried: it runs as user {}, who is neither root, nor this user, nor {USER}, and could keep a \
             password that it is sent",
            program.user
        )),
        _ => {}
    }
    Some(Instance {
        engine: if program.name == MARIADB { Engine::Mariadb } else { Engine::Mysql },
        pid: program.pid,
        start_ticks: program.start_ticks,
        user: program.user,
        name: data.map(|data| data.to_string_lossy().into_owned()),
        part: None,
        version: None,
        files: finder.finish(),
        attempts,
        notes,
    })
}

fn sockets(program: &Program, arguments: &[String], data: Option<&Path>) -> Vec<PathBuf> {
    let is_main = |path: &PathBuf| !path.to_string_lossy().ends_with("mysqlx.sock");
    let mut sockets = host::unix_listeners_of(program.pid);
    sockets.retain(is_main);
    if sockets.is_empty() {
        sockets.extend(option_value(arguments, &["--socket", "-S"]).map(PathBuf::from));
    }
    // A relative name is one in the data directory.
    let absolute = |socket: PathBuf| data.map_or(socket.clone(), |data| data.join(&socket));
    sockets.into_iter().map(absolute).filter(|socket| socket.is_absolute()).take(SOCKETS_MAX).collect()
}

fn attempts_at(user: u32, socket: &Path) -> Vec<Attempt> {
    let Some(socket_text) = socket.to_str().map(percent_encode) else { return Vec::new() };
    let owner = environment::name_of_user(user);
    let source = |role: Option<&str>| {
        let mut text = format!("mysql:socket={socket_text}");
        if let Some(role) = role {
            text += &format!(" user={}", percent_encode(role));
        }
        if let Some(owner) = &owner {
            text += &format!(" require-peer={}", percent_encode(owner));
        }
        Attempt { source: text, socket: Some(socket.to_path_buf()) }
    };
    let configured = ClientOptions::read(&Address::default()).ok().and_then(|options| options.user);
    let mut attempts: Vec<Attempt> = configured.iter().map(|_| source(None)).collect();
    let own = environment::user_name().filter(|own| configured.as_ref() != Some(own));
    attempts.extend(own.iter().map(|own| source(Some(own))));
    attempts
}

/// Files of InnoDB, Aria and MyISAM by their names; `None` for logs of messages and what is no file of the server.
fn role_of(file: &OpenFile) -> Option<Role> {
    let name = file.path.file_name()?.to_str()?;
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    // Binary and relay logs: "binlog.000017", "mysql-bin.000017".
    let is_numbered = extension.len() == 6 && extension.bytes().all(|byte| byte.is_ascii_digit());
    let is_log = name.starts_with("ib_logfile")
        || name.starts_with("#ib_redo")
        || name.starts_with("aria_log")
        || (is_numbered && file.is_writable);
    let is_temporary =
        file.is_deleted || name.starts_with("ibtmp") || name.starts_with("#sql") || name.starts_with("temp_");
    match extension {
        _ if is_log => Some(Role::Log),
        _ if is_temporary => Some(Role::Temp),
        "ibd" | "ibu" | "MYD" | "MYI" | "MAD" | "MAI" | "sdi" => Some(Role::Data),
        _ if name.starts_with("ibdata") || name.starts_with("undo") => Some(Role::Data),
        _ => None,
    }
}

fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                encoded.push(char::from(byte));
            }
            // Writing into a String cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_have_roles_by_their_names() {
        let _open = std::fs::File::open("/proc/self/exe").unwrap();
        let any = host::open_files(std::process::id()).pop().unwrap();
        let role = |path: &str, is_deleted| {
            let mut file = any.clone();
            (file.path, file.is_deleted, file.is_writable) = (path.into(), is_deleted, true);
            role_of(&file)
        };
        for log in ["ib_logfile0", "#ib_redo17", "aria_log.00000001", "aria_log_control", "binlog.000017"] {
            assert_eq!(role(&format!("/data/{log}"), false), Some(Role::Log), "{log}");
        }
        for data in ["shop/orders.ibd", "ibdata1", "undo001", "undo_001", "mysql/user.MAD"] {
            assert_eq!(role(&format!("/data/{data}"), false), Some(Role::Data), "{data}");
        }
        assert_eq!(
            (role("/data/ibtmp1", false), role("/tmp/ibXYZ", true)),
            (Some(Role::Temp), Some(Role::Temp))
        );
        assert_eq!((role("/data/error.log", false), role("/data/pid", false)), (None, None));
    }

    proptest! {
        #[test]
        fn any_socket_and_user_are_read_back_from_the_source(socket in "/[^\0]{1,40}", user in "[^\0]{1,20}") {
            let text = format!("mysql:socket={} user={}", percent_encode(&socket), percent_encode(&user));
            let address = Address::parse(&text).unwrap();
            prop_assert_eq!(address.socket, Some(PathBuf::from(socket)));
            prop_assert_eq!(address.user, Some(user));
        }
    }
}
