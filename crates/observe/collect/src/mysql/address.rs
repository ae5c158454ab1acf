//! The connection text, `mysql://USER@HOST:PORT/?OPTION=VALUE`: the server, the user and the option files.
//!
//! ```text
//! mysql:                                        as the option files say, else the usual socket
//! mysql://headroom@db.example.com:3306/         TCP
//! mysql://headroom@/run/mysqld/mysqld.sock      a socket; also mysql:socket=/run/mysqld/mysqld.sock user=headroom
//! options: user, socket, require-peer, defaults-extra-file, defaults-file, ssl-mode, ssl-ca, get-server-public-key
//! ```
//!
//! It has no password: every user of the machine could read it in the list of processes.

use crate::connection_text::{PASSWORD_IS_VISIBLE, host_and_port, no_such_option, percent_decode};
use std::path::PathBuf;

/// The settings of the connection text; the others come from option files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub socket: Option<PathBuf>,
    pub user: Option<String>,
    /// The user that must run the server that listens on the socket.
    pub required_peer: Option<String>,
    /// Read after the files of the system and before ~/.my.cnf.
    pub defaults_extra_file: Option<PathBuf>,
    /// Read instead of all others.
    pub defaults_file: Option<PathBuf>,
    pub tls: Tls,
    /// Whether a password may be sent encrypted with a key that the server sends, where the connection is not encrypted.
    pub accepts_server_key: bool,
}

/// How the connection is encrypted; the names are those of the clients' `--ssl-mode`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Tls {
    /// Encrypted, with any certificate, where the server offers that.
    #[default]
    Preferred,
    Disabled,
    /// Encrypted, with any certificate.
    Required,
    /// The certificate must be signed by this authority.
    VerifyCa(PathBuf),
    /// It must be for the host, too.
    VerifyIdentity(Option<PathBuf>),
}

pub(super) const OPTIONS: [&str; 8] = [
    "user",
    "socket",
    "require-peer",
    "defaults-extra-file",
    "defaults-file",
    "ssl-mode",
    "ssl-ca",
    "get-server-public-key",
];

impl Address {
    pub fn parse(text: &str) -> Result<Address, String> {
        let text = text.strip_prefix("mysql:").or_else(|| text.strip_prefix("mariadb:")).unwrap_or(text);
        let text = text.strip_prefix("//").unwrap_or(text);
        let mut address = Address::default();
        // In a URL a space is part of a value.
        let is_separator = |c: char| c == '&' || c.is_whitespace();
        let (place, options): (_, Vec<&str>) = match text.split_once('?') {
            _ if text.starts_with("socket=") => ("", text.split(is_separator).collect()),
            Some((place, options)) => (place, options.split('&').collect()),
            None if text.contains('=') => ("", text.split(is_separator).collect()),
            None => (text, Vec::new()),
        };
        address.parse_place(place)?;
        address.parse_options(&options)?;
        Ok(address)
    }

