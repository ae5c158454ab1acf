//! The truth test: on a real file system on a real block device, five situations, five right answers, whatever
//! database it is, as many times in a row as HEADROOM_TRUTH_ROUNDS says, once by default. Needs root (loop device,
//! cgroup throttle); says so elsewhere.
//!
//! The device is a loop device that a cgroup holds at 2,000 reads a second, before it is measured, once for all
//! databases: a slow disk whose capability is exactly known.

pub mod engines;
mod headroom;
mod neighbours;
mod untimed_log;
mod volumes;

use engines::{Engine, Mariadb, Postgres, Sqlite};
use programs::Headroom;
use serde_json::Value;
use std::path::Path;
use testbed::LoopDisk;
use workload::CapKind;

const READS_A_SECOND: u64 = 2_000;

/// Load of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// One client, ten or twenty small commits a second and half as many reads again.
    // So few that no session waits, however long a busy machine takes for each.
    Idle,
    /// 32 clients that read random rows flat out; memory does not hold them.
    Readers,
    /// One client that commits one row after the other, flat out.
    Commits,
    /// Two or three reads a second.
    Few,
}

/// The database's load, the device, and the expected verdict.
struct Situation {
    name: &'static str,
    load: Load,
    /// Reads a second that the device gives while it is watched.
    reads_a_second: u64,
    verdicts: &'static [&'static str],
    /// Further contents that the answer must have.
    says: fn(&Value),
}

const SITUATIONS: [Situation; 5] = [
    Situation {
        name: "too few I/Os",
        load: Load::Few,
        reads_a_second: READS_A_SECOND,
        verdicts: &["cannot-say"],
        says: |_| {},
    },
    Situation {
        name: "an idle-ish workload",
        load: Load::Idle,
        reads_a_second: READS_A_SECOND,
        verdicts: &["healthy"],
        says: |answer| assert!(answer["headroom"].as_f64().unwrap() > 3.0, "{answer:#}"),
    },
    Situation {
        name: "many readers past the knee",
        load: Load::Readers,
        reads_a_second: READS_A_SECOND,
        verdicts: &["demand-exceeds-capability"],
        says: no_room_is_left,
    },
    Situation {
        name: "a fifth of the device",
        load: Load::Readers,
        reads_a_second: READS_A_SECOND / 5,
        verdicts: &["storage-degraded", "throttled"],
        says: |answer| {
            let is_room = answer["headroom"].as_f64().is_some_and(|headroom| headroom > 1.2);
            assert!(answer["verdict"] != "throttled" || !is_room, "the cap is reached: {answer:#}");
        },
    },
    Situation {
        name: "single-row commits",
        load: Load::Commits,
        reads_a_second: READS_A_SECOND,
        verdicts: &["serialized"],
        says: batching_is_advised,
    },
];

/// Prepares its databases in a directory; `None`, after saying so, where it is not installed.
type Prepare = fn(&Path) -> Option<Box<dyn Engine>>;

/// All of them, or those that HEADROOM_TRUTH_ENGINES names.
const ENGINES: [(&str, Prepare); 3] =
    [(Sqlite::NAME, Sqlite::make), (Postgres::NAME, Postgres::make), (Mariadb::NAME, Mariadb::make)];

fn no_room_is_left(answer: &Value) {
    let headroom = answer["headroom"].as_f64().unwrap();
    assert!((0.85..1.2).contains(&headroom), "no room is left: {headroom}");
    let remedies = answer["advice"]["remedies"].as_array().unwrap();
    let carries = |what: &str| {
        let remedy = remedies.iter().find(|remedy| remedy["what"].as_str().unwrap().contains(what));
        remedy.unwrap_or_else(|| panic!("no '{what}': {remedies:#?}"))["carries"].as_f64().unwrap()
    };
    // The demand equals the rate that the cap lets through: about that rate is carried, as far as a quick measurement's
    // model knows.
    let now = carries("unchanged");
    assert!((0.5..1.4).contains(&now), "{now}");
    for (what, times) in [("3 such disks striped", 3.0), ("from memory", 2.0)] {
        let gain = carries(what) / now;
        assert!((gain / times - 1.0).abs() < 0.15, "{what}: {gain} times");
    }
    assert!(carries("twice the cap") / now > 1.4, "{remedies:#?}");
}

