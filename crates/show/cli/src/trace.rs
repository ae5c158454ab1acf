mod command;
mod lines;
mod processes;
mod replay_files;

use charts::{Theme, svg_file};
use collect::process::trace::{FilePattern, Filter, Tracer};
use command::WaitingCommand;
use filestats::TracedOp;
use lines::Lines;
use processes::Processes;
use replay_files::ReplayFiles;
use report::TraceSummary;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use terminal::{
    Done, FINE, Failure, Output, interrupt,
    page::{self, command_line},
    problem_found,
};
use workload::{format_bytes, format_ns};
use workload_file::values;

/// Arguments of `headroom trace`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom trace --source process:812 --duration 10s            every I/O of a process
  headroom trace --source process:comm=postgres --file '*/pg_wal/*' --op write,sync
  headroom trace --source process: --slower 10ms           all slow I/Os of all processes
  headroom trace --html trace.html -- sqlite3 shop.db 'SELECT count(*) FROM orders'
  headroom trace --source process:812 --file /data/shop.db --out shop.trace --summary
  headroom run COPY --replay shop.trace --block 1M --destroy-data COPY  again

Exit codes: 0 fine, 1 I/Os were lost, 2 wrong usage, 3 it cannot be traced, 130 ended by Ctrl-C.")]
pub struct TraceArgs {
    /// process: (all), process:PID,..., process:comm=NAME, process:cgroup=DIR, process:pid-file=PATH
    #[arg(long, value_name = "SOURCE", required_unless_present = "command", conflicts_with = "command")]
    source: Option<Processes>,
    /// Only this file or directory, names with this in them, or that fit '*.db'; several may be given
    #[arg(long, value_name = "PATH|GLOB", help_heading = WHICH)]
    file: Vec<FilePattern>,
    /// read, write, sync, fault; several with commas
    #[arg(long, value_name = "OP", value_delimiter = ',', value_parser = op, help_heading = WHICH)]
    op: Vec<TracedOp>,
    /// At least this size
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, default_value = "0", hide_default_value = true, help_heading = WHICH)]
    size_min: u64,
    /// At most this size
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, help_heading = WHICH)]
    size_max: Option<u64>,
    /// With at least this latency
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = WHICH)]
    slower: Option<Duration>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = values::some_time, help_heading = LONG)]
    length: Option<Duration>,
    /// End after this many I/Os
    #[arg(long, value_name = "N", value_parser = values::ios, help_heading = LONG)]
    count: Option<u64>,
    /// Buffer for I/Os that are not printed yet
    #[arg(long, value_name = "SIZE", value_parser = buffer, default_value = "16M", help_heading = LONG)]
    buffer: u32,
    /// Print no line an I/O, only the totals
    #[arg(long, help_heading = OUTPUT)]
    summary: bool,
    /// Print rows of comma-separated values
    #[arg(long, conflicts_with_all = ["json", "summary"], help_heading = OUTPUT)]
    csv: bool,
    /// Write traces for `headroom run --replay`, one for each file
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
const LONG: &str = "Duration";
const OUTPUT: &str = "Output";
/// The pause between two reads of the buffer, which holds the I/Os meanwhile.
const POLL_EVERY: Duration = Duration::from_millis(2);
/// How often the entries of ended processes are removed.
const TIDY_EVERY: Duration = Duration::from_secs(1);
/// I/Os between two checks for Ctrl-C.
const IOS_PER_INTERRUPT_CHECK: u64 = 4096;

fn op(text: &str) -> Result<TracedOp, String> {
    let found = TracedOp::ALL.into_iter().find(|op| op.word() == text);
    found.ok_or_else(|| format!("'{text}' is not a kind of I/O; give read, write, sync or fault"))
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
        page::check_marked("picture", svg, page::SVG_MARK)?;
    }
    let replay_files = args.out.as_deref().map(ReplayFiles::new).transpose()?;
    interrupt::install();
    let waiting = (!args.command.is_empty()).then(|| WaitingCommand::start(&args.command)).transpose()?;
    let processes = match (&args.source, &waiting) {
        (_, Some(waiting)) => Processes::with_pid(waiting.pid),
        (Some(processes), None) => processes.clone(),
        (None, None) => Processes::default(),
    };
    let selection = processes.selection()?;
    let tracer = Tracer::open(&selection, &args.filter(&processes))?;
    let recording = Recording {
        args,
        tracer,
        child: waiting.map(WaitingCommand::release).transpose()?,
        ends_with_processes: !selection.pids.is_empty() && selection.cgroup.is_none(),
        for_ns: args.length.map_or(u64::MAX, |length| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)),
        summary: TraceSummary::new(args.describe(&processes)),
        lines: Lines::new(args.summary, json, args.csv, &out.style()),
        replay_files,
    };
    let (summary, mut lines) = recording.run(out)?;
    out.clear_progress();
    lines.finish(&summary)?;
    if summary.ios() == 0 {
        out.warn(format_args!(
            "no I/O was traced of: {}{}",
            args.describe(&processes),
            args.nothing_written()
        ));
    }
    if args.csv && summary.lost > 0 {
        out.warn(format_args!("{} I/Os were lost, because the buffer was full", summary.lost));
    }
    args.write_pictures(&summary, out)?;
    Ok(if summary.lost > 0 { problem_found() } else { FINE })
}

