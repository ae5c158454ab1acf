//! The web configuration file of Prometheus' exporter-toolkit: TLS, and users with the hashes of their passwords.
//!
//! ```yaml
//! tls_server_config:
//!   cert_file: server.crt                           # names of files are relative to this file
//!   key_file: server.key
//!   client_auth_type: RequireAndVerifyClientCert    # NoClientCert, VerifyClientCertIfGiven
//!   client_ca_file: clients.crt
//!   min_version: TLS13                              # TLS12; max_version too
//! basic_auth_users:
//!   prometheus: $2y$10$...                          # htpasswd -nBC 10 prometheus
//! ```
//!
//! Keys that it does not know are refused by their name: a setting that is ignored would be taken for protection.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use yaml_rust2::{Yaml, YamlLoader};

/// A hash of cost 15 takes about two seconds, and a client waits ten; there is none below 4.
const COSTS: RangeInclusive<u32> = 4..=15;

/// The file, with names of files as they are written in it.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WebConfig {
    #[serde(rename = "tls_server_config")]
    pub tls: Option<TlsServer>,
    /// The bcrypt hash of each user's password.
    #[serde(rename = "basic_auth_users")]
    pub users: BTreeMap<String, String>,
}

/// How connections are encrypted, and which certificates clients need.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsServer {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    #[serde(default)]
    pub client_auth_type: ClientAuth,
    pub client_ca_file: Option<PathBuf>,
    #[serde(default = "tls_1_2")]
    pub min_version: TlsVersion,
    #[serde(default = "tls_1_3")]
    pub max_version: TlsVersion,
}

/// Whether a client needs a certificate. Go knows two more types, which ask for a certificate and check nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum ClientAuth {
    #[default]
    NoClientCert,
    VerifyClientCertIfGiven,
    RequireAndVerifyClientCert,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum TlsVersion {
    #[serde(rename = "TLS12")]
    Tls12,
    #[serde(rename = "TLS13")]
    Tls13,
}

fn tls_1_2() -> TlsVersion {
    TlsVersion::Tls12
}

fn tls_1_3() -> TlsVersion {
    TlsVersion::Tls13
}

impl WebConfig {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The defect, without a password's hash.
    pub fn parse(text: &str) -> Result<WebConfig, String> {
        let documents = YamlLoader::load_from_str(text).map_err(|error| error.to_string())?;
        let document = match <[Yaml; 1]>::try_from(documents) {
            Ok([document]) => to_json(document)?,
            Err(documents) if documents.is_empty() => Value::Null,
            Err(_) => return Err("it has more than one document".into()),
        };
        let document = if document.is_null() { Value::Object(Map::new()) } else { document };
        // A hash of the wrong type would be in serde's message.
        check_users_are_text(&document)?;
        let config: WebConfig = serde_json::from_value(document).map_err(|error| error.to_string())?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        if let Some(tls) = &self.tls {
            let needs_authority = tls.client_auth_type != ClientAuth::NoClientCert;
            match &tls.client_ca_file {
                None if needs_authority => return Err("client_auth_type needs a client_ca_file".into()),
                Some(_) if !needs_authority => {
                    return Err("client_ca_file needs a client_auth_type other than NoClientCert".into());
                }
                _ => {}
            }
            if tls.min_version > tls.max_version {
                return Err("min_version is above max_version".into());
            }
        }
        for (user, hash) in &self.users {
            let parts: bcrypt::HashParts = hash.parse().map_err(|_| {
                format!("the password of {user} is not a bcrypt hash (htpasswd -nBC 10 {user})")
            })?;
            let cost = parts.get_cost();
            if !COSTS.contains(&cost) {
                let (least, most) = COSTS.into_inner();
                return Err(format!("the hash of {user} has cost {cost}: give {least} to {most}"));
            }
        }
        Ok(())
    }
}

fn check_users_are_text(document: &Value) -> Result<(), String> {
    let Some(users) = document.get("basic_auth_users").and_then(Value::as_object) else { return Ok(()) };
    match users.iter().find(|(_, hash)| !hash.is_string()) {
        Some((user, _)) => {
            Err(format!("the password of {user} is not a bcrypt hash (htpasswd -nBC 10 {user})"))
        }
        None => Ok(()),
    }
}

