use crate::build::*;
use analyze::{Analysis, FileSeries, FindingKind, TimeSeries};
use filestats::{Counters, Counts, Figure, Reason};

const MIB: u64 = 1 << 20;

/// A checkpoint in each of these intervals, 10 MiB between two.
fn checkpoints(at: &[usize]) -> Analysis {
    let course = course(100, 15 * S);
    let added = at.iter().map(|at| (*at, with_syncs(writes(1280, 8192, MS), 3, 5 * MS)));
    analysis(&course, &[file("/data/shop.db", &course, added.collect::<Vec<_>>())])
}

#[test]
fn syncs_at_a_regular_distance_look_like_checkpoints() {
    let found = found(&checkpoints(&[10, 30, 50, 70]), FindingKind::Checkpoint);
    assert_eq!(fact(&found, "distance"), (5 * MIN) as f64);
    assert_eq!(found.when.len(), 4);
    assert!(
        found.text.starts_with("looks like checkpoints") && found.text.contains("10 MiB"),
        "{}",
        found.text
    );
    assert!(find(&checkpoints(&[10, 30, 50]), FindingKind::Checkpoint).is_none(), "three are no row");
    assert!(
        find(&checkpoints(&[10, 30, 35, 70, 72]), FindingKind::Checkpoint).is_none(),
        "no regular distance"
    );
    let all: Vec<usize> = (1..=100).collect();
    assert!(find(&checkpoints(&all), FindingKind::Checkpoint).is_none(), "each commit syncs: no distance");
}

/// Two data files of 64 MiB, read in reads of that size; the second of them only in part.
fn backup(bytes_each: u64, share_of_second: f64) -> Vec<FileSeries> {
    let course = course(40, 15 * S);
    let read = |path: &str, from: usize, bytes: u64| {
        let added = (from..from + 4).map(|at| (at, reads(bytes / 4 / bytes_each, bytes_each, MS)));
        sized(file(path, &course, added), Figure::Known(64 * MIB))
    };
    vec![read("/data/a.db", 5, 64 * MIB), read("/data/b.db", 9, (64.0 * share_of_second) as u64 * MIB)]
}

fn backup_in(files: &[FileSeries]) -> Option<analyze::Finding> {
    find(&analysis(&course(40, 15 * S), files), FindingKind::Backup)
}

#[test]
fn all_files_read_whole_in_large_reads_look_like_a_backup() {
    let found = backup_in(&backup(256 << 10, 1.0)).unwrap();
    assert_eq!((fact(&found, "files read whole"), fact(&found, "share of all data")), (2.0, 1.0));
    assert_eq!(fact(&found, "mean size of a read"), 262_144.0);
    assert_eq!(found.when[0].length_ns(), 2 * MIN);
    assert!(backup_in(&backup(32 << 10, 1.0)).is_none(), "small reads");
    assert!(backup_in(&backup(256 << 10, 0.5)).is_none(), "half of the data");
    let mut unsized_file = backup(256 << 10, 1.0);
    unsized_file[1].size_bytes = Figure::unknown(Reason::NotCounted);
    assert!(backup_in(&unsized_file).is_none(), "nobody knows whether that was all");
    let mut blocks = backup(256 << 10, 1.0);
    blocks.iter_mut().for_each(|file| file.meaning.counts = Counts::Blocks);
    assert!(backup_in(&blocks).is_none(), "blocks tell no size");
}

/// A table of 64 MiB under an everyday load; from interval 20 to 23 `read_share` of it is read and `log_mib` of
/// log written.
fn rebuild(read_share: f64, log_mib: u64) -> (TimeSeries, Vec<FileSeries>) {
    let course = course(40, 15 * S);
    let everyday = |at: usize| !(20..24).contains(&at);
    let read = (read_share * 64.0 * 128.0) as u64 / 4;
    let data =
        (1..=40).map(|at| if everyday(at) { (at, reads(5, 8192, MS)) } else { (at, reads(read, 8192, MS)) });
    let small = with_syncs(writes(30, 4096, MS), 30, MS);
    let large = with_syncs(writes(log_mib * 4, 65_536, MS), 1, MS);
    let written = (1..=40).map(|at| (at, if everyday(at) { small } else { large }));
    let files = vec![
        sized(file("/data/base/5/16384", &course, data), Figure::Known(64 * MIB)),
        log(file("/data/pg_wal/1", &course, written)),
    ];
    (course, files)
}

fn looks_like(
    kind: FindingKind,
    (course, files): &(TimeSeries, Vec<FileSeries>),
) -> Option<analyze::Finding> {
    find(&analysis(course, files), kind)
}

#[test]
fn a_table_read_whole_while_the_log_grows_looks_like_an_index_rebuild() {
    let found = looks_like(FindingKind::IndexRebuild, &rebuild(1.0, 5)).unwrap();
    assert_eq!(found.path.as_deref(), Some("/data/base/5/16384"));
    assert_eq!(fact(&found, "log written"), (5 * MIB) as f64);
    assert_eq!((fact(&found, "mean size of a log write"), fact(&found, "otherwise")), (65_536.0, 4096.0));
    assert_eq!(found.when[0].length_ns(), MIN);
    assert!(looks_like(FindingKind::IndexRebuild, &rebuild(0.49, 5)).is_none(), "less than half of it");
    assert!(
        looks_like(FindingKind::IndexRebuild, &rebuild(1.0, 4)).is_some(),
        "4 MiB of log for 64 of table"
    );
    assert!(looks_like(FindingKind::IndexRebuild, &rebuild(1.0, 3)).is_none(), "3 MiB are under 5 %");
    assert!(looks_like(FindingKind::IndexRebuild, &rebuild(1.0, 0)).is_none(), "a scan writes no log");
    let mut unknown = rebuild(1.0, 5);
    unknown.1[0].size_bytes = Figure::unknown(Reason::NotCounted);
    assert!(looks_like(FindingKind::IndexRebuild, &unknown).is_none());
}

#[test]
fn with_its_visibility_map_written_it_looks_like_a_vacuum() {
    let (course, mut files) = rebuild(1.0, 5);
    files.push(file("/data/base/5/16384_vm", &course, [(22, writes(3, 8192, MS))]));
    let both = (course, files);
    let vacuum = looks_like(FindingKind::Vacuum, &both).unwrap();
    assert!(vacuum.text.contains("visibility map"), "{}", vacuum.text);
    assert!(looks_like(FindingKind::IndexRebuild, &both).is_none());
}

#[test]
fn postgresqls_own_context_of_vacuums_is_believed() {
    let course = course(40, 15 * S);
    let of = |added: Counters| {
        let file = file("autovacuum worker/relation/vacuum", &course, [(7, added)]);
        find(&analysis(&course, &[file]), FindingKind::Vacuum)
    };
    assert_eq!(fact(&of(reads(10, 8192, MS)).unwrap(), "bytes read"), 81_920.0);
    assert!(of(Counters::ZERO).is_none());
}
