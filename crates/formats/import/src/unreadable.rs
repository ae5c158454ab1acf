//! Texts that are recognised and cannot be read: what they are, and what to give in their place.

use crate::ImportError;

/// Lines that are searched for what a text is.
const LINES_SEARCHED: usize = 200;

/// The reason why a text of no known format is refused.
pub(crate) fn explain(text: &str) -> ImportError {
    other_output_of_fio(text).unwrap_or_else(|| {
        ImportError::new("this is no output of diskspd or fio, and no history of counters that is known").remedy(
            "give diskspd's text or XML, fio's JSON, or CSV of a table that headroom history import --help names; --as FORMAT names \
             the format",
        )
    })
}

/// fio's outputs that are not JSON, and what to give instead.
pub(crate) fn other_output_of_fio(text: &str) -> Option<ImportError> {
    let lines = || text.lines().map(str::trim).take(LINES_SEARCHED);
    let again = |reason: &str| {
        let error = ImportError::new(reason);
        Some(error.remedy("run fio with --output-format=json+ --output=FILE and import that file"))
    };
    if lines().any(is_fio_report_line) {
        return again("this is fio's report for people, which rounds its figures, and not its JSON");
    }
    if lines().any(is_fio_terse_line) {
        return again("this is fio's terse output, which has no names for its figures, and not its JSON");
    }
    None
}

/// "mix: (g=0): rw=randrw, bs=(R) 8192B-8192B, ..., ioengine=libaio, iodepth=8"; "mix: (groupid=0, jobs=1): err= 0: ...".
fn is_fio_report_line(line: &str) -> bool {
    line.contains(": (g=") && line.contains("rw=") || line.contains(": (groupid=") && line.contains("err=")
}

/// "3;fio-3.33;mix;0;0;..."; the version of the format is 2 to 5.
fn is_fio_terse_line(line: &str) -> bool {
    let mut cells = line.split(';');
    matches!(cells.next(), Some("2" | "3" | "4" | "5"))
        && line.split(';').count() > 20
        && line.split(';').nth(1).is_some_and(|cell| cell.starts_with("fio-") || cell.parse::<u64>().is_err())
}

/// The reason why PerfMon's own format is refused.
pub(crate) fn binary_counter_log() -> ImportError {
    ImportError::new("this is a binary counter log of PerfMon (.blg)")
        .remedy("on Windows: relog LOG.blg -f csv -o LOG.csv, and import LOG.csv")
}

/// Whether the bytes are a binary counter log: one of Windows 2000 begins with a text, later ones are event logs whose
/// records name the provider PdhTransactionGuid, 933f3bb3-943e-490d-9ced-3cbb14c14479.
pub(crate) fn is_binary_counter_log(bytes: &[u8]) -> bool {
    const GUID: [u8; 16] =
        [0xb3, 0x3b, 0x3f, 0x93, 0x3e, 0x94, 0x0d, 0x49, 0x9c, 0xed, 0x3c, 0xbb, 0x14, 0xc1, 0x44, 0x79];
    const MARK: &[u8] = b"(PDH-BIN";
    // The first records name it; a text would have to contain the GUID's bytes, which are no UTF-8.
    const SEARCHED_BYTES: usize = 1 << 20;
    let start = &bytes[..bytes.len().min(SEARCHED_BYTES)];
    let starts_with_mark = start[..start.len().min(64)].windows(MARK.len()).any(|window| window == MARK);
    let mut places = start.iter().enumerate().filter(|(_, byte)| **byte == GUID[0]);
    starts_with_mark || places.any(|(at, _)| start[at..].starts_with(&GUID))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recognised_is_named_with_what_to_give_instead() {
        let remedy = |text: &str| (explain(text).reason, explain(text).remedy.unwrap());
        let normal = "mix: (g=0): rw=randrw, bs=(R) 8192B-8192B, (W) 8192B-8192B, ioengine=libaio, iodepth=8\n\
                      fio-3.33\nStarting 1 process\n";
        assert!(remedy(normal).0.contains("report for people"));
        assert!(remedy(normal).1.contains("--output-format=json+"));
        let terse = format!("3;fio-3.33;mix;0;0;{}", "1;".repeat(60));
        assert!(remedy(&terse).0.contains("terse"));
        assert!(remedy("dear diary").0.starts_with("this is no output of diskspd or fio"));
    }

    #[test]
    fn a_binary_counter_log_is_known_by_its_provider() {
        let mut log = vec![0_u8; 200];
        assert!(!is_binary_counter_log(&log));
        log.extend([
            0xb3, 0x3b, 0x3f, 0x93, 0x3e, 0x94, 0x0d, 0x49, 0x9c, 0xed, 0x3c, 0xbb, 0x14, 0xc1, 0x44, 0x79,
        ]);
        assert!(is_binary_counter_log(&log));
        assert!(is_binary_counter_log(b"\"(PDH-BIN 4.0)\"\r\n"));
    }
}
