//! `headroom storage`: what is known of a storage without a load, and what `check` makes of it.

use ::capability::{Binding, Declared, Origin};
use history::History;
use programs::{Headroom, Scenario};
use serde_json::{Value, json};
use std::path::Path;
use storage::Target;
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[track_caller]
fn resource<'a>(known: &'a Value, name: &str, from: &str) -> &'a Value {
    let all = known["resources"].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name && one["from"] == from);
    found.unwrap_or_else(|| panic!("no {name} that is {from}: {known:#}"))
}

const DECLARED: [&str; 8] =
    ["--read-iops", "16000", "--write-iops", "8000", "--bandwidth", "1000M", "--latency", "0.6ms"];

/// Leaves the result of a measurement of the directory in the history.
fn measured(headroom: &Headroom, dir: &Path, iops: f64) {
    let mut limits = Declared { latency_ns: Some(1e6), ..Declared::default() };
    limits.set(Binding::Operations, iops);
    let facts = Target::open(dir).unwrap().facts().clone();
    let mut capability = limits.capability(facts, 5, "0.1.0").unwrap();
    capability.origin = Origin::Measured;
    History::open(&headroom.history()).unwrap().save_capability(&capability).unwrap();
}

#[test]
fn what_is_declared_is_shown_and_what_was_measured_goes_before_it() {
    let (headroom, dir) = (Headroom::new(), directory());
    let known = headroom.json(&[&["storage", "declare", text(dir.path())], &DECLARED[..]].concat());
    let reads = resource(&known, "read-operations", "declared");
    assert_eq!(
        (&reads["value"], &reads["unit"], &reads["bound"]),
        (&json!(16_000.0), &json!("1/s"), &json!("exact"))
    );
    assert_eq!(resource(&known, "write-operations", "declared")["value"], 8_000.0);
    assert_eq!(resource(&known, "read-bandwidth", "declared")["value"], f64::from(1000 << 20));
    assert_eq!(resource(&known, "read-latency", "declared")["value"], 600_000.0);
    measured(&headroom, dir.path(), 500.0);
    let known = headroom.json(&["storage", text(dir.path())]);
    assert_eq!(
        (&known["resources"][0]["from"], &known["resources"][0]["value"]),
        (&json!("measured"), &json!(500.0))
    );
    resource(&known, "read-operations", "declared");
    let shown = headroom.run(&["storage", text(dir.path())]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("measured") && shown.contains("declared") && shown.contains("16,000/s"),
        "{shown}"
    );
}

