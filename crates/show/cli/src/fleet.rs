mod connection;
mod written;

use ::fleet::{Answers, Filter, Fleet, Part, Sample, Scope, incidents_within};
use connection::ConnectionArgs;
use prometheus::{Client, Query, QueryError, Response};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use terminal::escape::escape_answer;
use terminal::{Done, FINE, Failure, Output, interrupt, is_read, no_answer, page, problem_found};
use workload_file::values;

/// Arguments of `headroom fleet`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom fleet --prometheus http://prometheus:9090            all volumes, least headroom first
  headroom fleet --prometheus URL --label cluster=east --every  those of a cluster, repeatedly
  headroom fleet show db7 --prometheus URL                      one host
  headroom fleet incidents --prometheus URL                     open and closed incidents
  headroom fleet rules /etc/prometheus/headroom                 recording rules

It sends at most 10 queries, whatever the number of hosts, to Prometheus, VictoriaMetrics, Mimir or \
Thanos. A prefix of the URL stays. HEADROOM_PROMETHEUS_AUTH: bearer TOKEN or basic USER:PASSWORD.
Exit codes: 0 no volume needs action, 1 one does, 2 wrong usage, 3 no answer, or none for a part of \
the fleet.")]
pub struct FleetArgs {
    #[command(subcommand)]
    command: Option<FleetCommand>,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// Show this many volumes. --json lists all; of more than 200, only these have all details
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Also write a page
    #[arg(long, value_name = "FILE", conflicts_with = "every")]
    html: Option<PathBuf>,
    /// Repeat at this interval until Ctrl-C
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "15s", value_parser = values::some_time)]
    every: Option<Duration>,
    /// With --every: exit after this many answers
    #[arg(long, value_name = "N", requires = "every")]
    count: Option<u64>,
}

/// The scope of the question.
#[derive(clap::Args)]
struct QuestionArgs {
    /// Only hosts with this label: NAME=VALUE, NAME!=VALUE, NAME=~REGEX, NAME!~REGEX; several may be given
    #[arg(long, value_name = "CONDITION", global = true)]
    label: Vec<Filter>,
    /// List volumes that are no longer judged for this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = values::some_time, global = true)]
    lookback: Duration,
    /// Count a verdict that is older as stale
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = values::some_time, global = true)]
    stale_after: Duration,
    /// Compute trends from samples where no rule keeps daily percentiles: slow for many hosts
    #[arg(long, global = true)]
    trend: bool,
}

