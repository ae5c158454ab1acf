//! kill -9 on a real file system; see `crashlab::kill`. `headroom lab crash --real DIR` runs it for a given time.

use crashlab::kill::{ChildRole, KillTest, recovery_by_number, run_child};
use std::path::Path;
use std::process::Command;

const CHILD: &str = "PAGESTORE_KILL_CHILD";
const ROUNDS: u32 = 8;

#[test]
fn what_was_acknowledged_survives_kill_nine() {
    if let Ok(words) = std::env::var(CHILD) {
        let words: Vec<&str> = words.splitn(3, ' ').collect();
        let role = ChildRole::from_name(words[0]).expect("a role");
        let round = words[1].parse().expect("a number");
        return run_child(Path::new(words[2]), role, recovery_by_number(round)).expect("the disk works");
    }
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let directory = place.path().join("store");
    let mut killing = KillTest::create(&directory, 1).unwrap();
    for round in 0..ROUNDS {
        let again = |role: ChildRole, round: usize| {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command
                .args(["what_was_acknowledged_survives_kill_nine", "--exact", "--nocapture", "--quiet"])
                .env(CHILD, format!("{} {round} {}", role.name(), directory.display()));
            command
        };
        killing.round(again).unwrap_or_else(|what| panic!("round {round}: {what}"));
    }
    let killed = killing.totals;
    assert!(killed.commits > 50, "too few commits to mean anything: {killed:?}");
    assert_eq!((killed.kills, killed.in_recovery), (24, 16));
}
