//! The connection text, `sqlserver://USER@HOST:PORT/DATABASE?OPTION=VALUE`: the server, the user and the database.
//!
//! ```text
//! sqlserver:                                    SQLCMDSERVER, else this host; SQLCMDUSER
//! sqlserver://headroom@db.example.com:1433/
//! sqlserver://headroom@shop.database.windows.net/shop      Azure SQL Database: one database
//! options: user, database, password-file,
//!          encrypt      mandatory | optional | off
//!          certificate  public | trust | FILE
//! ```
//!
//! It has no password: every user of the machine could read it in the list of processes. The password comes from
//! SQLCMDPASSWORD, as with sqlcmd, or, for several servers, from a file that only its owner can read.

use super::tls::Trust;
use crate::connection_text::{PASSWORD_IS_VISIBLE, host_and_port, no_such_option, percent_decode};
use crate::environment::Environment;
use std::io::{self, Read};
use std::path::Path;
use tds::{Encryption, TEXT_CHARS_MAX};

const PORT: u16 = 1433;
pub(super) const OPTIONS: [&str; 5] = ["user", "database", "password-file", "encrypt", "certificate"];

/// Where a server is and how to log in.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    /// Empty for the login's default database.
    pub database: String,
    pub encryption: Encryption,
    pub trust: Trust,
}

impl Address {
    pub fn parse(text: &str, environment: Environment) -> Result<Address, String> {
        let text = text.strip_prefix("sqlserver:").or_else(|| text.strip_prefix("mssql:")).unwrap_or(text);
        let text = text.strip_prefix("//").unwrap_or(text);
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => return Err(PASSWORD_IS_VISIBLE.into()),
            Some((user, host)) => (percent_decode(user)?, host),
            None => (String::new(), authority),
        };
        let (host, port) = match host.is_empty() {
            true => parse_sqlcmd_server(&environment("SQLCMDSERVER").unwrap_or_default())?,
            false => parse_host_and_port(host, ':')?,
        };
        let mut address = Address {
            host,
            port,
            user,
            password: environment("SQLCMDPASSWORD").unwrap_or_default(),
            database: percent_decode(database)?,
            encryption: Encryption::default(),
            trust: Trust::default(),
        };
        address.parse_options(options)?;
        if address.user.is_empty() {
            address.user = environment("SQLCMDUSER").unwrap_or_default();
        }
        if address.database.is_empty() {
            address.database = environment("SQLCMDDBNAME").unwrap_or_default();
        }
        address.check()
    }

    fn parse_options(&mut self, options: &str) -> Result<(), String> {
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = percent_decode(value)?;
            match name {
                "user" => self.user = value,
                "database" => self.database = value,
                "password-file" => self.password = read_password(Path::new(&value))?,
                "encrypt" => {
                    self.encryption = match value.as_str() {
                        "mandatory" => Encryption::Mandatory,
                        "optional" => Encryption::Optional,
                        "off" => Encryption::Off,
                        _ => return Err("encrypt is mandatory, optional or off".into()),
                    }
                }
                "certificate" => {
                    self.trust = match value.as_str() {
                        "public" => Trust::Public,
                        "trust" => Trust::Any,
                        "" => return Err("certificate is public, trust, or a FILE of authorities".into()),
                        file => Trust::Authority(file.into()),
                    }
                }
                "password" => return Err(PASSWORD_IS_VISIBLE.into()),
                _ => return Err(no_such_option(&OPTIONS)),
            }
        }
        Ok(())
    }

    fn check(self) -> Result<Address, String> {
        let texts = [&self.host, &self.user, &self.password, &self.database];
        if texts.iter().any(|text| text.encode_utf16().count() > TEXT_CHARS_MAX) {
            return Err(format!(
                "host, user, password and database have at most {TEXT_CHARS_MAX} characters"
            ));
        }
        if self.user.is_empty() {
            return Err(
                "no user is given; a login of the server is needed, Windows' and Entra's do not work".into(),
            );
        }
        Ok(self)
    }

    /// "sqlserver HOST:PORT", with the database where one is named.
    pub fn name(&self) -> String {
        let Address { host, port, database, .. } = self;
        let slash = if database.is_empty() { "" } else { "/" };
        format!("sqlserver {host}:{port}{slash}{database}")
    }
}

/// Parses `[tcp:]HOST[,PORT]`, as sqlcmd does.
fn parse_sqlcmd_server(text: &str) -> Result<(String, u16), String> {
    match text.strip_prefix("tcp:").unwrap_or(text) {
        "" | "." | "(local)" => Ok(("localhost".into(), PORT)),
        server => parse_host_and_port(server, ','),
    }
}