#[derive(clap::Subcommand)]
enum FleetCommand {
    /// Show the details of the volumes of one host
    Show {
        /// Its name, with or without the port
        #[arg(value_name = "HOST")]
        host: String,
    },
    /// List incidents of all hosts
    Incidents {
        /// Within this time
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = values::some_time)]
        within: Duration,
    },
    /// Write recording rules for Prometheus and vmalert
    Rules {
        /// Directory to write to
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Write alerts for Prometheus and vmalert
    Alerts {
        /// Directory to write to
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The page with the runbooks, a heading for each alert; without it alerts name the page of Headroom's documentation
        #[arg(long, value_name = "URL", default_value = mixin::RUNBOOKS, hide_default_value = true)]
        runbooks: String,
    },
    /// Write dashboards for Grafana, and a mixin of jsonnet
    Dashboards {
        /// Directory to write to
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// How often a signal is looked for.
const NAP: Duration = Duration::from_millis(50);
/// More often nothing new is known: an agent judges every 5 s.
const WATCH_MIN: Duration = Duration::from_secs(1);

/// `headroom fleet`.
pub fn run(args: &FleetArgs, json: bool, out: &mut Output) -> Done {
    match &args.command {
        Some(FleetCommand::Rules { dir }) => return written::rules(dir, out),
        Some(FleetCommand::Alerts { dir, runbooks }) => return written::alerts(dir, runbooks, out),
        Some(FleetCommand::Dashboards { dir }) => return written::dashboards(dir, out),
        _ => {}
    }
    interrupt::install();
    let client = args.connection.client(out)?;
    match &args.command {
        Some(FleetCommand::Show { host }) => show(host, args, &client, out),
        Some(FleetCommand::Incidents { within }) => incidents(*within, args, &client, out),
        _ if args.every.is_some() => watch(args, &client, json, out),
        _ => {
            page::check(args.html.as_deref())?;
            let fleet = ask(&client, &args.question, None, args.wanted(json))?;
            out.answer(|style| report::text::fleet(&fleet, args.top, style), || report::json::fleet(&fleet));
            let version = env!("CARGO_PKG_VERSION");
            let make = || report::html::fleet(&fleet, &page::command_line(), version);
            page::write(args.html.as_deref(), make, out)?;
            Ok(exit_code(&fleet))
        }
    }
}

/// A fleet of at most this many volumes is queried for all details.
const SMALL_FLEET_VOLUMES: usize = 200;
/// A filter names at most this many hosts: servers refuse longer queries (VictoriaMetrics: 16 KiB).
const FILTER_HOSTS_MAX: usize = 200;

/// Series to query beside those that rank the volumes.
#[derive(Clone, Copy)]
struct Wanted {
    /// Incidents that are open, and details.
    details: bool,
    /// Of how many volumes, the worst first: latencies and details.
    first: usize,
}

impl FleetArgs {
    fn wanted(&self, json: bool) -> Wanted {
        let is_page = self.html.is_some();
        Wanted { details: json || is_page, first: if is_page { usize::MAX } else { self.top } }
    }
}

impl QuestionArgs {
    fn scope(&self, host: Option<&str>) -> Scope {
        let mut filters = self.label.clone();
        filters.extend(host.map(Filter::of_host));
        // The trend of a few volumes costs little.
        let trend_from_samples = self.trend || host.is_some();
        Scope { filters, lookback_s: self.lookback.as_secs().max(1), trend_from_samples }
    }
}

/// 1 where a verdict needs action; 3 where of a part nothing can be said, as `check` does: nothing says that the fleet is fine.
fn exit_code(fleet: &Fleet) -> ExitCode {
    match () {
        () if fleet.needing_action() > 0 => problem_found(),
        () if fleet.is_whole() => FINE,
        () => no_answer(),
    }
}

/// The fleet, or one host of it.
fn ask(
    client: &Client,
    question: &QuestionArgs,
    host: Option<&str>,
    wanted: Wanted,
) -> Result<Fleet, Failure> {
    let scope = question.scope(host);
    let mut queries = Queries::new(client);
    let open = wanted.details.then_some(Part::Open);
    let mut answers = queries.answers(&scope, Part::RANKING.into_iter().chain(open))?;
    let fleet = queries.fleet(&answers, question);
    let all = fleet.volumes.len() + fleet.never_measured.len() + fleet.stale.len();
    let (mut filters, mut detailed) = (scope.filters, None);
    if all > SMALL_FLEET_VOLUMES.max(wanted.first) {
        let shown = fleet.volumes.iter().take(wanted.first).map(|volume| volume.host.instance().to_owned());
        let shown: BTreeSet<String> = shown.collect();
        if shown.len() <= FILTER_HOSTS_MAX {
            filters.push(Filter::of_instances(shown.iter().map(String::as_str)));
            detailed = Some(shown);
        }
    }
    let details = wanted.details.then_some(Part::Details);
    let of_shown =
        queries.answers(&Scope { filters, ..scope }, std::iter::once(Part::Latencies).chain(details))?;
    answers = Answers { latencies: of_shown.latencies, details: of_shown.details, detailed, ..answers };
    Ok(queries.fleet(&answers, question))
}

/// The queries of one answer, all for the same time.
struct Queries<'a> {
    client: &'a Client,
    at_unix_s: f64,
    count: usize,
    incomplete: bool,
    warnings: BTreeSet<String>,
}

impl<'a> Queries<'a> {
    fn new(client: &'a Client) -> Queries<'a> {
        let at_unix_s = host::unix_ns() as f64 / 1e9;
        Queries { client, at_unix_s, count: 0, incomplete: false, warnings: BTreeSet::new() }
    }

    fn answers(&mut self, scope: &Scope, parts: impl IntoIterator<Item = Part>) -> Result<Answers, Failure> {
        let parts: Vec<Part> = parts.into_iter().collect();
        let series = self.series(parts.iter().map(|part| part.expression(scope)))?;
        let mut answers = Answers::default();
        parts.into_iter().zip(series).for_each(|(part, samples)| *answers.part(part) = samples);
        Ok(answers)
    }

    fn series(
        &mut self,
        expressions: impl Iterator<Item = ::fleet::Expression>,
    ) -> Result<Vec<Vec<Sample>>, Failure> {
        let query = |one: ::fleet::Expression| Query { expression: one.text, range: one.range };
        let queries: Vec<Query> = expressions.map(query).collect();
        self.count += queries.len();
        let responses = prometheus::ask(self.client, &queries, self.at_unix_s);
        let responses = responses.map_err(|error| failure(self.client, &error))?;
        self.incomplete |= responses.iter().any(|one| one.is_partial || !one.warnings.is_empty());
        self.warnings.extend(responses.iter().flat_map(|one| one.warnings.clone()));
        Ok(responses.into_iter().map(samples).collect())
    }

    fn fleet(&self, answers: &Answers, question: &QuestionArgs) -> Fleet {
        let fleet = ::fleet::fleet(answers, self.at_unix_s, question.stale_after.as_secs_f64());
        let warnings = self.warnings.iter().cloned().collect();
        Fleet { incomplete: self.incomplete, warnings, queries: self.count, ..fleet }
    }
}

fn samples(response: Response) -> Vec<Sample> {
    let sample = |one: prometheus::Series| Sample { labels: one.labels, points: one.points };
    response.series.into_iter().map(sample).collect()
}

fn failure(client: &Client, error: &QueryError) -> Failure {
    Failure::new(format_args!("cannot ask {}: {error}", client.endpoint))
        .with_fact(format_args!("query: {}", error.expression))
        .with_remedy(error.error.remedy())
}

fn show(host: &str, args: &FleetArgs, client: &Client, out: &mut Output) -> Done {
    let fleet = ask(client, &args.question, Some(host), Wanted { details: true, first: usize::MAX })?;
    if fleet.hosts == 0 && !fleet.incomplete {
        return Err(Failure::new(format_args!("{} knows no host {host}", client.endpoint))
            .with_remedy("headroom fleet lists the hosts; a longer --lookback for one that is gone"));
    }
    out.answer(|style| report::text::fleet_host(&fleet, style), || report::json::fleet(&fleet));
    Ok(exit_code(&fleet))
}

fn incidents(within: Duration, args: &FleetArgs, client: &Client, out: &mut Output) -> Done {
    let scope = args.question.scope(None);
    let within_s = within.as_secs().max(1);
    let mut queries = Queries::new(client);
    let found =
        queries.series(std::iter::once(incidents_within(&scope, within_s)))?.pop().unwrap_or_default();
    let answers = queries.answers(&scope, Part::RANKING.into_iter().chain([Part::Open]))?;
    let fleet = queries.fleet(&answers, &args.question);
    let rows = ::fleet::with_incidents(&fleet, &found);
    out.answer(
        |style| report::text::fleet_incidents(&rows, within_s, &fleet, style),
        || report::json::fleet_incidents(&rows, within_s, &fleet),
    );
    Ok(match () {
        () if rows.iter().any(|row| row.is_open == Some(true)) => problem_found(),
        () if fleet.hides_incidents() => no_answer(),
        () => FINE,
    })
}

/// Repeats the question. A question that fails is reported, and repeated.
fn watch(args: &FleetArgs, client: &Client, json: bool, out: &mut Output) -> Done {
    let every = args.every.unwrap_or(WATCH_MIN);
    if every < WATCH_MIN {
        return Err(Failure::usage("--every is at least 1s"));
    }
    let mut code = no_answer();
    for round in 1.. {
        let began = Instant::now();
        match ask(client, &args.question, None, args.wanted(json)) {
            Ok(fleet) => {
                code = exit_code(&fleet);
                if !print(&fleet, args, json, out)? {
                    return Ok(FINE);
                }
            }
            // One that is wrong at the first time stays wrong.
            Err(failure) if round == 1 => return Err(failure),
            Err(failure) => out.warn(failure),
        }
        if args.count.is_some_and(|count| round >= count) {
            break;
        }
        while began.elapsed() < every && !interrupt::requested() {
            std::thread::sleep(NAP);
        }
        if interrupt::requested() {
            break;
        }
    }
    Ok(code)
}

/// Prints an answer; `false` where no one reads any more. On a terminal it replaces the one before.
fn print(fleet: &Fleet, args: &FleetArgs, json: bool, out: &Output) -> Result<bool, Failure> {
    const CLEAR: &str = "\x1b[2J\x1b[H";
    let style = if json { report::text::Style::default() } else { out.style() };
    let text = match json {
        true => format!("{}\n", report::json::fleet(fleet)),
        false => format!("{}\n", report::text::fleet(fleet, args.top, &style)),
    };
    let mut stdout = std::io::stdout();
    let clear = if !json && stdout.is_terminal() { CLEAR } else { "" };
    let text = format!("{clear}{}", escape_answer(&text, &style));
    is_read(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}
