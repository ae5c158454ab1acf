//! Selection of A and B: entries of the history, files, the baseline, the newest.

use ::compare::RUNS_MAX;
use capability::Capability;
use history::{EntryKind, History, ResultId};
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use terminal::{Failure, kept};
use workload::{PhaseResult, RunResult};

/// One side of a comparison.
pub struct Chosen {
    /// "run 12", "before.json".
    pub name: String,
    /// When it was measured, nanoseconds since 1970; 0 if not known.
    at_unix_ns: u64,
    /// The selected results.
    pub what: What,
}

/// Results that were selected.
pub enum What {
    /// The repeats of one workload, at least one, or of several side by side.
    Runs(Vec<Vec<RunResult>>),
    /// A capability.
    Capability(Box<Capability>),
}

impl Chosen {
    /// Its runs; none of a capability.
    pub fn runs(&self) -> Vec<RunResult> {
        match &self.what {
            What::Runs(subjects) => subjects.concat(),
            What::Capability(_) => Vec::new(),
        }
    }
}

/// No result of ours is larger.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// One side alone.
pub fn one(text: &str, history: Option<&Path>) -> Result<Chosen, Failure> {
    choose(text, &mut Kept { path: history, open: None }, None)
}

/// Both sides; "latest" is of the other side's kind.
pub fn two(a: &str, b: &str, history: Option<&Path>) -> Result<(Chosen, Chosen), Failure> {
    let mut kept = Kept { path: history, open: None };
    if is_latest(a) && !is_latest(b) {
        let b = choose(b, &mut kept, None)?;
        return Ok((choose(a, &mut kept, Some(&b))?, b));
    }
    let a = choose(a, &mut kept, None)?;
    let b = choose(b, &mut kept, Some(&a))?;
    Ok((a, b))
}

/// The entries of the history that a text names: all runs, or one capability.
pub fn entries(text: &str, history: &History) -> Result<(EntryKind, Vec<ResultId>), Failure> {
    let mut found = Vec::new();
    for part in text.split(',').map(str::trim) {
        found.push(if is_latest(part) {
            latest(history, None)?
        } else {
            entry(part).ok_or_else(|| unclear(part))?
        });
    }
    let kind = found[0].0;
    if found.iter().any(|(other, _)| *other != kind) || (kind == EntryKind::Capability && found.len() > 1) {
        return Err(Failure::usage(format_args!("'{text}': a baseline is some runs, or one capability")));
    }
    Ok((kind, found.into_iter().map(|(_, id)| id).collect()))
}

/// A as it is called beside B: by its day if that is another one.
pub fn name_beside(a: &Chosen, b: &Chosen) -> String {
    let day = |unix_ns: u64| {
        let at = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).ok().filter(|_| unix_ns > 0)?;
        Some(at.to_zoned(jiff::tz::TimeZone::UTC).date())
    };
    match (day(a.at_unix_ns), day(b.at_unix_ns)) {
        (Some(of_a), Some(of_b)) if of_a.year() != of_b.year() => of_a.strftime("on %-d %B %Y").to_string(),
        (Some(of_a), Some(of_b)) if of_a != of_b => of_a.strftime("on %-d %B").to_string(),
        _ => a.name.clone(),
    }
}

/// The history, opened when it is needed.
struct Kept<'a> {
    path: Option<&'a Path>,
    open: Option<History>,
}

impl Kept<'_> {
    fn get(&mut self) -> Result<&History, Failure> {
        if self.open.is_none() {
            self.open = Some(kept::open(self.path)?);
        }
        Ok(self.open.as_ref().expect("opened above"))
    }
}

fn choose(text: &str, kept: &mut Kept<'_>, beside: Option<&Chosen>) -> Result<Chosen, Failure> {
    if text.trim() == "baseline" {
        let history = kept.get()?;
        let Some((kind, ids)) = history.baseline()? else {
            return Err(Failure::usage("there is no baseline yet")
                .with_remedy("headroom compare --set-baseline run:12, with a run of headroom history"));
        };
        let parts = ids.into_iter().map(|id| of_entry(history, kind, id)).collect::<Result<_, _>>()?;
        return Ok(Chosen { name: "the baseline".into(), ..together("the baseline", parts)? });
    }
    let mut parts = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        parts.push(if is_latest(part) {
            let history = kept.get()?;
            let (kind, id) = latest(history, beside)?;
            of_entry(history, kind, id)?
        } else if let Some((kind, id)) = entry(part) {
            of_entry(kept.get()?, kind, id)?
        } else if Path::new(part).is_file() || part.ends_with(".json") {
            of_file(Path::new(part))?
        } else {
            return Err(unclear(part));
        });
    }
    together(text, parts)
}

fn is_latest(text: &str) -> bool {
    text.trim() == "latest"
}

/// "run:12", "12", "capability:3".
fn entry(text: &str) -> Option<(EntryKind, ResultId)> {
    let (kind, number) = text.split_once(':').unwrap_or(("run", text));
    let kind = match kind {
        "run" => EntryKind::Run,
        "capability" => EntryKind::Capability,
        _ => return None,
    };
    number.parse().ok().map(|id| (kind, ResultId(id)))
}

