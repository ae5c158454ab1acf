use crate::service_log::{log, stop_on_interrupt};
use ::agent::{Agent, Settings, WatchedSource};
use filestats::ServiceLevel;
use metrics::AgentState;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, SourceName, interrupt, kept};
use workload_file::values;

/// Arguments of `headroom agent`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom measure /var/lib/postgresql                       once: what the storage can give
  headroom agent --source postgres: --listen 127.0.0.1:9188  until Ctrl-C
  headroom incidents                                         what it found

It judges each database on each of its volumes as headroom check --source does, all the time,
and puts no load on storage. See docs/agent.md.
Exit codes: 0 its time is over, 2 wrong usage, 3 the history cannot be written, 130 ended by Ctrl-C.")]
pub struct AgentArgs {
    /// Whose verdicts; several may be given
    #[arg(long, value_name = "SOURCE", required = true, value_parser = collect::parse_source_argument)]
    source: Vec<SourceName>,
    /// Answer Prometheus at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Between two judgements
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::some_time)]
    every: Duration,
    /// What is judged: the newest moments, so long
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = values::some_time)]
    window: Duration,
    /// Open an incident when a bad verdict held for so long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::some_time)]
    open_after: Duration,
    /// Close it when none held for so long
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = values::some_time)]
    close_after: Duration,
    /// Latency promised: oltp, warehouse, or read/write/log milliseconds
    #[arg(long, default_value = "oltp", value_name = "LEVEL")]
    service_level: ServiceLevel,
    /// End after so long
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    duration: Option<Duration>,
}

/// Moments are a second long.
const EVERY_MIN: Duration = Duration::from_secs(1);
const WINDOW_MIN: Duration = Duration::from_secs(10);
/// Each moment of each file is in memory.
const WINDOW_MAX: Duration = Duration::from_secs(600);
/// Judgements that may be missing before it is a gap.
const GAP_JUDGEMENTS: u32 = 3;

/// `headroom agent`.
pub fn run(args: &AgentArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let settings = settings(args)?;
    let sources = sources(args)?;
    let history = kept::open_to_write(history)?;
    let path = history.path().to_owned();
    let capabilities = kept::open(Some(&path))?;
    interrupt::install();
    let state = AgentState { version: env!("CARGO_PKG_VERSION").into(), ..AgentState::default() };
    let state = Arc::new(Mutex::new(state));
    if let Some(address) = args.listen {
        let bound = serve::metrics(address, state.clone()).map_err(|error| {
            Failure::new(format_args!("cannot answer at {address}: {error}"))
                .with_remedy("another port, or end who listens there")
        })?;
        log(6, &format!("metrics at http://{bound}/metrics"));
    }
    let (began, stop) = (Instant::now(), stop_on_interrupt());
    let (mut opened, mut closed) = (0_u64, 0_u64);
    let agent = Agent::new(history, capabilities, settings, state)?;
    agent.run(&mut || there(&sources), &stop, &mut |event| {
        if let ::agent::Event::Incident { event, .. } = &event {
            match event {
                incidents::Event::Opened(_) | incidents::Event::Recurred(_) => opened += 1,
                incidents::Event::Closed(_) => closed += 1,
                incidents::Event::Changed(_) => {}
            }
        }
        log(event.priority(), &event.to_string());
    });
    let (count, took_s) = (sources.len(), began.elapsed().as_secs_f64());
    out.answer(
        |_| {
            let path = path.display();
            format!(
                "judged {count} sources for {took_s:.0} s: {opened} incidents opened, {closed} closed; kept in {path}"
            )
        },
        || serde_json::json!({"sources": count, "elapsed_s": took_s, "opened": opened, "closed": closed}),
    );
    Ok(FINE)
}

/// The databases that are there now: called every 30 s. Those of the arguments are always there.
fn there(named: &[SourceName]) -> Vec<WatchedSource> {
    let watched =
        |argument: &SourceName| WatchedSource { identity: argument.to_string(), argument: argument.clone() };
    named.iter().map(watched).collect()
}

fn settings(args: &AgentArgs) -> Result<Settings, Failure> {
    if args.every < EVERY_MIN {
        return Err(Failure::usage("--every is at least 1s"));
    }
    if args.window < WINDOW_MIN || args.window > WINDOW_MAX || args.window < args.every {
        return Err(Failure::usage("--window is 10s to 10m, and no shorter than --every"));
    }
    let incidents = incidents::Settings {
        open_after: args.open_after,
        close_after: args.close_after,
        gap_after: args.every.saturating_mul(GAP_JUDGEMENTS).max(incidents::Settings::default().gap_after),
    };
    Ok(Settings {
        every: args.every,
        window: args.window,
        duration: args.duration,
        service_level: args.service_level,
        incidents,
    })
}

/// The sources of the arguments, each once.
fn sources(args: &AgentArgs) -> Result<Vec<SourceName>, Failure> {
    if let Some(devices) = args.source.iter().find(|source| source.counts_only_devices) {
        return Err(Failure::usage(format_args!("{devices} has no files that anybody waits for"))
            .with_remedy("give whose files: postgres:, process:, sqlite:PATH..."));
    }
    let mut names: Vec<String> = args.source.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Failure::usage(format_args!("{} is given twice", twice[0]))),
        None => Ok(args.source.clone()),
    }
}
