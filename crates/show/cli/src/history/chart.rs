use charts::{Chart, NamedRun, RunChart, Theme, png_file, svg_file};
use history::{History, ResultId};
use report::html::{RunsPage, Validity};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use terminal::{Done, FINE, Failure, Output, kept, page};
use workload::{PhaseResult, RunResult};

/// Arguments of `headroom history chart`.
#[derive(clap::Args)]
#[command(after_help = "\
Kinds:
  load-curve         IOPS and latency against outstanding I/Os
  sweep              the same with knees and crossings, and both over time;
                     of two sweeps, how the second compares
  heat-map           IOPS over outstanding I/Os and block size; others as in
                     heat-map:X,Y,VALUE with X and Y of block-size, outstanding,
                     threads, write-share, pattern, target and VALUE of iops,
                     mib-per-s, mean, p99
  percentiles        latency against percentiles, on an axis of nines
  over-time          IOPS, MiB/s and latency, slice by slice
  latency-over-time  how latencies were distributed in each slice
  histogram          how many I/Os took how long

Examples:
  headroom history chart 12 --kind percentiles --out p.png
  headroom history chart 1-16 17-32 --kind sweep --out study.svg
  headroom history chart 12 15 --kind over-time --out time.svg --theme dark
  headroom history chart before.json after.json --out compared.html")]
pub struct ChartArgs {
    /// Numbers of runs in the history (12, or 1-16 for several), or files that headroom run --json wrote (- is stdin)
    #[arg(required = true, value_name = "RUN|FILE")]
    runs: Vec<Given>,
    /// Kinds of charts; several for a page [default: those that show most about these runs]
    #[arg(long, value_name = "KIND")]
    kind: Vec<RunChart>,
    /// File to write: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    out: OutFile,
    /// Colours of a picture: light or dark; a page has both
    #[arg(long, default_value = "light", value_name = "THEME")]
    theme: Theme,
    /// Heading of a page [default: the runs' configuration]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
}

/// Results to show.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    Run(ResultId),
    /// From the first to the last, as the history lists the runs of one command.
    Runs(ResultId, ResultId),
    File(PathBuf),
    Stdin,
}

/// A file and what its name says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OutFile {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
    Html,
}

/// More runs at once are a mistake.
const RUNS_MAX: i64 = 10_000;
/// A larger file than this is no result of ours.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Text that marks each PNG of ours.
const PNG_MARK: &[u8] = b"Software\0Headroom";

/// Output of `headroom history chart --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Chart"))]
pub(crate) struct Drawn<'a> {
    /// The file that was written.
    file: &'a Path,
    /// Names of its charts.
    charts: &'a [String],
    /// Number of runs drawn.
    runs: usize,
    /// Parts that were left out or cannot be drawn.
    notes: &'a [&'a String],
}

/// `headroom history chart`.
pub fn run(args: &ChartArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let OutFile { path, format } = &args.out;
    let several = args.kind.len() > 1;
    if several && *format != Format::Html {
        return Err(Failure::usage(format_args!(
            "{} holds one chart, not {}",
            path.display(),
            args.kind.len()
        ))
        .with_remedy("name one --kind, or a page: --out charts.html"));
    }
    let runs = read_all(&args.runs, history)?;
    let kinds = if args.kind.is_empty() { RunChart::fitting(&runs) } else { args.kind.clone() };
    let mut drawn: Vec<(RunChart, Chart)> = kinds.iter().map(|kind| (*kind, kind.draw(&runs))).collect();
    if *format != Format::Html {
        drawn.truncate(1);
    }
    let Some((_, first)) = drawn.iter().find(|(_, chart)| !chart.is_empty()) else {
        let why = drawn.first().and_then(|(_, chart)| chart.notes.first().cloned());
        return Err(Failure::new(format_args!(
            "there is nothing to draw: {}",
            why.unwrap_or_else(|| "no run is given".into())
        ))
        .with_remedy("give runs with I/Os, or another --kind"));
    };
    match format {
        Format::Svg => {
            let svg = svg_file(first, args.theme);
            page::write_marked("picture", path, page::SVG_MARK, svg.as_bytes())?;
        }
        Format::Png => {
            let png = png_file(first, args.theme).map_err(|error| Failure::new(&error))?;
            page::write_marked("picture", path, PNG_MARK, &png)?;
        }
        Format::Html => {
            let title = args.name.clone().unwrap_or_else(|| charts::title(&runs));
            let page = || {
                report::html::runs(&RunsPage {
                    title: &title,
                    runs: &runs,
                    charts: &kinds,
                    sentences: &[],
                    validity: Validity::Unknown,
                    command: &page::command_line(),
                    version: env!("CARGO_PKG_VERSION"),
                })
            };
            page::write(Some(path), page, out)?;
        }
    }
    let names: Vec<String> = drawn.iter().map(|(kind, _)| kind.to_string()).collect();
    let notes: Vec<&String> = drawn.iter().flat_map(|(_, chart)| &chart.notes).collect();
    out.answer(
        |_| {
            let of = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
            format!("{}: {} of {of}\n", path.display(), names.join(", "))
        },
        || serde_json::json!(Drawn { file: path, charts: &names, runs: runs.len(), notes: &notes }),
    );
    Ok(FINE)
}

