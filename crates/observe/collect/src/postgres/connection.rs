//! Where the server is and how to log in, by libpq's conventions: settings that the connection string omits come from
//! the service file, then from the environment, then from libpq's defaults.
//!
//! ```text
//! postgres://user@host:5432/shop   host=/run/postgresql dbname=shop   service=shop   (nothing)
//!   -> settings of the string > of the service > of PGHOST, PGUSER ... > the socket, port 5432, this user
//! ```
//!
//! No error of this file repeats a value: a mistyped URL has pieces of the password where a port should be.

use super::authentication::RequiredAuth;
use super::passfile;
use super::peer::PeerRule;
use super::settings::Settings;
use super::tls::Tls;
use crate::environment::Environment;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// How to reach one server.
#[derive(Clone)]
pub(super) struct Connection {
    /// The client library's settings, with the password.
    pub config: Config,
    /// How the connection is encrypted.
    pub tls: Tls,
    /// The ways of authentication that the server may request.
    pub required_auth: RequiredAuth,
    /// "HOST:PORT", without a password.
    pub place: String,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Why a password file was ignored.
    pub passfile_ignored: Option<String>,
    /// The process that must listen on a socket of the file system, and the user as which this program connects to it.
    pub peer: PeerRule,
}

/// Settings of libpq without effect in this program.
const WITHOUT_EFFECT: [&str; 8] = [
    "client_encoding",
    "fallback_application_name",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "sslcompression",
    "sslsni",
    "connect_timeout",
];

/// The directories of the socket in Debian's packages and in builds from source.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];
const PORT: u16 = 5432;
/// This program's name in the server's own views.
const APPLICATION: &str = "headroom";

impl Connection {
    /// Parses the connection string, and fills in the settings that it omits.
    pub fn parse(text: &str, environment: Environment) -> Result<Connection, String> {
        let mut settings = Settings::parse(text)?;
        settings.complete(environment)?;
        let home = environment("HOME").map(PathBuf::from);
        let passfile = settings.take("passfile").map(PathBuf::from);
        let required_peer = settings.take("requirepeer").filter(|name| !name.is_empty());
        let required_auth = RequiredAuth::parse(&settings.take("require_auth").unwrap_or_default())?;
        WITHOUT_EFFECT.iter().for_each(|name| drop(settings.take(name)));
        settings.set("application_name", APPLICATION);
        if settings.get("port").is_none() {
            settings.set("port", &PORT.to_string());
        }
        if settings.get("host").is_none() && settings.get("hostaddr").is_none() {
            settings.set("host", &default_socket_directory(settings.get("port")));
        }
        // The name that a certificate must have.
        if let (None, Some(address)) = (settings.get("host"), settings.get("hostaddr")) {
            let address = address.to_owned();
            settings.set("host", &address);
        }
        let tls = Tls::take(&mut settings, home.as_deref())?;
        if settings.get("user").is_none() {
            let user = environment("USER").or_else(|| environment("LOGNAME"));
            settings.set("user", &user.ok_or("no user is given, and USER is not set")?);
        }
        let user = settings.get("user").unwrap_or_default().to_owned();
        if settings.get("dbname").is_none() {
            settings.set("dbname", &user);
        }
        let database = settings.get("dbname").unwrap_or_default().to_owned();
        // The client library's error may repeat a value.
        let mut config: Config = settings.to_text().parse().map_err(|_| settings.complaint())?;
        let host = first_host(&config);
        let port = config.get_ports().first().copied().unwrap_or(PORT);
        let is_socket = matches!(config.get_hosts(), [Host::Unix(_)]);
        let peer = PeerRule::new(required_peer, &user, is_socket)?;
        let mut passfile_ignored = None;
        if peer.connects_as.is_some() {
            // The server knows the user by the kernel (peer). A program that only looks like a server gets no password.
            settings.take("password");
            config = settings.to_text().parse().map_err(|_| settings.complaint())?;
        } else if config.get_password().is_none() {
            let file = passfile.or_else(|| home.map(|home| home.join(".pgpass")));
            let is_default = SOCKET_DIRECTORIES.contains(&host.as_str());
            let server = passfile::Server {
                host: if is_default { "localhost" } else { &host },
                port,
                database: &database,
                user: &user,
            };
            match file.map(|file| passfile::password(&file, &server)) {
                Some(Ok(Some(password))) => drop(config.password(password)),
                Some(Err(why)) => passfile_ignored = Some(why),
                _ => {}
            }
        }
        Ok(Connection {
            config,
            tls,
            required_auth,
            place: format!("{host}:{port}"),
            user,
            database,
            passfile_ignored,
            peer,
        })
    }
}

