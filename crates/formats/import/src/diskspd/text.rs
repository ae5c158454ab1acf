//! diskspd's report for people, of 2.0.17 (2016) to 2.2. A file may hold several, appended one to another.

use super::text_parameters::{self, Line};
use super::text_tables::{self, Columns, TotalRow};
use super::{Percentiles, Row, Span, SpanTold, phases, start_time};
use crate::document::fingerprint;
use crate::summary::{Summary, s_to_ns};
use crate::{Document, ImportError, Note};

/// All reports in the text. One that is damaged is left out with a note, as long as another is whole.
pub(crate) fn read(text: &str) -> Result<Vec<Document>, ImportError> {
    let lines: Vec<Line<'_>> = text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
    let starts: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].1.trim_start().starts_with("Command Line:")).collect();
    let starts = if starts.is_empty() { vec![0] } else { starts };
    let mut documents: Vec<Document> = Vec::new();
    let mut damaged: Vec<ImportError> = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(lines.len());
        match document(&lines[*start..end]) {
            Ok(document) => documents.push(document),
            Err(error) => damaged.push(error),
        }
    }
    let Some(first) = documents.first_mut() else {
        let nothing = || ImportError::new("the text holds no report of diskspd");
        return Err(damaged.into_iter().next().unwrap_or_else(nothing));
    };
    for error in damaged {
        let note = Note { line: error.line, text: format!("a report was left out: {}", error.reason) };
        first.notes.push(note);
    }
    let stray = lines[..starts[0]].iter().find(|(_, text)| !text.trim().is_empty());
    if let Some((line, text)) = stray {
        first.notes.push(Note::at(*line, format!("before the report: {}", text.trim())));
    }
    Ok(documents)
}

/// Where in the report we are.
enum Part {
    Preface,
    Parameters,
    System,
    Result,
    Cpu,
    Threads(Section),
    Percentiles,
    Totals,
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    Total,
    Read,
    Write,
}

#[derive(Default)]
struct Report {
    spans: Vec<Span>,
    started_unix_ns: Option<u64>,
    says_mb: bool,
    says_total_latency: bool,
    notes: Vec<Note>,
    /// Which timespan's result is read.
    current: Option<usize>,
    columns: Option<Columns>,
    /// Rows read of each section, and the I/Os of its last line.
    rows: [usize; 3],
    /// Of which target the percentiles are; `None`: of all.
    path: Option<String>,
}