fn latest(history: &History, beside: Option<&Chosen>) -> Result<(EntryKind, ResultId), Failure> {
    let run = || Ok::<_, Failure>(history.newest_run()?.map(|id| (EntryKind::Run, id)));
    let capability = || Ok::<_, Failure>(history.newest_capability()?.map(|id| (EntryKind::Capability, id)));
    let found = match beside.map(|beside| &beside.what) {
        Some(What::Runs(_)) => run()?,
        Some(What::Capability(_)) => capability()?,
        None => run()?.map_or_else(capability, |run| Ok(Some(run)))?,
    };
    found.ok_or_else(|| {
        Failure::new("the history has nothing to compare yet")
            .with_remedy("headroom run, or headroom measure")
    })
}

fn unclear(text: &str) -> Failure {
    Failure::usage(format_args!("'{text}' is nothing that can be compared"))
        .with_remedy("run:12 or 12, capability:3, a file of headroom run --json, latest, or baseline")
}

fn of_entry(history: &History, kind: EntryKind, id: ResultId) -> Result<Chosen, Failure> {
    let name = format!("{kind} {id}");
    if kind == EntryKind::Capability {
        let capability = history.capability(id)?;
        let at_unix_ns = capability.measured_unix_ns;
        return Ok(Chosen { name, at_unix_ns, what: What::Capability(Box::new(capability)) });
    }
    let run = history.run(id)?;
    Ok(Chosen { name, at_unix_ns: run.started_unix_ns, what: What::Runs(vec![vec![run]]) })
}

/// Repeats of one thing as one side.
fn together(text: &str, parts: Vec<Chosen>) -> Result<Chosen, Failure> {
    if parts.len() > RUNS_MAX {
        return Err(Failure::usage(format_args!("{} repeats on one side: at most {RUNS_MAX}", parts.len())));
    }
    let mut parts = parts.into_iter();
    let Some(mut all) = parts.next() else { return Err(unclear(text)) };
    for part in parts {
        let unlike =
            |why: &str| Failure::usage(format_args!("{} and {} are no repeats: {why}", all.name, part.name));
        match (&mut all.what, part.what) {
            (What::Runs(subjects), What::Runs(more)) if subjects.len() == more.len() => {
                subjects.iter_mut().zip(more).for_each(|(all, more)| all.extend(more));
            }
            (What::Runs(_), What::Runs(_)) => return Err(unlike("they have different numbers of results")),
            _ => return Err(unlike("only runs are taken together")),
        }
        let name = part.name.strip_prefix("run ").unwrap_or(&part.name);
        all.name = format!("{}, {name}", all.name);
    }
    if all.name.contains(", ") {
        all.name = all.name.replacen("run ", "runs ", 1);
    }
    Ok(all)
}

fn of_file(path: &Path) -> Result<Chosen, Failure> {
    let name = path.display().to_string();
    let refused = |why: String| {
        Failure::new(format_args!("cannot compare {name}: {why}"))
            .with_remedy("give what headroom run --json or headroom measure --json printed")
    };
    let mut text = String::new();
    host::open_regular_file(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| refused(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(refused("it is too large for a result".into()));
    }
    let what = parse(&text).map_err(refused)?;
    let at_unix_ns = match &what {
        What::Runs(subjects) => subjects[0][0].started_unix_ns,
        What::Capability(capability) => capability.measured_unix_ns,
    };
    Ok(Chosen { name, at_unix_ns, what })
}

/// Parses the output of `headroom run --json`, `headroom measure --json` or `headroom history show`.
fn parse(text: &str) -> Result<What, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| at_line(&error))?;
    if value.get("curves").is_some() {
        return capability(value).map(|capability| What::Capability(Box::new(capability)));
    }
    if value.get("phases").is_none() {
        let run: RunResult = serde_json::from_str(text).map_err(|error| at_line(&error))?;
        return Ok(What::Runs(vec![vec![run]]));
    }
    #[derive(serde::Deserialize)]
    struct Session {
        phases: Vec<PhaseResult>,
    }
    let session: Session = serde_json::from_str(text).map_err(|error| at_line(&error))?;
    let runs = session.phases.into_iter().flat_map(|phase| phase.results);
    let subjects: Vec<Vec<RunResult>> = runs.map(|run| vec![run]).collect();
    if subjects.is_empty() { Err("it has no results".into()) } else { Ok(What::Runs(subjects)) }
}

/// As it is kept, or as `headroom measure --json` shows it: without the cost model, which is not compared.
fn capability(mut value: Value) -> Result<Capability, String> {
    if let Some(at) = value.get("measured_at").and_then(Value::as_str) {
        let at: jiff::Timestamp = at.parse().map_err(|error| format!("measured_at: {error}"))?;
        value["measured_unix_ns"] = u64::try_from(at.as_nanosecond()).unwrap_or(0).into();
        value["cost_model"] = Value::Null;
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// "line 3: missing field `workload`".
fn at_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let why = text.split(" at line ").next().unwrap_or(&text);
    format!("line {}: {why}", error.line())
}
