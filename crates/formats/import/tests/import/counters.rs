//! Histories of counters as others export them. The columns of the samples are those of their makers:
//! * `counters_file_stats.csv`: the view of our capture script (`headroom.file_stats_csv`);
//! * `counters_blitz_first.csv`: the CREATE TABLE for `@OutputTableNameFileStats` in the First Responder Kit's
//!   sp_BlitzFirst.sql (2026-05), as SSMS saves a result with its headings;
//! * `counters_dba_dash.csv`: DBADashDB/dbo/Tables/DBIOStats.sql of DBA Dash (2026-08), with the names that docs/reference/import.md
//!   joins, as an Excel with semicolons writes it;
//! * `counters_perfmon.csv`: a Data Collector Set's log, by the Platform SDK's page on log file formats.

use filestats::{
    Figure, FileInterval, Interval, Reason, Rules, Snapshot, WaitClass, intervals, wait_intervals,
};
use import::{
    Capture, Chain, CounterLog, Disk, Format, Kept, Points, SQLSERVER_CAPTURE_SCRIPT, counters, decode,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/samples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn text(name: &str) -> String {
    decode(&bytes(name)).unwrap().0
}

fn read(text: &str) -> CounterLog {
    counters(text, None).unwrap_or_else(|error| panic!("{error}"))
}

/// The only source of a text, into an empty history.
fn chain(text: &str) -> Chain {
    let series = read(text).series;
    assert_eq!(series.len(), 1);
    series.into_iter().next().unwrap().captures(&Kept::new(), None)
}

fn snapshots(chain: &Chain) -> Vec<&Snapshot> {
    chain.captures.iter().map(|capture| &capture.snapshot).collect()
}

fn between(earlier: &Snapshot, later: &Snapshot) -> HashMap<String, FileInterval> {
    let rows = intervals(earlier, later, Rules::default());
    rows.into_iter().map(|row| (row.file.path.clone(), row)).collect()
}

fn reason(interval: &FileInterval) -> Option<Reason> {
    match interval.interval {
        Interval::Known(_) => None,
        Interval::Unknown(reason) => Some(reason),
    }
}

const SALES: &str = r"E:\Data, fast\sales.mdf";
const SALES_LOG: &str = r"L:\Log\sales_log.ldf";
const TEMPDB: &str = r"T:\tempdb\tempdev.mdf";

/// Cells of a line by a splitter of its own, which knows quotes and nothing else.
fn cells(line: &str, separator: char) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c == separator && !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// Rows as maps of their columns.
fn table(text: &str, separator: char) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines();
    let head = cells(lines.next().unwrap().trim_start_matches('\u{feff}'), separator);
    lines.map(|line| head.iter().cloned().zip(cells(line, separator)).collect()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> i128 {
    row[column].parse().unwrap()
}

#[test]
fn the_intervals_are_those_of_the_tables_own_numbers() {
    let text = text("counters_file_stats.csv");
    let chain = chain(&text);
    let rows = table(&text, ',');
    let snapshots = snapshots(&chain);
    assert_eq!(snapshots.len(), 7);
    let mut compared = 0;
    for pair in snapshots.windows(2) {
        let found = between(pair[0], pair[1]);
        let at = |snapshot: &Snapshot| {
            snapshots.iter().position(|other| other.taken_unix_ns == snapshot.taken_unix_ns).unwrap() + 1
        };
        let row_of = |capture: usize, path: &str| {
            rows.iter()
                .find(|row| row["capture_id"] == capture.to_string() && row["physical_name"] == path)
                .unwrap()
        };
        for (path, interval) in &found {
            let (then, now) = (row_of(at(pair[0]), path), row_of(at(pair[1]), path));
            let is_one = then["sqlserver_start_time"] == now["sqlserver_start_time"]
                && then["file_handle"] == now["file_handle"];
            assert_eq!(interval.interval.known().is_some(), is_one, "{path} {:?}", reason(interval));
            let Some(delta) = interval.interval.known() else { continue };
            let since = |column: &str| number(now, column) - number(then, column);
            let whole = |ops: filestats::Ops| {
                [i128::from(ops.count), i128::from(ops.bytes), i128::from(ops.stall_ns.known().unwrap())]
            };
            assert_eq!(
                whole(delta.counters.read),
                [since("num_of_reads"), since("num_of_bytes_read"), since("io_stall_read_ms") * 1_000_000]
            );
            assert_eq!(
                whole(delta.counters.write),
                [
                    since("num_of_writes"),
                    since("num_of_bytes_written"),
                    since("io_stall_write_ms") * 1_000_000
                ]
            );
            assert_eq!(i128::from(delta.elapsed_ns), since("sample_ms") * 1_000_000);
            compared += 1;
        }
    }
    assert_eq!(compared, 4 * 3 + 4 + 2, "all but the restart, and the files that were attached again");
}

#[test]
fn the_rebuild_shows_in_its_interval_and_a_restart_and_a_new_handle_have_their_reasons() {
    let chain = chain(&text("counters_file_stats.csv"));
    let snapshots = snapshots(&chain);
    let write_ms = |earlier: usize, later: usize| {
        let rows = between(snapshots[earlier], snapshots[later]);
        rows[SALES].interval.known().unwrap().write_latency_ns().known().unwrap() / 1e6
    };
    assert_eq!(write_ms(0, 1), 2.0);
    assert!(write_ms(1, 2) > 600.0, "the rebuild");
    let read_ms = between(snapshots[0], snapshots[1])[SALES].interval.known().unwrap().read_latency_ns();
    assert_eq!(read_ms, Figure::Known(57.0 * 1e6), "an everyday read of the study");
    let idle = between(snapshots[2], snapshots[3]);
    assert_eq!(
        idle[SALES].interval.known().unwrap().write_latency_ns(),
        Figure::unknown(Reason::NoOperations)
    );
    let restarted = between(snapshots[3], snapshots[4]);
    // sales had read more by then than before the restart: only the start tells.
    assert!(restarted.values().all(|row| reason(row) == Some(Reason::Restart)), "{restarted:?}");
    let attached = between(snapshots[5], snapshots[6]);
    assert_eq!(reason(&attached[SALES]), Some(Reason::Reopened));
    assert_eq!(reason(&attached[TEMPDB]), None);
    assert_eq!(chain.captures[1].label.as_deref(), Some("two minutes of \"everyday\""));
    let throttled = wait_intervals(snapshots[1], snapshots[2], Rules::default());
    let sales =
        throttled.iter().find(|wait| wait.event == format!("io_stall_queued_read_ms of {SALES}")).unwrap();
    assert_eq!(
        (sales.class, sales.interval.known().unwrap().wait_ns),
        (WaitClass::Throttled, Figure::Known(5_000_000_000))
    );
}

#[test]
fn the_importer_reads_exactly_the_columns_that_the_scripts_table_has() {
    let after = |mark: &str| SQLSERVER_CAPTURE_SCRIPT.split_once(mark).unwrap().1;
    let table = after("CREATE TABLE headroom.file_stats\n").split_once(");\n").unwrap().0;
    let declared: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("        "))
        .filter(|line| line.contains("NULL"))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    let exported = after("N'capture_id,").split_once("') AS line").unwrap().0;
    let exported = format!("capture_id,{exported}");
    let exported: String =
        exported.split("N'").flat_map(|part| part.split('\'')).filter(|part| !part.contains('\n')).collect();
    assert_eq!(exported.split(',').collect::<Vec<_>>(), declared, "the view's heading");
    let cast: Vec<&str> = after("SELECT CONVERT(tinyint, 1),\n       h.capture_id,\n")
        .split("h.")
        .skip(1)
        .map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap())
        .take_while(|name| *name != "headroom")
        .collect();
    assert_eq!(cast, declared, "the view's rows");
    let inserted = after("INSERT INTO headroom.file_stats\n    (").split_once(')').unwrap().0;
    assert_eq!(inserted.split(',').map(str::trim).collect::<Vec<_>>(), declared, "the procedure's INSERT");

    let head = text("counters_file_stats.csv").lines().next().unwrap().to_owned();
    assert_eq!(head, declared.join(","), "the sample");
    for missing in &declared {
        let text = text("counters_file_stats.csv");
        let without: String = text
            .lines()
            .enumerate()
            .map(|(line, row)| {
                let mut cells = cells(row, ',');
                let at = declared.iter().position(|name| name == missing).unwrap();
                if line == 0 {
                    assert_eq!(cells[at], **missing);
                }
                cells.remove(at);
                cells.iter().map(|cell| format!("\"{cell}\"")).collect::<Vec<_>>().join(",") + "\n"
            })
            .collect();
        assert!(counters(&without, None).is_err(), "without {missing} the table is not known");
    }
}