/// The connection string without its password, as it may be printed; of a malformed one, nothing.
pub(super) fn redacted(text: &str) -> String {
    match Settings::parse(text) {
        Ok(settings) if settings.has_good_ports() => settings.without_secrets(),
        _ => "(a connection string that cannot be read)".into(),
    }
}

fn first_host(config: &Config) -> String {
    match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(directory)) => directory.to_string_lossy().into_owned(),
        None => config.get_hostaddrs().first().map_or_else(String::new, ToString::to_string),
    }
}

/// The directory that has a server's socket, else the first.
fn default_socket_directory(port: Option<&str>) -> String {
    let socket = format!(".s.PGSQL.{}", port.unwrap_or_default());
    let with_socket = SOCKET_DIRECTORIES.iter().find(|dir| Path::new(dir).join(&socket).exists());
    (*with_socket.unwrap_or(&SOCKET_DIRECTORIES[0])).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn nothing(_: &str) -> Option<String> {
        None
    }

    fn with<'a>(pairs: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    fn place(text: &str, pairs: &[(&str, &str)]) -> (String, String, String) {
        let connection = Connection::parse(text, &with(pairs)).unwrap();
        (connection.place, connection.user, connection.database)
    }

    fn three(place: &str, user: &str, database: &str) -> (String, String, String) {
        (place.into(), user.into(), database.into())
    }

    #[test]
    fn a_url_and_key_value_pairs_say_the_same() {
        let both = three("db.example:5433", "ann", "shop");
        assert_eq!(place("postgres://ann:secret@db.example:5433/shop", &[]), both);
        assert_eq!(place("host=db.example port=5433 user=ann dbname=shop password='sec ret'", &[]), both);
        assert_eq!(
            place("postgresql://ann@/shop?host=/run/pg&port=6", &[]),
            three("/run/pg:6", "ann", "shop")
        );
        assert_eq!(place("postgres://ann@[::1]:7/a%20b", &[]), three("::1:7", "ann", "a b"));
    }

    #[test]
    fn the_environment_fills_in_what_the_string_does_not_set() {
        let environment = [("PGHOST", "other"), ("PGPORT", "6"), ("PGUSER", "env"), ("USER", "me")];
        assert_eq!(place("", &environment), three("other:6", "env", "env"));
        assert_eq!(place("host=given dbname=x", &environment), three("given:6", "env", "x"));
        assert_eq!(place("host=h", &[("USER", "me")]), three("h:5432", "me", "me"));
    }

    #[test]
    fn a_service_overrides_the_environment_and_the_string_overrides_both() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("services");
        fs::write(&file, "# ours\n[other]\nhost=no\n[shop]\nhost=10.0.0.7\nuser = svc\ndbname=shop\n")
            .unwrap();
        let file = file.to_str().unwrap();
        let environment = [("PGSERVICEFILE", file), ("PGUSER", "env"), ("PGPORT", "6")];
        assert_eq!(place("service=shop user=me", &environment), three("10.0.0.7:6", "me", "shop"));
        let by_name = [("PGSERVICEFILE", file), ("PGSERVICE", "shop")];
        assert_eq!(place("", &by_name), three("10.0.0.7:5432", "svc", "shop"));
        let missing = Connection::parse("service=none", &with(&environment)).err().unwrap();
        assert!(missing.contains("none") && missing.contains(file), "{missing}");
    }

    #[test]
    fn a_password_file_counts_only_when_it_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pass");
        fs::write(&file, "# comment\nother:*:*:*:wrong\nh:5432:shop:ann:s\\:e\\\\c\nh:*:*:*:late\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let environment = [("PGPASSFILE", file.to_str().unwrap()), ("USER", "ann")];
        let password = |text: &str| {
            let connection = Connection::parse(text, &with(&environment)).unwrap();
            connection.config.get_password().map(<[u8]>::to_vec)
        };
        assert_eq!(password("host=h dbname=shop").as_deref(), Some(b"s:e\\c".as_slice()));
        assert_eq!(password("host=h dbname=x").as_deref(), Some(b"late".as_slice()));
        assert_eq!(password("host=h password=mine").as_deref(), Some(b"mine".as_slice()));
        assert_eq!(password("host=elsewhere"), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(password("host=h dbname=shop"), None);
        let ignored = Connection::parse("host=h", &with(&environment)).unwrap().passfile_ignored.unwrap();
        assert!(ignored.contains("0600"), "{ignored}");
    }

    #[test]
    fn no_password_is_ever_repeated() {
        let wrong = [
            "postgres://ann:hunter2hunter@2@host/shop?bad=hunter2",
            "postgres://ann:hun/ter2hunter2@host/shop",
            "postgres://ann:12/hunter2@host/shop",
            "password='hunter2",
            "password=hunter2 port=hunter2",
            "password=hunter2 hunter2=1",
            "hunter2",
            "postgres://ann:hunter2%zz@host/",
            "host=h sslmode=hunter2",
            "host=h require_auth=hunter2",
            "postgres://ann:hunter2@h/?sslmode=require",
        ];
        for text in wrong {
            let parsed = Connection::parse(text, &with(&[("USER", "me")]));
            let shown = match parsed {
                Ok(connection) => format!("{} {} {}", connection.place, connection.database, redacted(text)),
                Err(error) => format!("{error} {}", redacted(text)),
            };
            assert!(!shown.contains("hun"), "{text}: {shown}");
        }
        let shown = redacted("postgres://ann:hunter2@db:5433/shop");
        assert!(!shown.contains("hunter2") && shown.contains("db") && shown.contains("ann"), "{shown}");
    }

    #[test]
    fn every_setting_of_tls_is_followed_or_refused() {
        use tokio_postgres::config::SslMode;
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap();
        let environment = [("HOME", home)];
        let tries = |text: &str| {
            let parsed = Connection::parse(&format!("user=u {text}"), &with(&environment));
            parsed.map(|connection| connection.tls.tries)
        };
        let refused = |text: &str| tries(text).err().unwrap_or_else(|| panic!("{text} is not refused"));
        assert_eq!(tries("host=h"), Ok([SslMode::Prefer, SslMode::Disable].as_slice()));
        assert_eq!(tries("host=h sslmode=allow"), Ok([SslMode::Disable, SslMode::Require].as_slice()));
        assert_eq!(tries("host=h sslmode=require"), Ok([SslMode::Require].as_slice()));
        assert_eq!(tries("host=/run/pg sslmode=verify-full"), Ok([SslMode::Disable].as_slice()), "a socket");
        assert_eq!(tries("hostaddr=10.0.0.7 sslmode=require"), Ok([SslMode::Require].as_slice()));
        let nobody = refused("host=h sslmode=verify-ca");
        assert!(nobody.contains("root.crt") && nobody.contains("sslrootcert=system"), "{nobody}");
        assert!(refused("host=h sslmode=verify-ca sslrootcert=/none.crt").contains("/none.crt"));
        let weak = refused("host=h sslmode=require sslrootcert=system");
        assert!(weak.contains("verify-full"), "{weak}");
        assert!(refused("host=h sslcrl=/x").contains("revoked"));
        fs::create_dir(directory.path().join(".postgresql")).unwrap();
        let root = directory.path().join(".postgresql/root.crt");
        fs::write(&root, "nothing of the kind").unwrap();
        let unreadable = refused("host=h");
        assert!(unreadable.contains("root.crt"), "one that is there counts in every mode: {unreadable}");
        assert_eq!(tries("host=h sslmode=disable"), Ok([SslMode::Disable].as_slice()));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        fs::write(&key, "").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        let text = format!("host=h user=u sslcert=/c sslkey={}", key.display());
        let refused = Connection::parse(&text, &nothing).err().unwrap();
        assert!(refused.contains("chmod 600"), "{refused}");
        let alone = Connection::parse("host=h user=u sslcert=/c", &nothing).err().unwrap();
        assert!(alone.contains("sslkey"), "{alone}");
    }
}