#[test]
fn a_volume_type_is_declared_by_its_providers_formula() {
    let (headroom, dir) = (Headroom::new(), directory());
    let declare = |more: &[&str]| headroom.run(&[&["storage", "declare", text(dir.path())], more].concat());
    let known =
        headroom.json(&["storage", "declare", text(dir.path()), "--volume-type", "pd-ssd", "--size", "500G"]);
    assert_eq!(resource(&known, "read-operations", "declared")["value"].as_f64().unwrap().round(), 21_000.0);
    let refused = [
        (vec!["--volume-type", "gp3"], "the latency is not declared"),
        (vec!["--volume-type", "io2", "--latency", "1ms"], "was chosen when it was made"),
        (vec!["--latency", "1ms", "--read-iops", "5"], "the most writes a second are not declared"),
        (vec!["--volume-type", "gp9"], "no such volume type"),
    ];
    for (arguments, why) in refused {
        let output = declare(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_measurement_is_lent_to_the_same_storage_and_refused_by_another_with_each_difference() {
    let (lender, borrower, dir) = (Headroom::new(), Headroom::new(), directory());
    let file = dir.path().join("capability.json");
    let export = ["storage", "export", text(&file), text(dir.path())];
    let output = lender.run(&export);
    assert_eq!(output.status.code(), Some(3), "nothing was measured");
    measured(&lender, dir.path(), 700.0);
    assert!(lender.run(&export).status.success());
    let known = borrower.json(&["storage", "import", text(&file), text(dir.path())]);
    assert_eq!(resource(&known, "read-operations", "borrowed")["value"], 700.0);
    let kept = History::open(&borrower.history()).unwrap();
    let kept = kept.latest_capability(Target::open(dir.path()).unwrap().facts()).unwrap().unwrap().1;
    let lender_host = format!("measured at {} of {}", dir.path().display(), host::hostname());
    assert!(kept.conditions.remarks.contains(&lender_host), "{:?}", kept.conditions.remarks);
    assert_eq!(borrower.run(&export).status.code(), Some(3), "what is borrowed is not lent");

    let mut other: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    other["target"]["filesystem"] = "other-fs".into();
    other["target"]["caps"] =
        json!([{ "kind": "read-iops", "per_second": 9, "device": "7:0", "origin": "a group" }]);
    std::fs::write(&file, other.to_string()).unwrap();
    let output = borrower.run(&["storage", "import", text(&file), text(dir.path())]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("file system: other-fs there") && said.contains("caps: 9 reads a second there"),
        "{said}"
    );
    std::fs::write(&file, "{}").unwrap();
    let output = borrower.run(&["storage", "import", text(&file), text(dir.path())]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not an exported capability"));
}

#[test]
fn check_and_agent_use_what_is_declared_and_doubt_it() {
    let (headroom, dir) = (Headroom::new(), directory());
    // More than any disk here gives: what it exceeds would not hold.
    let declared = DECLARED.map(|word| if word.ends_with("000") { "200000" } else { word });
    headroom.json(&[&["storage", "declare", text(dir.path())], &declared[..]].concat());
    let database = dir.path().join("shop.db");
    let _running = Scenario::prepare("commits", &database).start("commits", 60);
    let source = format!("sqlite:{}", database.display());
    let answer = headroom.json(&["check", "--source", &source, "--duration", "4s"]);
    assert_eq!(answer["capability_from"], "declared", "{answer:#}");
    assert_ne!(answer["verdict"], "cannot-say", "{answer:#}");
    assert!(answer["doubts"].to_string().contains("declared, not measured"), "{}", answer["doubts"]);
    assert_ne!(answer["confidence"], "high");
    assert!(answer["cost_model"]["limits"].as_array().unwrap().len() == 3, "{}", answer["cost_model"]);
    // Once it was measured, what is paid for stands beside what is there.
    measured(&headroom, dir.path(), 500_000.0);
    let answer = headroom.json(&["check", "--source", &source, "--duration", "2s"]);
    assert_eq!(answer["capability_from"], "measured", "{answer:#}");
    let evidence = answer["evidence"].as_array().unwrap();
    let used =
        |what: &str| evidence.iter().find(|fact| fact["what"] == what).unwrap()["value"].as_f64().unwrap();
    let (there, paid) = (used("utilisation"), used("utilisation of the declared limits"));
    assert!(paid > there && there > 0.0, "{paid} {there}");
}

#[test]
fn agent_and_recorder_see_what_a_storage_gives_and_check_answers_from_it() {
    let (headroom, recorder, dir) = (Headroom::new(), Headroom::new(), directory());
    let database = dir.path().join("shop.db");
    let scenario = Scenario::prepare("commits", &database);
    let running = scenario.start("commits", 120);
    let source = format!("sqlite:{}", database.display());
    let record = ["agent", "--record-only", "--source", &source, "--every", "1s", "--duration", "27s"];
    let mut recording = recorder.command(&record).spawn().unwrap();
    let agent = headroom.run(&["agent", "--source", &source, "--duration", "27s", "--window", "20s"]);
    assert!(agent.status.success(), "{}", String::from_utf8_lossy(&agent.stderr));
    assert!(recording.wait().unwrap().success());
    if Target::open(dir.path()).unwrap().facts().devices.is_empty() {
        return eprintln!("skipped: the device below is not visible");
    }
    for learned in [&headroom, &recorder] {
        let known = learned.json(&["storage", text(dir.path())]);
        let writes = resource(&known, "write-operations", "seen");
        assert_eq!(writes["bound"], "at-least", "one client fills no storage: {known:#}");
        assert!(writes["value"].as_f64().unwrap() > 1.0, "{known:#}");
        assert!(known["seen"]["observed_s"].as_f64().unwrap() >= 15.0, "{known:#}");
    }
    let answer = headroom.json(&["check", "--source", &source, "--duration", "4s"]);
    drop(running);
    // The demand is as before: no more than that was carried, and the answer says so.
    let summary = answer["summary"].as_str().unwrap();
    assert!(
        answer["curves"].as_array().unwrap().is_empty() && !summary.contains("nothing to compare"),
        "{answer:#}"
    );
    assert!(summary.contains("never measured") || answer["capability_from"] == "seen", "{answer:#}");
    assert_ne!(
        answer["verdict"], "demand-exceeds-capability",
        "a lower bound makes nothing full: {answer:#}"
    );
}
