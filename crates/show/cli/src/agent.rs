mod config;
mod identity;
mod listen;
mod notifications;
mod record_only;
mod sources;

use crate::listening::{AccessArgs, Listening};
use crate::pushing::{self, END_WITHIN, PushArgs};
use crate::service_log::log;
use ::agent::{Agent, Event, Keeper};
use config::Config;
use filestats::ServiceLevel;
use history::{History, MovedAside};
use host::privileges::give_up_unneeded;
use listen::Listen;
use metrics::{AgentState, Identity};
use page::{About, Api, Live};
use sources::Sources;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, SourceName, interrupt, kept};
use workload_file::values;

/// Arguments of `headroom agent`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom measure /var/lib/postgresql  once: what the storage can give
  headroom agent                        all databases of this host: http://127.0.0.1:9187/
  headroom agent --source postgres:     this one
  headroom agent --record-only --source postgres: --source devices:
                                        counters for headroom history analyze; no verdicts
  headroom history incidents            what it found

It judges each database on each of its volumes as headroom check --source does, all the time, and \
puts no load on storage. /etc/headroom/agent.toml has the same options as keys.

With --record-only it keeps counters: all captures of the last 7 days, one in 5 minutes of the last 90 \
days, one an hour before.

Exit codes: 0 its time is over, 2 wrong usage, 3 the history cannot be opened for writing, 130 \
ended by Ctrl-C.")]
pub struct AgentArgs {
    /// Sources to judge; several may be given [default: all databases that headroom sources discover finds]
    #[arg(long, value_name = "SOURCE", value_parser = collect::parse_source_argument)]
    source: Vec<SourceName>,
    /// Only record the counters of the sources in the history, for weeks; judge and serve nothing
    #[arg(long, conflicts_with_all = JUDGING)]
    record_only: bool,
    /// With --record-only: keep this much of the history's file system free [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes)]
    reserve: Option<u64>,
    /// Serve the page at http://ADDRESS:PORT/ and metrics at /metrics; none: do not serve [default: 127.0.0.1:9187]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen::parse)]
    listen: Option<Listen>,
    #[command(flatten)]
    access: AccessArgs,
    /// Time between two judgements, or two snapshots with --record-only [default: 5s, 15s]
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    every: Option<Duration>,
    /// Length of the sliding window that is judged [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    window: Option<Duration>,
    /// Open an incident after a bad verdict of this length [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    open_after: Option<Duration>,
    /// Close it after this time without one [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    close_after: Option<Duration>,
    /// Latency objective: oltp, warehouse, or read/write/log milliseconds [default: oltp]
    #[arg(long, value_name = "LEVEL")]
    service_level: Option<ServiceLevel>,
    /// Notify this Alertmanager of incidents, as in http://alertmanager:9093
    #[arg(long, value_name = "URL")]
    alertmanager: Vec<String>,
    /// Post JSON to this URL when an incident opens, changes or closes
    #[arg(long, value_name = "URL")]
    webhook: Vec<String>,
    /// Run this program at the same times, with the JSON on its standard input
    #[arg(long, value_name = "PROGRAM")]
    on_incident: Vec<PathBuf>,
    #[command(flatten)]
    push: PushArgs,
    /// Time between two pushes [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    push_every: Option<Duration>,
    /// The label instance of what is pushed, as in db1 [default: the name of this host]
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// Add this label to all metrics, as in cluster=east
    #[arg(long, value_name = "NAME=VALUE", value_parser = identity::parse_label)]
    label: Vec<(String, String)>,
    /// Read this file instead of /etc/headroom/agent.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the arguments and the file, then exit
    #[arg(long)]
    check_config: bool,
    /// Exit after this time
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    duration: Option<Duration>,
}

/// Options that have no effect with `--record-only`.
const JUDGING: [&str; 12] = [
    "listen",
    "web_config",
    "bearer_token_file",
    "window",
    "open_after",
    "close_after",
    "service_level",
    "alertmanager",
    "webhook",
    "on_incident",
    "remote_write",
    "otlp",
];
/// How often a signal is looked for.
const NAP: Duration = Duration::from_millis(50);

