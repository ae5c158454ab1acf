//! fio's JSON, normal and json+. fio prints messages and its report for people into the same stream, and
//! `--status-interval` several documents of one run; both are sorted out here.

mod job;
mod options;

pub(crate) use options::Options;

use crate::document::fingerprint;
use crate::{Document, ImportError, Note, Phase};
use job::Job;
use serde_json::Value;
use std::collections::BTreeMap;

/// All documents of the text.
pub(crate) fn read(text: &str) -> Result<Vec<Document>, ImportError> {
    read_with(text, &Options::default())
}

/// Reads all documents of the text; `named` are options that are known from elsewhere, for those that the
/// document does not state.
pub(crate) fn read_with(text: &str, named: &Options) -> Result<Vec<Document>, ImportError> {
    let (pieces, notes) = pieces(text)?;
    let mut documents: Vec<Document> = Vec::new();
    let mut failed: Option<ImportError> = None;
    let sketches: Vec<Sketch> = pieces.iter().map(|piece| Sketch::new(&piece.value)).collect();
    for (index, piece) in pieces.iter().enumerate() {
        // Of the states of one run the last is its result.
        if sketches.get(index + 1).is_some_and(|next| next.continues(&sketches[index])) {
            continue;
        }
        match document(piece, named) {
            Ok(document) => documents.push(document),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let Some(first) = documents.first_mut() else {
        return Err(failed.or_else(|| crate::unreadable::other_output_of_fio(text)).unwrap_or_else(|| {
            ImportError::new("the text holds no JSON of fio")
                .remedy("run fio with --output-format=json+ and import what it printed")
        }));
    };
    if let Some(error) = failed {
        first
            .notes
            .push(Note { line: error.line, text: format!("a document was left out: {}", error.reason) });
    }
    first.notes.extend(notes);
    Ok(documents)
}

/// A JSON document in the text.
struct Piece<'a> {
    line: usize,
    text: &'a str,
    value: Value,
}

/// Finds the documents; what stands around and in them is noted.
fn pieces(text: &str) -> Result<(Vec<Piece<'_>>, Vec<Note>), ImportError> {
    let mut pieces = Vec::new();
    let mut messages: Vec<(usize, &str)> = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let this = &rest[..end];
        if let Some(stray) = stray_before_document(rest) {
            if !rest[..stray].trim().is_empty() {
                messages.push((line, rest[..stray].trim()));
            }
            rest = &rest[stray..];
            continue;
        }
        if !this.starts_with('{') {
            if !this.trim().is_empty() {
                messages.push((line, this.trim()));
            }
            (rest, line) = (&rest[end..], line + 1);
            continue;
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let (value, length) = match stream.next() {
            Some(Ok(value)) => (value, stream.byte_offset()),
            _ => mended(rest, line, &mut messages)?,
        };
        pieces.push(Piece { line, text: &rest[..length], value });
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
        // Text after the last brace in its line is no line of its own.
        if let Some(after) = rest.strip_prefix('\n') {
            (rest, line) = (after, line + 1);
        }
    }
    Ok((pieces, notes_of(&messages)))
}

/// Length in bytes of the text before a document's first brace in its line.
fn stray_before_document(text: &str) -> Option<usize> {
    let brace = text.find(['{', '\n']).filter(|at| *at > 0 && text[*at..].starts_with('{'))?;
    text[brace + 1..].trim_start().starts_with("\"fio version\"").then_some(brace)
}

/// Notes of the first messages, and the number of all.
fn notes_of(messages: &[(usize, &str)]) -> Vec<Note> {
    const LISTED_MAX: usize = 5;
    const CHARS_MAX: usize = 200;
    let short = |text: &str| text.chars().take(CHARS_MAX).collect::<String>();
    let mut notes: Vec<Note> = messages
        .iter()
        .take(LISTED_MAX)
        .map(|(line, text)| Note::at(*line, format!("not part of the JSON: {}", short(text))))
        .collect();
    if let Some((line, _)) = messages.get(LISTED_MAX) {
        let more = messages.len() - LISTED_MAX;
        notes.push(Note::at(*line, format!("and {more} more lines that are not part of the JSON")));
    }
    notes
}

/// Reads a document with lines of messages in it: fio begins every line of its JSON with a brace, a bracket,
/// a quote or a number. Returns the value and the length of the text it stands in.
fn mended<'a>(
    text: &'a str,
    first_line: usize,
    messages: &mut Vec<(usize, &'a str)>,
) -> Result<(Value, usize), ImportError> {
    let mut length = text.len();
    let mut at = 0;
    let mut kept = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        at += line.len();
        let words = line.trim();
        let is_json = match words.bytes().next() {
            None => true,
            Some(b'{' | b'}' | b'[' | b']' | b'"') => true,
            Some(_) => words.trim_end_matches(',').parse::<f64>().is_ok(),
        };
        if is_json {
            kept.push_str(line);
        } else {
            messages.push((first_line + index, words));
            kept.push('\n');
        }
        if line.trim_end() == "}" {
            length = at;
            break;
        }
    }
    let value = serde_json::from_str(&kept).map_err(|error| {
        let line = first_line + error.line().saturating_sub(1);
        let cut = if error.is_eof() { "the JSON ends too early" } else { "the JSON is damaged" };
        let reason = error.to_string();
        let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
        ImportError::at(line, format!("{cut}: {reason}")).column(error.column().max(1)).remedy(
            "let fio write it with --output=FILE, which keeps messages out, and import that file whole",
        )
    })?;
    Ok((value, length))
}

