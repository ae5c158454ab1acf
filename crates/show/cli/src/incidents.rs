use history::IncidentId;
use report::NumberedIncident;
use std::path::Path;
use terminal::{Done, FINE, Failure, Output, kept};

/// Arguments of `headroom incidents`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom incidents               all that the agent found, newest first
  headroom incidents 7             one of them, with its evidence and what to do
  headroom incidents --open        those that are not over")]
pub struct IncidentsArgs {
    /// Show this one
    #[arg(value_name = "NUMBER")]
    id: Option<i64>,
    /// Only those that are open
    #[arg(long, conflicts_with = "id")]
    open: bool,
    /// At most so many, the newest
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: usize,
}

/// `headroom incidents`.
pub fn run(args: &IncidentsArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let history = kept::open(history)?;
    if let Some(id) = args.id {
        let incident = history.incident(IncidentId(id))?.ok_or_else(|| {
            Failure::new(format_args!("there is no incident {id} in {}", history.path().display()))
                .with_remedy("headroom incidents lists those there are")
        })?;
        let one = NumberedIncident { id, incident };
        out.answer(
            |style| report::text::incident(&one, style),
            || report::json::incidents(std::slice::from_ref(&one)),
        );
        return Ok(FINE);
    }
    let mut found = if args.open { history.open_incidents()? } else { history.incidents(args.limit)? };
    found.truncate(args.limit);
    let found: Vec<NumberedIncident> =
        found.into_iter().map(|(id, incident)| NumberedIncident { id: id.0, incident }).collect();
    out.answer(|style| report::text::incidents(&found, style), || report::json::incidents(&found));
    Ok(FINE)
}
