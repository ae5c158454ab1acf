//! The settings of a connection string, which is a URL or name=value pairs.

use crate::connection_text::percent_decode;
use crate::environment::Environment;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::path::PathBuf;

/// Bytes of a service file that are read.
const SERVICES_BYTES_MAX: u64 = 1 << 20;

/// Values by name.
#[derive(Default)]
pub(super) struct Settings(BTreeMap<String, String>);

/// The variables of libpq that are used, and their settings.
const VARIABLES: [(&str, &str); 19] = [
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGDATABASE", "dbname"),
    ("PGUSER", "user"),
    ("PGREQUIREPEER", "requirepeer"),
    ("PGREQUIREAUTH", "require_auth"),
    ("PGPASSWORD", "password"),
    ("PGPASSFILE", "passfile"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGSSLCRL", "sslcrl"),
    ("PGSSLCRLDIR", "sslcrldir"),
    ("PGSSLNEGOTIATION", "sslnegotiation"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGOPTIONS", "options"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
];

/// Settings that may be printed. An unknown setting may be a mistyped secret.
const NO_SECRETS: [&str; 7] = ["dbname", "host", "hostaddr", "port", "requirepeer", "service", "user"];

/// Other settings that are no secrets. Any other name may be a mistyped `password`.
const HARMLESS: [&str; 12] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "options",
    "passfile",
    "require_auth",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
];

impl Settings {
    /// Parses either form, or an empty text.
    pub fn parse(text: &str) -> Result<Settings, String> {
        let text = text.trim();
        match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
            Some(rest) => Settings::from_url(rest),
            None => Settings::from_pairs(text),
        }
    }

    /// `name=value name = 'a \'quoted\' value'`
    fn from_pairs(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=').ok_or("a setting has no '=': give name=value")?;
            let name = name.trim_end();
            let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            if name.is_empty() || !plain {
                return Err("the name of a setting is not of small letters: give name=value".into());
            }
            let (value, after) = parse_value(after.trim_start())?;
            settings.set(name, &value);
            rest = after.trim_start();
        }
        Ok(settings)
    }

    /// `[user[:password]@][host[:port][,...]][/dbname][?name=value&...]`
    fn from_url(rest: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        // A slash in a password would end it, and the rest of it would be the database.
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        if database.contains('@') {
            return Err("an '@' after the first '/': write / as %2F and @ as %40 in a password".into());
        }
        let hosts = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => {
                let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
                settings.set_encoded("user", user)?;
                settings.set_encoded("password", password)?;
                hosts
            }
            None => authority,
        };
        settings.set_encoded("dbname", database)?;
        let mut ports = Vec::new();
        let mut names = Vec::new();
        for host in hosts.split(',').filter(|host| !host.is_empty()) {
            let end = host.rfind(']').map_or(0, |bracket| bracket + 1);
            let (name, port) = match host[end..].find(':') {
                Some(colon) => (&host[..end + colon], &host[end + colon + 1..]),
                None => (host, ""),
            };
            names.push(name.trim_start_matches('[').trim_end_matches(']'));
            ports.push(port);
        }
        settings.set_encoded("host", &names.join(","))?;
        if ports.iter().any(|port| !port.is_empty()) {
            settings.set_encoded("port", &ports.join(","))?;
        }
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or("a parameter of the URL has no '='")?;
            settings.set_encoded(name, value)?;
        }
        Ok(settings)
    }

    /// Fills in the settings that are not set, from the service file and the environment.
    pub fn complete(&mut self, environment: Environment) -> Result<(), String> {
        if let Some(service) = self.take("service").or_else(|| environment("PGSERVICE")) {
            for (name, value) in service_settings(&service, environment)?.0 {
                self.0.entry(name).or_insert(value);
            }
        }
        for (variable, name) in VARIABLES {
            if let (None, Some(value)) = (self.get(name), environment(variable)) {
                self.set(name, &value);
            }
        }
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    pub fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    fn set_encoded(&mut self, name: &str, value: &str) -> Result<(), String> {
        if !value.is_empty() {
            self.set(name, &percent_decode(value)?);
        }
        Ok(())
    }

    /// As name='value' pairs.
    pub fn to_text(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (name, value)| {
            let quoted =
                match value.is_empty() || value.contains(['\\', '\'']) || value.contains(char::is_whitespace)
                {
                    true => format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'")),
                    false => value.clone(),
                };
            let _ = write!(text, "{}{name}={quoted}", if text.is_empty() { "" } else { " " });
            text
        })
    }

    /// As text, without passwords and possible passwords.
    pub fn without_secrets(&self) -> String {
        let shown = self.0.iter().filter(|(name, _)| NO_SECRETS.contains(&name.as_str()));
        Settings(shown.map(|(name, value)| (name.clone(), value.clone())).collect()).to_text()
    }

    /// Whether any setting is, or may be, a secret.
    pub fn may_hold_secrets(&self) -> bool {
        let harmless = |name: &str| NO_SECRETS.contains(&name) || HARMLESS.contains(&name);
        !self.has_good_ports() || !self.0.keys().all(|name| harmless(name))
    }

    /// Whether all ports are numbers; otherwise they may be a piece of a password.
    pub fn has_good_ports(&self) -> bool {
        self.get("port").is_none_or(|ports| ports.split(',').all(|port| port.parse::<u16>().is_ok()))
    }

    /// The defect of the settings, without their values.
    pub fn complaint(&self) -> String {
        if !self.has_good_ports() {
            return "the port is not a number from 1 to 65535".into();
        }
        // The name is not repeated: it may be a piece of a password.
        "a setting is unknown, or has a value it cannot have".into()
    }
}

/// Parses a value, quoted or up to the next blank; returns it and the rest.
fn parse_value(text: &str) -> Result<(String, &str), String> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut letters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            _ if !quoted && letter.is_whitespace() => return Ok((value, &text[at..])),
            _ => value.push(letter),
        }
    }
    if quoted { Err("a quote is not closed".into()) } else { Ok((value, "")) }
}

/// A section of pg_service.conf: the user's file, then the system's.
fn service_settings(service: &str, environment: Environment) -> Result<Settings, String> {
    let own = environment("PGSERVICEFILE")
        .map(PathBuf::from)
        .or_else(|| environment("HOME").map(|home| PathBuf::from(home).join(".pg_service.conf")));
    let system = environment("PGSYSCONFDIR").unwrap_or_else(|| "/etc/postgresql-common".into());
    let files = [own, Some(PathBuf::from(system).join("pg_service.conf"))];
    for file in files.iter().flatten() {
        let mut text = String::new();
        let read = host::open_regular_file(file)
            .and_then(|file| file.take(SERVICES_BYTES_MAX).read_to_string(&mut text));
        if read.is_err() {
            continue;
        }
        let mut lines = text.lines().map(str::trim);
        if lines.any(|line| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(service)) {
            let section = lines.take_while(|line| !line.starts_with('['));
            let pairs = section.filter(|line| !line.is_empty() && !line.starts_with('#'));
            let pairs = pairs.filter_map(|line| line.split_once('='));
            return Ok(Settings(
                pairs.map(|(name, value)| (name.trim().into(), value.trim().into())).collect(),
            ));
        }
    }
    let paths: Vec<_> = files.iter().flatten().map(|file| file.display().to_string()).collect();
    Err(format!("no service '{service}' in {}", paths.join(" or ")))
}