/// The facts that decide whether a document is a later state of the same run as the document before it.
struct Sketch {
    jobs: Vec<(String, u64)>,
    printed_ms: Option<u64>,
    /// The total run time of its groups.
    ran_ms: u64,
    failed: bool,
}

impl Sketch {
    fn new(value: &Value) -> Sketch {
        let jobs = value["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let most = |job: &Value, field: &str, put: fn(u64, u64) -> u64| {
            let sides = ["read", "write", "trim", "mixed"].iter();
            sides.fold(0, |sum, side| put(sum, job[*side][field].as_u64().unwrap_or(0)))
        };
        let name = |job: &Value| job["jobname"].as_str().unwrap_or_default().to_owned();
        let mut groups: BTreeMap<u64, u64> = BTreeMap::new();
        for job in jobs {
            let ran_ms = groups.entry(job["groupid"].as_u64().unwrap_or(0)).or_default();
            *ran_ms = (*ran_ms).max(most(job, "runtime", u64::max));
        }
        Sketch {
            jobs: jobs.iter().map(|job| (name(job), most(job, "total_ios", u64::saturating_add))).collect(),
            printed_ms: value["timestamp_ms"].as_u64(),
            ran_ms: groups.values().fold(0, |sum, ms| sum.saturating_add(*ms)),
            failed: jobs.iter().any(|job| job["error"].as_i64() != Some(0)),
        }
    }

    /// Whether this document has the jobs of the other one, and they began before that was printed: another
    /// run would have begun after. Where nothing had been done by then, there is nothing to be lost.
    fn continues(&self, before: &Sketch) -> bool {
        let began_ms = self.printed_ms.map(|at| at.saturating_sub(self.ran_ms));
        let began_before = began_ms.zip(before.printed_ms).is_some_and(|(began, printed)| began < printed);
        let idle = before.ran_ms == 0 && !before.failed;
        (began_before || idle)
            && self.jobs.len() == before.jobs.len()
            && self
                .jobs
                .iter()
                .zip(&before.jobs)
                .all(|(ours, theirs)| ours.0 == theirs.0 && ours.1 >= theirs.1)
    }
}

