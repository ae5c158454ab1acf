//! `--remote-write` and `--otlp`: where figures are pushed to, and with what credentials.

use crate::private_file::{entries, others_can_read};
use crate::service_log::log;
use metrics::{AgentState, Identity};
use push::{Credential, Destination, Protocol, Pushing};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use terminal::{Failure, text_file};

/// Where to push to.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PushArgs {
    /// Push to a Prometheus remote-write receiver, as in http://prometheus:9090/api/v1/write
    #[arg(long, value_name = "URL")]
    pub remote_write: Vec<String>,
    /// Push to an OTLP/HTTP receiver, as in http://collector:4318/v1/metrics
    #[arg(long, value_name = "URL")]
    pub otlp: Vec<String>,
    /// A file with the credentials, a line each: remote-write bearer TOKEN, otlp basic USER:PASSWORD
    #[arg(long, value_name = "FILE")]
    pub push_auth: Option<PathBuf>,
}

/// Destinations by the arguments, the file of credentials and the environment together.
pub fn destinations(args: &PushArgs) -> Result<Vec<Destination>, Failure> {
    let of_file = args.push_auth.as_deref().map(read_credentials).transpose()?.unwrap_or_default();
    let mut found = Vec::new();
    for (protocol, urls) in [(Protocol::RemoteWrite, &args.remote_write), (Protocol::Otlp, &args.otlp)] {
        for url in urls {
            let in_file = of_file.iter().find(|(of, _)| *of == protocol).map(|(_, each)| each.clone());
            let credential = match in_file {
                Some(credential) => Some(credential),
                None => of_environment(protocol)?,
            };
            let destination = Destination::new(protocol, url, credential);
            found.push(
                destination.map_err(|why| Failure::usage(format_args!("--{}: {why}", protocol.name())))?,
            );
        }
    }
    Ok(found)
}

/// The rest is sent within this time at the end, while systemd and people wait.
pub const END_WITHIN: Duration = Duration::from_secs(2);

/// Pushes to all of them, until they are finished.
pub fn start(
    destinations: Vec<Destination>,
    figures: &Arc<Mutex<AgentState>>,
    every: Duration,
    identity: &Identity,
) -> Result<Vec<Pushing>, Failure> {
    let start = |to: Destination| {
        let name = to.to_string();
        if to.shows_credential() {
            log(
                4,
                &format!("{name}: the credential goes over http:// and can be read on the way; use https://"),
            );
        }
        let say = move |change: &push::StateChange| {
            log(if change.is_trouble() { 4 } else { 6 }, &format!("{name}: {change}"));
        };
        push::start(to, figures.clone(), every, identity.clone(), say)
            .map_err(|error| Failure::new(format_args!("cannot start to push: {error}")))
    };
    destinations.into_iter().map(start).collect()
}

fn of_environment(protocol: Protocol) -> Result<Option<Credential>, Failure> {
    let variable = protocol.variable();
    let Some(text) = std::env::var(variable).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    let credential = text.parse();
    credential.map(Some).map_err(|why| Failure::usage(format_args!("{variable} holds {why}")))
}

/// A line a protocol: `remote-write bearer TOKEN`, `otlp basic USER:PASSWORD`.
fn read_credentials(path: &Path) -> Result<Vec<(Protocol, Credential)>, Failure> {
    if others_can_read(path) {
        return Err(Failure::new(format_args!(
            "{} holds credentials and others may read it",
            path.display()
        ))
        .with_remedy(format_args!("chmod 600 {}", path.display())));
    }
    let text = text_file::read(
        path,
        "list of credentials",
        "a file with a credential a line, as in otlp bearer TOKEN",
    )?;
    let mut credentials = Vec::new();
    for (at, line) in entries(&text) {
        // The error does not repeat the line, which may hold a credential.
        let wrong = |why: &str| Failure::usage(format_args!("{} line {at}: {why}", path.display()));
        let (name, credential) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let protocol = [Protocol::RemoteWrite, Protocol::Otlp].into_iter().find(|each| each.name() == name);
        let protocol = protocol.ok_or_else(|| wrong("give `remote-write` or `otlp` and its credential"))?;
        let credential = credential.parse().map_err(|why: push::WrongCredential| wrong(&why.to_string()))?;
        credentials.push((protocol, credential));
    }
    Ok(credentials)
}
