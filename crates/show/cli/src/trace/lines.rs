//! A trace on stdout.

use filestats::TracedIo;
use report::text::{Style, TraceLines};
use report::{TraceSummary, csv, json, text};
use std::io::{BufWriter, Stdout, Write};
use terminal::escape::{escape, escape_answer};
use terminal::{Failure, is_read};

/// The printed form of a trace: a line for each I/O, and the totals at its end.
pub struct Lines {
    form: Form,
    style: Style,
    /// Totals only.
    summary: bool,
    stdout: BufWriter<Stdout>,
    /// Whether stdout is still open.
    pub is_read: bool,
    headed: bool,
}

enum Form {
    Text(TraceLines),
    Json,
    Csv,
}

/// Lines are buffered while more I/Os are there.
const BUFFER_BYTES: usize = 64 << 10;

impl Lines {
    pub fn new(summary: bool, json: bool, csv: bool, style: &Style) -> Lines {
        let form = match (json, csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv,
            _ => Form::Text(TraceLines::new(style)),
        };
        let stdout = BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout());
        // Only text has colours.
        let style = if json || csv { Style::default() } else { *style };
        Lines { form, style, summary, stdout, is_read: true, headed: false }
    }

    /// Prints one I/O.
    pub fn print(&mut self, io: &TracedIo) -> Result<(), Failure> {
        if self.summary {
            return Ok(());
        }
        self.head()?;
        let line = match &self.form {
            Form::Text(lines) => lines.line(io),
            Form::Json => json::traced_io(io).to_string(),
            Form::Csv => csv::traced_io(io),
        };
        let written = writeln!(self.stdout, "{}", escape_answer(&line, &self.style));
        self.written(written)
    }

    /// Writes the buffered lines.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let written = self.stdout.flush();
        self.written(written)
    }

    /// Prints the totals.
    pub fn finish(&mut self, traced: &TraceSummary) -> Result<(), Failure> {
        let written = match &self.form {
            Form::Text(_) => {
                let between = if self.headed { "\n" } else { "" };
                let letters = if self.headed { text::trace_letters(&self.style) } else { String::new() };
                let text = text::trace(traced, &self.style);
                write!(self.stdout, "{between}{}{letters}", escape_answer(&text, &self.style))
            }
            Form::Json => writeln!(self.stdout, "{}", escape(&json::trace(traced).to_string())),
            Form::Csv => return self.head().and_then(|()| self.flush()),
        };
        self.written(written)?;
        self.flush()
    }

    fn head(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.headed, true) {
            return Ok(());
        }
        let written = match &self.form {
            Form::Text(lines) => writeln!(self.stdout, "{}", lines.heading()),
            Form::Csv => writeln!(self.stdout, "{}", csv::TRACE_HEADING),
            Form::Json => return Ok(()),
        };
        self.written(written)
    }

    fn written(&mut self, written: std::io::Result<()>) -> Result<(), Failure> {
        self.is_read &= is_read(written)?;
        Ok(())
    }
}