#[test]
fn the_script_is_as_it_was_looked_through() {
    insta::assert_snapshot!("capture_script", SQLSERVER_CAPTURE_SCRIPT);
    // One batch each, and nothing that SQL Server 2012 does not know.
    let code: String = SQLSERVER_CAPTURE_SCRIPT
        .split_once("*/")
        .unwrap()
        .1
        .lines()
        .map(|line| line.split("--").next().unwrap().to_owned() + "\n")
        .collect();
    for newer in
        ["CREATE OR ALTER", "DROP TABLE IF EXISTS", "STRING_AGG", "AT TIME ZONE", "CONCAT_WS", "TRIM("]
    {
        assert!(!code.contains(newer), "{newer}");
    }
    assert!(code.chars().filter(|c| *c == '\'').count().is_multiple_of(2));
    assert_eq!(code.matches('(').count(), code.matches(')').count());
    for batch in code.split("\nGO\n") {
        let first = batch.trim_start();
        let alone = ["CREATE VIEW", "ALTER PROCEDURE"];
        for kind in alone {
            assert!(!batch.contains(kind) || first.starts_with(kind), "{kind} must begin its batch");
        }
    }
    let words =
        |word: &str| code.split(|c: char| !c.is_ascii_alphabetic()).filter(|part| *part == word).count();
    assert_eq!(words("BEGIN") - 1 + words("CASE"), words("END"), "one BEGIN is that of the transaction");
}