/// The page says how far each remedy would carry, and that this is estimated, where the answer does.
fn page_agrees(page: &Path, answer: &Value) {
    let html = std::fs::read_to_string(page).unwrap();
    let advised = !answer["advice"].is_null();
    assert_eq!(html.contains("3 such disks striped"), advised);
    assert_eq!(html.contains("estimates by simulation"), advised);
}

fn batching_is_advised(answer: &Value) {
    let next = answer["next_step"].as_str().unwrap();
    assert!(next.contains("batch") && next.contains("one transaction"), "{next}");
    let evidence = answer["evidence"].as_array().unwrap();
    let gain = evidence.iter().find(|fact| fact["what"].as_str().unwrap().contains("gain by batching"));
    assert!(gain.is_some_and(|gain| gain["value"].as_f64().unwrap() > 1.5), "{answer:#}");
}

#[test]
fn five_situations_of_each_database_get_five_right_answers() {
    let Some(mut disk) = LoopDisk::new(4 << 30) else { return };
    let began = std::time::Instant::now();
    disk.format_and_mount();
    let dir = disk.mount_point().to_owned();
    // Filled before the device is slow; ended before it goes.
    let wanted = std::env::var("HEADROOM_TRUTH_ENGINES").unwrap_or(ENGINES.map(|(name, _)| name).join(" "));
    let made = ENGINES.iter().filter(|(name, _)| wanted.contains(name)).filter_map(|(_, make)| make(&dir));
    let engines: Vec<Box<dyn Engine>> = made.collect();
    println!("{} databases were made after {:.0?}", engines.len(), began.elapsed());
    if !disk.throttle(CapKind::ReadIops, READS_A_SECOND) {
        return;
    }
    let headroom = Headroom::new();
    let pages = tempfile::tempdir().unwrap();
    let page = pages.path().join("answer.html");
    let rounds = std::env::var("HEADROOM_TRUTH_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    for round in 1..=rounds {
        engines.iter().for_each(|engine| engine.settle());
        let measured = headroom.measure(&dir);
        let reads = &measured["curves"][0];
        let iops = reads["knee"]["iops"].as_f64().unwrap();
        assert!(
            (iops / READS_A_SECOND as f64 - 1.0).abs() < 0.1,
            "{READS_A_SECOND} reads a second, {iops} found: {reads:#}"
        );
        assert_eq!(reads["knee"]["reason"], "cap", "{reads:#}");
        println!("measured after {:.0?}", began.elapsed());
        for engine in &engines {
            for situation in &SITUATIONS {
                engine.settle();
                let running = engine.start(situation.load);
                assert!(disk.throttle(CapKind::ReadIops, situation.reads_a_second));
                let source = engine.source(situation.load);
                let watch = ["check", "--source", &source, "--duration", engine.watched(), "--html"];
                let watch = [&watch[..], &[page.to_str().unwrap()]].concat();
                let answer = headroom.json(&watch);
                assert!(disk.throttle(CapKind::ReadIops, READS_A_SECOND));
                drop(running);
                let verdict = answer["verdict"].as_str().unwrap();
                println!(
                    "round {round}, after {:.0?}, {}, {}: {verdict} ({}), {} {}",
                    began.elapsed(),
                    engine.name(),
                    situation.name,
                    answer["confidence"],
                    answer["summary"],
                    answer["doubts"],
                );
                assert!(
                    situation.verdicts.contains(&verdict),
                    "{}, {}: {answer:#}",
                    engine.name(),
                    situation.name
                );
                (situation.says)(&answer);
                page_agrees(&page, &answer);
            }
        }
    }
    drop(engines);
    // Nothing is left on the user's storage.
    assert!(!dir.join("headroom.tmp").exists());
}
