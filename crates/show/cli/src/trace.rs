mod command;
mod lines;
mod whose;
mod written;

use charts::{Theme, svg_file};
use collect::process::trace::{FilePattern, Filter, Tracer};
use command::Waiting;
use filestats::TracedOp;
use lines::Lines;
use report::TraceSummary;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use terminal::{
    Done, FINE, Failure, Output, bad_news, interrupt,
    page::{self, command_line},
};
use whose::Whose;
use workload::{format_bytes, format_ns};
use workload_file::values;
use written::Written;

/// Arguments of `headroom trace`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom trace --source process:812 --for 10s            every I/O of a process
  headroom trace --source process:comm=postgres --file '*/pg_wal/*' --op write,sync
  headroom trace --source process: --slower 10ms           whatever is slow, of anybody
  headroom trace --html trace.html -- sqlite3 shop.db 'SELECT count(*) FROM orders'
  headroom trace --source process:812 --file /data/shop.db --out shop.trace --summary
  headroom run COPY --replay shop.trace --block 1M --destroy-data COPY  again

Exit codes: 0 fine, 1 I/Os were lost, 2 wrong usage, 3 it cannot be traced, 130 ended by Ctrl-C.")]
pub struct TraceArgs {
    /// process: (all), process:PID,..., process:comm=NAME, process:cgroup=DIR, process:pid-file=PATH
    #[arg(long, value_name = "SOURCE", required_unless_present = "command", conflicts_with = "command")]
    source: Option<Whose>,
    /// Only this file or directory, names with this in them, or that fit '*.db'; several may be given
    #[arg(long, value_name = "PATH|GLOB", help_heading = WHICH)]
    file: Vec<FilePattern>,
    /// read, write, sync, fault; several with commas
    #[arg(long, value_name = "OP", value_delimiter = ',', value_parser = op, help_heading = WHICH)]
    op: Vec<TracedOp>,
    /// That moved at least so much
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, default_value = "0", hide_default_value = true, help_heading = WHICH)]
    size_min: u64,
    /// That moved at most so much
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, help_heading = WHICH)]
    size_max: Option<u64>,
    /// That took at least so long
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = WHICH)]
    slower: Option<Duration>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = values::some_time, help_heading = LONG)]
    length: Option<Duration>,
    /// End after so many I/Os
    #[arg(long, value_name = "N", value_parser = values::ios, help_heading = LONG)]
    count: Option<u64>,
    /// Room for I/Os that are not printed yet
    #[arg(long, value_name = "SIZE", value_parser = buffer, default_value = "16M", help_heading = LONG)]
    buffer: u32,
    /// Print no line an I/O, only what it came to
    #[arg(long, help_heading = OUTPUT)]
    summary: bool,
    /// Print rows of comma-separated values
    #[arg(long, conflicts_with_all = ["json", "summary"], help_heading = OUTPUT)]
    csv: bool,
    /// Write a trace that `headroom run --replay` asks again, one for each file
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    /// Write a page with a picture of it: offsets and latencies over time
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    /// Write the picture alone
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    svg: Option<PathBuf>,
    /// Start this, and trace it and its children; what it prints goes to stderr
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const WHICH: &str = "Which I/Os";
const LONG: &str = "How long";
const OUTPUT: &str = "Output";
/// What a picture written by us has in it.
const SVG_MARK: &[u8] = b"urn:headroom:chart";
/// Where nothing ended, it is looked again so soon: the buffer holds what comes meanwhile.
const LOOK: Duration = Duration::from_millis(2);
/// What processes that ended left behind is taken away so often.
const TIDY: Duration = Duration::from_secs(1);
/// Ctrl-C is looked for once in so many I/Os.
const ASK_EVERY: u64 = 4096;

fn op(text: &str) -> Result<TracedOp, String> {
    let found = TracedOp::ALL.into_iter().find(|op| op.word() == text);
    found.ok_or_else(|| format!("'{text}' is no kind of I/O; give read, write, sync or fault"))
}

fn buffer(text: &str) -> Result<u32, String> {
    let bytes = values::some_bytes(text).map_err(|wrong| wrong.to_string())?;
    let fits = |bytes: &u32| *bytes <= Filter::BUFFER_BYTES_MAX;
    let wrong =
        || format!("'{text}' is too large; give up to {}", format_bytes(Filter::BUFFER_BYTES_MAX.into()));
    u32::try_from(bytes).ok().filter(fits).ok_or_else(wrong)
}

