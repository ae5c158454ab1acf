//! Rows of a CSV, whatever wrote it: comma, semicolon, tab or bar between the cells, `sep=` of Excel, the line of
//! dashes under sqlcmd's heading, the count of rows at its end.

use crate::{ImportError, Note};
use csv::{ReaderBuilder, StringRecord};

/// A text as rows of as many cells as its first one has.
pub(crate) struct Sheet<'t> {
    text: &'t str,
    /// Bytes and lines before `text`.
    skipped_lines: usize,
    delimiter: u8,
    reader: csv::Reader<&'t [u8]>,
    /// Cells of each row; `None` where they may be as many as they like.
    cells: Option<usize>,
    /// The first row, until it is given out.
    first: Option<Row>,
    /// Notes on skipped parts.
    pub notes: Vec<Note>,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The line it begins at, from 1.
    pub line: usize,
    byte: usize,
    record: StringRecord,
}

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

impl<'t> Sheet<'t> {
    /// `None` where there is no row with two cells.
    pub fn open(text: &'t str) -> Option<Sheet<'t>> {
        let (text, skipped_lines, told) = without_excels_line(text);
        let first_line = text.lines().find(|line| !line.trim().is_empty())?;
        let delimiter = told.unwrap_or_else(|| {
            // The first of the most frequent: a comma where all are alike.
            let count = |delimiter: &u8| outside_quotes(first_line, *delimiter);
            *DELIMITERS.iter().rev().max_by_key(|delimiter| count(delimiter)).unwrap_or(&b',')
        });
        let reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        let mut sheet =
            Sheet { text, skipped_lines, delimiter, reader, cells: None, first: None, notes: Vec::new() };
        // Lines before the heading (an empty line in quotes, a title) have one cell.
        let first =
            std::iter::from_fn(|| sheet.read()).take(LINES_BEFORE_MAX).find(|row| row.record.len() > 1)?;
        sheet.cells = Some(first.record.len());
        sheet.first = Some(first);
        Some(sheet)
    }

    /// The first row: the heading, where there is one.
    pub fn head(&self) -> Vec<String> {
        self.first.iter().flat_map(|row| row.record.iter()).map(|cell| cell.trim().to_owned()).collect()
    }

    /// Takes the first row for the heading, so that it does not come as a row.
    pub fn has_heading(&mut self) {
        self.first = None;
    }

    /// Takes rows of any two cells and more.
    pub fn any_length(&mut self) {
        self.cells = None;
    }

    /// The next row.
    ///
    /// # Errors
    /// Where it has more or fewer cells than the first one.
    pub fn next_row(&mut self) -> Result<Option<Row>, ImportError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        while let Some(row) = self.read() {
            let cells = row.record.len();
            if self.cells.map_or(cells > 1, |wanted| cells == wanted) {
                if row.record.iter().all(is_dashes) {
                    continue;
                }
                return Ok(Some(row));
            }
            if cells == 1 {
                let said = row.cell(0).to_owned();
                if !said.is_empty() {
                    let words: String = said.chars().take(60).collect();
                    self.notes.push(Note::at(row.line, format!("left out: '{words}'")));
                }
                // A quote that is never closed swallows the rest of the text into one cell.
                if said.lines().count() > 1 {
                    return Err(ImportError::at(row.line, "a quote opens here and is never closed")
                        .remedy("export again: a quote within a cell is written twice"));
                }
                if self.notes.len() > NOTES_MAX {
                    return Err(ImportError::at(row.line, "too many lines are no rows")
                        .remedy("export as CSV, with the same columns in each row"));
                }
                continue;
            }
            return Err(ImportError::at(
                row.line,
                format!("{cells} cells, where the first row has {}", self.cells.unwrap_or(0)),
            )
            .remedy(
                "a name with the separator in it must stand in quotes, which sqlcmd -s does not do; \
                 the file may also be cut off: export it again",
            ));
        }
        Ok(None)
    }

    /// The column a cell begins at in its line, from 1.
    pub fn column_of(&self, row: &Row, cell: usize) -> usize {
        let rest = self.text.get(row.byte..).unwrap_or_default();
        let (mut quoted, mut passed, mut column) = (false, 0, 1);
        for c in rest.chars() {
            match c {
                _ if passed == cell && !quoted => break,
                '"' => quoted = !quoted,
                c if !quoted && c == char::from(self.delimiter) => passed += 1,
                '\n' => {
                    column = 1;
                    continue;
                }
                _ => {}
            }
            column += 1;
        }
        column
    }

