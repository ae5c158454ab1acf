mod argument;
mod followed;

pub use argument::{source as argument, without_passwords};
use collect::devices::Devices;
use collect::mysql::Mysql;
use collect::postgres::Postgres;
use collect::process::{Process, Selection};
use collect::sqlserver::SqlServer;
use collect::{FileNames, Source, SourceError};
use followed::{Followed, Mark};
use std::path::PathBuf;

/// Whose counters to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// A database that running programs have open with the extension loaded.
    Sqlite(PathBuf),
    /// A page store that a program has open.
    Pagestore(PathBuf),
    /// Processes of this host.
    Process(Selection),
    /// The processes of the server that keeps its number in that file, whenever it is started.
    PidFile(PathBuf),
    /// A PostgreSQL server: a URL, or name=value pairs.
    Postgres(String),
    /// A MySQL or MariaDB server: a URL.
    Mysql(String),
    /// Block devices of this host; all that did anything where none is named.
    Devices(Vec<String>),
    /// A SQL Server, or a database of Azure: a URL.
    SqlServer(String),
}

/// What `--source` takes.
pub const HELP: &str = "Whose counters: process: (all), process:PID,..., process:pid-file=PATH, process:cgroup=DIR, \
    process:layer=block, sqlite:PATH, pagestore:DIR, postgres:[CONNECTION], mysql:[CONNECTION], sqlserver:[CONNECTION], devices:[NAME,...], as in \
    postgres:host=/run/postgresql or mysql://user@host/";

const ACCEPTED: &str = "give process:, process:PID, process:pid-file=PATH, process:cgroup=DIR, sqlite:PATH, pagestore:DIR, postgres:CONNECTION, \
    mysql:CONNECTION, sqlserver:CONNECTION or devices:NAME,..., as in sqlite:/data/shop.db or \
    postgres:host=/run/postgresql";

impl SourceName {
    /// Opens it alone.
    pub fn open(&self) -> Result<Box<dyn Source + Send>, SourceError> {
        self.open_among(&[], &FileNames::default())
    }

    /// Opens it, for these files only where it can choose (no files are all files), beside others: what a server knows
    /// of its files goes into `names`, for whoever sees them.
    pub fn open_among(
        &self,
        files: &[PathBuf],
        names: &FileNames,
    ) -> Result<Box<dyn Source + Send>, SourceError> {
        Ok(match self {
            SourceName::Sqlite(path) => Box::new(collect::sqlite::Live::open(path)?),
            SourceName::Pagestore(path) => Box::new(collect::pagestore::Live::open(path)?),
            SourceName::Process(selection) => {
                let selection = Selection { files: files.to_vec(), ..selection.clone() };
                match selection.cgroup.clone() {
                    None => Box::new(Process::open(&selection)?.asking(names)),
                    Some(group) => Box::new(Followed::open(Mark::Group(group), selection, names)?),
                }
            }
            SourceName::PidFile(path) => {
                let selection = Selection { files: files.to_vec(), ..Selection::default() };
                Box::new(Followed::open(Mark::PidFile(path.clone()), selection, names)?)
            }
            SourceName::Postgres(connection) => Box::new(Postgres::open(connection)?.telling(names)),
            SourceName::Mysql(connection) => Box::new(Mysql::open(connection)?),
            SourceName::Devices(names) => Box::new(Devices::open(names)?),
            SourceName::SqlServer(connection) => Box::new(SqlServer::open(connection)?),
        })
    }

    /// Whether its text holds a password, or may hold one.
    pub fn has_password(&self) -> bool {
        match self {
            SourceName::Sqlite(_)
            | SourceName::Pagestore(_)
            | SourceName::Process(_)
            | SourceName::PidFile(_)
            | SourceName::Devices(_) => false,
            SourceName::Postgres(connection) => collect::postgres::has_password(connection),
            SourceName::Mysql(connection) => shown(connection, "mysql:", &MYSQL_OPTIONS).is_none(),
            SourceName::SqlServer(connection) => {
                shown(connection, "sqlserver:", &SQLSERVER_OPTIONS).is_none()
            }
        }
    }
}