fn document(piece: &Piece<'_>, named: &Options) -> Result<Document, ImportError> {
    let here = |error: ImportError| ImportError { line: error.line.or(Some(piece.line)), ..error };
    let value = &piece.value;
    let Some(version) = value["fio version"].as_str() else {
        let error = ImportError::new("this JSON is not fio's: it has no \"fio version\"");
        return Err(here(error.remedy("give what fio --output-format=json wrote, all of it")));
    };
    let global = Options::from_json(&value["global options"]);
    let list = match (&value["jobs"], &value["client_stats"]) {
        (Value::Array(jobs), _) | (_, Value::Array(jobs)) => jobs,
        _ => return Err(here(ImportError::new("the document has neither \"jobs\" nor \"client_stats\""))),
    };
    let mut notes = Vec::new();
    let mut jobs = Vec::new();
    for (index, job) in list.iter().enumerate() {
        let name = job["jobname"].as_str().unwrap_or_default();
        if name == "All clients" {
            notes.push(Note::new("the sum over all clients was left out: each client's result is kept"));
            continue;
        }
        let options = named.clone().overlaid(&global).overlaid(&Options::from_json(&job["job options"]));
        let place = |error: ImportError| here(error.place(format!("jobs[{index}] '{name}'")));
        jobs.extend(Job::read(job, options, &mut notes).map_err(place)?);
    }
    let timestamp_ms = value["timestamp_ms"]
        .as_u64()
        .or_else(|| value["timestamp"].as_u64().map(|seconds| seconds.saturating_mul(1000)));
    let phases = phases(jobs, version, timestamp_ms, &mut notes);
    if phases.is_empty() {
        let told: Vec<String> = notes.iter().map(ToString::to_string).collect();
        let why = if told.is_empty() { "it has no jobs".into() } else { told.join("; ") };
        return Err(here(ImportError::new(format!("no job of this run read or wrote anything: {why}"))));
    }
    let fingerprint = fingerprint(piece.text);
    Ok(Document { line: piece.line, tool: version.into(), fingerprint, phases, notes })
}

/// Jobs of a group ran at once; groups ran sequentially (fio makes them by `stonewall`, and also by
/// `new_group`, which its JSON does not report).
fn phases(jobs: Vec<Job>, tool: &str, timestamp_ms: Option<u64>, notes: &mut Vec<Note>) -> Vec<Phase> {
    let mut groups: BTreeMap<u64, Vec<Job>> = BTreeMap::new();
    jobs.into_iter().for_each(|job| groups.entry(job.group).or_default().push(job));
    let mut ended_ms = timestamp_ms;
    let mut phases = Vec::new();
    // fio tells when it ended: the last group ended then, and each began where the one before it ended.
    for (_, jobs) in groups.into_iter().rev() {
        let began_ms =
            ended_ms.map(|at| at.saturating_sub(jobs.iter().map(Job::runtime_ms).max().unwrap_or(0)));
        let ramp_ms = jobs.iter().map(|job| job.options.ramp_ms()).max().unwrap_or(0);
        ended_ms = began_ms.map(|at| at.saturating_sub(ramp_ms));
        let length = jobs.first().and_then(|job| job.options.length());
        let mut results = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for threads in together(jobs) {
            names.push(threads[0].name.clone());
            results.push(job::result(threads, tool, began_ms, notes));
        }
        names.dedup();
        phases.push(Phase { name: names.join(" + "), length, results });
    }
    phases.reverse();
    phases
}

/// Puts the threads of one job together: fio without `group_reporting` tells them one by one.
fn together(jobs: Vec<Job>) -> Vec<Vec<Job>> {
    let mut all: Vec<Vec<Job>> = Vec::new();
    for job in jobs {
        match all.last_mut() {
            Some(last) if last.len() < job.options.threads() as usize && last[0].is_thread_of_same(&job) => {
                last.push(job);
            }
            _ => all.push(vec![job]),
        }
    }
    all
}