/// A key without a value is left out.
fn to_json(yaml: Yaml) -> Result<Value, String> {
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Boolean(is) => is.into(),
        Yaml::Integer(number) => number.into(),
        Yaml::Real(text) | Yaml::String(text) => text.into(),
        Yaml::Array(items) => items.into_iter().map(to_json).collect::<Result<_, _>>()?,
        Yaml::Hash(entries) => {
            let mut object = Map::new();
            for (key, value) in entries {
                let key = match key {
                    Yaml::String(text) | Yaml::Real(text) => text,
                    Yaml::Integer(number) => number.to_string(),
                    _ => return Err("a key is not text".into()),
                };
                let value = to_json(value)?;
                if !value.is_null() {
                    object.insert(key, value);
                }
            }
            Value::Object(object)
        }
        Yaml::Alias(_) | Yaml::BadValue => return Err("an alias has no anchor".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2b$04$EGdrhbKUv8Oc9vGiXX0HQOxSg445d458Muh7DAHskb6QbtCvdxcie";

    #[test]
    fn a_file_as_in_the_manual_of_exporter_toolkit_is_read() {
        let text = format!(
            "# comment\ntls_server_config:\n  cert_file: server.crt\n  key_file: /etc/key\n  \
             client_auth_type: \"RequireAndVerifyClientCert\"\n  client_ca_file: ca.crt\n  min_version: TLS13\n\
             basic_auth_users:\n  alice: {HASH}\n  42: '{HASH}'\n"
        );
        let config = WebConfig::parse(&text).unwrap();
        let tls = config.tls.unwrap();
        assert_eq!((tls.cert_file, tls.key_file), ("server.crt".into(), "/etc/key".into()));
        assert_eq!(tls.client_auth_type, ClientAuth::RequireAndVerifyClientCert);
        assert_eq!(tls.client_ca_file, Some("ca.crt".into()));
        assert_eq!((tls.min_version, tls.max_version), (TlsVersion::Tls13, TlsVersion::Tls13));
        assert_eq!(config.users.into_keys().collect::<Vec<_>>(), ["42", "alice"]);
        let defaults =
            WebConfig::parse("tls_server_config: {cert_file: a, key_file: b}").unwrap().tls.unwrap();
        assert_eq!(defaults.client_auth_type, ClientAuth::NoClientCert);
        assert_eq!((defaults.min_version, defaults.max_version), (TlsVersion::Tls12, TlsVersion::Tls13));
    }

    #[test]
    fn an_empty_file_protects_nothing_and_is_no_error() {
        for text in ["", "# nothing\n", "basic_auth_users:\n", "{}"] {
            assert_eq!(WebConfig::parse(text), Ok(WebConfig::default()), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_by_its_name() {
        let tls = |more: &str| format!("tls_server_config:\n  cert_file: a\n  key_file: b\n  {more}\n");
        let cases = [
            ("basic_auth_user: {}".to_owned(), "unknown field `basic_auth_user`"),
            ("http_server_config: {http2: true}".into(), "unknown field `http_server_config`"),
            (tls("cipher_suites: [TLS_AES_128_GCM_SHA256]"), "unknown field `cipher_suites`"),
            (tls("min_version: TLS10"), "unknown variant `TLS10`, expected `TLS12` or `TLS13`"),
            (tls("client_auth_type: RequestClientCert"), "unknown variant `RequestClientCert`"),
            (tls("client_auth_type: RequireAndVerifyClientCert"), "needs a client_ca_file"),
            (tls("client_ca_file: ca.crt"), "needs a client_auth_type"),
            (tls("min_version: TLS13\n  max_version: TLS12"), "min_version is above"),
            ("tls_server_config: {cert_file: a}".into(), "missing field `key_file`"),
            ("basic_auth_users: {alice: sesame}".into(), "the password of alice is not a bcrypt hash"),
            ("basic_auth_users: {alice: 7}".into(), "the password of alice is not a bcrypt hash"),
            (format!("basic_auth_users: {{a: {HASH}, a: {HASH}}}"), "duplicated key"),
            (format!("basic_auth_users: {{a: {}}}", HASH.replace("$04$", "$31$")), "cost 31"),
            ("a: 1\n---\nb: 1\n".into(), "more than one document"),
            ("a: [".into(), "line"),
        ];
        for (text, expected) in cases {
            let error = WebConfig::parse(&text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("sesame") && !error.contains(HASH), "{error}");
        }
    }
}
