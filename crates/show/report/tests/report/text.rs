//! Output in the terminal.

use crate::known::known_storage;
use crate::sample;
use filestats::{
    Counters, Epoch, Figure, FileKind, Meaning, Ops, Reason, Rules, Sample, Snapshot, intervals,
};
use report::WatchedInterval;
use report::text::{self, Style};
use verdict::VerdictKind;

pub const STYLE: Style = Style { color: false, width: 80 };

#[test]
fn remedies_say_how_far_they_carry_and_that_they_are_estimates() {
    let mut check = sample::demand_exceeds();
    let remedy = |what: &str, carries, latency_ns: Option<f64>| simulate::Remedy {
        what: what.into(),
        carries,
        latency_ns,
        enough: latency_ns.is_some(),
    };
    let remedies =
        vec![remedy("unchanged", 1.41, Some(262e3)), remedy("3 such disks striped", 2.7, Some(1.4e6))];
    check.advice = Some(simulate::Advice { remedies, error: Some(0.073) });
    let text = text::check(&check, &Style::default());
    let line = |what: &str| {
        text.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {text}"))
    };
    // The storage unchanged has the figures of the verdict, not those of its model.
    let headroom = charts::number::times(check.verdict.headroom.unwrap());
    let observed = charts::number::time(check.verdict.place.as_ref().unwrap().latency_ns);
    assert!(line("unchanged").contains(&headroom) && line("unchanged").contains(&observed), "{text}");
    assert!(!text.contains("1.41 x") && !text.contains("262 us"), "{text}");
    assert!(line("3 such disks").contains("2.70 x") && line("3 such disks").contains("1.40 ms"));
    assert!(line("estimates by simulation").contains("7.3 %"), "{text}");
    assert!(text.lines().count() <= 40, "one screen");
    let page = report::html::check(&check);
    assert!(page.contains("3 such disks striped") && page.contains("estimates by simulation"));
}

#[test]
fn the_operating_limit_stands_beside_the_knee_in_text_and_page() {
    let check = sample::demand_exceeds();
    let text = text::check(&check, &Style { color: false, width: 120 });
    let line = text.lines().find(|line| line.contains("outstanding I/Os")).unwrap();
    assert!(line.contains("knee at 13.7, operating limit ") && line.ends_with(" IOPS"), "{line}");
    assert!(report::html::check(&check).contains("knee at 13.7, operating limit "));
    let capability = sample::capability();
    let text = text::capability(&capability, &STYLE);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("highest rate") && text.contains("operating limit"), "{text}");
    let page = report::html::capability(&capability);
    assert!(page.contains("<th>operating limit (IOPS)</th>") && page.contains(">highest rate<"), "{page}");
    assert!(page.contains("<p class=\"sentence\">At most 12,594"), "its answer in a sentence");
}

#[test]
fn every_verdict_has_its_screen() {
    let samples = [
        (VerdictKind::Healthy, sample::healthy()),
        (VerdictKind::DemandExceedsCapability, sample::demand_exceeds()),
        (VerdictKind::StorageDegraded, sample::degraded()),
        (VerdictKind::Throttled, sample::throttled()),
        (VerdictKind::Serialized, sample::serialized()),
        (VerdictKind::Burst, sample::burst()),
        (VerdictKind::NotStorage, sample::not_storage()),
        (VerdictKind::NobodyWaits, sample::nobody_waits()),
        (VerdictKind::CannotSay, sample::never_measured()),
        (VerdictKind::CannotSay, sample::restarted()),
    ];
    for (at, (kind, check)) in samples.iter().enumerate() {
        assert_eq!(check.verdict.verdict, *kind, "{}", check.verdict.summary);
        let screen = text::check(check, &STYLE);
        assert!(screen.lines().count() <= 40, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        insta::assert_snapshot!(format!("check_{at}_{}", kind.to_string().replace(' ', "_")), screen);
    }
}

#[test]
fn other_volumes_are_listed_with_their_verdicts() {
    let screen = text::check(&sample::three_volumes(), &STYLE);
    assert!(screen.lines().count() <= 40, "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    insta::assert_snapshot!(screen);
    assert!(!text::check(&sample::healthy(), &STYLE).contains("volume"));
}

#[test]
fn colours_come_only_when_asked_for_and_change_no_word() {
    let check = sample::demand_exceeds();
    let plain = text::check(&check, &STYLE);
    let coloured = text::check(&check, &Style { color: true, ..STYLE });
    assert!(!plain.contains('\x1b') && coloured.contains("\x1b[31m"));
    let mut stripped = String::new();
    for part in coloured.split('\x1b') {
        let text =
            if part.starts_with('[') { part.split_once('m').map_or(part, |(_, text)| text) } else { part };
        stripped.push_str(text);
    }
    assert_eq!(stripped, plain);
}

#[test]
fn a_wide_terminal_shows_whole_paths() {
    insta::assert_snapshot!(text::check(&sample::demand_exceeds(), &Style { width: 120, ..STYLE }));
}

#[test]
fn a_capability() {
    insta::assert_snapshot!(text::capability(&sample::capability(), &STYLE));
}

fn snapshot(minutes: u64, files: &[(FileKind, &str, &str, Counters)]) -> Snapshot {
    let samples = files.iter().map(|(kind, path, epoch, counters)| Sample {
        file: sample::identity(*kind, path),
        epoch: Epoch::for_run(*epoch),
        meaning: Meaning::REQUESTS,
        counters: *counters,
        size_bytes: Figure::Known(1 << 30),
        latencies: None,
    });
    let clock_ns = minutes * 60_000_000_000;
    Snapshot {
        source: "sqlite".into(),
        taken_unix_ns: sample::BEGIN_NS + clock_ns,
        clock_ns,
        samples: samples.collect(),
        complete: None,
        waits: vec![],
        notes: vec![],
    }
}

/// The case of PRODUCT: the rebuild's 600 ms are cumulative, today's writes take 1.5 ms.
#[test]
fn cumulative_figures_stand_beside_those_of_the_interval() {
    let counters = |writes: u64, stall_ms: u64| Counters {
        read: Ops::timed(90_000, 90_000 * 8192, 130_000_000_000),
        write: Ops::timed(writes, writes * 65_536, stall_ms * 1_000_000),
        ..Counters::ZERO
    };
    let untimed = Counters {
        write: Ops { stall_ns: Figure::unknown(Reason::TimingOff), ..Ops::timed(500, 500 * 4096, 0) },
        ..Counters::ZERO
    };
    let (orders, wal, temp) = ("/data/sales/orders.db", "/data/sales/orders.db-wal", "/tmp/sort-1");
    let earlier = snapshot(
        0,
        &[(FileKind::Data, orders, "1", counters(10_000, 6_000_000)), (FileKind::Log, wal, "1", untimed)],
    );
    let later = snapshot(
        5,
        &[
            (FileKind::Data, orders, "1", counters(12_000, 6_003_000)),
            (FileKind::Log, wal, "2", untimed),
            (FileKind::Temp, temp, "1", Counters::ZERO),
        ],
    );
    let rows = intervals(&earlier, &later, Rules::default());
    let between = WatchedInterval::between(&earlier, &later);
    let text = text::intervals(&earlier, &later, &rows, &between, &Style { width: 100, ..STYLE });
    assert!(text.contains("1.5"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn what_is_known_of_a_storage_is_a_table_with_origins() {
    insta::assert_snapshot!(text::known_storage(&known_storage(), &STYLE));
}