/// A trace while it is recorded.
struct Recording<'a> {
    args: &'a TraceArgs,
    tracer: Tracer,
    child: Option<Child>,
    /// The recording ends when all selected processes have ended.
    ends_with_processes: bool,
    for_ns: u64,
    summary: TraceSummary,
    lines: Lines,
    replay_files: Option<ReplayFiles>,
}

impl Recording<'_> {
    /// Records until its time, its number of I/Os or its processes end, or Ctrl-C.
    fn run(mut self, out: &mut Output) -> Result<(TraceSummary, Lines), Failure> {
        let mut tidied = Instant::now();
        let mut all_ended = false;
        loop {
            // Checked before the buffer is drained, so that the last I/Os of the processes are not missed.
            let ended = match &mut self.child {
                Some(child) => command::has_ended(child)?,
                None => all_ended,
            };
            let now_ns = self.tracer.elapsed_ns();
            let last = ended || interrupt::requested() || now_ns >= self.for_ns;
            self.drain(if last { now_ns.min(self.for_ns) } else { self.for_ns }, last)?;
            if last || self.is_complete() {
                break;
            }
            if tidied.elapsed() >= TIDY_EVERY {
                tidied = Instant::now();
                self.tracer.tidy()?;
                all_ended = self.ends_with_processes && !self.tracer.any_chosen_running()?;
                self.show_progress(out);
            }
            std::thread::sleep(POLL_EVERY);
        }
        self.end()
    }

    /// Takes the I/Os from the buffer that ended until an instant; on a busy system there may always be more.
    fn drain(&mut self, until_ns: u64, last: bool) -> Result<(), Failure> {
        while let Some(io) = self.tracer.next()? {
            if io.at_ns.saturating_add(io.latency_ns) > until_ns {
                break;
            }
            self.summary.add(&io);
            self.lines.print(&io)?;
            if let Some(files) = &mut self.replay_files {
                files.add(&io)?;
            }
            let check_interrupt = self.summary.ios().is_multiple_of(IOS_PER_INTERRUPT_CHECK) && !last;
            if self.is_complete() || check_interrupt && interrupt::requested() {
                break;
            }
        }
        self.lines.flush()
    }

    fn is_complete(&self) -> bool {
        Some(self.summary.ios()) == self.args.count || !self.lines.is_read
    }

    fn show_progress(&self, out: &mut Output) {
        let length = self.args.length;
        if length.is_some_and(|length| length > Duration::from_secs(2)) || self.args.summary {
            let elapsed = Duration::from_nanos(self.tracer.elapsed_ns());
            let what = format!("tracing · {} I/Os", workload::format_count(self.summary.ios()));
            out.progress(what, length.map(|length| length.saturating_sub(elapsed)));
        }
    }

    fn end(self) -> Result<(TraceSummary, Lines), Failure> {
        let Recording { mut summary, tracer, .. } = self;
        summary.elapsed_ns = tracer.elapsed_ns().min(self.for_ns);
        summary.lost = tracer.lost()?;
        summary.notes = tracer.notes()?;
        // Removes the programs from the kernel before the command runs to its end.
        drop(tracer);
        if let Some(child) = self.child {
            summary.notes.extend(command::wait(child)?);
        }
        if let Some(files) = self.replay_files {
            files.finish(&mut summary)?;
        }
        Ok((summary, self.lines))
    }
}

impl TraceArgs {
    fn filter(&self, processes: &Processes) -> Filter {
        Filter {
            ops: self.op.clone(),
            bytes_min: self.size_min,
            bytes_max: self.size_max.unwrap_or(u64::MAX),
            latency_ns_min: self.slower.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            comm: processes.comm.clone(),
            files: self.file.clone(),
            buffer_bytes: self.buffer,
        }
    }

    /// Writes the page and the picture that were requested.
    fn write_pictures(&self, summary: &TraceSummary, out: &mut Output) -> Result<(), Failure> {
        page::write(
            self.html.as_deref(),
            || report::html::trace(summary, &command_line(), env!("CARGO_PKG_VERSION")),
            out,
        )?;
        let Some(svg) = &self.svg else { return Ok(()) };
        let picture = svg_file(&summary.chart(), Theme::Light);
        page::write_marked("picture", svg, page::SVG_MARK, picture.as_bytes())
    }

    /// The trace file that was not written because nothing was traced.
    fn nothing_written(&self) -> String {
        self.out.as_ref().map_or_else(String::new, |out| format!("; {} was not written", out.display()))
    }

    /// The traced I/Os as text.
    fn describe(&self, processes: &Processes) -> String {
        let mut words = vec![match self.command.first() {
            Some(program) => program.to_string_lossy().into_owned(),
            None => processes.to_string(),
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
