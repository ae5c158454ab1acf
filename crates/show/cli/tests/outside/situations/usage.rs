//! Wrong arguments: exit 2, the argument by its name, and what it may be.

use super::{headroom, text};
use programs::{Headroom, built};
use std::fs;
use std::process::Command;

#[test]
fn wrong_arguments_are_named_with_the_accepted_form() {
    let ours = Headroom::new();
    let cases: [(&[&str], &str, &str); 15] = [
        (&["measure", "--size", "abc"], "--size", "give bytes, or a number with K, M, G or T"),
        (&["measure", "--size", "0"], "--size", "give a size as in 64M or 1G"),
        (&["check", "--duration", "soon"], "--duration", "as in 500ms, 15s or 2m"),
        (&["check", "--duration", "0s"], "--duration", "as in 20s or 2m"),
        (&["check", "--fail-below", "0"], "--fail-below", "as 2 or 1.5"),
        (&["check", "--source", "pg:x"], "--source", "sqlite:PATH"),
        (&["history", "capture", "--source", "sqlite:"], "--source", "sqlite:PATH"),
        (&["check", "--bands", "nice"], "--bands", "there are randal, microsoft-css"),
        (&["check", "--service-level", "fast"], "--service-level", "milliseconds as in 20/20/5"),
        (&["measure", "--quick", "--thorough"], "--quick", "cannot be used with"),
        (&["storage", "declare", ".", "--read-iops", "abc"], "--read-iops", "give a number, as in 16000"),
        (&["compare", "run:1"], "give two results to compare", "headroom compare A B"),
        (&["fleet"], "no server given: --prometheus URL", "http://prometheus:9090"),
        (&["history", "show", "thing", "1"], "<KIND>", "capture"),
        (&["history", "show", "run", "latest"], "<ID>", "'latest' is not a number; headroom history lists"),
    ];
    for (arguments, name, form) in cases {
        headroom(&ours, arguments).refused(2, &[name, form]);
    }
    drop(history::History::open(&ours.history()).unwrap());
    headroom(&ours, &["history", "show", "verdict", "9"])
        .refused(3, &["has no verdict 9", "try: headroom history"]);
    headroom(&ours, &["history", "intervals"])
        .refused(3, &["there are 0", "try: headroom history capture --source"]);
    headroom(&ours, &["history", "intervals", "1", "x"])
        .refused(3, &["number or label '1'", "try: headroom history captures"]);
}

#[test]
fn what_only_reads_refuses_a_history_that_is_not_there_and_makes_none() {
    let ours = Headroom::new();
    let home = ours.history().parent().unwrap().to_owned();
    let typo = home.join("typo/history.db");
    let commands: [&[&str]; 12] = [
        &["history"],
        &["history", "show", "run", "1"],
        &["history", "captures"],
        &["history", "pack"],
        &["history", "analyze"],
        &["history", "intervals"],
        &["history", "matrices"],
        &["run", "--resume"],
        &["compare", "run:1", "run:2"],
        &["history", "chart", "1", "--out", "runs.svg"],
        &["simulate", "--fit", text(&home)],
        &["compare", "--set-baseline", "run:1"],
    ];
    for command in commands {
        let mut headroom = Command::new(built().join("headroom"));
        let output = headroom.args(command).arg("--history").arg(&typo).output().unwrap();
        super::Finished::from_output(&output)
            .refused(3, &["there is no history at", text(&typo), "try: look at its name (--history)"]);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0, "{command:?} made something");
    }
    assert_eq!(ours.json(&["history", "path"])["path"], text(&ours.history()), "it need not be there");
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_what_it_should_be() {
    let ours = Headroom::new();
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "garbage").unwrap();
    // (command, the file's kind, its form)
    let cases: [(&[&str], &str, &str); 3] = [
        (
            &["run", "--file"],
            "it is not a workload file",
            "try: name a TOML file as headroom run --print-file prints",
        ),
        (
            &["simulate"],
            "it is not a workload file",
            "try: name a TOML file as headroom run --print-file prints",
        ),
        (
            &["agent", "--config"],
            "it is not a configuration",
            "try: name a TOML file whose keys are the options of headroom agent",
        ),
    ];
    for (command, no_such, form) in cases {
        let of = |file: &str| headroom(&ours, &[command, &[file]].concat());
        of("/no/where.toml").refused(3, &["cannot read /no/where.toml: No such file", form]);
        let said = of(text(dir.path()));
        assert!(said.stderr.contains(no_such) && said.stderr.contains("\n  try: "), "{}", said.stderr);
        let said = of(text(&plain));
        assert_eq!(said.code, Some(2), "{}", said.stderr);
    }
    headroom(&ours, &["diskspd", "-X/no/where.xml"]).refused(2, &["/no/where.xml", "try: name a profile"]);
    headroom(&ours, &["storage", "clean", text(&plain)])
        .refused(3, &["Not a directory", "try: name a directory"]);
    headroom(&ours, &["measure", "/proc"])
        .refused(3, &["cannot make a file in /proc", "try: name a directory you can write to"]);
    headroom(&ours, &["storage", "clean", "/no/where"])
        .refused(3, &["cannot use /no/where", "try: check the path"]);
}

#[test]
fn a_password_in_an_argument_is_refused_and_never_repeated() {
    let ours = Headroom::new();
    for text in [
        "postgres://ann:hunter2@127.0.0.1:9/shop",
        "postgres:host=127.0.0.1 port=9 password=hunter2",
        "mysql://ann:hunter2@127.0.0.1:9/",
        "sqlserver://ann:hunter2@127.0.0.1:9/",
        // Mistyped, and yet what was meant.
        "postgre://ann:hunter2@127.0.0.1:9/shop",
        "process://ann:hunter2@127.0.0.1:9/shop",
        "devices://ann:hunter2@127.0.0.1:9/shop",
        "ann:hunter2@127.0.0.1",
    ] {
        for command in [
            &["watch", "--once"][..],
            &["agent", "--record-only"],
            &["history", "capture"],
            &["check"],
            &["sources", "doctor"],
            &["trace"],
        ] {
            let said = headroom(&ours, &[command, &["--source", text]].concat());
            said.refused(2, &["--source"]);
            assert!(!said.stderr.contains("hunter2"), "{command:?} {text}: {}", said.stderr);
        }
    }
}
