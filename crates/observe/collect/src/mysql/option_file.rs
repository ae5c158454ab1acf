//! Option files, as the MySQL and MariaDB clients read them: `user`, `password`, `host`, `port` and `socket` of
//! the groups in `GROUPS`, a later file over an earlier one.
//!
//! ```text
//! /etc/my.cnf, /etc/mysql/my.cnf, defaults-extra-file, ~/.my.cnf      or defaults-file alone
//! ```
//!
//! A world-writable file is ignored, as the clients do; a password in a world-readable one is refused. `!include` and
//! `!includedir` are not followed.

use super::address::Address;
use super::error::MysqlError;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The options of the groups in `GROUPS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientOptions {
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub socket: Option<PathBuf>,
    /// Files that are ignored, and why.
    pub notes: Vec<String>,
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub String);

const FILE_BYTES_MAX: u64 = 1 << 20;
const GROUPS: [&str; 3] = ["client", "client-server", "client-mariadb"];
const SYSTEM_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
const WORLD_WRITABLE: u32 = 0o002;
const WORLD_READABLE: u32 = 0o004;

impl ClientOptions {
    /// Reads all files that a client of this user reads.
    pub fn read(address: &Address) -> Result<ClientOptions, MysqlError> {
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".my.cnf"));
        ClientOptions::read_from(address, &SYSTEM_FILES.map(PathBuf::from), home)
    }

    fn read_from(
        address: &Address,
        system: &[PathBuf],
        home: Option<PathBuf>,
    ) -> Result<ClientOptions, MysqlError> {
        let mut options = ClientOptions::default();
        if let Some(only) = &address.defaults_file {
            options.add_file(only, true)?;
            return Ok(options);
        }
        system.iter().try_for_each(|path| options.add_file(path, false))?;
        if let Some(extra) = &address.defaults_extra_file {
            options.add_file(extra, true)?;
        }
        if let Some(home) = home {
            options.add_file(&home, false)?;
        }
        Ok(options)
    }

    /// Only a file that is named must exist and be readable.
    fn add_file(&mut self, path: &Path, named: bool) -> Result<(), MysqlError> {
        let failed = |error| MysqlError::OptionFile { path: path.into(), error };
        let (mode, text) = match read_file(path) {
            Ok(file) => file,
            Err(_) if !named => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if mode & WORLD_WRITABLE != 0 {
            self.notes.push(format!("{} is passed over: everybody can write to it", path.display()));
            return Ok(());
        }
        let before = self.password.take();
        self.add(&text);
        if self.password.is_some() && mode & WORLD_READABLE != 0 {
            return Err(MysqlError::OpenSecret { path: path.into() });
        }
        self.password = self.password.take().or(before);
        Ok(())
    }

    fn add(&mut self, text: &str) {
        let mut in_group = false;
        for line in text.lines().map(str::trim) {
            if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                in_group = GROUPS.contains(&group.0.trim());
                continue;
            }
            if !in_group || line.starts_with(['#', ';', '!']) {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else { continue };
            let value = parse_value(value);
            match name.trim().replace('_', "-").as_str() {
                "user" => self.user = Some(value),
                "password" => self.password = Some(Secret(value)),
                "host" => self.host = Some(value),
                "port" => self.port = value.parse().ok().filter(|port| *port > 0).or(self.port),
                "socket" => self.socket = Some(value.into()),
                _ => {}
            }
        }
    }
}

/// The mode and the text of a file.
fn read_file(path: &Path) -> io::Result<(u32, String)> {
    let file = host::open_regular_file(path)?;
    let (mode, mut bytes) = (file.metadata()?.mode(), Vec::new());
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("it is too large for options"));
    }
    Ok((mode, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Parses a value: without surrounding blanks and comment, unquoted (' or "), with \\ \" \' \n \t \s and the like resolved.
fn parse_value(text: &str) -> String {
    let text = text.trim();
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    let inner = match quote {
        Some(quote) if text.len() > 1 && text.ends_with(quote) => &text[1..text.len() - 1],
        _ => text.split_once(" #").map_or(text, |(value, _)| value.trim_end()),
    };
    let mut value = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            value.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some('b') => value.push('\u{8}'),
            Some('s') => value.push(' '),
            Some(other @ ('\\' | '"' | '\'')) => value.push(other),
            Some(other) => value.extend(['\\', other]),
            None => value.push('\\'),
        }
    }
    value
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SourceFault;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn file(dir: &Path, name: &str, mode: u32, text: &str) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_later_file_overrides_an_earlier_one() {
        let dir = tempfile::tempdir().unwrap();
        let system = file(
            dir.path(),
            "my.cnf",
            0o644,
            "[client]\nsocket = /run/a.sock\nport=3307\n[mysqld]\nuser=mysql\n",
        );
        let extra = file(dir.path(), "extra", 0o600, "[client]\npassword=\"p#w \\\" d\"\nuser=extra\n");
        let home = file(
            dir.path(),
            "home",
            0o600,
            "# mine\n[mysql]\nhost=no\n[client-server]\nuser = me # myself\n",
        );
        let address = Address { defaults_extra_file: Some(extra), ..Address::default() };
        let options = ClientOptions::read_from(&address, &[system], Some(home)).unwrap();
        assert_eq!(options.user.as_deref(), Some("me"));
        assert_eq!(options.password, Some(Secret("p#w \" d".into())));
        assert_eq!(
            (options.socket, options.port, options.host),
            (Some("/run/a.sock".into()), Some(3307), None)
        );
        assert!(!format!("{:?}", options.password).contains("p#w"));
    }

    #[test]
    fn a_password_in_a_world_readable_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = file(dir.path(), "open", 0o644, "[client]\npassword=hunter2\n");
        let error = ClientOptions::read_from(&Address::default(), &[], Some(open)).unwrap_err();
        assert!(matches!(error, MysqlError::OpenSecret { .. }));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert_eq!(error.remedy(), Some("chmod 600 that file"));
    }

    #[test]
    fn a_world_writable_file_is_ignored_with_a_note() {
        let dir = tempfile::tempdir().unwrap();
        let open = file(dir.path(), "open", 0o666, "[client]\nuser=evil\n");
        let options = ClientOptions::read_from(&Address::default(), &[], Some(open)).unwrap();
        assert_eq!(options.user, None);
        assert!(options.notes[0].contains("everybody can write"), "{:?}", options.notes);
    }

    #[test]
    fn only_a_file_that_is_named_must_exist() {
        let missing = PathBuf::from("/nonexistent/my.cnf");
        assert!(ClientOptions::read_from(&Address::default(), &[], Some(missing.clone())).is_ok());
        let named = Address { defaults_file: Some(missing), ..Address::default() };
        assert!(matches!(ClientOptions::read_from(&named, &[], None), Err(MysqlError::OptionFile { .. })));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in any::<String>(), near in "(\\[client\\]\n([a-z]{1,8}=['\"\\\\a-z #]{0,9}\n){0,5})*") {
            let mut options = ClientOptions::default();
            options.add(&text);
            options.add(&near);
        }
    }
}