#[test]
fn sp_blitz_first_keeps_no_start_and_a_restart_is_seen_by_tempdb() {
    let log = read(&text("counters_blitz_first.csv"));
    assert_eq!(
        (log.format, log.series[0].source.as_str()),
        (Format::BlitzFirst, "sqlserver:PROD02:sp_BlitzFirst")
    );
    let chain = chain(&text("counters_blitz_first.csv"));
    let snapshots = snapshots(&chain);
    let (orders, log_file, archive) =
        (r"D:\data\orders.mdf", r"L:\log\orders_log.ldf", r"D:\data\archive.mdf");
    assert_eq!(snapshots[0].taken_unix_ns, 1_777_708_800_123_456_700, "08:00 UTC");
    let first = between(snapshots[0], snapshots[1]);
    let delta = first[orders].interval.known().unwrap();
    assert_eq!((delta.counters.read.count, delta.counters.read.bytes), (3_000, 196_608_000));
    assert_eq!((delta.read_latency_ns(), delta.elapsed_ns), (Figure::Known(3e6), 900_000_000_000));
    let restored = between(snapshots[1], snapshots[2]);
    assert_eq!(reason(&restored[orders]), Some(Reason::StatsReset));
    assert_eq!(reason(&restored[archive]), Some(Reason::FirstSight));
    assert_eq!(reason(&restored[r"T:\tempdb\tempdev.mdf"]), None);
    assert_eq!(reason(&between(snapshots[0], snapshots[3])[log_file]), Some(Reason::StatsReset));
    let restarted = between(snapshots[3], snapshots[4]);
    assert_eq!(reason(&restarted[orders]), Some(Reason::Restart), "orders had read more by then");
    assert_eq!(reason(&restarted[archive]), Some(Reason::Gone));
    let last = between(snapshots[4], snapshots[5]);
    let log = last[log_file].interval.known().unwrap();
    assert_eq!(log.counters.write.count, 100);
    assert_eq!(log.write_latency_ns(), Figure::unknown(Reason::NotCounted), "NULL is not known, and not 0");
}

