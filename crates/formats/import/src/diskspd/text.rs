//! diskspd's report for people, of 2.0.15 (2015) to 2.2. A file may hold several, appended one to another, with other text
//! before, between and after them.

use super::text_parameters::Line;
use super::text_report::{Part, Report, heading};
use super::{phases, text_complete};
use crate::document::fingerprint;
use crate::{Document, ImportError, Note};

/// All reports in the text. One that is damaged is left out with a note, as long as another is whole.
pub(crate) fn read(text: &str) -> Result<Vec<Document>, ImportError> {
    let lines: Vec<Line<'_>> = text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
    let starts = starts(&lines);
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

/// Where the reports begin: at their command line, or at their parameters where the command line was not printed (2.0.21)
/// or not copied.
fn starts(lines: &[Line<'_>]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut has_parameters = true;
    for (index, (_, text)) in lines.iter().enumerate() {
        let text = text.trim();
        if text.starts_with("Command Line:") {
            starts.push(index);
            has_parameters = false;
        } else if text == "Input parameters:" {
            if has_parameters {
                starts.push(index);
            }
            has_parameters = true;
        }
    }
    if starts.is_empty() { vec![0] } else { starts }
}

fn document(lines: &[Line<'_>]) -> Result<Document, ImportError> {
    let mut report = Report::default();
    let mut part = Part::Preface;
    // Text after the last table is not the report's: a prompt, or the output of a script between its runs.
    let mut end = 0;
    for (index, (number, whole)) in lines.iter().enumerate() {
        let line: Line<'_> = (*number, whole.trim());
        if line.1.is_empty() {
            continue;
        }
        let next = match heading(line, &part, &mut report)? {
            Some(next) => Some(next),
            None if part == Part::Between => continue,
            None => report.take(&part, line)?,
        };
        end = index + 1;
        part = next.unwrap_or(part);
    }
    let lines = &lines[..end.max(1).min(lines.len())];
    text_complete::check(&mut report, lines.last().map_or(1, |line| line.0))?;
    let text: Vec<&str> = lines.iter().map(|(_, text)| *text).collect();
    let tool = report.tool();
    let mut notes = report.notes;
    let phases = phases(report.spans, &tool, report.started_unix_ns, &mut notes)
        .map_err(|error| ImportError { line: error.line.or(lines.first().map(|line| line.0)), ..error })?;
    let line = lines.first().map_or(1, |line| line.0);
    Ok(Document { line, tool, fingerprint: fingerprint(&text.join("\n")), phases, notes })
}
