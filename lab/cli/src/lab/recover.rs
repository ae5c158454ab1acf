use super::{chosen, directory};
use crate::{counted_sqlite, lab_failure};
use ::lab::recover::{Engine, Plan, Strategy, Work, run as experiment};
use experiments::EmulatedDisk;
use std::path::{Path, PathBuf};
use std::time::Duration;
use storage::Target;
use terminal::{Done, FINE, Failure, Output, interrupt, kept, no_answer, page};
use workload::format_bytes;
use workload_file::values;

/// Arguments of `headroom lab recover`.
#[derive(clap::Args)]
#[command(after_help = "\
Scattered pages of 4 KiB are written, 64 a commit, until the log has its length and the writer is
killed with SIGKILL. Each recovery gets a copy of that image. All lies in DIR/headroom.tmp/.

Examples:
  headroom lab recover /data                           1 GiB of log where there is room, all engines
  headroom lab recover /data --log 256M --engine pagestore --html recovery.html
  sudo headroom lab recover /data --emulate wide       the same work on a disk of 5 ms, 64 wide
  headroom lab recover /data --pages 1000 --data 4G    few pages in a large file

Exit codes: 0 fine, 3 an engine could not be used or came back wrong.")]
pub struct RecoverArgs {
    /// Directory on the storage in question
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
    /// Size of the log at which each engine is killed [default: 1G, or what there is room for; enough for --pages]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes)]
    log: Option<u64>,
    /// Pages of 4 KiB that are written, in a random order [default: what the log takes, at most 256000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(Work::PAGES_MIN..=Work::PAGES_MAX / 2))]
    pages: Option<u64>,
    /// Size of the data file that they are scattered over [default: twice what they take]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes)]
    data: Option<u64>,
    /// How the page store is recovered, a list of instant, wide, mapped, prefetch, serial [default: all of them]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    strategy: Vec<Strategy>,
    /// Engines, a list of pagestore, sqlite-wal, redb, lmdb, rocksdb, postgres, mariadb [default: all of them]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    engine: Vec<Engine>,
    /// I/Os in flight where a strategy is parallel
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    parallel: u32,
    /// Seed of the order of pages and of their content
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Recover on a disk that is created in DIR, slow but parallel; needs root
    #[arg(long, value_name = "DISK", value_parser = ["wide"], help_heading = EMULATED)]
    emulate: Option<String>,
    /// Service time of an I/O of that disk
    #[arg(long, value_name = "TIME", default_value = "5ms", requires = "emulate", value_parser = values::some_time, help_heading = EMULATED)]
    latency: Duration,
    /// I/Os that it serves in parallel
    #[arg(long, value_name = "N", default_value_t = 64, requires = "emulate", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = EMULATED)]
    width: u32,
    /// Also write the answer as a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const EMULATED: &str = "An emulated disk";

const PAGE_BYTES: u64 = 4_096;
/// Bytes of log for a page, with its share of headers and of partly filled blocks.
const LOGGED_BYTES: u64 = 4_608;
/// The study's: 256,000 pages, about 1 GiB.
const PAGES_MAX: u64 = 256_000;
const LOG_MAX: u64 = 1 << 30;
/// The shortest default.
const LOG_MIN: u64 = 8 << 20;
/// Serial recovery on an emulated disk takes its latency for each page: 20 s for these.
const PAGES_EMULATED: u64 = 4_000;

/// Arguments of the process that is killed; only this binary passes them.
#[derive(clap::Args)]
pub struct WriterArgs {
    engine: Engine,
    dir: PathBuf,
    pages: u64,
    data_pages: u64,
    log_bytes: u64,
    seed: u64,
}

/// The process that `headroom lab recover` starts and kills.
pub fn write(args: &WriterArgs) -> Done {
    let &WriterArgs { pages, data_pages, log_bytes, seed, .. } = args;
    match ::lab::recover::write(args.engine, &args.dir, Work { pages, data_pages, log_bytes, seed })
        .map_err(lab_failure)? {}
}

/// `headroom lab recover`.
pub fn run(args: &RecoverArgs, history: Option<&Path>, out: &mut Output) -> Done {
    page::check(args.html.as_deref())?;
    let target = Target::open(&args.dir)?;
    let emulated = args
        .emulate
        .as_ref()
        .map(|_| EmulatedDisk { latency_ns: args.latency.as_nanos() as u64, width: args.width });
    let engines = chosen(&args.engine, &Engine::ALL);
    if !args.strategy.is_empty() && !engines.contains(&Engine::Pagestore) {
        let message = "--strategy is how the page store is recovered, which --engine leaves out";
        return Err(Failure::usage(message).with_remedy("pagestore in --engine too"));
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format_args!("cannot find this program itself: {error}")))?;
    let mut plan = Plan {
        dir: PathBuf::new(),
        program,
        work: work(args, LOG_MAX)?,
        engines,
        strategies: chosen(&args.strategy, &Strategy::ALL),
        parallel: args.parallel as usize,
        emulated,
    };
    if args.log.is_none() && args.pages.is_none() && args.data.is_none() {
        fit(args, &mut plan, target.facts().free_bytes)?;
    }
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let mut workspace = crate::workspace::open(target.path(), &mut history, out)?;
    workspace.require_private_path()?;
    workspace.check_room(room_bytes(&plan)).map_err(|error| {
        let needed = format!(
            "needed for {} of log and a data file of {}: {}",
            format_bytes(plan.work.log_bytes),
            format_bytes(plan.work.data_pages * PAGE_BYTES),
            format_bytes(room_bytes(&plan))
        );
        Failure::from(error).with_fact(needed).with_remedy("a smaller --log or --pages, or another directory")
    })?;
    let starts_servers = plan.engines.iter().any(|engine| engine.is_server());
    plan.dir = directory(&workspace, "lab-recover", starts_servers)?;

