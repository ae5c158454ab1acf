use super::*;
use filestats::waits::{Agreement, Reconciled, WaitClass, WaitDelta};
use filestats::{
    Counters, Delta, Figure, FileIdentity, FileInterval, FileKind, Interval, Meaning, Ops, Reason,
    WaitInterval,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use report::{DeviceLoad, WatchedDevice, WatchedFile};

const MS: u64 = 1_000_000;

fn file(path: &str, interval: Interval) -> WatchedFile {
    let file = FileIdentity {
        instance: "engine".into(),
        database: None,
        database_id: None,
        file_id: path.into(),
        kind: FileKind::Data,
        path: path.into(),
        drive: None,
        handle: None,
        object: None,
    };
    WatchedFile {
        row: FileInterval { file: file.into(), meaning: Meaning::REQUESTS, ended_unix_ns: 0, interval },
        size_bytes: Figure::Known(1 << 20),
    }
}

fn reads(count: u64, each_ms: u64) -> Interval {
    let read = Ops::timed(count, count * 8192, count * each_ms * MS);
    let counters = Counters { read, ..Counters::ZERO };
    Interval::Known(Delta { elapsed_ns: 1000 * MS, counters, latencies: None })
}

fn glance(files: Vec<WatchedFile>) -> WatchedInterval {
    let delta =
        WaitDelta { elapsed_ns: 1000 * MS, count: Figure::Known(4), wait_ns: Figure::Known(800 * MS) };
    WatchedInterval {
        source: "sqlite:/data/shop.db".into(),
        ended_unix_ns: 1_800_000_000_000_000_000,
        elapsed_ns: Some(1000 * MS),
        files,
        below: vec![],
        devices: vec![WatchedDevice {
            row: file("/dev/sda", reads(50, 2)).row,
            load: Some(DeviceLoad {
                utilisation: Some(0.42),
                headroom: Some(2.38),
                read_expected_ns: Some(1.9e6),
                write_expected_ns: None,
            }),
        }],
        waits: vec![WaitInterval {
            instance: "engine".into(),
            event: "DataFileRead".into(),
            class: WaitClass::DataRead,
            interval: Figure::Known(delta),
        }],
        reconciled: vec![Reconciled {
            class: WaitClass::DataRead,
            wait_ns: Figure::Known(800 * MS),
            stall_ns: Figure::Known(3 * MS),
            agreement: Agreement::NotTheDisk,
        }],
        notes: vec!["timing is off".into()],
    }
}

fn two_files() -> WatchedInterval {
    let restarted = file("/data/log-file.wal", Interval::Unknown(Reason::Restart));
    glance(vec![file("/data/quiet.db", reads(3, 1)), file("/data/slow.db", reads(100, 30)), restarted])
}

fn picture(view: &mut View, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |row| (0..columns).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    (0..rows).map(|row| line(row).trim_end().to_owned()).collect()
}

fn view_of(glance: WatchedInterval) -> View {
    let mut view = View::new(Profile::default(), true);
    view.add(vec![glance]);
    view
}

#[test]
fn a_device_below_the_files_of_two_sources_is_shown_once() {
    let mut view = View::new(Profile::default(), true);
    view.add(vec![two_files(), two_files()]);
    let lines = picture(&mut view, 80, 24);
    assert_eq!(lines.iter().filter(|line| line.contains("/dev/sda")).count(), 1, "{lines:#?}");
}

#[test]
fn eighty_columns_hold_the_figures_the_bands_and_the_reasons() {
    let lines = picture(&mut view_of(two_files()), 80, 24);
    let all = lines.join("\n");
    let line = |what: &str| lines.iter().find(|line| line.contains(what)).expect(&all);
    assert!(line("slow.db").contains(" 100") && line("slow.db").contains(" 30 "), "{all}");
    assert!(line("slow.db").ends_with("bad"), "{all}");
    assert!(line("quiet.db").ends_with("very good"), "{all}");
    assert!(line("log-file").contains("? the engine restarted"), "{all}");
    assert!(line("/dev/sda").contains(" 50"), "{all}");
    let at = |what: &str| lines.iter().position(|line| line.contains(what)).expect(&all);
    assert!(at("/dev/sda") < at("slow.db"), "{all}");
    assert_eq!(lines[at("/dev/sda") + 1], "U 42 %, headroom 2.38 x, expected: reads 1.90 ms");
    assert!(line("all files").contains(" 103 "), "{all}");
    assert!(lines[0].ends_with("08:00:00 UTC"), "{all}");
    assert!(line("DataFileRead").contains("data read") && line("DataFileRead").ends_with("0.80"), "{all}");
    assert!(line("DataFileRead").contains(" 4 ") && line("DataFileRead").contains(" 200 ms"), "{all}");
    assert_eq!(line("not the disk"), "the waits for data read are not the disk:");
    assert_eq!(line("its files took"), "  sessions waited 800 ms, its files took 3.00 ms");
    assert!(all.contains("note: timing is off") && all.contains("q quit"), "{all}");
}

#[test]
fn keys_sort_filter_and_end() {
    let mut view = view_of(two_files());
    let order =
        |view: &View| -> Vec<String> { view.files().iter().map(|file| file.row.file.path.clone()).collect() };
    assert_eq!(order(&view)[0], "/data/slow.db");
    for _ in 0..4 {
        view.press(Key::Char('s'));
    }
    assert_eq!(order(&view)[0], "/data/log-file.wal", "by name");
    assert!(picture(&mut view, 80, 24).iter().any(|line| line.starts_with("▾file")));
    for c in "/QUIETq".chars() {
        view.press(Key::Char(c));
    }
    view.press(Key::Backspace);
    view.press(Key::Enter);
    assert_eq!(order(&view), ["/data/quiet.db"]);
    view.press(Key::Escape);
    assert_eq!(order(&view).len(), 3);
    assert_eq!(view.press(Key::Char('q')), Answer::Quit);
}

#[test]
fn what_is_usual_is_the_median_of_the_intervals_before() {
    let mut view = View::new(Profile::default(), false);
    for each_ms in [2, 2, 3, 2, 2, 2, 40] {
        view.add(vec![glance(vec![file("/data/shop.db", reads(10, each_ms))])]);
    }
    assert_eq!(view.latencies.usual_ns("engine", "/data/shop.db"), Some(2e6));
    let lines = picture(&mut view, 132, 20);
    let line = lines.iter().find(|line| line.starts_with("/data/shop.db")).unwrap();
    assert!(line.contains("2.00 ms") && line.ends_with("▁▁▁▁▁▁█"), "{line}");
}

#[test]
fn decimal_points_stand_under_each_other_and_notes_end_in_an_ellipsis() {
    let mut watched = glance(vec![file("/data/a", reads(3, 1)), file("/data/b", reads(7, 1200))]);
    watched.notes = vec!["a note that is much longer than the terminal is wide ".repeat(3)];
    let lines = picture(&mut view_of(watched), 80, 24);
    let points =
        |line: &String| line.char_indices().filter(|(_, c)| *c == '.').map(|(at, _)| at).collect::<Vec<_>>();
    let of = |name: &str| points(lines.iter().find(|line| line.starts_with(name)).unwrap());
    assert_eq!(of("/data/b").last(), of("all files").last(), "{lines:#?}");
    assert!(lines[1].ends_with('…') && lines[1].chars().count() <= 80, "{lines:#?}");
}

#[test]
fn nothing_is_too_small_or_too_strange_to_be_drawn() {
    for (columns, rows) in [(1, 1), (20, 3), (80, 5), (300, 80)] {
        let mut view = view_of(two_files());
        picture(&mut view, columns, rows);
        view.press(Key::Char('?'));
        view.press(Key::Down);
        picture(&mut view, columns, rows);
    }
}
