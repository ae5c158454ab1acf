//! /etc/headroom/agent.toml: what the arguments say, in a file. Arguments go before it; lists are added up.

use super::AgentArgs;
use super::identity;
use super::listen::{self, Listen};
use crate::private_file::others_can_read;
use crate::pushing::{self, PushArgs};
use filestats::ServiceLevel;
use metrics::Identity;
use notify::Receiver;
use push::Destination;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;
use terminal::{Failure, SourceName, text_file};
use workload_file::values;

/// Read where no other file is named; it need not exist.
pub const DEFAULT_PATH: &str = "/etc/headroom/agent.toml";

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    sources: Vec<String>,
    record_only: bool,
    reserve: Option<String>,
    listen: Option<String>,
    web_config: Option<PathBuf>,
    bearer_token_file: Option<PathBuf>,
    host_name: Vec<String>,
    listen_without_authentication: bool,
    every: Option<String>,
    window: Option<String>,
    open_after: Option<String>,
    close_after: Option<String>,
    service_level: Option<String>,
    alertmanager: Vec<String>,
    webhook: Vec<String>,
    on_incident: Vec<PathBuf>,
    instance: Option<String>,
    labels: BTreeMap<String, String>,
    remote_write: Vec<String>,
    otlp: Vec<String>,
    push_auth: Option<PathBuf>,
    push_every: Option<String>,
}

/// Configuration of the agent, by its arguments and its file.
#[derive(Clone)]
pub struct Config {
    /// Empty: those that are found on this host.
    pub sources: Vec<SourceName>,
    /// Counters are recorded, nothing is judged.
    pub record_only: bool,
    /// Free space of the history's file system that a recording does not use, bytes.
    pub reserve_bytes: u64,
    pub listen: Listen,
    pub access: serve::Settings,
    pub settings: agent::Settings,
    pub receivers: Vec<Receiver>,
    /// The names by which servers know this host.
    pub identity: Identity,
    pub destinations: Vec<Destination>,
    pub push_every: Duration,
}

/// Moments are a second long.
const EVERY_MIN: Duration = Duration::from_secs(1);
const WINDOW_MIN: Duration = Duration::from_secs(10);
/// Each moment of each file is in memory.
const WINDOW_MAX: Duration = Duration::from_secs(600);
/// Judgements that may be missing before it is a gap.
const GAP_JUDGEMENTS: u32 = 3;
const EVERY: Duration = Duration::from_secs(5);
const RECORD_EVERY: Duration = Duration::from_secs(15);
const RESERVE_BYTES: u64 = 256 << 20;
const WINDOW: Duration = Duration::from_secs(60);
const PUSH_EVERY: Duration = Duration::from_secs(15);
const SOURCES_MAX: usize = 200;