/// All results in the order they were named. Files are compared with each other where there are several.
fn read_all(given: &[Given], history: Option<&Path>) -> Result<Vec<NamedRun<'static>>, Failure> {
    let needs_history = given.iter().any(|each| matches!(each, Given::Run(_) | Given::Runs(..)));
    let history = if needs_history { Some(kept::open(history)?) } else { None };
    let groups = given.len() > 1 && given.iter().any(|each| !matches!(each, Given::Run(_) | Given::Runs(..)));
    let mut runs = Vec::new();
    for each in given {
        let mut read = match (each, &history) {
            (Given::Run(id), Some(history)) => vec![NamedRun {
                result: Cow::Owned(history.run(*id)?),
                name: each.to_string(),
                group: String::new(),
            }],
            (Given::Runs(from, to), Some(history)) => stretch(history, *from, *to)?,
            _ => from_file(each)?,
        };
        if groups {
            read.iter_mut().for_each(|run| run.group = each.to_string());
        }
        runs.append(&mut read);
    }
    Ok(runs)
}

/// The runs with these numbers.
fn stretch(history: &History, from: ResultId, to: ResultId) -> Result<Vec<NamedRun<'static>>, Failure> {
    let shown = |id| -> Result<NamedRun<'static>, Failure> {
        let result = history.run(ResultId(id))?;
        let name = result.workload.name.clone();
        Ok(NamedRun { result: Cow::Owned(result), name, group: String::new() })
    };
    (from.0..=to.0).map(shown).collect()
}

/// The results of a file: the phases of `headroom run --json`, or one result.
fn from_file(given: &Given) -> Result<Vec<NamedRun<'static>>, Failure> {
    let refused = |why: &dyn fmt::Display| {
        Failure::new(format_args!("cannot read runs from {}: {why}", given.place())).with_remedy(
            "give the number of a run in headroom history, or a file that headroom run --json wrote",
        )
    };
    let text = given.read().map_err(|error| refused(&error))?;
    let mut value: Value =
        serde_json::from_str(&text).map_err(|error| refused(&format_args!("it is no JSON: {error}")))?;
    let Some(phases) = value.get_mut("phases").map(Value::take) else {
        if value.get("workload").is_none() {
            return Err(refused(&"it has neither \"phases\" nor \"workload\""));
        }
        let result: RunResult = serde_json::from_value(value).map_err(|error| refused(&error))?;
        let name = result.workload.name.clone();
        return Ok(vec![NamedRun { result: Cow::Owned(result), name, group: String::new() }]);
    };
    let Value::Array(phases) = phases else { return Err(refused(&"\"phases\" is no list")) };
    let mut runs = Vec::new();
    for (number, phase) in phases.into_iter().enumerate() {
        let phase: PhaseResult = serde_json::from_value(phase)
            .map_err(|error| refused(&format_args!("phase {}: {error}", number + 1)))?;
        let shown = NamedRun::phases(std::slice::from_ref(&phase));
        let owned = shown.into_iter().map(|run| (run.name, run.group, run.result.into_owned()));
        runs.extend(owned.map(|(name, group, result)| NamedRun { result: Cow::Owned(result), name, group }));
    }
    Ok(runs)
}

impl Given {
    fn read(&self) -> std::io::Result<String> {
        let source: Box<dyn Read> = match self {
            Given::File(path) => Box::new(host::open_regular_file(path)?),
            _ => Box::new(std::io::stdin()),
        };
        let mut text = String::new();
        source.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(std::io::Error::other("it is larger than 1 GiB"));
        }
        Ok(text)
    }

    fn place(&self) -> String {
        match self {
            Given::File(path) => path.display().to_string(),
            other => other.to_string(),
        }
    }
}

/// As a label: "run 12", "before" of before.json.
impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Run(id) => write!(f, "run {id}"),
            Given::Runs(from, to) => write!(f, "runs {from}-{to}"),
            Given::File(path) => path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().fmt(f),
            Given::Stdin => f.write_str("stdin"),
        }
    }
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Given, String> {
        match text {
            "-" => Ok(Given::Stdin),
            "" => Err("give the number of a run or the name of a file".into()),
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits
                .parse()
                .map(|id| Given::Run(ResultId(id)))
                .map_err(|_| format!("'{digits}' is not the number of a run; headroom history lists them")),
            file => match file.split_once('-').map(|(from, to)| (from.parse::<i64>(), to.parse::<i64>())) {
                Some((Ok(from), Ok(to))) if (from..from.saturating_add(RUNS_MAX)).contains(&to) => {
                    Ok(Given::Runs(ResultId(from), ResultId(to)))
                }
                Some((Ok(_), Ok(_))) => Err(format!(
                    "'{file}' is not a stretch of runs: FROM-TO, {RUNS_MAX} at most, as headroom history lists"
                )),
                _ => Ok(Given::File(file.into())),
            },
        }
    }
}

impl FromStr for OutFile {
    type Err = String;

    fn from_str(text: &str) -> Result<OutFile, String> {
        let path = PathBuf::from(text);
        let format = match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => Format::Svg,
            Some("png") => Format::Png,
            Some("html") => Format::Html,
            _ => return Err(format!("'{text}' ends in none of .svg, .png and .html")),
        };
        Ok(OutFile { path, format })
    }
}
