use push::{Credential, Endpoint, WrongEndpoint};
use std::fmt;
use std::path::PathBuf;

/// A receiver of notifications.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// An Alertmanager, by its API v2.
    Alertmanager(Endpoint),
    /// A server that takes JSON.
    Webhook(Endpoint),
    /// A program, which reads JSON from its standard input.
    Command(PathBuf),
}

/// Where Alertmanager takes alerts, below its URL.
const ALERTS: &str = "/api/v2/alerts";

impl Receiver {
    /// The environment variable that may hold the credential of an Alertmanager.
    pub const ALERTMANAGER_AUTH: &str = "HEADROOM_ALERTMANAGER_AUTH";
    /// The environment variable that may hold the credential of a webhook.
    pub const WEBHOOK_AUTH: &str = "HEADROOM_WEBHOOK_AUTH";

    /// An Alertmanager by its URL, with or without the path of its API.
    ///
    /// # Errors
    /// No URL of a server, or one with a credential in it.
    pub fn alertmanager(url: &str, credential: Option<Credential>) -> Result<Receiver, WrongEndpoint> {
        let url = match url.trim_end_matches('/') {
            whole if whole.ends_with(ALERTS) => whole.to_owned(),
            base => format!("{base}{ALERTS}"),
        };
        let example = "http://alertmanager:9093";
        Endpoint::new(&url, credential, example, Self::ALERTMANAGER_AUTH).map(Receiver::Alertmanager)
    }

    /// A webhook by its URL.
    ///
    /// # Errors
    /// No URL of a server, or one with a credential in it.
    pub fn webhook(url: &str, credential: Option<Credential>) -> Result<Receiver, WrongEndpoint> {
        let example = "https://hooks.example.com/headroom";
        Endpoint::new(url, credential, example, Self::WEBHOOK_AUTH).map(Receiver::Webhook)
    }

    /// Whether a credential goes unencrypted to another host.
    pub fn shows_credential(&self) -> bool {
        match self {
            Receiver::Alertmanager(to) | Receiver::Webhook(to) => to.shows_credential(),
            Receiver::Command(_) => false,
        }
    }
}

/// The name in messages and in the history, without possible secrets.
impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Receiver::Alertmanager(to) => write!(f, "alertmanager {to}"),
            Receiver::Webhook(to) => write!(f, "webhook {to}"),
            Receiver::Command(program) => write!(f, "command {}", program.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_api_is_added_once_below_any_prefix() {
        let name = |url: &str| Receiver::alertmanager(url, None).unwrap().to_string();
        let whole = "alertmanager http://h:9093/am/api/v2/alerts";
        assert_eq!(name("http://h:9093/am"), whole);
        assert_eq!(name("http://h:9093/am/api/v2/alerts/"), whole);
    }

    #[test]
    fn a_secret_in_a_url_is_refused_or_not_shown() {
        let wrong = Receiver::webhook("https://me:secret@h/", None).unwrap_err().to_string();
        assert!(wrong.contains(Receiver::WEBHOOK_AUTH) && !wrong.contains("secret"), "{wrong}");
        let hidden = Receiver::webhook("https://h/hook?token=secret", None).unwrap().to_string();
        assert_eq!(hidden, "webhook https://h/hook");
        assert!(Receiver::webhook("h:80", None).is_err());
    }
}