impl std::str::FromStr for SourceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(SourceName::Sqlite(path.into())),
            Some(("pagestore", path)) if !path.is_empty() => Ok(SourceName::Pagestore(path.into())),
            Some(("process", rest)) if rest.starts_with("pid-file=") => match &rest["pid-file=".len()..] {
                "" => Err("pid-file= names no file; give process:pid-file=/run/mysqld/mysqld.pid".into()),
                path => Ok(SourceName::PidFile(path.into())),
            },
            Some(("process", rest)) => selection(rest).map(SourceName::Process),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Ok(SourceName::Postgres(format!("postgresql:{rest}")))
            }
            Some(("postgres" | "postgresql", rest)) => Ok(SourceName::Postgres(rest.into())),
            Some(("mysql" | "mariadb", rest)) if rest.starts_with("//") => {
                Ok(SourceName::Mysql(format!("mysql:{rest}")))
            }
            Some(("mysql" | "mariadb", rest)) => Ok(SourceName::Mysql(rest.into())),
            Some(("devices", names)) => device_names(names).map(SourceName::Devices),
            Some(("sqlserver" | "mssql", rest)) if rest.starts_with("//") => {
                Ok(SourceName::SqlServer(format!("sqlserver:{rest}")))
            }
            Some(("sqlserver" | "mssql", rest)) => Ok(SourceName::SqlServer(rest.into())),
            // What it is may hold a password.
            Some((kind, _)) => Err(format!("'{kind}:' is no source; {ACCEPTED}")),
            // A line of a file may hold one too.
            None => Err(format!("that is no source; {ACCEPTED}")),
        }
    }
}

/// "", "vda", "sdb,/dev/sdc".
fn device_names(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').filter(|name| !name.is_empty());
    let name = |name: &str| {
        let below = name.strip_prefix("/dev/").unwrap_or(name);
        let wrong = || {
            let name = repeated(name);
            format!(
                "{name} is no kernel name of a device; give devices: or devices:vda,dm-0 as lsblk -o KNAME has them"
            )
        };
        if below.contains('/') { Err(wrong()) } else { Ok(below.to_owned()) }
    };
    names.map(name).collect()
}

/// "", "812,813", "cgroup=/sys/fs/cgroup/x", "layer=block", or several with commas between.
fn selection(text: &str) -> Result<Selection, String> {
    let mut selection = Selection::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("cgroup", dir)) => selection.cgroup = Some(dir.into()),
            Some(("layer", "block")) => selection.block_only = true,
            _ => selection.pids.push(part.parse().map_err(|_| {
                let part = repeated(part);
                format!(
                    "{part} is no process number; give process:, process:PID,..., process:cgroup=DIR or \
                     process:layer=block"
                )
            })?),
        }
    }
    Ok(selection)
}

/// A piece of a source that was mistyped, for its error; of a URL, which may hold a password, nothing.
pub fn repeated(piece: &str) -> String {
    if piece.contains(['@', ':']) { "that".into() } else { format!("'{piece}'") }
}

const UNREADABLE: &str = "(a connection that cannot be read)";
/// What a connection to MySQL may say besides the place; a password is refused there.
const MYSQL_OPTIONS: [&str; 6] =
    ["user", "socket", "defaults-extra-file", "defaults-file", "ssl-mode", "ssl-ca"];
/// ... to SQL Server.
const SQLSERVER_OPTIONS: [&str; 5] = ["user", "database", "password-file", "encrypt", "certificate"];

/// A connection `[SCHEME://][USER@]PLACE[?NAME=VALUE&...]` for people and logs; `None` where anything in it is not
/// surely that: it may be a password, or a piece of one.
fn shown(connection: &str, scheme: &str, options: &[&str]) -> Option<String> {
    let text = connection.strip_prefix(scheme).unwrap_or(connection);
    let rest = text.strip_prefix("//").unwrap_or(text);
    let (place, named) = match rest.split_once('?') {
        Some(parts) => parts,
        None if rest.contains('=') => ("", rest),
        None => (rest, ""),
    };
    let user = place.rsplit_once('@').map_or("", |(user, _)| user);
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '=' | ';' | '&');
    let ends = |c: char| c == '&' || c.is_whitespace();
    let known = |option: &str| {
        option
            .split_once('=')
            .is_some_and(|(name, value)| options.contains(&name) && value.chars().all(plain))
    };
    let good = !user.contains([':', '/', '@'])
        && place.chars().all(plain)
        && named.split(ends).filter(|option| !option.is_empty()).all(known);
    good.then(|| text.to_owned())
}