#[test]
fn dba_dashs_differences_are_intervals_again_and_a_missing_row_is_not_zero() {
    let text = text("counters_dba_dash.csv");
    let log = read(&text);
    assert_eq!(log.series[0].source, "sqlserver:WEB01:DBADash");
    assert!(log.notes.iter().any(|note| note.text.contains("2 rows are sums over files")), "{:?}", log.notes);
    let chain = chain(&text);
    let snapshots = snapshots(&chain);
    let (data, log_file) = (r"E:\data\shop.mdf", r"L:\log\shop_log.ldf");
    // The start of the first rows, and the end of each.
    assert_eq!(snapshots.len(), 5);
    let known = |earlier: usize, later: usize, path: &str| {
        let rows = between(snapshots[earlier], snapshots[later]);
        let row = &rows[path];
        row.interval.known().map(|delta| delta.counters).ok_or_else(|| reason(row).unwrap())
    };
    for (at, row) in table(&text, ';').iter().filter(|row| row["FileID"] == "101").enumerate() {
        let counters = known(at, at + 1, data).unwrap();
        assert_eq!(i128::from(counters.read.count), number(row, "num_of_reads"));
        assert_eq!(i128::from(counters.write.bytes), number(row, "num_of_bytes_written"));
        let stall_ms = counters.read.stall_ns.known().unwrap() / 1_000_000;
        assert_eq!(i128::from(stall_ms), number(row, "io_stall_read_ms"));
    }
    assert_eq!(
        known(0, 3, data).unwrap().read.count,
        600 + 900 + 1_200,
        "rows that follow each other add up"
    );
    assert_eq!(known(0, 1, log_file).unwrap().write.count, 300);
    assert_eq!(known(1, 2, log_file), Err(Reason::StatsReset), "no row");
    assert_eq!(known(2, 3, log_file).unwrap().write.count, 600);
    assert_eq!(known(0, 3, log_file), Err(Reason::StatsReset), "a part of it is not known");
}

#[test]
fn what_is_kept_is_not_read_twice_and_the_rest_follows_it() {
    for name in ["counters_file_stats.csv", "counters_blitz_first.csv", "counters_dba_dash.csv"] {
        let text = text(name);
        let whole = chain(&text);
        let kept = |captures: &[Capture]| -> Kept {
            captures
                .iter()
                .map(|one| (one.snapshot.taken_unix_ns, one.snapshot.samples.len() as u64))
                .collect()
        };
        let again = |captures: &[Capture]| {
            let last = captures.last().map(|capture| &capture.snapshot);
            let series = read(&text).series.into_iter().next().unwrap();
            series.captures(&kept(captures), last)
        };
        let nothing = again(&whole.captures);
        assert_eq!((nothing.captures.len(), nothing.older, nothing.differing), (0, 0, 0), "{name}");
        assert!(
            nothing.known >= whole.captures.len() - 1,
            "{name}: the start of DBA Dash's first row has no row"
        );
        for cut in 1..whole.captures.len() {
            let mut grown = whole.captures[..cut].to_vec();
            grown.extend(again(&whole.captures[..cut]).captures);
            let all = |captures: &[Capture]| -> Vec<Vec<FileInterval>> {
                captures
                    .windows(2)
                    .map(|two| intervals(&two[0].snapshot, &two[1].snapshot, Rules::default()))
                    .collect()
            };
            let (grown, whole) = (all(&grown), all(&whole.captures));
            assert_eq!(grown.len(), whole.len(), "{name} cut at {cut}");
            if !name.contains("dba_dash") {
                assert_eq!(grown, whole, "{name} cut at {cut}");
            }
        }
        // The oldest captures alone, after the newest were kept.
        let series = read(&text).series.into_iter().next().unwrap();
        let newest = &whole.captures[whole.captures.len() - 1..];
        let late = series.captures(&kept(newest), newest.last().map(|capture| &capture.snapshot));
        assert!(late.captures.is_empty() && late.older > 0, "{name}");
    }
}

#[test]
fn parts_of_a_table_in_any_order_are_one_history() {
    let text = text("counters_file_stats.csv");
    let lines: Vec<&str> = text.lines().collect();
    let part = |rows: &[&str]| read(&(lines[0].to_owned() + "\n" + &rows.join("\n"))).series.remove(0);
    let mut late = part(&lines[13..]);
    late.merge(part(&lines[1..17]));
    assert_eq!(late.captures(&Kept::new(), None), chain(&text));
}

fn disk(log: &CounterLog) -> &Disk {
    let disks = &log.disks.as_ref().unwrap().disks;
    assert_eq!(disks.len(), 1, "the sum of all disks is left out");
    &disks[0]
}

