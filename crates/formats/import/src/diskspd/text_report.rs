//! The parts of diskspd's report for people, read line by line.

use super::text_command;
use super::text_parameters::{self, Line};
use super::text_tables::{self, Columns};
use super::{Percentiles, Row, Span, SpanTold, start_time};
use crate::summary::{Summary, s_to_ns};
use crate::{ImportError, Note};

/// Where in the report we are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    Preface,
    Parameters,
    System,
    Result,
    Cpu,
    Threads(Section),
    Percentiles,
    /// After the last line of a table: what is no heading is not the report's.
    Between,
}

/// A thread table.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Section {
    Total,
    Read,
    Write,
}

/// Figures read of a thread table.
#[derive(Clone, Copy, Default)]
pub(super) struct Table {
    pub rows: usize,
    /// Its last line.
    pub total: Option<Summary>,
    /// The line of that, or of the last row.
    pub line: usize,
    /// Rows were replaced by "...".
    pub is_shortened: bool,
}

/// A report as far as it was read.
#[derive(Default)]
pub(super) struct Report {
    pub spans: Vec<Span>,
    /// The thread tables of each timespan, by [`Section`].
    pub tables: Vec<[Table; 3]>,
    pub started_unix_ns: Option<u64>,
    pub notes: Vec<Note>,
    pub command: Option<String>,
    /// Index of the timespan whose result is read.
    pub current: Option<usize>,
    says_mb: bool,
    says_total_latency: bool,
    columns: Option<Columns>,
    /// Target of the percentiles; `None`: of all.
    path: Option<String>,
}

