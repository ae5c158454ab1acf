//! Workload files: their values, and the errors for wrong ones.

use std::time::Duration;
use workload::{Arrival, Durability, Limit, Pattern, SyncEvery, SyncKind};
use workload_file::{PRESETS, default_workload, preset, read, write};

#[test]
fn a_trace_has_no_warm_up_unless_it_is_asked_for() {
    let warm_up = |phase: &str| {
        let workload = "[[phases.workloads]]\nreplay = \"shop.trace\"";
        read(&format!("[[phases]]\n{phase}\n{workload}")).unwrap().phases[0].length.warm_up
    };
    assert_eq!(warm_up(""), Duration::ZERO);
    assert_eq!(warm_up("warm-up = \"3s\""), Duration::from_secs(3));
}

#[test]
fn a_file_is_read_as_it_is_written() {
    let plan = read(
        r#"
        [targets]
        data = { path = "/data", create = "4G" }
        log = "/log/wal.dat"

        [[phases]]
        name = "load"
        warm-up = "2s"
        duration = "1m"
        ios = 100_000
        [[phases.workloads]]
        preset = "oltp"
        target = "data"
        writes = "50%"
        rate = "2000/s"
        [[phases.workloads]]
        name = "commits"
        target = "log"
        block = 4096
        pattern = "sequential"
        writes = 100
        durability = "write-through"
        outstanding = 1

        [[phases]]
        name = "checkpoint"
        duration = 10
        [[phases.workloads]]
        preset = "checkpoint"
        target = "data"
        "#,
    )
    .unwrap();
    assert_eq!(plan.targets[0].create_bytes, Some(4 << 30));
    assert_eq!(plan.targets[1].path.to_str(), Some("/log/wal.dat"));
    let [load, checkpoint] = &plan.phases[..] else { panic!("{plan:?}") };
    assert_eq!(
        (load.length.warm_up, load.length.duration),
        (Duration::from_secs(2), Duration::from_secs(60))
    );
    assert_eq!(load.length.ios_max, Some(100_000));
    let oltp = &load.workloads[0];
    assert_eq!((oltp.target, oltp.workload.shape.write_percent, oltp.workload.threads), (0, 50, 4));
    assert_eq!(oltp.workload.arrival, Arrival::Constant { iops: 2000.0 });
    let commits = &load.workloads[1];
    assert_eq!((commits.target, commits.workload.shape.durability), (1, Durability::WriteThrough));
    assert_eq!(commits.workload.shape.pattern, Pattern::Sequential);
    let sync = checkpoint.workloads[0].workload.sync;
    assert_eq!(sync, Some(SyncEvery { writes: 1024, how: SyncKind::Fsync }));
    assert_eq!(checkpoint.length.duration, Duration::from_secs(10));
}

#[test]
fn what_is_said_beside_a_preset_takes_the_place_of_what_it_contradicts() {
    let workload = |lines: &str| {
        let text = format!("[[phases]]\n[[phases.workloads]]\npreset = \"checkpoint\"\n{lines}\n");
        read(&text).unwrap().phases.remove(0).workloads.remove(0).workload
    };
    let open = workload("rate = \"10/s\"");
    assert_eq!((open.burst, open.arrival), (None, Arrival::Constant { iops: 10.0 }));
    assert_eq!(workload("sync = \"none\"").sync, None);
    assert_eq!(workload("sync-every = 8").sync.unwrap(), SyncEvery { writes: 8, how: SyncKind::Fsync });
    let backup = |lines: &str| {
        let text = format!("[[phases]]\n[[phases.workloads]]\npreset = \"backup\"\n{lines}\n");
        read(&text).unwrap().phases.remove(0).workloads
    };
    let both = backup("limit = \"200M/s\"\nseed = 9\ncaching = \"buffered\"");
    assert_eq!(both[0].workload.limit, Limit { iops: None, bytes_per_s: Some(209_715_200.0) });
    assert_eq!(both[1].workload.limit, Limit::default(), "the users keep their rate");
    assert!(both.iter().all(|placed| placed.workload.seed == 9), "one seed for all of a preset");
}