#[test]
fn perfmons_means_stay_means_and_its_queue_an_instant() {
    let log = read(&text("counters_perfmon.csv"));
    let disk = disk(&log);
    assert_eq!(
        (disk.host.as_str(), disk.object.as_str(), disk.name.as_str()),
        ("SQL01", "PhysicalDisk", "1 D:")
    );
    let at = &disk.intervals;
    assert_eq!(at[0].ended_unix_ns, 1_777_622_400_123_000_000, "08:00 UTC: two hours before local time");
    assert_eq!(at[0].read.per_second, Figure::unknown(Reason::FirstSight), "a rate needs two samples");
    assert_eq!(at[0].queue_sampled, Figure::Known(3.0));
    // 500 reads/s of 4 ms and 100 writes/s of 2 ms.
    assert_eq!(at[1].outstanding(), Figure::Known(500.0 * 0.004 + 100.0 * 0.002));
    assert_eq!((at[1].iops(), at[1].queue_sampled), (Figure::Known(600.0), Figure::Known(0.0)));
    assert_eq!(at[1].average_bytes(), Figure::Known(8192.0));
    assert_eq!(
        at[2].outstanding(),
        Figure::Known(140.0),
        "as Windows' own Avg. Disk Queue Length, by another way"
    );
    assert_eq!(
        at[3].read.latency_ns,
        Figure::unknown(Reason::NoOperations),
        "0 is printed where nothing was read"
    );
    assert_eq!(at[4].iops(), Figure::unknown(Reason::Lost), "-1 is no rate");
    let totals = disk.totals();
    assert_eq!((totals.intervals, totals.unknown_intervals), (4, 2));
    assert_eq!(totals.elapsed_ns, (15 + 15 + 15 + 30) * 1_000_000_000);
    let reads = 500.0 * 15.0 + 800.0 * 15.0 + 1000.0 * 30.0;
    let read_s = 500.0 * 15.0 * 0.004 + 800.0 * 15.0 * 0.025 + 1000.0 * 30.0 * 6.5e-5;
    assert!((totals.read_latency_ns.known().unwrap() - read_s / reads * 1e9).abs() < 1.0);
    assert_eq!((totals.queue_sampled.known(), totals.queue_sampled_max.known()), (Some(1.0), Some(3.0)));
    let notes: Vec<String> = log.notes.iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.contains("not of disks: Memory")), "{notes:?}");
}

#[test]
fn another_languages_counters_are_named_and_not_guessed() {
    let text = text("counters_perfmon.csv");
    let german = text.replace("PhysicalDisk", "Physikalischer Datenträger");
    let error = counters(&german, None).unwrap_err();
    assert!(error.reason.contains("no counter of PhysicalDisk") && error.remedy.unwrap().contains("English"));
    let half = text.replace("Avg. Disk sec/Write", "Mittlere Sek./Schreibvorgänge");
    let log = read(&half);
    let told = log.notes.iter().any(|note| note.text.contains("Mittlere Sek./Schreibvorgänge"));
    assert!(told, "{:?}", log.notes);
    assert_eq!(disk(&log).intervals[1].write.latency_ns, Figure::unknown(Reason::NotCounted));
    assert_eq!(
        disk(&log).intervals[1].outstanding(),
        Figure::unknown(Reason::NotCounted),
        "never half of it"
    );
    let comma = "\"(PDH-CSV 4.0) (MEZ)(-60)\";\"\\\\A\\LogicalDisk(D:\\m)\\Disk Reads/sec\"\n\"01/02/2026 10:00:00,5\";\"1,5\"\n";
    assert_eq!(disk(&read(comma)).intervals[0].read.per_second, Figure::Known(1.5));
}

#[test]
fn whatever_the_export_went_through_it_is_the_same_history() {
    let text = text("counters_file_stats.csv");
    let expected = chain(&text);
    let separated = |by: char| -> String {
        let line = |line: &str| {
            let quoted = |cell: &String| {
                if cell.contains(by) || cell.contains(',') { format!("\"{cell}\"") } else { cell.clone() }
            };
            // The label's own quotes are lost by this writer; it has no others.
            cells(&line.replace("\"\"", ""), ',').iter().map(quoted).collect::<Vec<_>>().join(&by.to_string())
        };
        text.lines().map(line).collect::<Vec<_>>().join("\r\n")
    };
    for by in [';', '\t', '|'] {
        let mut found = chain(&separated(by));
        found.captures[1].label.clone_from(&expected.captures[1].label);
        assert_eq!(found, expected, "separated by {by:?}");
    }
    let utf16: Vec<u8> = text.replace('\n', "\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for mark in [&[0xff, 0xfe][..], &[]] {
        assert_eq!(chain(&decode(&[mark, &utf16].concat()).unwrap().0), expected, "bcp -w");
    }
    let headless = text.split_once('\n').unwrap().1;
    assert_eq!(chain(headless), expected);
    assert!(read(headless).notes[0].text.contains("no heading"));
    let named = text.replacen("capture_id,", "[capture_id],", 1).replace(",,\n", ",NULL,NULL\n");
    assert_eq!(chain(&named), expected);
    assert_eq!(chain(&text.replace("2026-05-01T08:0", "2026-05-01 08:0")), expected);
    assert_eq!(chain(&format!("{text}\n(28 rows affected)\n")), expected);
}