/// The part that the line begins, if it begins one.
pub(super) fn heading(line: Line<'_>, part: &Part, report: &mut Report) -> Result<Option<Part>, ImportError> {
    let text = line.1;
    let new = match text {
        "Input parameters:" => Part::Parameters,
        "System information:" => Part::System,
        "Total IO" => Part::Threads(Section::Total),
        "Read IO" => Part::Threads(Section::Read),
        "Write IO" => Part::Threads(Section::Write),
        "Effective IO Distributions" | "Wait Statistics" | "ETW:" | "Totals:" => Part::System,
        "Total latency distribution:" | "total:" => {
            report.says_total_latency |= text.starts_with("Total");
            report.path = None;
            Part::Percentiles
        }
        _ => {
            if let Some(path) = text.strip_prefix("Latency distribution: ") {
                report.path = Some(path.into());
                Part::Percentiles
            } else if is_percentile_head(text) {
                Part::Percentiles
            } else if let Some(number) = text.strip_prefix("Results for timespan ") {
                report.begin(line, number.trim_end_matches(':'))?;
                Part::Result
            } else if let Some(time) = text.strip_prefix("actual test time:") {
                report.test_time(line, time.trim())?;
                Part::Result
            } else if is_cpu_head(text) {
                Part::Cpu
            } else if matches!(part, Part::Between | Part::Percentiles) && report.is_target(text) {
                // Versions 2.0.21 and 2.1 head the percentiles of a target by its bare path.
                report.path = Some(text.into());
                Part::Percentiles
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

/// "%-ile |  Read (ms) | ...", or in Markdown "| Percentile | Read (ms) | ...".
fn is_percentile_head(text: &str) -> bool {
    let text = text.trim_start_matches(['|', ' ', '*']);
    text.starts_with("%-ile") || text.starts_with("Percentile") && text.contains("(ms)")
}

/// "...", with which articles replace rows of a table.
fn is_ellipsis(text: &str) -> bool {
    text.contains(['.', '…']) && text.chars().all(|c| matches!(c, '.' | '…' | '|' | ' ' | '\t'))
}

impl Report {
    fn begin(&mut self, line: Line<'_>, number: &str) -> Result<(), ImportError> {
        self.complete_parameters(line);
        let index = text_parameters::number::<usize>(line, number)?.wrapping_sub(1);
        if index >= self.spans.len() {
            let reason = format!("a result of timespan {number}, which the parameters do not name");
            return Err(ImportError::at(line.0, reason));
        }
        self.begin_index(index);
        Ok(())
    }

    fn begin_index(&mut self, index: usize) {
        self.current = Some(index);
        self.tables.resize(self.spans.len(), [Table::default(); 3]);
        self.path = None;
    }

    /// Reads a line of a part. Lines of the parts that may begin anywhere are taken by [`heading`]. Returns the next
    /// part where the line was the last one of its own.
    pub(super) fn take(&mut self, part: &Part, line: Line<'_>) -> Result<Option<Part>, ImportError> {
        let text = line.1;
        match part {
            Part::Preface => {
                if let Some(command) = text.strip_prefix("Command Line:") {
                    self.command = Some(command.trim().into());
                }
            }
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
                if let Some(count) = text.strip_prefix("thread count:") {
                    self.results(line)?.thread_count = text_parameters::number(line, count)?;
                }
            }
            Part::Cpu => return self.cpu_line(line),
            Part::Threads(section) => return self.thread_line(*section, line),
            Part::Percentiles => return self.percentile_line(line),
            Part::Between => {}
        }
        Ok(None)
    }

    fn test_time(&mut self, line: Line<'_>, time: &str) -> Result<(), ImportError> {
        let s: f64 = text_parameters::number(line, time.trim_end_matches('s'))?;
        let elapsed_ns = s_to_ns(s)
            .filter(|ns| *ns > 0)
            .ok_or_else(|| ImportError::at(line.0, format!("'{time}' is not a test time")))?;
        // Where the headings of the results are missing, the next test time is the next timespan's.
        if let Some(current) = self.current
            && current + 1 < self.spans.len()
            && self.spans[current].told.as_ref().is_some_and(|told| !told.rows.is_empty())
        {
            self.begin_index(current + 1);
        }
        self.span(line)?.told = Some(SpanTold { elapsed_ns, ..SpanTold::default() });
        Ok(())
    }

    fn cpu_line(&mut self, line: Line<'_>) -> Result<Option<Part>, ImportError> {
        if line.1.chars().all(|c| c == '-') {
            return Ok(None);
        }
        if is_ellipsis(line.1) {
            self.notes
                .push(Note::at(line.0, "rows of the CPU table are missing: cores are counted without them"));
            return Ok(None);
        }
        let told = self.results(line)?;
        let index = u32::try_from(told.cores.len()).unwrap_or(u32::MAX);
        match text_tables::core(line, index)? {
            Some(core) => told.cores.push(core),
            None => return Ok(Some(Part::Between)),
        }
        Ok(None)
    }

    fn thread_line(&mut self, section: Section, line: Line<'_>) -> Result<Option<Part>, ImportError> {
        let text = line.1;
        let Some(columns) = &self.columns else {
            let columns = Columns::read(line)?;
            self.says_mb |= columns.says_mb;
            self.columns = Some(columns);
            return Ok(None);
        };
        if text.chars().all(|c| c == '-') {
            return Ok(None);
        }
        if is_ellipsis(text) {
            self.table(section, line)?.is_shortened = true;
            return Ok(None);
        }
        if text.starts_with("total:") {
            let (total, iops_deviation) = columns.total(line)?;
            self.table(section, line)?.total = Some(total);
            self.note_deviation(section, line, &total, iops_deviation)?;
            return Ok(Some(Part::Between));
        }
        let row = columns.row(line)?;
        let table = self.table(section, line)?;
        let at = table.rows;
        table.rows += 1;
        let all = self.table(Section::Total, line)?;
        let all_is_partial = all.is_shortened || all.rows == 0;
        let told = self.results(line)?;
        let new_row = || Row {
            thread: row.thread,
            path: row.path.clone(),
            line: line.0,
            target_bytes: row.target_bytes,
            ..Row::default()
        };
        if section == Section::Total {
            told.rows.push(Row { all: row.told, ..new_row() });
            return Ok(None);
        }
        let is_same = |other: &Row| other.thread == row.thread && other.path == row.path;
        let at = told.rows.get(at).is_some_and(is_same).then_some(at);
        let at = match at.or_else(|| told.rows.iter().position(is_same)) {
            Some(at) => at,
            None if all_is_partial => {
                told.rows.push(new_row());
                told.rows.len() - 1
            }
            None => {
                let reason = "the rows of the tables are not the same threads and files";
                return Err(ImportError::at(line.0, reason).remedy("import the output as diskspd printed it"));
            }
        };
        let of = &mut told.rows[at];
        match section {
            Section::Write => of.write = row.told,
            _ => of.read = row.told,
        }
        Ok(None)
    }

    fn note_deviation(
        &mut self,
        section: Section,
        line: Line<'_>,
        total: &Summary,
        iops_deviation: Option<f64>,
    ) -> Result<(), ImportError> {
        let bucket_ms = self.span(line)?.bucket_ms.unwrap_or(1000);
        let name = match section {
            Section::Total => return Ok(()),
            Section::Read => "reads",
            Section::Write => "writes",
        };
        if let Some(deviation) = iops_deviation.filter(|_| total.count > 0) {
            let text = format!("standard deviation of the {name} a second, each {bucket_ms} ms: {deviation}");
            self.notes.push(Note::at(line.0, text));
        }
        Ok(())
    }

    fn percentile_line(&mut self, line: Line<'_>) -> Result<Option<Part>, ImportError> {
        let Some(row) = text_tables::percentile(line)? else { return Ok(None) };
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
        table.total.extend(row.total_ns.map(|ns| (row.percent, ns)));
        Ok((row.percent >= 100.0).then_some(Part::Between))
    }

    fn is_target(&self, text: &str) -> bool {
        let span = self.current.and_then(|at| self.spans.get(at));
        span.is_some_and(|span| span.targets.iter().any(|target| target.path == text))
    }

    /// The parameters by the command line, where they are not listed.
    fn complete_parameters(&mut self, line: Line<'_>) {
        if !self.spans.is_empty() {
            return;
        }
        if let Some(spans) = self.command.as_deref().and_then(text_command::spans) {
            let text = "the parameters are missing: they are taken from the command line, as version 2.2 understands it";
            self.notes.push(Note::at(line.0, text));
            self.spans = spans;
        }
    }

    fn span(&mut self, line: Line<'_>) -> Result<&mut Span, ImportError> {
        self.complete_parameters(line);
        if self.current.is_none() && !self.spans.is_empty() {
            let text = "the line 'Results for timespan 1:' is missing: what follows is taken for its result";
            self.notes.push(Note::at(line.0, text));
            self.begin_index(0);
        }
        let current = self.current.and_then(|at| self.spans.get_mut(at));
        current.ok_or_else(|| {
            ImportError::at(line.0, "a table before the parameters of the run ('Input parameters:')")
                .remedy("import the report from its first line on")
        })
    }

    fn results(&mut self, line: Line<'_>) -> Result<&mut SpanTold, ImportError> {
        let span = self.span(line)?;
        let duration_s = span.duration_s;
        if span.told.is_none() {
            if duration_s == 0 {
                return Err(ImportError::at(line.0, "a table without 'actual test time' before it"));
            }
            let elapsed_ns = u64::from(duration_s) * 1_000_000_000;
            span.told = Some(SpanTold { elapsed_ns, ..SpanTold::default() });
            self.notes.push(Note::at(
                line.0,
                format!("the line 'actual test time' is missing: the duration of the parameters, {duration_s} s, is taken"),
            ));
        }
        let told = self.span(line)?.told.as_mut();
        told.ok_or_else(|| ImportError::at(line.0, "a table without 'actual test time' before it"))
    }

    fn table(&mut self, section: Section, line: Line<'_>) -> Result<&mut Table, ImportError> {
        self.results(line)?;
        let of_span = self.current.and_then(|at| self.tables.get_mut(at));
        let tables =
            of_span.ok_or_else(|| ImportError::at(line.0, "a table before the parameters of the run"))?;
        let table = &mut tables[section as usize];
        table.line = line.0;
        Ok(table)
    }

    /// The text does not name its version; its form tells about it.
    pub(super) fn tool(&self) -> String {
        match (self.says_mb, self.says_total_latency) {
            (true, _) => "diskspd, up to 2.0.17".into(),
            (false, true) => "diskspd 2.2".into(),
            (false, false) => "diskspd, 2.0.18 or later".into(),
        }
    }
}