    /// `[USER@](HOST[:PORT][/] | /SOCKET)`
    fn parse_place(&mut self, place: &str) -> Result<(), String> {
        let host_end = place.find('/').unwrap_or(place.len());
        let (authority, path) = place.split_at(host_end);
        let host = match authority.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => return Err(PASSWORD_IS_VISIBLE.into()),
            Some((user, host)) => {
                self.user = Some(percent_decode(user)?).filter(|user| !user.is_empty());
                host
            }
            None => authority,
        };
        match (host.is_empty(), path) {
            (true, "" | "/") => {}
            (true, socket) => self.socket = Some(percent_decode(socket)?.into()),
            (false, "" | "/") => {
                let (host, port) = host_and_port(host, ':')?;
                self.host = Some(host.into()).filter(|host: &String| !host.is_empty());
                self.port = port;
            }
            (false, _) => {
                return Err("no database is to be named: all files of the server are watched".into());
            }
        }
        Ok(())
    }

    fn parse_options(&mut self, options: &[&str]) -> Result<(), String> {
        let (mut mode, mut authority) = (None, None);
        for option in options.iter().copied().filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = percent_decode(value)?;
            match name {
                "user" => self.user = Some(value),
                "socket" => self.socket = Some(value.into()),
                "require-peer" => self.required_peer = Some(value),
                "defaults-extra-file" => self.defaults_extra_file = Some(value.into()),
                "defaults-file" => self.defaults_file = Some(value.into()),
                "ssl-mode" => mode = Some(value.to_ascii_lowercase().replace('-', "_")),
                "ssl-ca" => authority = Some(PathBuf::from(value)),
                "get-server-public-key" => self.accepts_server_key = parse_switch(&value)?,
                "password" => return Err(PASSWORD_IS_VISIBLE.into()),
                _ => return Err(no_such_option(&OPTIONS)),
            }
        }
        self.tls = match (mode.as_deref(), authority) {
            (None | Some("preferred"), None) => Tls::Preferred,
            (Some("disabled"), None) => Tls::Disabled,
            (Some("required"), None) => Tls::Required,
            (Some("verify_ca"), Some(authority)) => Tls::VerifyCa(authority),
            (None | Some("verify_identity"), authority) => Tls::VerifyIdentity(authority),
            (Some("verify_ca"), None) => return Err("ssl-mode=verify_ca needs ssl-ca=FILE".into()),
            (Some("disabled" | "preferred" | "required"), Some(_)) => {
                return Err("ssl-ca is for ssl-mode=verify_ca and verify_identity".into());
            }
            (Some(_), _) => {
                return Err("ssl-mode is disabled, preferred, required, verify_ca or verify_identity".into());
            }
        };
        Ok(())
    }
}

fn parse_switch(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "" | "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("get-server-public-key is true or false".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn host_port_socket_and_user_are_found_where_people_write_them() {
        let tcp = parse("mysql://headroom@db.example.com:3307/");
        assert_eq!((tcp.host.as_deref(), tcp.port), (Some("db.example.com"), Some(3307)));
        assert_eq!(tcp.user.as_deref(), Some("headroom"));
        assert_eq!(parse("//headroom@db.example.com:3307/"), tcp, "as headroom splits its source names");
        let socket = parse("mysql:///run/mysqld/mysqld.sock");
        assert_eq!(socket.socket, Some("/run/mysqld/mysqld.sock".into()));
        assert_eq!(parse("mysql:socket=/run/mysqld/mysqld.sock"), socket);
        let of_ann = Address { user: Some("ann".into()), ..socket.clone() };
        assert_eq!(parse("mysql:socket=/run/mysqld/mysqld.sock user=ann"), of_ann);
        assert_eq!(parse("mysql:user=ann socket=/run/mysqld/mysqld.sock"), of_ann);
        assert_eq!(parse("mysql://?socket=/run/mysqld/mysqld.sock"), socket);
        assert_eq!(parse("mysql://a%40b@/x.sock").user.as_deref(), Some("a@b"));
        assert_eq!(parse("mysql://[::1]:3306").host.as_deref(), Some("::1"));
        assert_eq!(parse("mysql:"), Address::default());
        assert_eq!(parse("mysql://h?ssl-mode=VERIFY_CA&ssl-ca=/ca.pem").tls, Tls::VerifyCa("/ca.pem".into()));
        assert_eq!((parse("mysql://h").tls, parse("mysql://h").accepts_server_key), (Tls::Preferred, false));
        assert!(parse("mysql://h?get-server-public-key=true").accepts_server_key);
        assert!(!parse("mysql://h?get-server-public-key=0").accepts_server_key);
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        for text in ["mysql://root:hunter2@host/", "mysql://host?password=hunter2"] {
            let error = Address::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
            assert!(error.to_string().contains("password"), "{error}");
        }
    }

    #[test]
    fn malformed_texts_and_wrong_options_are_refused() {
        for text in ["mysql://host/shop", "mysql://host:0", "mysql://host:many", "mysql://host?colour=red"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        let key = "get-server-public-key=perhaps";
        for options in
            ["ssl-mode=verify_ca", "ssl-mode=required&ssl-ca=/x", "ssl-mode=maybe", "user=%zz", key]
        {
            assert!(Address::parse(&format!("mysql://host?{options}")).is_err(), "{options}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>(), near in "mysql:[/@:?=&%a-f0-9\\[\\]]{0,40}") {
            let _ = (Address::parse(&text), Address::parse(&near));
        }
    }
}