    fn read(&mut self) -> Option<Row> {
        let mut record = StringRecord::new();
        // The text is UTF-8 and cells may be any number: reading it cannot fail.
        let more = self.reader.read_record(&mut record).unwrap_or(false);
        let position = record.position().filter(|_| more)?;
        let (mut byte, mut line) = (usize::try_from(position.byte()).ok()?, position.line() as usize);
        // Where a row begins csv counts the empty lines before it to it.
        let rest = self.text.get(byte..).unwrap_or_default();
        for c in rest.chars().take_while(|c| matches!(c, '\r' | '\n')) {
            byte += 1;
            line += usize::from(c == '\n');
        }
        Some(Row { line: line + self.skipped_lines, byte, record })
    }
}

/// Titles, and lines that are no rows, that are passed over.
const LINES_BEFORE_MAX: usize = 20;
const NOTES_MAX: usize = 100;

impl Row {
    /// The cell without blanks around it; empty where the row ends before.
    pub fn cell(&self, at: usize) -> &str {
        self.record.get(at).unwrap_or_default().trim()
    }
}

/// Excel writes "sep=;" above the heading.
fn without_excels_line(text: &str) -> (&str, usize, Option<u8>) {
    let text = text.trim_start_matches('\u{feff}');
    let line = text.lines().next().unwrap_or_default();
    match line.trim_matches('"').strip_prefix("sep=").map(str::as_bytes) {
        Some([delimiter]) => (text.split_once('\n').map_or("", |(_, rest)| rest), 1, Some(*delimiter)),
        _ => (text, 0, None),
    }
}

fn outside_quotes(line: &str, delimiter: u8) -> usize {
    let mut quoted = false;
    let mut count = 0;
    for byte in line.bytes() {
        quoted ^= byte == b'"';
        count += usize::from(!quoted && byte == delimiter);
    }
    count
}

fn is_dashes(cell: &str) -> bool {
    let cell = cell.trim();
    !cell.is_empty() && cell.bytes().all(|byte| byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(usize, Vec<String>)> {
        let mut sheet = Sheet::open(text).unwrap();
        let mut rows = Vec::new();
        while let Some(row) = sheet.next_row().unwrap() {
            rows.push((row.line, row.record.iter().map(|cell| cell.trim().to_owned()).collect()));
        }
        rows
    }

    fn row(line: usize, cells: &[&str]) -> (usize, Vec<String>) {
        (line, cells.iter().map(|&cell| cell.to_owned()).collect())
    }

    #[test]
    fn the_separator_is_the_most_frequent_one_outside_quotes() {
        assert_eq!(rows("a,b\n\"1;2;3\",4\n"), [row(1, &["a", "b"]), row(2, &["1;2;3", "4"])]);
        assert_eq!(rows("a;b\n1,5;\"x\"\"y\"\n"), [row(1, &["a", "b"]), row(2, &["1,5", "x\"y"])]);
        assert_eq!(rows("sep=\t\r\na\tb\r\n1\t2"), [row(2, &["a", "b"]), row(3, &["1", "2"])]);
    }

    #[test]
    fn what_sqlcmd_adds_is_no_row() {
        let text = "\r\na,b\r\n--,-\r\n1,2\r\n\r\n(1 rows affected)\r\n";
        assert_eq!(rows(text), [row(2, &["a", "b"]), row(4, &["1", "2"])]);
    }

    #[test]
    fn a_row_of_other_length_is_refused_with_its_line() {
        let mut sheet = Sheet::open("a,b\n1,2\n1,2,3\n").unwrap();
        sheet.has_heading();
        sheet.next_row().unwrap();
        let error = sheet.next_row().unwrap_err();
        assert_eq!((error.line, error.reason.as_str()), (Some(3), "3 cells, where the first row has 2"));
        let mut sheet = Sheet::open("a,b\n\"1,2\n3,4\n").unwrap();
        sheet.has_heading();
        assert!(sheet.next_row().unwrap_err().reason.contains("never closed"));
    }

    #[test]
    fn a_cell_is_found_again_in_its_line() {
        let mut sheet = Sheet::open("a,b,c\n\"x,y\",2,3\n").unwrap();
        sheet.has_heading();
        let row = sheet.next_row().unwrap().unwrap();
        assert_eq!([0, 1, 2].map(|cell| sheet.column_of(&row, cell)), [1, 7, 9]);
    }
}