impl std::fmt::Display for SourceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SourceName::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            SourceName::Pagestore(path) => write!(f, "pagestore:{}", path.display()),
            SourceName::Process(selection) => {
                let mut parts: Vec<String> = selection.pids.iter().map(ToString::to_string).collect();
                parts.extend(selection.cgroup.iter().map(|dir| format!("cgroup={}", dir.display())));
                parts.extend(selection.block_only.then(|| "layer=block".to_owned()));
                write!(f, "process:{}", parts.join(","))
            }
            SourceName::PidFile(path) => write!(f, "process:pid-file={}", path.display()),
            SourceName::Postgres(connection) => {
                write!(f, "postgres:{}", collect::postgres::redacted(connection))
            }
            SourceName::Mysql(connection) => {
                let shown = shown(connection, "mysql:", &MYSQL_OPTIONS);
                write!(f, "mysql:{}", shown.as_deref().unwrap_or(UNREADABLE))
            }
            SourceName::Devices(names) => write!(f, "devices:{}", names.join(",")),
            SourceName::SqlServer(connection) => {
                let shown = shown(connection, "sqlserver:", &SQLSERVER_OPTIONS);
                write!(f, "sqlserver:{}", shown.as_deref().unwrap_or(UNREADABLE))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> SourceName {
        text.parse().unwrap()
    }

    #[test]
    fn every_kind_is_read_and_shown_again() {
        for text in [
            "sqlite:/data/shop.db",
            "pagestore:/data/shop.pages",
            "process:",
            "process:812,813",
            "process:cgroup=/sys/fs/cgroup/db",
            "process:pid-file=/var/lib/postgresql/18/main/postmaster.pid",
            "process:layer=block",
            "postgres:host=/run/postgresql user=monitor",
            "mysql://monitor@localhost/",
            "mysql://monitor@/run/mysqld/mysqld.sock?ssl-mode=disabled",
            "mysql:socket=/run/mysqld/mysqld.sock",
            "mysql:",
            "devices:",
            "devices:vda,sdb",
            "sqlserver://monitor@localhost:1433/shop?encrypt=optional",
            "sqlserver:",
        ] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(read("postgresql://h/d"), read("postgres://h/d"));
        assert_eq!(read("devices:/dev/vda"), read("devices:vda"));
        for wrong in [
            "",
            "shop.db",
            "oracle:x",
            "process:12,x",
            "process:pid-file=",
            "process:layer=x",
            "sqlite:",
            "pagestore:",
            "devices:mapper/x",
        ] {
            assert!(wrong.parse::<SourceName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://monitor:se:cr@et@localhost/shop",
            "postgres:host=h password=secret user=u",
            "postgres:host=h password='se cr et' user=u",
            "postgres:host=h password = secret",
            "postgres:host=h\tpassword=secret",
            "postgres:host=h sslpassword=secret",
            "postgres://u:se/cret@h/d",
            "postgres://h/d?user=u&password=secret",
            "postgres://h/d?user=u&pass%77ord=secret",
            "mysql://monitor:secret@localhost/",
            "mysql://monitor:se/cret@localhost",
            "mysql://monitor@localhost/?password=secret",
            "mysql:host=h password = secret",
            "sqlserver://monitor:secret@localhost/",
            "sqlserver://monitor:se/cret@localhost/",
            "sqlserver://localhost:1433;user=monitor;password=secret;encrypt=true",
            "sqlserver://localhost:1433;user=monitor;Pwd=secret",
            "sqlserver:Server=h;Pwd = secret",
        ] {
            let shown = read(text).to_string();
            let pieces = ["secret", "se/", "cret", "se:cr", "pass", "Pwd"];
            assert!(!pieces.iter().any(|piece| shown.contains(piece)), "{text}: {shown}");
            assert!(read(text).has_password(), "{text}");
        }
        assert_eq!(
            read("postgres://monitor:secret@h/shop").to_string(),
            "postgres:dbname=shop host=h user=monitor"
        );
        let wrong = "host=h password=secret".parse::<SourceName>().unwrap_err();
        assert!(!wrong.contains("secret"), "{wrong}");
        assert!(!read("postgres://monitor@localhost/shop").has_password());
    }
}