fn document(lines: &[Line<'_>]) -> Result<Document, ImportError> {
    let mut report = Report::default();
    let mut part = Part::Preface;
    for (number, whole) in lines {
        let line: Line<'_> = (*number, whole.trim());
        if line.1.is_empty() {
            continue;
        }
        match heading(line, &mut report)? {
            Some(next) => part = next,
            None => report.take(&part, line)?,
        }
    }
    report.check(lines)?;
    let text: Vec<&str> = lines.iter().map(|(_, text)| *text).collect();
    let tool = report.tool();
    let mut notes = report.notes;
    let phases = phases(report.spans, &tool, report.started_unix_ns, &mut notes)
        .map_err(|error| ImportError { line: error.line.or(lines.first().map(|line| line.0)), ..error })?;
    let line = lines.first().map_or(1, |line| line.0);
    Ok(Document { line, tool, fingerprint: fingerprint(&text.join("\n")), phases, notes })
}

/// The part of the report that the line begins, if it begins one.
fn heading(line: Line<'_>, report: &mut Report) -> Result<Option<Part>, ImportError> {
    let text = line.1;
    let new = match text {
        "Input parameters:" => Part::Parameters,
        "System information:" => Part::System,
        "Total IO" => Part::Threads(Section::Total),
        "Read IO" => Part::Threads(Section::Read),
        "Write IO" => Part::Threads(Section::Write),
        "Totals:" => Part::Totals,
        "Effective IO Distributions" | "Wait Statistics" | "ETW:" => Part::System,
        "Total latency distribution:" | "total:" => {
            report.says_total_latency |= text.starts_with("Total");
            report.path = None;
            Part::Percentiles
        }
        _ => {
            if let Some(path) = text.strip_prefix("Latency distribution: ") {
                report.path = Some(path.into());
                Part::Percentiles
            } else if text.starts_with("%-ile") {
                Part::Percentiles
            } else if let Some(number) = text.strip_prefix("Results for timespan ") {
                report.begin(line, number.trim_end_matches(':'))?;
                Part::Result
            } else if is_cpu_head(text) {
                Part::Cpu
            } else {
                return Ok(None);
            }
        }
    };
    if matches!(new, Part::Threads(_)) {
        report.columns = None;
    }
    Ok(Some(new))
}

fn is_cpu_head(text: &str) -> bool {
    let mut names = text.split('|').map(str::trim).rev();
    names.next() == Some("Idle") && names.next() == Some("Kernel") && names.next() == Some("User")
}

impl Report {
    fn begin(&mut self, line: Line<'_>, number: &str) -> Result<(), ImportError> {
        let index = text_parameters::number::<usize>(line, number)?.wrapping_sub(1);
        if index >= self.spans.len() {
            let reason = format!("a result of timespan {number}, which the parameters do not name");
            return Err(ImportError::at(line.0, reason));
        }
        self.current = Some(index);
        self.rows = [0; 3];
        self.path = None;
        Ok(())
    }

    fn take(&mut self, part: &Part, line: Line<'_>) -> Result<(), ImportError> {
        let text = line.1;
        match part {
            Part::Parameters if text.starts_with("timespan:") => self.spans.push(Span::default()),
            Part::Parameters => match self.spans.last_mut() {
                Some(span) => text_parameters::take(span, line, &mut self.notes)?,
                None if text == "using verbose mode" => {}
                None => self.notes.push(Note::at(line.0, format!("not understood: {text}"))),
            },
            Part::System => {
                if let Some(time) = text.strip_prefix("start time:") {
                    self.started_unix_ns = start_time(time);
                }
            }
            Part::Result => {
                if let Some(time) = text.strip_prefix("actual test time:") {
                    let s: f64 = text_parameters::number(line, time.trim().trim_end_matches('s'))?;
                    let elapsed_ns = s_to_ns(s).filter(|ns| *ns > 0).ok_or_else(|| {
                        ImportError::at(line.0, format!("'{}' is no test time", time.trim()))
                    })?;
                    let told = SpanTold { elapsed_ns, ..SpanTold::default() };
                    self.span(line)?.told = Some(told);
                }
            }
            Part::Cpu if text.chars().all(|c| c == '-') => {}
            Part::Cpu => {
                let told = self.results(line)?;
                let index = u32::try_from(told.cores.len()).unwrap_or(u32::MAX);
                told.cores.extend(text_tables::core(line, index)?);
            }
            Part::Threads(section) => self.thread_line(*section, line)?,
            Part::Percentiles => self.percentile_line(line)?,
            Part::Preface | Part::Totals => {}
        }
        Ok(())
    }

    fn thread_line(&mut self, section: Section, line: Line<'_>) -> Result<(), ImportError> {
        let text = line.1;
        let Some(columns) = &self.columns else {
            let columns = Columns::read(line)?;
            self.says_mb |= columns.says_mb;
            self.columns = Some(columns);
            return Ok(());
        };
        if text.chars().all(|c| c == '-') {
            return Ok(());
        }
        let rows = self.rows[section as usize];
        if text.starts_with("total:") {
            let total = columns.total(line)?;
            return self.total_line(section, line, &total);
        }
        let row = columns.row(line)?;
        self.rows[section as usize] += 1;
        let told = self.results(line)?;
        match (section, told.rows.get_mut(rows)) {
            (Section::Total, None) => told.rows.push(Row {
                thread: row.thread,
                path: row.path,
                line: line.0,
                target_bytes: row.target_bytes,
                ..Row::default()
            }),
            (Section::Read, Some(of)) if of.thread == row.thread && of.path == row.path => of.read = row.told,
            (Section::Write, Some(of)) if of.thread == row.thread && of.path == row.path => {
                of.write = row.told;
            }
            _ => {
                return Err(ImportError::at(
                    line.0,
                    "the rows of the tables are not the same threads and files",
                )
                .remedy("import the output as diskspd printed it"));
            }
        }
        Ok(())
    }

    /// The last line of a table must be the sum of the others: where a row is missing, it is not.
    fn total_line(&mut self, section: Section, line: Line<'_>, total: &TotalRow) -> Result<(), ImportError> {
        let bucket_ms = self.span(line)?.bucket_ms.unwrap_or(1000);
        let told = self.results(line)?;
        let sum = |part: fn(&Row) -> &Summary| {
            told.rows.iter().fold(0_u64, |sum, row| sum.saturating_add(part(row).count))
        };
        let (name, counted) = match section {
            Section::Total => return Ok(()),
            Section::Read => ("reads", sum(|row| &row.read)),
            Section::Write => ("writes", sum(|row| &row.write)),
        };
        if counted != total.count {
            let text = format!("the threads' {name} are {counted}, the line of totals says {}", total.count);
            self.notes.push(Note::at(line.0, text));
        }
        if let Some(deviation) = total.iops_deviation.filter(|_| total.count > 0) {
            let text = format!("standard deviation of the {name} a second, each {bucket_ms} ms: {deviation}");
            self.notes.push(Note::at(line.0, text));
        }
        Ok(())
    }

    fn percentile_line(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let Some(row) = text_tables::percentile(line)? else { return Ok(()) };
        let path = self.path.clone();
        let told = self.results(line)?;
        let table = match path {
            None => &mut told.percentiles,
            Some(path) => {
                let at = told.by_path.iter().position(|(other, _)| *other == path);
                let at = at.unwrap_or_else(|| {
                    told.by_path.push((path, Percentiles::default()));
                    told.by_path.len() - 1
                });
                &mut told.by_path[at].1
            }
        };
        table.read.extend(row.read_ns.map(|ns| (row.percent, ns)));
        table.write.extend(row.write_ns.map(|ns| (row.percent, ns)));
        Ok(())
    }

    fn span(&mut self, line: Line<'_>) -> Result<&mut Span, ImportError> {
        let current = self.current.and_then(|at| self.spans.get_mut(at));
        current.ok_or_else(|| ImportError::at(line.0, "a table before 'Results for timespan'"))
    }

    fn results(&mut self, line: Line<'_>) -> Result<&mut SpanTold, ImportError> {
        let told = self.span(line)?.told.as_mut();
        told.ok_or_else(|| ImportError::at(line.0, "a table without 'actual test time' before it"))
    }

    /// A report that was cut off lacks its last tables.
    fn check(&self, lines: &[Line<'_>]) -> Result<(), ImportError> {
        let last = lines.last().map_or(1, |line| line.0);
        let cut = |reason: &str| {
            Err(ImportError::at(last, reason).remedy("import the whole output, this seems cut off"))
        };
        if self.spans.is_empty() {
            return cut("the report has no parameters");
        }
        if self.current.is_none() {
            return cut("the report ends before its results");
        }
        for span in &self.spans {
            let Some(told) = &span.told else { continue };
            if told.rows.is_empty() {
                return cut("the report ends before its table 'Total IO'");
            }
            if span.latency && told.percentiles.read.is_empty() && told.percentiles.write.is_empty() {
                let ios = told.rows.iter().any(|row| row.read.count > 0 || row.write.count > 0);
                if ios {
                    return cut("latency was measured, but the report ends before its percentiles");
                }
            }
        }
        if self.spans.iter().any(|span| span.told.is_some()) && self.rows[2] < self.rows[0] {
            return cut("the report ends before the end of its table 'Write IO'");
        }
        Ok(())
    }

    /// The text does not name its version; its form tells about it.
    fn tool(&self) -> String {
        match (self.says_mb, self.says_total_latency) {
            (true, _) => "diskspd, up to 2.0.17".into(),
            (false, true) => "diskspd 2.2".into(),
            (false, false) => "diskspd, 2.0.18 or later".into(),
        }
    }
}
