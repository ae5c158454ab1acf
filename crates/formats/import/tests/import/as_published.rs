//! Outputs in the shapes in which people publish them: shortened in articles, pasted from a console, of old versions.

use import::{Document, Format, counters, decode, read};
use workload::{Caching, Durability, RunResult};

fn sample(name: &str) -> String {
    let path = format!("{}/tests/samples/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn document(text: &str) -> Document {
    read(text, None).unwrap_or_else(|error| panic!("{error}")).documents[0].clone()
}

fn only(text: &str) -> RunResult {
    let results = document(text).phases.remove(0).results;
    let [result] = results.try_into().unwrap_or_else(|all: Vec<RunResult>| panic!("{} results", all.len()));
    result
}

fn notes(text: &str) -> String {
    document(text).notes.iter().map(|note| format!("{note}\n")).collect()
}

fn refusal(text: &str) -> (String, String) {
    let error = read(text, None).unwrap_err();
    (error.to_string(), error.remedy.unwrap_or_default())
}

/// Mean, p50 and p99 of reads and writes together, in microseconds.
fn total_us(result: &RunResult) -> [Option<f64>; 3] {
    let total = result.total_latency();
    let of = |percent| total.percentile_ns(percent).map(|ns| ns as f64 / 1e3);
    [total.mean_ns().map(|ns| (ns / 1e3).round()), of(50.0), of(99.0)]
}

#[test]
fn a_report_shortened_for_an_article_is_read_and_what_is_missing_is_named() {
    let text = sample("diskspd_article.txt");
    let result = only(&text);
    assert_eq!((result.read.count, result.write.count, result.threads.len()), (640_832, 160_204, 8));
    assert_eq!(result.elapsed_ns, 60_010_000_000);
    assert_eq!(total_us(&result), [Some(2_360.0), Some(1_640.0), Some(6_330.0)]);
    assert_eq!(result.read_latency().percentile_ns(99.99), Some(207_000_000));
    assert_eq!(result.cores.iter().map(|core| core.core).collect::<Vec<_>>(), [0, 1, 15]);
    let notes = notes(&text);
    assert!(notes.contains("line 28: the line 'Results for timespan 1:' is missing"), "{notes}");
    assert!(notes.contains("line 36: rows of the CPU table are missing"), "{notes}");
}

#[test]
fn without_parameters_the_command_line_says_what_ran() {
    let text = sample("diskspd_article.txt");
    let (start, end) = (text.find("Input parameters:").unwrap(), text.find("actual test time").unwrap());
    let cut = format!("{}{}", &text[..start], &text[end..]);
    let (result, whole) = (only(&cut), only(&text));
    assert_eq!((result.workload.shape, result.workload.threads), (whole.workload.shape, 8));
    assert_eq!((result.workload.outstanding, &result.read), (4, &whole.read));
    assert!(notes(&cut).contains("the parameters are missing: they are taken from the command line"));
    let nothing = cut.replace("Command Line: diskspd.exe", "Command Line: (see above)");
    assert!(refusal(&nothing.replace("-b8K", "-b8Q")).0.contains("before the parameters"));
}

#[test]
fn percentiles_may_stand_in_a_markdown_table() {
    let text = sample("diskspd_article.txt");
    let table = text.find("  %-ile").unwrap();
    let markdown = "## Latency Distribution\n\n| Percentile | Read (ms) | Write (ms) | Total (ms) |\n|------------|-----|-----|-----|\n\
                    | **Min**    | 0.029     | 0.760      | 0.029      |\n| **99th**   | 4.800     | 9.900      | 6.330      |\n\
                    | **3-nines**| 38.700    | 44.120     | 40.020     |\n| **Max**    | 54.102    | 54.818     | 54.818     |\n\n## Summary\n";
    let result = only(&format!("{}{markdown}", &text[..table]));
    assert_eq!(total_us(&result), [Some(2_360.0), None, Some(6_330.0)]);
    assert_eq!(result.read_latency().max_ns(), Some(54_102_000));
}

#[test]
fn without_a_test_time_the_duration_is_taken_and_named() {
    let text = sample("diskspd_article.txt").replace("actual test time:\t60.01s\n", "");
    assert_eq!(only(&text).elapsed_ns, 60_000_000_000);
    assert!(notes(&text).contains("'actual test time' is missing: the duration of the parameters, 60 s"));
}

#[test]
fn the_line_of_totals_counts_where_rows_of_a_thread_table_are_cut_out() {
    let text = sample("diskspd_article.txt");
    let is_cut = |line: &&str| {
        let cells: Vec<&str> = line.split('|').collect();
        cells.len() == 8 && matches!(cells[0].trim().parse(), Ok(1..=6_u32))
    };
    let dots: String = text
        .lines()
        .filter_map(|line| match is_cut(&line) {
            true if line.trim_start().starts_with('1') => Some("...\n".to_owned()),
            true => None,
            false => Some(format!("{line}\n")),
        })
        .collect();
    let silent: String = text.lines().filter(|line| !is_cut(line)).map(|line| format!("{line}\n")).collect();
    for cut in [dots, silent] {
        let (result, whole) = (only(&cut), only(&text));
        assert_eq!((result.read.count, result.write.bytes), (whole.read.count, whole.write.bytes));
        assert_eq!((result.iops(), total_us(&result)), (whole.iops(), total_us(&whole)));
        assert!((result.outstanding() / whole.outstanding() - 1.0).abs() < 1e-3);
        assert!(result.threads.is_empty(), "shares of two threads of eight are none");
        assert!(notes(&cut).contains("the threads' reads are 160208, the line of totals"), "{}", notes(&cut));
    }
}

#[test]
fn rows_cut_out_of_the_table_of_several_targets_are_refused() {
    let text = sample("diskspd_2.0.21_targets.txt");
    let cut: String =
        text.lines().filter(|line| !line.starts_with("     1 |")).map(|line| format!("{line}\n")).collect();
    let (reason, _) = refusal(&cut);
    assert!(reason.contains("rows of a table are missing") && reason.contains("of 2 targets"), "{reason}");
}

#[test]
fn a_prompt_or_an_echo_ends_a_report() {
    let with_latency = sample("diskspd_article.txt");
    let without = sample("diskspd_2.0.17_plain.txt");
    let transcript = format!(
        "C:\\tools> diskspd -b8K ...\n{without}\n\nC:\\tools>echo next | more\nnext: a | b | c\n{with_latency}\n\
         C:\\tools>\n=== run 3 ===\n{without}PS C:\\> exit\n"
    );
    let all = read(&transcript, None).unwrap();
    assert_eq!(all.documents.len(), 3);
    let alone = document(&without);
    for document in [&all.documents[0], &all.documents[2]] {
        assert_eq!(document.phases, alone.phases);
        assert_eq!(document.fingerprint, alone.fingerprint, "what follows is not the report's");
    }
    let notes: Vec<&str> = all.documents[0].notes.iter().map(|note| note.text.as_str()).collect();
    assert!(!notes.iter().any(|note| note.contains("left out")), "{notes:?}");
}

#[test]
fn reports_without_a_command_line_are_parted_by_their_parameters() {
    let text = sample("diskspd_2.0.21_targets.txt");
    let all = read(&format!("first\n{text}second\n{text}"), None).unwrap();
    assert_eq!(all.documents.len(), 2);
    assert_eq!(all.documents[0].phases, all.documents[1].phases);
}

#[test]
fn percentiles_headed_by_a_bare_path_are_of_that_target() {
    let results = document(&sample("diskspd_2.0.21_targets.txt")).phases.remove(0).results;
    let p99: Vec<_> = results.iter().map(|result| result.write_latency().percentile_ns(99.0)).collect();
    assert_eq!(p99, [Some(1_600_000), Some(61_600_000)]);
    let means: Vec<_> = results.iter().map(|result| result.mean_latency_ns().unwrap().round()).collect();
    assert_eq!(means, [608_998.0, 29_905_006.0]);
}

#[test]
fn threads_in_all_are_counted_by_the_result() {
    let text = sample("diskspd_2.0.17_all_threads.txt");
    let result = only(&text);
    assert_eq!((result.workload.threads, result.workload.outstanding), (2, 8));
    assert_eq!(only(&text.replace("thread count:\t\t2\n", "")).workload.threads, 2);
    // -O is not among the parameters of these versions.
    let shared = text.replace("-o8", "-O4").replace("\t\tnumber of outstanding I/O operations: 8\n", "");
    assert_eq!(only(&shared).workload.outstanding, 4);
    let unnamed = shared.replace("-O4", "");
    assert!(notes(&unnamed).contains("the outstanding I/Os of a thread are not named: kept as 1"));
}

#[test]
fn the_wording_of_2_0_15_is_the_same_workload() {
    let text = sample("diskspd_2.0.15.txt");
    let shape = only(&text).workload.shape;
    assert_eq!((shape.write_percent, shape.caching), (30, Caching::Direct));
    assert_eq!(shape.durability, Durability::WriteThrough);
    assert_eq!(notes(&text).matches("no word for").count(), 0, "{}", notes(&text));
}

#[test]
fn a_report_of_reads_without_its_table_of_writes_is_read() {
    let text = sample("diskspd_2.0.17_all_threads.txt");
    let whole = only(&text);
    let (reads, writes, ile) =
        (text.find("Read IO").unwrap(), text.find("Write IO").unwrap(), text.find("  %-ile").unwrap());
    let without_writes = format!("{}{}", &text[..writes], &text[ile..]);
    let only_total = format!("{}{}", &text[..reads], &text[ile..]);
    for shortened in [&without_writes, &only_total] {
        let result = only(shortened);
        assert_eq!((result.read, result.write), (whole.read.clone(), whole.write.clone()));
        assert!(notes(shortened).contains("is missing"), "{}", notes(shortened));
    }
    let means = only(&text[..ile]);
    assert_eq!(means.mean_latency_ns(), Some(320_000.0));
    assert!(notes(&text[..ile]).contains("latency was measured, but its percentiles are missing"));
}

#[test]
fn fio_on_windows_has_its_depth() {
    let text = sample("fio_windows.json");
    let result = only(&text);
    assert_eq!((result.workload.outstanding, result.target.as_str()), (32, "E:\\fio\\data.dat"));
    // Where fio does not report how deep it was, the path decides.
    let without_levels = text.replace("iodepth_level", "levels");
    assert_eq!(only(&without_levels).workload.outstanding, 32);
    let on_linux = without_levels.replace("E\\\\:\\\\fio\\\\data.dat", "/data/fio/data.dat");
    assert_eq!(only(&on_linux).workload.outstanding, 1);
}

#[test]
fn fio_2_1_4_counts_by_rate_and_time() {
    let text = sample("fio_2.1.4.json");
    let result = only(&text);
    assert_eq!((result.read.count, result.read.bytes), (120_000, 480_000 * 1024));
    assert_eq!(total_us(&result), [Some(240.0), Some(233.0), Some(506.0)]);
    assert!(notes(&text).contains("their number follows from their rate and the time"), "{}", notes(&text));
}

#[test]
fn fio_2_1_4_reports_no_options_and_none_is_invented() {
    let text = sample("fio_2.1.4.json");
    let result = only(&text);
    assert!(result.settings_unreported);
    assert_eq!(result.shape_words(), "read 4 KiB, pattern and caching unknown");
    assert!(notes(&text).contains("the document has no options of it"), "{}", notes(&text));
    assert_eq!(result.threads, []);
    // A rate without decimals counts almost right; 16 KiB stay 16 KiB.
    let larger = text.replace("480000", "1920000").replace("\"iops\" : 4000", "\"iops\" : 3998");
    assert_eq!(only(&larger).shape_words(), "read 16 KiB, pattern and caching unknown");
    // One option is a report of options; the others are then fio's defaults.
    let with_options = text.replacen("\"groupid\"", "\"job options\": {\"bs\": \"8k\"}, \"groupid\"", 1);
    assert_eq!(only(&with_options).shape_words(), "sequential read 8 KiB buffered");
}

#[test]
fn the_latencies_of_syncs_are_kept() {
    let result = only(&sample("fio_fdatasync.json"));
    let sync = result.sync_latency();
    assert_eq!((result.sync.count, sync.mean_ns()), (10_029, Some(892_480.25)));
    assert_eq!(sync.percentile_ns(99.0), Some(2_260_000));
    assert_eq!(sync.deviation_ns(), Some(220_090.5));
    let json = serde_json::to_string(&result).unwrap();
    let kept: RunResult = serde_json::from_str(&json).unwrap();
    assert_eq!(kept.sync_latency(), sync);
}

#[test]
fn what_stands_before_the_first_brace_is_left_out() {
    let text = sample("fio_windows.json");
    for before in ["x", "  ", "$ cat fio.json; "] {
        assert_eq!(only(&format!("{before}{text}")), only(&text), "{before}");
    }
    assert!(notes(&format!("x{text}")).contains("line 1: not part of the JSON: x"));
}

#[test]
fn other_outputs_of_fio_are_named() {
    let normal = "randread: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=libaio, iodepth=16\nfio-3.28\n";
    assert!(refusal(normal).0.contains("fio's report for people"));
    assert!(refusal(normal).1.contains("--output-format=json+"));
    let terse = format!("3;fio-3.28;randread;0;0;{}\n", "17;".repeat(100));
    assert!(refusal(&terse).0.contains("terse"), "{:?}", refusal(&terse));
    for other in [normal, &terse] {
        assert_eq!(read(other, Some(Format::FioJson)).unwrap_err(), read(other, None).unwrap_err());
    }
}

#[test]
fn counters_that_do_not_suffice_are_named() {
    let refused = |text: &str| {
        let error = counters(text, None).unwrap_err();
        (error.reason, error.remedy.unwrap_or_default())
    };
    let (reason, remedy) = refused(
        "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\A\\PhysicalDisk(0 C:)\\% Disk Time\"\n\"05/01/2026 10:00:00.000\",\"4\"\n",
    );
    assert!(reason.contains("only % Disk Time"), "{reason}");
    assert!(remedy.contains("Avg. Disk sec/Read"), "{remedy}");
    let (reason, remedy) = refused(
        "database_id,file_id,sample_ms,num_of_reads,num_of_bytes_read,io_stall_read_ms,num_of_writes,\
         num_of_bytes_written,io_stall_write_ms,io_stall,size_on_disk_bytes,file_handle\n\
         1,1,4000,10,81920,20,5,40960,8,28,4194304,0x1\n",
    );
    assert!(
        reason.contains("sys.dm_io_virtual_file_stats")
            && reason.contains("without capture_id, capture_time"),
        "{reason}"
    );
    assert!(remedy.contains("headroom sources capture-script"), "{remedy}");
    let error = decode(b"\"(PDH-BIN 4.0)\"\r\n\0\0\x42\x4c").unwrap_err();
    assert!(error.remedy.unwrap().starts_with("on Windows: relog LOG.blg -f csv"));
}