#[test]
fn what_cannot_be_read_names_line_column_reason_and_remedy() {
    let text = text("counters_file_stats.csv");
    let mut told = String::new();
    let mut refuse = |what: &str, text: &str| {
        let error = counters(text, None).unwrap_err();
        writeln!(told, "{what}\n  {error}\n  try: {}", error.remedy.as_deref().unwrap_or("-")).unwrap();
    };
    refuse("Excel", &text.replace("42861592576", "4.28616E+10"));
    refuse("thousands", &text.replace(",655360000,", ",\"655,360,000\","));
    refuse("a date of two countries", &text.replace("2026-05-01T08:02:00.000", "5/1/2026 8:02:00 AM"));
    refuse("NULL where a count must be", &text.replacen(",10000,655360000,", ",NULL,655360000,", 1));
    refuse("negative", &text.replacen(",10000,655360000,", ",-10000,655360000,", 1));
    refuse("sqlcmd -s", &text.replace("\"E:\\Data, fast\\sales.mdf\"", "E:\\Data, fast\\sales.mdf"));
    refuse("cut off", &text[..text.len() - 40]);
    refuse("a quote that stays open", &text.replacen("\"index rebuild\"", "\"index rebuild", 1));
    refuse("no rows", text.lines().next().unwrap());
    refuse("another table", "a,b,c\n1,2,3\n");
    refuse("sizes of DBA Dash", "SnapshotDate,FileID,Size,space_used\n2026-05-01 10:00,1,2,3\n");
    refuse(
        "the hourly table",
        "InstanceID,DatabaseID,Drive,FileID,SnapshotDate,num_of_reads,sample_ms_diff,MaxReadLatency\n",
    );
    refuse(
        "PerfMon's time",
        "\"(PDH-CSV 4.0) (X)(0)\",\"\\\\A\\PhysicalDisk(0)\\Disk Reads/sec\"\n\"31/12/2026 10:00\",\"1\"\n",
    );
    refuse(
        "PerfMon's number",
        "\"(PDH-CSV 4.0) (X)(0)\",\"\\\\A\\PhysicalDisk(0)\\Disk Reads/sec\"\n\"12/31/2026 10:00:00\",\"1.234,5\"\n",
    );
    insta::assert_snapshot!("refusals", told);
}

#[test]
fn the_int_clock_of_old_versions_runs_over_and_intervals_stay_known() {
    let text = text("counters_file_stats.csv");
    let lines: Vec<&str> = text.lines().collect();
    // The first two captures, two minutes apart: before and after 2^31 ms since the computer started.
    let old = |first: &str, second: &str| {
        lines[..9].join("\n").replace("7260015", first).replace("7380015", second)
    };
    for (first, second) in [("2147423648", "-2147423648"), ("2147423648", "60000"), ("-60000", "60000")] {
        let chain = chain(&old(first, second));
        let snapshots = snapshots(&chain);
        let rows = between(snapshots[0], snapshots[1]);
        let elapsed_ns = rows[SALES_LOG].interval.known().unwrap().elapsed_ns;
        assert_eq!(elapsed_ns, 120_000_000_000, "{first} to {second}");
    }
}

#[test]
fn everything_that_is_read_of_the_samples() {
    let mut told = String::new();
    for name in ["counters_file_stats.csv", "counters_blitz_first.csv", "counters_dba_dash.csv"] {
        let log = read(&text(name));
        writeln!(told, "{name}: {}", log.format).unwrap();
        log.notes.iter().for_each(|note| writeln!(told, "  note: {note}").unwrap());
        for series in log.series {
            let kind = match &series.points {
                Points::Cumulative(captures) => format!("{} captures", captures.len()),
                Points::Increments(rows) => format!("{} differences", rows.len()),
            };
            writeln!(told, "  {} ({kind})", series.source).unwrap();
            for Capture { label, snapshot } in series.captures(&Kept::new(), None).captures {
                writeln!(told, "    {} {label:?} clock {}", snapshot.taken_unix_ns, snapshot.clock_ns)
                    .unwrap();
                for sample in &snapshot.samples {
                    writeln!(told, "      {}", serde_json::to_string(sample).unwrap()).unwrap();
                }
            }
        }
    }
    insta::assert_snapshot!("samples_of_counters", told);
}