    let done = counted_sqlite().and_then(|registry| {
        let mut report = |progress: &::lab::Progress| out.progress(&progress.doing, progress.left);
        let explain = |error| lab_failure(error).to_string();
        experiment(&plan, registry, interrupt::flag(), &mut report, explain).map_err(|error| match error {
            ::lab::Error::Disk(luns::LunError::NotRoot) => {
                lab_failure(error).with_remedy(format_args!("run it as root: sudo {}", page::command_line()))
            }
            other => lab_failure(other),
        })
    });
    terminal::workspace::remove(workspace, out)?;
    let mut study = done?;
    study.dir = target.path().display().to_string();
    let version = env!("CARGO_PKG_VERSION");
    out.answer(
        |style| renderings::text::recoveries(&study, style),
        || renderings::json::recoveries(&study, version),
    );
    let page = || renderings::html::recoveries(&study, &page::command_line(), version);
    page::write(args.html.as_deref(), page, out)?;
    let asked_for = !args.engine.is_empty();
    Ok(if study.results.is_empty() || (asked_for && !study.left_out.is_empty()) { no_answer() } else { FINE })
}

/// The requested workload; what is not requested follows from the rest.
fn work(args: &RecoverArgs, log_max: u64) -> Result<Work, Failure> {
    let (pages, log_bytes) = match (args.pages, args.log) {
        (Some(pages), Some(log)) => (pages, log),
        (Some(pages), None) => (pages, pages.saturating_mul(LOGGED_BYTES)),
        (None, Some(log)) => ((log / PAGE_BYTES).clamp(Work::PAGES_MIN, PAGES_MAX), log),
        (None, None) if args.emulate.is_some() => (PAGES_EMULATED, PAGES_EMULATED * LOGGED_BYTES),
        (None, None) => ((log_max / PAGE_BYTES).clamp(Work::PAGES_MIN, PAGES_MAX), log_max),
    };
    let data_pages = args.data.map_or(pages * 2, |bytes| bytes / PAGE_BYTES);
    if data_pages < pages {
        let message = format_args!("--data has no room for {pages} pages of 4 KiB");
        return Err(Failure::usage(message).with_remedy(format_args!("--data {}", pages * PAGE_BYTES)));
    }
    if data_pages > Work::PAGES_MAX {
        return Err(Failure::usage("--data is more than 4 TiB"));
    }
    if log_bytes / PAGE_BYTES > Work::PAGES_MAX {
        return Err(Failure::usage("--log is more than 4 TiB"));
    }
    Ok(Work { pages, data_pages, log_bytes, seed: args.seed })
}

/// Shrinks the default workload until it needs at most half of the free space.
fn fit(args: &RecoverArgs, plan: &mut Plan, free_bytes: u64) -> Result<(), Failure> {
    let mut log = LOG_MAX;
    while room_bytes(plan) > free_bytes / 2 && log > LOG_MIN {
        log /= 2;
        plan.work = work(args, log)?;
    }
    Ok(())
}

/// Disk space for the experiment: the engines run sequentially, so the largest counts.
fn room_bytes(plan: &Plan) -> u64 {
    plan.engines.iter().map(|engine| engine.room_bytes(plan)).max().unwrap_or(0)
}