#[test]
fn every_preset_reads_runs_and_prints_as_a_file() {
    for each in PRESETS {
        let plan = read(each.text).unwrap_or_else(|error| panic!("{}: {error}", each.name));
        assert_eq!(plan.phases.len(), 1);
        assert_eq!(plan.phases[0].workloads[0].workload.name, each.phase().workloads[0].workload.name);
        assert_eq!(read(&write(&plan)).unwrap(), plan, "{}", each.name);
        assert!(each.text.starts_with(&format!("# {}: ", each.name)), "it says what it is");
    }
    assert_eq!(preset("oltp").unwrap().phase().workloads[0].workload.outstanding_total(), 32);
    assert!(preset("olap").is_none());
}

#[track_caller]
fn assert_refused(text: &str, line: usize, pieces: &[&str]) {
    let error = read(text).unwrap_err();
    assert_eq!(error.line, line, "{error}");
    let message = format!("{error}; try: {}", error.remedy);
    for piece in pieces {
        assert!(message.contains(piece), "no '{piece}' in: {message}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line_key_and_remedy() {
    let workload = |lines: &str| format!("[[phases]]\nduration = \"1s\"\n[[phases.workloads]]\n{lines}\n");
    assert_refused("[[phases]", 1, &["line 1, the text: ", "correct the TOML"]);
    assert_refused("", 1, &["it has 0 phases", "[[phases]]"]);
    assert_refused("[[phase]]\n", 1, &["phase: there is no such key", "try: phases"]);
    assert_refused("[[phases]]\nduration = \"1s\"\n", 1, &["it has 0 workloads", "[[phases.workloads]]"]);
    assert_refused("phases = 3\n", 1, &["phases: tables belong here, not a number"]);
    assert_refused(
        &workload("iodepth = 4"),
        4,
        &["iodepth: there is no such key in [[phases.workloads]]", "try: outstanding"],
    );
    assert_refused(&workload("block = \"8K\"\noutstandin = 4"), 5, &["try: outstanding, if that is meant"]);
    assert_refused(&workload("block = \"8Q\""), 4, &["block: '8Q' is not a size", "K, M, G or T"]);
    assert_refused(&workload("block = [8]"), 4, &["a single value belongs here, not a list"]);
    assert_refused(&workload("writes = 130"), 4, &["writes: '130' is not a share", "0 to 100"]);
    assert_refused(&workload("pattern = \"randm\""), 4, &["give one of random, sequential"]);
    assert_refused(&workload("outstanding = 0"), 4, &["outstanding", "from 1 on"]);
    assert_refused(&workload("preset = \"olap\""), 4, &["no preset 'olap'", "one of oltp, log"]);
    assert_refused(&workload("target = \"data\""), 4, &["no target 'data'", "[targets]"]);
    assert_refused(
        &workload("rate = \"1/s\"\npoisson = \"1/s\""),
        3,
        &["rate, poisson and speed exclude each other"],
    );
    assert_refused(
        &workload("rate = \"1/s\"\nlimit = \"1/s\""),
        3,
        &["of an open loop", "give the rate alone"],
    );
    assert_refused(&workload("zipf = 0.9\npareto = 0.2"), 3, &["exclude each other"]);
    assert_refused(&workload("speed = 2"), 4, &["only a trace has a speed", "replay"]);
    assert_refused(&workload("block = 1000"), 3, &["block size 1000 B", "multiple of 512"]);
    assert_refused(&workload("sizes = \"8K:70%, 64K:20%\""), 3, &["90 %", "sum to 100"]);
    assert_refused("[targets]\ndata = 3\n[[phases]]\n", 2, &["data: that is no target", "data = \"/path\""]);
    assert_refused(
        "[targets]\nd = { path = \"/d\", size = \"1G\" }\n[[phases]]\n",
        2,
        &["size: there is no such key in target d"],
    );
    let two = format!("[targets]\na = \"/a\"\nb = \"/b\"\n{}", workload("writes = 0"));
    assert_refused(&two, 6, &["which of the 2 targets", "target = \"a\""]);
    assert_refused(&"#".repeat(2 << 20), 1, &["is this one?"]);
}

#[test]
fn a_workload_of_which_nothing_is_said_is_the_default_one() {
    let plan = read("[[phases]]\n[[phases.workloads]]\n").unwrap();
    assert_eq!(plan.phases[0].workloads[0].workload, default_workload());
}