/// `headroom agent`.
pub fn run(args: &AgentArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let mut config = Config::read(args)?;
    let listening = Listening::new(config.listen.address(), config.access.clone())?;
    if args.check_config {
        let sources: Vec<String> = config.sources.iter().map(ToString::to_string).collect();
        out.answer(
            |_| match &sources[..] {
                [] if config.record_only => "the configuration is right".into(),
                [] => "the configuration is right: all databases that are found".into(),
                sources => format!("the configuration is right: {}", sources.join(", ")),
            },
            || serde_json::json!({"sources": sources}),
        );
        return Ok(FINE);
    }
    // Before any other thread begins.
    if let Err(error) = give_up_unneeded() {
        log(4, &format!("privileges that are not needed are kept: {error}"));
    }
    if config.record_only {
        return record_only::run(args, config, history, out);
    }
    let path = begin_history(history)?;
    interrupt::install_for_service();
    let state = Arc::new(Mutex::new(AgentState::default()));
    let live = Arc::new(Live::default());
    let api = Arc::new(Api::new(live.clone(), about(&config.settings), path.clone(), None));
    if let Some(listening) = listening {
        listen::begin(listening, config.listen, state.clone(), api.clone())?;
    }
    let shared = Shared { state, live, api };
    let began = Instant::now();
    let mut tally = Tally::default();
    let mut keeper = Keeper::new(kept::open_to_write(Some(&path))?);
    loop {
        let left = args.duration.map(|all| all.saturating_sub(began.elapsed()));
        let settings = ::agent::Settings { duration: left, ..config.settings };
        keeper = work(Config { settings, ..config.clone() }, &path, keeper, &shared, &mut tally)?;
        if interrupt::requested() || args.duration.is_some_and(|all| began.elapsed() >= all) {
            break;
        }
        config = read_again(args, config);
        // Where its file was taken away, a new one begins.
        if !path.exists() {
            keeper = Keeper::new(kept::open_to_write(Some(&path))?);
        }
    }
    let took_s = began.elapsed().as_secs_f64();
    let Tally { opened, closed } = tally;
    out.answer(
        |_| {
            let path = path.display();
            format!("judged for {took_s:.0} s: {opened} incidents opened, {closed} closed; kept in {path}")
        },
        || serde_json::json!({"elapsed_s": took_s, "opened": opened, "closed": closed}),
    );
    Ok(FINE)
}

/// Checks the history, and moves a damaged one aside: an agent must go on.
fn begin_history(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = kept::path(named)?;
    History::check_may_add(&path)?;
    let (history, aside) = History::open_or_begin_again(&path)?;
    history.check_writable()?;
    if let Some(MovedAside { to, why }) = aside {
        let to = to.display();
        let text = format!(
            "{why}; it was moved to {to}, and a new history begins. What can be read: sqlite3 {to} .recover"
        );
        log(4, &text);
    }
    Ok(path)
}

/// State that is served while the configuration changes.
struct Shared {
    state: Arc<Mutex<AgentState>>,
    live: Arc<Live>,
    api: Arc<Api>,
}

/// The agent, as its page names it.
fn about(settings: &::agent::Settings) -> About {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    About {
        host: host::hostname(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_ns: host::unix_ns(),
        window_ns: ns(settings.window),
        every_ns: ns(settings.every),
        live: true,
    }
}

/// Incidents since the agent was started.
#[derive(Clone, Copy, Default)]
struct Tally {
    opened: u64,
    closed: u64,
}

/// Judges until the time is over, the agent is ended, or its configuration is to be read again.
fn work(
    config: Config,
    path: &Path,
    keeper: Keeper,
    shared: &Shared,
    tally: &mut Tally,
) -> Result<Keeper, Failure> {
    let Config { sources, settings, receivers, identity, destinations, push_every, .. } = config;
    let Shared { state, live, api } = shared;
    begin_again(state, &identity);
    let About { window_ns, every_ns, .. } = about(&settings);
    api.change(window_ns, every_ns);
    let agent = Agent::new(keeper, kept::open(Some(path))?, settings, state.clone(), live.clone())?;
    let notifications = notifications::start(receivers, path, &identity)?;
    let pushing = pushing::start(destinations, state, push_every, &identity)?;
    let mut sources = Sources::new(&sources)?;
    let mut there = || {
        let there = sources.there();
        live.found(sources.databases());
        there
    };
    let keeper = agent.run(&mut there, &stop_flag(), &mut |event| {
        if let Event::Incident { id, event } = &event {
            notifications.send(*id, event);
            match event {
                incidents::Event::Opened(_) | incidents::Event::Recurred(_) => tally.opened += 1,
                incidents::Event::Closed(_) => tally.closed += 1,
                incidents::Event::Changed(_) => {}
            }
        }
        log(event.priority(), &event.to_string());
    });
    notifications.finish();
    push::finish(pushing, END_WITHIN);
    Ok(keeper)
}

/// Clears the state of subjects that are no longer watched; counters of events of this process go on.
fn begin_again(state: &Mutex<AgentState>, identity: &Identity) {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    *state = AgentState {
        version: env!("CARGO_PKG_VERSION").into(),
        labels: identity.labels.clone(),
        pushes_dropped: std::mem::take(&mut state.pushes_dropped),
        ..AgentState::default()
    };
}

/// A flag that Ctrl-C sets, and a request to read the configuration again.
fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::downgrade(&stop);
    std::thread::spawn(move || {
        // Ends with the agent that it stops.
        while let Some(flag) = set.upgrade() {
            if interrupt::requested() || interrupt::take_reload() {
                flag.store(true, Relaxed);
                return;
            }
            drop(flag);
            std::thread::sleep(NAP);
        }
    });
    stop
}

/// The configuration after SIGHUP; the one before where the new one is wrong.
fn read_again(args: &AgentArgs, before: Config) -> Config {
    match Config::read(args) {
        Ok(config) if config.record_only != before.record_only => {
            log(
                4,
                "a change of record-only counts from the next start; the configuration before stays in force",
            );
            before
        }
        Ok(config) => {
            log(6, "the configuration was read again");
            if (config.listen, &config.access) != (before.listen, &before.access) {
                log(4, "changes of the address and of its access count from the next start");
            }
            config
        }
        Err(failure) => {
            log(3, &format!("the configuration before stays in force: {failure}"));
            before
        }
    }
}
