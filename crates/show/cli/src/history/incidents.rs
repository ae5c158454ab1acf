use history::{History, IncidentId, MINUTES_MAX};
use report::NumberedIncident;
use std::path::{Path, PathBuf};
use terminal::{Done, FINE, Failure, Output, kept, page};

/// Arguments of `headroom history incidents`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom history incidents       all that the agent found, newest first
  headroom history incidents 7     one of them, with its evidence and what to do
  headroom history incidents 7 --html incident.html
  headroom history incidents --open  open ones")]
pub struct IncidentsArgs {
    /// Show this one
    #[arg(value_name = "NUMBER")]
    id: Option<i64>,
    /// Only those that are open
    #[arg(long, conflicts_with = "id")]
    open: bool,
    /// Show this many, the newest first
    #[arg(long, default_value_t = 100, value_name = "N")]
    count: usize,
    /// Also write the incident as a page, with the half hours before and after it
    #[arg(long, value_name = "FILE", requires = "id")]
    html: Option<PathBuf>,
}

const MINUTE_NS: u64 = 60_000_000_000;
/// Minutes before and after an incident that its page shows.
const MINUTES_AROUND: u64 = 30;

/// `headroom history incidents`.
pub fn run(args: &IncidentsArgs, history: Option<&Path>, out: &mut Output) -> Done {
    page::check(args.html.as_deref())?;
    let history = kept::open(history)?;
    if let Some(id) = args.id {
        let incident = history.incident(IncidentId(id))?.ok_or_else(|| {
            Failure::new(format_args!("there is no incident {id} in {}", history.path().display()))
                .with_remedy("headroom history incidents lists those there are")
        })?;
        let one = NumberedIncident { id, incident };
        out.answer(
            |style| report::text::incident(&one, style),
            || report::json::incidents(std::slice::from_ref(&one)),
        );
        if args.html.is_some() {
            let html = page_of(&history, &one)?;
            page::write(args.html.as_deref(), || html, out)?;
        }
        return Ok(FINE);
    }
    let mut found = if args.open { history.open_incidents()? } else { history.incidents(args.count)? };
    found.truncate(args.count);
    let found: Vec<NumberedIncident> =
        found.into_iter().map(|(id, incident)| NumberedIncident { id: id.0, incident }).collect();
    out.answer(|style| report::text::incidents(&found, style), || report::json::incidents(&found));
    Ok(FINE)
}

/// The incident with the minutes around it.
fn page_of(history: &History, one: &NumberedIncident) -> Result<String, Failure> {
    let incident = &one.incident;
    let until = incident.ended_unix_ns.unwrap_or(incident.last_bad_unix_ns);
    let from = (incident.started_unix_ns / MINUTE_NS).saturating_sub(MINUTES_AROUND);
    let minutes =
        history.judged_minutes(&incident.subject, (from, until / MINUTE_NS + MINUTES_AROUND), MINUTES_MAX)?;
    let ended: Vec<_> =
        minutes.into_iter().map(|(minute, readings)| (minute.saturating_mul(MINUTE_NS), readings)).collect();
    Ok(report::html::incident(one, &ended, env!("CARGO_PKG_VERSION")))
}
