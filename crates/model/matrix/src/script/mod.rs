//! The runs of a matrix as a script for a machine where Headroom is not installed.
//!
//! ```text
//! ScriptFormat::Diskspd   PowerShell that calls diskspd.exe for each run and appends to a dated file
//! ScriptFormat::Fio       an fio job file: one section a run, one JSON with all of them
//! ScriptFormat::Sh        a shell script that calls fio for each run: a folder with a JSON file each
//! ```
//!
//! A target is a directory, in which the script makes `headroom-test.dat` and removes it; it refuses to start
//! where that file exists. Only a device (`/dev/...`, `#1`, `\\.\X:`) is used as it is, and only written to with
//! `destroy_data`. A run that the other tool cannot do as Headroom does it is refused by name, never left out in
//! silence. A budget and pruning need the results of earlier runs: a script has every run.

mod diskspd;
mod fio;

use crate::{Matrix, Point, RunKey};
use std::fmt::Write as _;
use std::time::Duration;
use workload::{Caching, Content, Limit, Pattern, format_bytes};

/// Format of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptFormat {
    /// PowerShell and diskspd, for Windows.
    Diskspd,
    /// An fio job file.
    Fio,
    /// A shell script that calls fio.
    Sh,
}

/// Why there is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot write this matrix for {tool}: {what}")]
pub struct NotEmitted {
    tool: &'static str,
    what: String,
}

/// The file that a script makes in a directory.
const TEST_FILE: &str = "headroom-test.dat";

/// Writes the script.
///
/// # Errors
/// Runs that the tool cannot do as Headroom does them, and names that cannot be written safely.
pub fn emit(kind: ScriptFormat, matrix: &Matrix, destroy_data: bool) -> Result<String, NotEmitted> {
    let tool = match kind {
        ScriptFormat::Diskspd => "diskspd",
        ScriptFormat::Fio | ScriptFormat::Sh => "fio",
    };
    let refused = |what: String| NotEmitted { tool, what };
    translatable(matrix).map_err(|what| refused(what.into()))?;
    let places = places(matrix, kind, destroy_data).map_err(refused)?;
    match kind {
        ScriptFormat::Diskspd => diskspd::emit(matrix, &places),
        ScriptFormat::Fio => fio::job_file(matrix, &places),
        ScriptFormat::Sh => fio::shell(matrix, &places),
    }
    .map_err(refused)
}

/// File or device that load runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A file that the script makes.
    File(String),
    /// A device.
    Device(String),
}

impl Place {
    fn path(&self) -> &str {
        match self {
            Place::File(path) | Place::Device(path) => path,
        }
    }
}

fn places(matrix: &Matrix, kind: ScriptFormat, destroy_data: bool) -> Result<Vec<Place>, String> {
    let is_device = |target: &str| match kind {
        ScriptFormat::Diskspd => target.starts_with('#') || target.starts_with("\\\\.\\"),
        ScriptFormat::Fio | ScriptFormat::Sh => target.starts_with("/dev/"),
    };
    let separator = if kind == ScriptFormat::Diskspd { '\\' } else { '/' };
    let place = |target: &String| {
        if !is_device(target) {
            let end = if target.ends_with(['/', separator]) { "" } else { &separator.to_string() };
            return Ok(Place::File(format!("{target}{end}{TEST_FILE}")));
        }
        if matrix.writes() && !destroy_data {
            return Err(format!(
                "it writes, and the content of {target} would be lost; name a directory, or say --destroy-data"
            ));
        }
        if matrix.fixed.size.is_none() && own_parts(matrix) {
            return Err(format!(
                "several threads that read {target} in sequence need parts of their own; give its size with --size"
            ));
        }
        Ok(Place::Device(target.clone()))
    };
    matrix.targets.iter().map(place).collect()
}

/// Whether threads walk parts of a target.
fn own_parts(matrix: &Matrix) -> bool {
    matrix.axes.pattern.contains(&Pattern::Sequential) && matrix.axes.threads.iter().any(|it| *it > 1)
}

fn translatable(matrix: &Matrix) -> Result<(), &'static str> {
    let fixed = &matrix.fixed;
    let plain_random = fixed.content == Content::default();
    match () {
        () if !fixed.access.is_plain() => Err("fixed.access is not the whole target alike; leave it out"),
        () if fixed.limit != Limit::default() => Err("fixed.limit; leave it out"),
        () if fixed.caching == Caching::Mapped => Err("fixed.caching is mapped; give direct or buffered"),
        () if !plain_random && fixed.content != Content::Zeros => {
            Err("fixed.content; leave it out, or give zeros")
        }
        () => Ok(()),
    }
}

/// One run as scripts name and number it.
struct ScriptRun<'a> {
    name: String,
    point: &'a Point,
    place: &'a Place,
    seed: u64,
}

fn runs<'a>(matrix: &Matrix, points: &'a [Point], places: &'a [Place]) -> Vec<ScriptRun<'a>> {
    let run = |key: RunKey| {
        let point = &points[key.point];
        let seed = matrix.seed(key, point);
        ScriptRun { name: name(matrix, point, key.repeat), point, place: &places[point.target], seed }
    };
    matrix.order().into_iter().map(run).collect()
}