/// `headroom trace`: the I/Os of processes, one by one.
pub fn run(args: &TraceArgs, json: bool, out: &mut Output) -> Done {
    if args.size_max.is_some_and(|most| most < args.size_min) {
        return Err(Failure::usage("--size-max is smaller than --size-min: no I/O is so"));
    }
    page::check(args.html.as_deref())?;
    if let Some(svg) = &args.svg {
        page::check_marked("picture", svg, SVG_MARK)?;
    }
    let mut written = args.out.as_deref().map(Written::new).transpose()?;
    interrupt::install();
    let waiting = (!args.command.is_empty()).then(|| Waiting::start(&args.command)).transpose()?;
    let whose = match (&args.source, &waiting) {
        (_, Some(waiting)) => Whose::of_pid(waiting.pid()),
        (Some(whose), None) => whose.clone(),
        (None, None) => Whose::default(),
    };
    let selection = whose.selection()?;
    let mut tracer = Tracer::open(&selection, &args.filter(&whose))?;
    let mut child = waiting.map(Waiting::go).transpose()?;
    let mut traced = TraceSummary::new(args.words(&whose));
    let mut lines = Lines::new(args.summary, json, args.csv, &out.style());
    let for_ns = args.length.map_or(u64::MAX, |length| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    let count = args.count.unwrap_or(u64::MAX);
    let followed = !selection.pids.is_empty() && selection.cgroup.is_none();
    let mut tidied = Instant::now();
    let mut alone = false;
    loop {
        // Known before the last look, so that nothing of them is missed.
        let ended = match &mut child {
            Some(child) => command::ended(child)?,
            None => alone,
        };
        let now_ns = tracer.elapsed_ns();
        let last = ended || interrupt::requested() || now_ns >= for_ns;
        let until_ns = if last { now_ns.min(for_ns) } else { for_ns };
        while let Some(io) = tracer.next()? {
            // Of a busy system there may be no end.
            if io.at_ns.saturating_add(io.latency_ns) > until_ns {
                break;
            }
            traced.add(&io);
            lines.print(&io)?;
            if let Some(written) = &mut written {
                written.add(&io)?;
            }
            if traced.ios() == count || !lines.are_read() {
                break;
            }
            if traced.ios().is_multiple_of(ASK_EVERY) && !last && interrupt::requested() {
                break;
            }
        }
        lines.flush()?;
        if last || traced.ios() == count || !lines.are_read() {
            break;
        }
        if tidied.elapsed() >= TIDY {
            tidied = Instant::now();
            tracer.tidy()?;
            alone = followed && !tracer.anybody_left()?;
            if args.length.is_some_and(|length| length > Duration::from_secs(2)) || args.summary {
                let left = args
                    .length
                    .map(|length| length.saturating_sub(Duration::from_nanos(tracer.elapsed_ns())));
                let what = format!("tracing · {} I/Os", workload::format_count(traced.ios()));
                out.progress(what, left);
            }
        }
        std::thread::sleep(LOOK);
    }
    traced.elapsed_ns = tracer.elapsed_ns().min(for_ns);
    traced.lost = tracer.lost()?;
    traced.notes = tracer.notes()?;
    // No program is in the kernel any more while the command goes on to its end.
    drop(tracer);
    if let Some(child) = child {
        traced.notes.extend(command::wait(child)?);
    }
    if let Some(written) = written {
        written.finish(&mut traced)?;
    }
    out.clear_progress();
    lines.finish(&traced)?;
    if traced.ios() == 0 {
        out.warn(format_args!("no I/O was traced of: {}{}", args.words(&whose), args.nothing_written()));
    }
    if args.csv && traced.lost > 0 {
        out.warn(format_args!("{} I/Os were lost, because the buffer was full", traced.lost));
    }
    page::write(
        args.html.as_deref(),
        || report::html::trace(&traced, &command_line(), env!("CARGO_PKG_VERSION")),
        out,
    )?;
    if let Some(svg) = &args.svg {
        let picture = svg_file(&traced.chart(), Theme::Light);
        std::fs::write(svg, picture).map_err(|error| {
            Failure::new(format_args!("cannot write the picture {}: {error}", svg.display()))
        })?;
    }
    Ok(if traced.lost > 0 { bad_news() } else { FINE })
}

impl TraceArgs {
    fn filter(&self, whose: &Whose) -> Filter {
        Filter {
            ops: self.op.clone(),
            bytes_min: self.size_min,
            bytes_max: self.size_max.unwrap_or(u64::MAX),
            latency_ns_min: self.slower.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            comm: whose.comm.clone(),
            files: self.file.clone(),
            buffer_bytes: self.buffer,
        }
    }

    /// What there is not, where nothing was traced.
    fn nothing_written(&self) -> String {
        self.out.as_ref().map_or_else(String::new, |out| format!("; {} was not written", out.display()))
    }

    /// What is traced, in words.
    fn words(&self, whose: &Whose) -> String {
        let mut words = vec![match self.command.first() {
            Some(program) => program.to_string_lossy().into_owned(),
            None => whose.to_string(),
        }];
        words.extend(self.file.iter().map(ToString::to_string));
        if !self.op.is_empty() {
            words.push(self.op.iter().map(|op| format!("{}s", op.word())).collect::<Vec<_>>().join(" and "));
        }
        if self.size_min > 0 {
            words.push(format!("at least {}", format_bytes(self.size_min)));
        }
        words.extend(self.size_max.map(|most| format!("at most {}", format_bytes(most))));
        words.extend(self.slower.map(|time| format!("slower than {}", format_ns(time.as_nanos() as f64))));
        words.join(", ")
    }
}