fn parse_host_and_port(text: &str, separator: char) -> Result<(String, u16), String> {
    if text.contains('\\') {
        return Err("a named instance is found by its port: give HOST:PORT".into());
    }
    let (host, port) = host_and_port(text, separator)?;
    Ok((host.into(), port.unwrap_or(PORT)))
}

/// Reads the first line of a file that only its owner can read.
fn read_password(file: &Path) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("cannot read the password file {}: {error}", file.display());
    let opened = host::open_regular_file(file).map_err(unreadable)?;
    if !host::is_private(file, &opened.metadata().map_err(unreadable)?) {
        return Err(format!("others can read the password file {}: chmod 600 it", file.display()));
    }
    let mut text = String::new();
    opened.take(4096).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text.lines().next().unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;

    fn with<'a>(pairs: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    fn name(text: &str, pairs: &[(&str, &str)]) -> (String, String) {
        let address = Address::parse(text, &with(pairs)).unwrap_or_else(|error| panic!("{text}: {error}"));
        (address.name(), address.user)
    }

    fn pair(name: &str, user: &str) -> (String, String) {
        (name.into(), user.into())
    }

    #[test]
    fn host_port_user_and_database_are_parsed() {
        assert_eq!(
            name("sqlserver://ann@db.example.com:1444/", &[]),
            pair("sqlserver db.example.com:1444", "ann")
        );
        assert_eq!(name("mssql://ann@h/shop", &[]), pair("sqlserver h:1433/shop", "ann"));
        assert_eq!(name("//h?user=a%40b&database=my%20shop", &[]), pair("sqlserver h:1433/my shop", "a@b"));
        assert_eq!(name("sqlserver://ann@[::1]:7", &[]), pair("sqlserver ::1:7", "ann"));
    }

    #[test]
    fn sqlcmds_variables_fill_in_what_the_text_does_not_set() {
        let environment = [("SQLCMDSERVER", "tcp:db,1444"), ("SQLCMDUSER", "env"), ("SQLCMDDBNAME", "shop")];
        assert_eq!(name("sqlserver:", &environment), pair("sqlserver db:1444/shop", "env"));
        assert_eq!(name("sqlserver://ann@h", &environment), pair("sqlserver h:1433/shop", "ann"));
        assert_eq!(name("sqlserver:", &[("SQLCMDUSER", "env")]), pair("sqlserver localhost:1433", "env"));
        let password = Address::parse("sqlserver://a@h", &with(&[("SQLCMDPASSWORD", "s3")])).ok().unwrap();
        assert_eq!(password.password, "s3");
    }

    #[test]
    fn encryption_and_a_verified_certificate_are_the_default() {
        let security = |text: &str| Address::parse(text, &with(&[])).map(|it| (it.encryption, it.trust)).ok();
        assert_eq!(security("//a@h"), Some((Encryption::Mandatory, Trust::Public)));
        assert_eq!(
            security("//a@h?encrypt=optional&certificate=trust"),
            Some((Encryption::Optional, Trust::Any))
        );
        let file = Some((Encryption::Mandatory, Trust::Authority("/ca.pem".into())));
        assert_eq!(security("//a@h?certificate=/ca.pem"), file);
        assert_eq!(security("//a@h?encrypt=no"), None);
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        for text in
            ["//root:hunter2@host/", "//u@host?password=hunter2", "//u@host?hunter2=x", "//u@host:hunter2"]
        {
            let error = Address::parse(text, &with(&[])).err().unwrap();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_password_file_counts_only_when_it_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        std::fs::write(&file, "s3 cr:et\n").unwrap();
        let text = format!("//u@host?password-file={}", file.display());
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        let environment = [("SQLCMDPASSWORD", "another")];
        assert_eq!(Address::parse(&text, &with(&environment)).ok().unwrap().password, "s3 cr:et");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        let error = Address::parse(&text, &with(&environment)).err().unwrap().to_string();
        assert!(error.contains("chmod 600") && !error.contains("s3"), "{error}");
        let missing = Address::parse("//u@host?password-file=/no/where", &with(&environment)).err().unwrap();
        assert!(missing.to_string().contains("/no/where"), "{missing}");
    }

    #[test]
    fn settings_that_cannot_work_are_refused_with_a_reason() {
        let refused = |text: &str| Address::parse(text, &with(&[])).err().unwrap().to_string();
        assert!(refused("//u@host\\INSTANCE").contains("port"));
        assert!(refused("//host").contains("no user"));
        assert!(refused(&format!("//{}@host", "x".repeat(129))).contains("128"));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>(), near in "(//)?[a@:/?=&%,\\[\\]0-9]{0,30}") {
            let _ = Address::parse(&text, &with(&[]));
            let _ = Address::parse(&near, &with(&[("SQLCMDSERVER", &near)]));
        }
    }
}