/// "random-w25-8k-o4-t8-r1": letters, digits and dashes alone, so that it is safe everywhere.
fn name(matrix: &Matrix, point: &Point, repeat: u32) -> String {
    let Point { pattern, write_percent, outstanding, threads, .. } = point;
    let mut name = format!(
        "{pattern}-w{write_percent}-{}-o{outstanding}-t{threads}",
        short(u64::from(point.block_bytes))
    );
    if matrix.targets.len() > 1 {
        let _ = write!(name, "-d{}", point.target + 1);
    }
    if matrix.runs.repeats > 1 {
        let _ = write!(name, "-r{}", repeat + 1);
    }
    name
}

/// A size as diskspd and fio both read it: "8k", "2m", "512".
fn short(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 30) => format!("{}g", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// The part of one thread of a sequential run, in whole blocks.
fn part_bytes(bytes: u64, point: &Point) -> u64 {
    let part = bytes / u64::from(point.threads);
    part - part % u64::from(point.block_bytes)
}

/// The first lines of every script, each behind `mark`.
fn head(matrix: &Matrix, mark: &str, each: Duration, notes: &[&str]) -> String {
    let runs = matrix.order().len();
    let minutes = each.as_secs_f64() * runs as f64 / 60.0;
    let axes = &matrix.axes;
    let list = |values: Vec<String>| values.join(", ");
    let mut lines = vec![
        format!("{runs} runs of {} s each", each.as_secs_f64()),
        format!(
            "Expected run time: {minutes:.1} minutes ({:.2} hours), and the making of the test file",
            minutes / 60.0
        ),
        String::new(),
        format!("pattern      {}", list(axes.pattern.iter().map(Pattern::to_string).collect())),
        format!("writes       {} %", list(axes.write_percent.iter().map(u8::to_string).collect())),
        format!("block        {}", list(axes.block.iter().map(|it| format_bytes(u64::from(it.0))).collect())),
        format!("outstanding  {}", list(axes.outstanding.iter().map(u32::to_string).collect())),
        format!("threads      {}", list(axes.threads.iter().map(u32::to_string).collect())),
        String::new(),
    ];
    if !matrix.name.is_empty() {
        let name: String = matrix.name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        lines.insert(0, format!("Headroom matrix \"{name}\""));
    }
    if matrix.runs.budget.is_some() || matrix.runs.prune_percent.is_some() {
        lines.push("A budget and pruning need Headroom itself: this script has every run.".into());
    }
    lines.extend(notes.iter().map(|note| (*note).to_string()));
    lines.iter().map(|line| format!("{mark} {line}").trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockBytes;
    use std::collections::BTreeSet;

    fn study_c() -> Matrix {
        let mut matrix = Matrix { targets: vec!["D:\\it's".into()], ..Matrix::default() };
        matrix.axes.pattern = vec![Pattern::Random, Pattern::Sequential];
        matrix.axes.write_percent = vec![0, 10, 25, 100];
        matrix.axes.block = [8 << 10, 64 << 10, 512 << 10, 2 << 20].map(BlockBytes).to_vec();
        matrix.axes.outstanding = vec![2, 4, 8, 16];
        matrix.axes.threads = vec![4, 8, 16, 32];
        matrix
    }

    #[test]
    fn every_run_is_in_every_script_once() {
        let mut matrix = study_c();
        matrix.runs.repeats = 2;
        let points = matrix.points();
        let names = matrix.order().into_iter().map(|key| name(&matrix, &points[key.point], key.repeat));
        let names: BTreeSet<String> = names.collect();
        assert_eq!(names.len(), 1024);
        for (kind, before, after) in [
            (ScriptFormat::Diskspd, "run '", "' "),
            (ScriptFormat::Fio, "\n[", "]\n"),
            (ScriptFormat::Sh, "\nrun ", " "),
        ] {
            let script = emit(kind, &matrix, false).unwrap();
            for name in &names {
                let found = script.matches(&format!("{before}{name}{after}")).count();
                assert_eq!(found, 1, "{name} in {kind:?}");
            }
        }
    }

    #[test]
    fn the_time_is_on_top_in_minutes_and_hours() {
        let mut matrix = study_c();
        matrix.runs.duration = crate::Time(Duration::from_secs(119));
        for kind in [ScriptFormat::Diskspd, ScriptFormat::Fio, ScriptFormat::Sh] {
            let script = emit(kind, &matrix, false).unwrap();
            let top = script.lines().take(8).collect::<Vec<_>>().join("\n");
            assert!(top.contains("1024.0 minutes (17.07 hours)"), "{kind:?}: {top}");
        }
    }

    #[test]
    fn what_cannot_be_said_there_is_refused_by_name() {
        let refused = |change: fn(&mut Matrix), kind| {
            let mut matrix = Matrix { targets: vec!["/dev/sdx".into()], ..Matrix::default() };
            change(&mut matrix);
            emit(kind, &matrix, false).unwrap_err().to_string()
        };
        assert!(refused(|it| it.axes.write_percent = vec![1], ScriptFormat::Sh).contains("--destroy-data"));
        let threads = |it: &mut Matrix| {
            it.axes.threads = vec![2];
            it.axes.pattern = vec![Pattern::Sequential];
        };
        assert!(refused(threads, ScriptFormat::Fio).contains("--size"));
        assert!(refused(|it| it.fixed.limit.iops = Some(1.0), ScriptFormat::Sh).contains("fixed.limit"));
        assert!(
            refused(|it| it.fixed.durability = workload::Durability::Synced, ScriptFormat::Diskspd)
                .contains("sync")
        );
    }
}
