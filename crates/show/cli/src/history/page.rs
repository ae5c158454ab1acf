use crate::listening::{AccessArgs, Listening, cannot_answer};
use ::page::{About, Api, Live};
use filestats::ServiceLevel;
use metrics::AgentState;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, interrupt, kept};
use workload_file::values;

/// Arguments of `headroom history page`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom history page                         what the agent of this host kept, without an agent
  headroom history page --history incident.db   a history that was copied from another machine

It only reads the history, and answers until Ctrl-C.")]
pub struct PageArgs {
    /// Serve it there
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9187")]
    listen: SocketAddr,
    #[command(flatten)]
    access: AccessArgs,
    /// Exit after this time
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    duration: Option<Duration>,
}

/// How often a signal is looked for.
const NAP: Duration = Duration::from_millis(50);

/// Output of `headroom history page --json`, before it answers.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Page"))]
pub(crate) struct Served<'a> {
    /// Where the page is.
    url: &'a str,
    /// The file that is shown.
    history: &'a Path,
}

/// `headroom history page`.
pub fn run(args: &PageArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let listening = Listening::new(Some(args.listen), args.access.settings())?;
    let kept = kept::open(history)?;
    let path = kept.path().to_owned();
    let (live, ended_unix_ns) = Live::from_history(&kept, ServiceLevel::OLTP.read_ns)?;
    let ended_unix_ns = ended_unix_ns.ok_or_else(|| {
        Failure::new(format_args!("no agent judged anything in {}", path.display()))
            .with_remedy("headroom agent fills a history")
    })?;
    let about = About {
        host: host::hostname(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_ns: ended_unix_ns,
        window_ns: 60_000_000_000,
        every_ns: 0,
        live: false,
    };
    let version = env!("CARGO_PKG_VERSION").into();
    let state = Arc::new(Mutex::new(AgentState { version, ..AgentState::default() }));
    let api = Arc::new(Api::new(Arc::new(live), about, path.clone(), Some(ended_unix_ns)));
    interrupt::install();
    let Some(listening) = listening else { return Ok(FINE) };
    let url = listening.serve(state, api).map_err(|error| cannot_answer(args.listen, &error))?;
    out.answer(
        |_| format!("{} at {url}, until Ctrl-C", path.display()),
        || serde_json::json!(Served { url: &url, history: &path }),
    );
    let began = Instant::now();
    while !interrupt::requested() && args.duration.is_none_or(|all| began.elapsed() < all) {
        std::thread::sleep(NAP);
    }
    Ok(FINE)
}