impl Config {
    /// By the arguments and the file that they name, or the one at [`DEFAULT_PATH`].
    pub fn read(args: &AgentArgs) -> Result<Config, Failure> {
        let named = args.config.as_deref();
        let path = named.unwrap_or(Path::new(DEFAULT_PATH));
        let mut written = match named {
            None if !path.exists() => Written::default(),
            _ => parse(path)?,
        };
        let wrong = |key: &str, why: &dyn Display| {
            Failure::usage(format_args!("{} has a wrong {key}: {why}", path.display()))
        };
        let time = |key: &str, given: Option<Duration>, text: &Option<String>, otherwise: Duration| match text
        {
            Some(text) if given.is_none() => values::some_time(text).map_err(|why| wrong(key, &why)),
            _ => Ok(given.unwrap_or(otherwise)),
        };
        let defaults = incidents::Settings::default();
        let record_only = args.record_only || written.record_only;
        let every =
            time("every", args.every, &written.every, if record_only { RECORD_EVERY } else { EVERY })?;
        let reserve_bytes = match (args.reserve, &written.reserve) {
            (None, Some(text)) => values::some_bytes(text).map_err(|why| wrong("reserve", &why))?,
            (given, _) => given.unwrap_or(RESERVE_BYTES),
        };
        let settings = agent::Settings {
            every,
            window: time("window", args.window, &written.window, WINDOW)?,
            duration: args.duration,
            service_level: match (args.service_level, &written.service_level) {
                (None, Some(text)) => text.parse().map_err(|why| wrong("service-level", &why))?,
                (given, _) => given.unwrap_or(ServiceLevel::OLTP),
            },
            incidents: incidents::Settings {
                open_after: time("open-after", args.open_after, &written.open_after, defaults.open_after)?,
                close_after: time(
                    "close-after",
                    args.close_after,
                    &written.close_after,
                    defaults.close_after,
                )?,
                gap_after: every.saturating_mul(GAP_JUDGEMENTS).max(defaults.gap_after),
            },
        };
        check(&settings, record_only)?;
        let listen = match (args.listen, &written.listen) {
            (None, Some(text)) => listen::parse(text).map_err(|why| wrong("listen", &why))?,
            (given, _) => given.unwrap_or_default(),
        };
        let mut sources = args.source.clone();
        for text in &written.sources {
            sources.push(collect::parse_source(text).map_err(|why| wrong("source", &why))?);
        }
        check_sources(&sources, record_only)?;
        let of_file = &sources[args.source.len()..];
        if of_file.iter().any(|source| source.exposed_password.is_some()) && others_can_read(path) {
            let file = path.display();
            return Err(Failure::new(format_args!("{file} holds a password and others may read it"))
                .with_remedy(format_args!("chmod 600 {file}")));
        }
        let mut receivers =
            super::notifications::receivers(&args.alertmanager, &args.webhook, &args.on_incident)?;
        receivers.extend(super::notifications::receivers(
            &written.alertmanager,
            &written.webhook,
            &written.on_incident,
        )?);
        let push_every = time("push-every", args.push_every, &written.push_every, PUSH_EVERY)?;
        if push_every < EVERY_MIN {
            return Err(Failure::usage("--push-every is at least 1s"));
        }
        let access = access(args.access.settings(), &mut written);
        let identity = identity::new(args, written.instance.take(), std::mem::take(&mut written.labels))?;
        let destinations = destinations(&args.push, written)?;
        Ok(Config {
            sources,
            record_only,
            reserve_bytes,
            listen,
            access,
            settings,
            receivers,
            identity,
            destinations,
            push_every,
        })
    }
}

/// Access settings: those that the arguments leave out are as in the file.
fn access(given: serve::Settings, written: &mut Written) -> serve::Settings {
    serve::Settings {
        web_config: given.web_config.or(written.web_config.take()),
        bearer_token_file: given.bearer_token_file.or(written.bearer_token_file.take()),
        host_names: [given.host_names, std::mem::take(&mut written.host_name)].concat(),
        without_authentication: given.without_authentication || written.listen_without_authentication,
    }
}

/// Where to push to, by the arguments and by the file.
fn destinations(given: &PushArgs, written: Written) -> Result<Vec<Destination>, Failure> {
    pushing::destinations(&PushArgs {
        remote_write: [given.remote_write.clone(), written.remote_write].concat(),
        otlp: [given.otlp.clone(), written.otlp].concat(),
        push_auth: given.push_auth.clone().or(written.push_auth),
    })
}

fn parse(path: &Path) -> Result<Written, Failure> {
    let text =
        text_file::read(path, "configuration", "a TOML file whose keys are the options of headroom agent")?;
    toml::from_str(&text).map_err(|error| {
        let why = error.message();
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Failure::usage(format_args!("{} line {line}: {why}", path.display())).with_remedy(
            "the keys are the options of headroom agent; headroom agent --check-config checks the file",
        )
    })
}

fn check(settings: &agent::Settings, record_only: bool) -> Result<(), Failure> {
    if settings.every < EVERY_MIN {
        return Err(Failure::usage("--every is at least 1s"));
    }
    if record_only {
        return Ok(());
    }
    let window = settings.window;
    if window < WINDOW_MIN || window > WINDOW_MAX || window < settings.every {
        return Err(Failure::usage("--window is 10s to 10m, and no shorter than --every"));
    }
    Ok(())
}

fn check_sources(sources: &[SourceName], record_only: bool) -> Result<(), Failure> {
    if record_only && sources.is_empty() {
        return Err(Failure::usage("--record-only needs the sources to record")
            .with_remedy("--source postgres: --source devices:, or sources = [...] in the configuration"));
    }
    if sources.len() > SOURCES_MAX {
        return Err(Failure::usage(format_args!("{} sources: give up to {SOURCES_MAX}", sources.len())));
    }
    let devices = sources.iter().find(|source| source.counts_only_devices && !record_only);
    if let Some(devices) = devices {
        return Err(Failure::usage(format_args!("{devices} has no files that anybody waits for"))
            .with_remedy(
                "give whose files: postgres:, process:, sqlite:PATH...; --record-only takes devices:",
            ));
    }
    let mut names: Vec<String> = sources.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Failure::usage(format_args!("{} is given twice", twice[0]))),
        None => Ok(()),
    }
}
