//! Whole samples of each format: what is read from them, and that nothing is read from damaged ones in silence.

use import::{Document, Format, Imported, decode, read};
use std::fmt::Write;
use workload::{Direction, RunResult, Tally, format_ns};

fn sample(name: &str) -> String {
    let path = format!("{}/tests/samples/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn imported(name: &str) -> Imported {
    read(&sample(name), None).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn results(name: &str) -> Vec<RunResult> {
    imported(name).results().cloned().collect()
}

fn tally(tally: &Tally) -> String {
    let ns = |ns: Option<f64>| ns.map_or("not known".into(), format_ns);
    format!("{} I/Os, mean {}, deviation {}", tally.count, ns(tally.mean_ns()), ns(tally.deviation_ns()))
}

fn direction(direction: &Direction) -> String {
    let (count, bytes) = (direction.count, direction.bytes);
    format!(
        "{count} I/Os, {bytes} B, {} in a histogram, {:?}",
        direction.latency.count(),
        direction.percentiles
    )
}

/// A description of an import for snapshots.
fn describe(imported: &Imported) -> String {
    let mut text = format!("{}\n", imported.format);
    for document in &imported.documents {
        writeln!(text, "line {}: {}", document.line, document.tool).unwrap();
        for phase in &document.phases {
            writeln!(text, "  {} {:?}", phase.name, phase.length).unwrap();
            for result in &phase.results {
                let RunResult { target, target_bytes, started_unix_ns, elapsed_ns, .. } = result;
                writeln!(text, "    {target} ({target_bytes} B) from {started_unix_ns} for {elapsed_ns} ns")
                    .unwrap();
                writeln!(text, "      {}", serde_json::to_string(&result.workload).unwrap()).unwrap();
                writeln!(text, "      read  {}", direction(&result.read)).unwrap();
                writeln!(text, "      write {}", direction(&result.write)).unwrap();
                writeln!(text, "      sync  {}", direction(&result.sync)).unwrap();
                for share in &result.threads {
                    let (read, write) = (tally(&share.read), tally(&share.write));
                    writeln!(text, "      thread: reads {read}; writes {write}; {} ns of CPU", share.cpu_ns)
                        .unwrap();
                }
                for slice in &result.series {
                    let (read, write) = (tally(&slice.read), tally(&slice.write));
                    writeln!(text, "      to {} ns: reads {read}; writes {write}", slice.end_ns).unwrap();
                }
                for core in &result.cores {
                    writeln!(text, "      {core:?}").unwrap();
                }
            }
        }
        document.notes.iter().for_each(|note| writeln!(text, "  note: {note}").unwrap());
    }
    text
}

#[test]
fn the_text_of_2_0_17() {
    insta::assert_snapshot!(describe(&imported("diskspd_2.0.17.txt")));
}

#[test]
fn a_text_without_latency_has_none() {
    insta::assert_snapshot!(describe(&imported("diskspd_2.0.17_plain.txt")));
    let result = &results("diskspd_2.0.17_plain.txt")[0];
    assert_eq!((result.mean_latency_ns(), result.read.percentile_ns(50.0)), (None, None));
    assert_eq!(result.iops(), 20_000.0);
}

#[test]
fn the_text_of_2_2_with_two_timespans_of_two_targets() {
    insta::assert_snapshot!(describe(&imported("diskspd_2.2_timespans.txt")));
}

#[test]
fn the_xml_of_2_2() {
    insta::assert_snapshot!(describe(&imported("diskspd_2.2.xml")));
}

#[test]
fn results_appended_to_one_file_are_each_read() {
    let (one, two) = (sample("diskspd_2.0.17.txt"), sample("diskspd_2.0.17_plain.txt"));
    let dated = format!("starting 22:00\n{one}\n{two}{one}");
    let all = read(&dated, None).unwrap();
    assert_eq!(all.documents.len(), 3);
    assert_eq!(all.documents[0].fingerprint, all.documents[2].fingerprint);
    assert_ne!(all.documents[0].fingerprint, all.documents[1].fingerprint);
    assert_eq!(all.documents[0].phases, imported("diskspd_2.0.17.txt").documents[0].phases);
    assert_eq!(
        all.documents[0].notes.last().unwrap().to_string(),
        "line 1: before the report: starting 22:00"
    );
    assert_eq!(all.documents[1].line, 92);
}

#[test]
fn windows_line_ends_and_utf_16_say_the_same() {
    for name in ["diskspd_2.0.17.txt", "diskspd_2.2_timespans.txt", "diskspd_2.2.xml"] {
        let plain = sample(name);
        let windows = plain.replace('\n', "\r\n");
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(windows.encode_utf16().flat_map(u16::to_le_bytes));
        let (text, notes) = decode(&bytes).unwrap();
        assert_eq!(notes, []);
        assert_eq!(read(&text, None).unwrap(), read(&plain, None).unwrap(), "{name}");
    }
}

#[test]
fn a_damaged_report_names_its_line() {
    let whole = sample("diskspd_2.0.17.txt");
    let say = |text: &str| read(text, None).unwrap_err().to_string();
    let damaged = whole.replace("|       300000 |", "|       3OO000 |");
    assert_eq!(say(&damaged), "line 58: '3OO000' is not a number that fits here");
    let cut = &whole[..whole.find("Write IO").unwrap()];
    assert!(say(cut).contains("the report ends before"), "{}", say(cut));
    let two = format!("{whole}\n{cut}");
    let kept = read(&two, None).unwrap();
    assert_eq!(kept.documents.len(), 1);
    assert!(kept.documents[0].notes.last().unwrap().text.starts_with("a report was left out"));
}

#[test]
fn damaged_xml_names_line_and_element() {
    let whole = sample("diskspd_2.2.xml");
    let say = |text: &str| read(text, None).unwrap_err().to_string();
    let damaged = whole.replace("<ReadCount>20100<", "<ReadCount>many<");
    assert_eq!(
        say(&damaged),
        "line 176: Results/TimeSpan[1]: ReadCount 'many' is not a number that fits here"
    );
    let cut = &whole[..whole.find("<IOCount>").unwrap()];
    let error = read(cut, None).unwrap_err();
    assert_eq!(error.place.as_deref(), Some("Results/TimeSpan/Thread/Target"));
    assert_eq!(error.remedy.as_deref(), Some("import the whole XML, this is cut off"));
}

#[test]
fn a_job_with_syncs_and_two_more_in_json_plus() {
    let text = describe(&imported("fio_two.json"));
    insta::assert_snapshot!(text);
}

#[test]
fn threads_that_fio_tells_one_by_one_are_one_workload() {
    insta::assert_snapshot!(describe(&imported("fio_numjobs.json")));
}

#[test]
fn a_group_told_as_one_has_no_shares() {
    insta::assert_snapshot!(describe(&imported("fio_group.json")));
}

#[test]
fn the_report_for_people_around_the_json_is_told_and_left() {
    let all = imported("fio_both.txt");
    let names: Vec<&str> = all.documents[0].phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!((all.documents.len(), names), (1, vec!["log", "reads + beside"]));
    let notes: Vec<String> = all.documents[0].notes.iter().map(ToString::to_string).collect();
    assert!(
        notes.iter().any(|note| note.starts_with("line 1: not part of the JSON: log: (g=0)")),
        "{notes:?}"
    );
    assert!(notes.last().unwrap().contains("more lines that are not part of the JSON"), "{notes:?}");
}

#[test]
fn messages_within_the_json_are_left_out() {
    let whole = sample("fio_mix.json");
    let messages =
        whole.replace("      \"write\" : {", "fio: /dev/sdb is busy\n<sdb> Jobs: 1\n      \"write\" : {");
    let all = read(&messages, None).unwrap();
    let document = |all: &Imported| -> Document { all.documents[0].clone() };
    assert_eq!(document(&all).phases, imported("fio_mix.json").documents[0].phases);
    let notes: Vec<String> = document(&all).notes.iter().map(ToString::to_string).collect();
    assert!(
        notes.iter().any(|note| note.ends_with("not part of the JSON: fio: /dev/sdb is busy")),
        "{notes:?}"
    );
}

#[test]
fn the_states_of_one_run_are_its_last() {
    let all = imported("fio_interval.json");
    assert_eq!((all.documents.len(), all.documents[0].line), (1, 1058));
    assert_eq!(all.documents[0].notes, []);
    assert_eq!(results("fio_interval.json")[0].read.count, 11_808);
}

#[test]
fn runs_of_one_job_appended_to_a_file_are_each_read() {
    let first = sample("fio_mix.json");
    let later = first.replace("\"timestamp_ms\" : 17952659", "\"timestamp_ms\" : 17952669");
    assert_ne!(first, later);
    let all = read(&format!("{first}{later}"), None).unwrap();
    assert_eq!(all.documents.len(), 2);
}

#[test]
fn the_window_of_steady_state_and_trims_are_no_results() {
    assert_eq!(results("fio_steadystate.json").len(), 1);
    let error = read(&sample("fio_trim.json"), None).unwrap_err();
    assert!(error.to_string().contains("no job of this run read or wrote anything"), "{error}");
    let error = read(&sample("fio_unified.json"), None).unwrap_err();
    assert!(error.to_string().contains("unified_rw_reporting"), "{error}");
}

#[test]
fn damaged_json_names_line_column_and_remedy() {
    let whole = sample("fio_mix.json");
    let cut = &whole[..whole.len() / 2];
    let error = read(cut, None).unwrap_err();
    assert!(error.line.is_some_and(|line| line > 100) && error.column.is_some(), "{error}");
    assert!(error.reason.starts_with("the JSON ends too early"), "{error}");
    assert!(error.remedy.unwrap().contains("--output=FILE"));
    let wrong = whole.replacen("\"total_ios\" : 37532", "\"total_ios\" : \"many\"", 1);
    let error = read(&wrong, None).unwrap_err();
    assert_eq!(error.to_string(), "line 1: jobs[0] 'mix': read/total_ios: a text instead of a number");
}

#[test]
fn clients_are_results_of_their_own() {
    let mut value: serde_json::Value = serde_json::from_str(&sample("fio_mix.json")).unwrap();
    let mut job = value["jobs"][0].take();
    job["hostname"] = "db1".into();
    let mut sum = job.clone();
    sum["jobname"] = "All clients".into();
    let mut other = job.clone();
    other["hostname"] = "db2".into();
    value.as_object_mut().unwrap().remove("jobs");
    value["client_stats"] = vec![job, other, sum].into();
    let all = read(&format!("<db1> starting\n{value:#}"), None).unwrap();
    let targets: Vec<&str> = all.results().map(|result| result.target.as_str()).collect();
    assert_eq!(targets, ["db1:/data/fio/mix", "db2:/data/fio/mix"]);
    assert_eq!(all.documents[0].phases.len(), 1);
}

#[test]
fn a_folder_of_bench_fio_is_read_with_its_names() {
    let mut value: serde_json::Value = serde_json::from_str(&sample("fio_mix.json")).unwrap();
    value["jobs"][0]["job options"]["numjobs"] = "1".into();
    let text = value.to_string();
    let files = [
        ("out/nvme0n1/randrw70/8k/randrw-8-1.json".to_owned(), text.clone()),
        ("out/nvme0n1/randrw75/4k/randrw-16-1.json".to_owned(), text),
        ("out/nvme0n1/4k/randread-1-1.json".to_owned(), "fio: failed".to_owned()),
    ];
    let (all, failed) = import::bench_fio(&files);
    assert_eq!(all.format, Format::FioJson);
    assert_eq!(all.documents[0].phases[0].name, "out/nvme0n1/randrw70/8k/randrw-8-1.json");
    assert_eq!(all.documents[0].notes.iter().filter(|note| note.text.contains("file's name")).count(), 0);
    let odd: Vec<&str> = all.documents[1]
        .notes
        .iter()
        .filter_map(|note| note.text.strip_prefix("the file's name says "))
        .collect();
    assert_eq!(
        odd,
        [
            "writes % 25, its job options 30: the options are kept",
            "block bytes 4096, its job options 8192: the options are kept",
            "iodepth 16, its job options 8: the options are kept",
        ]
    );
    assert_eq!(failed[0].0, "out/nvme0n1/4k/randread-1-1.json");
}

#[test]
fn a_trace_is_sent_to_where_it_is_replayed() {
    let error = read("at_ns,kind,offset_bytes,bytes\n0,read,0,512\n", None).unwrap_err();
    assert_eq!(error.remedy.as_deref(), Some("replay it: headroom run --replay FILE"));
}

#[test]
fn xml_whose_profile_lost_its_targets_is_refused() {
    let xml = sample("diskspd_2.2.xml");
    let (start, end) = (xml.find("<Target>").unwrap(), xml.find("</Targets>").unwrap());
    let pool = xml.replace("<ThreadCount>0</ThreadCount>", "<ThreadCount>1</ThreadCount>");
    for xml in [xml.clone(), pool] {
        let cut = format!("{}{}", &xml[..start], &xml[end..]);
        let error = read(&cut, None).unwrap_err();
        assert!(error.reason.contains("name no target"), "{error}");
    }
}
