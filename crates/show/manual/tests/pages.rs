//! Manual pages and completions as packages install them: every subcommand has a page that reads like its help, and
//! completions.

use clap::Command;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The pages of a command and all that are below it.
fn names(command: &Command, prefix: &str, found: &mut BTreeSet<String>) {
    let name = if prefix.is_empty() {
        command.get_name().to_owned()
    } else {
        format!("{prefix}-{}", command.get_name())
    };
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        names(subcommand, &name, found);
    }
    found.insert(format!("{name}.1"));
}

fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    manual::write_all(directory.path()).unwrap();
    directory
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn each_subcommand_has_a_page_but_those_of_the_laboratory() {
    let directory = written();
    let pages = fs::read_dir(directory.path().join("man/man1")).unwrap();
    let pages: BTreeSet<String> =
        pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    let mut expected = BTreeSet::new();
    names(&headroom::arguments(), "", &mut expected);
    for page in ["headroom-lab.1", "headroom-log.1"] {
        assert!(expected.remove(page), "{page} is in the package headroom-lab");
    }
    assert_eq!(pages, expected);
    for page in ["headroom.1", "headroom-check.1", "headroom-history-captures.1"] {
        assert!(pages.contains(page), "{page} is missing");
    }
}

#[test]
fn a_page_has_the_usage_of_the_help_and_keeps_the_lines_of_examples() {
    let directory = written();
    let page = read(directory.path(), "man/man1/headroom-check.1");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    for section in
        ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "\"EXIT STATUS\"", "\"SEE ALSO\""]
    {
        assert!(sections.contains(&section), "{section} of {sections:?}");
    }
    assert!(page.contains("\\fBheadroom check\\fR [OPTIONS] [DIR]"), "{page}");
    let examples = page.split(".SH EXAMPLES\n.nf\n").nth(1).unwrap().split(".fi").next().unwrap();
    assert_eq!(examples.lines().next(), Some("headroom check \\-\\-html report.html"));
}

#[test]
fn completions_name_subcommands_and_options() {
    let directory = written();
    for script in ["bash/headroom", "zsh/_headroom", "fish/headroom.fish"] {
        let script_text = read(directory.path(), script);
        for word in ["measure", "sqlite-extension", "service-level"] {
            assert!(script_text.contains(word), "{script} lacks {word}");
        }
    }
}

#[test]
fn the_reference_of_options_is_that_of_the_program() {
    let written = include_str!("../../../../docs/reference/options.md");
    let printed = manual::options();
    let differing = written.lines().zip(printed.lines()).find(|(written, printed)| written != printed);
    let command = "cargo run -p manual --bin headroom-manual -- --options > docs/reference/options.md";
    assert!(
        written == printed,
        "docs/reference/options.md is not current: {command}\nfirst difference: {differing:?}"
    );
}

#[test]
fn the_reference_of_json_is_that_of_the_program() {
    let written = include_str!("../../../../docs/reference/json.md");
    let printed = manual::json::page();
    let differing = written.lines().zip(printed.lines()).find(|(written, printed)| written != printed);
    let command = "cargo run -p manual --bin headroom-manual -- --json > docs/reference/json.md";
    assert!(
        written == printed,
        "docs/reference/json.md is not current: {command}\nfirst difference: {differing:?}"
    );
}

#[test]
fn each_key_of_the_reference_of_json_has_a_meaning() {
    let page = manual::json::page();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let silent: Vec<&str> = rows.filter(|line| line.ends_with("|  |")).collect();
    assert!(silent.is_empty(), "no comment on the field of: {silent:#?}");
}

#[test]
fn each_command_has_a_schema_that_stands_alone() {
    let directory = tempfile::tempdir().unwrap();
    manual::json::write_schemas(directory.path()).unwrap();
    let outputs = manual::json::Outputs::new();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), outputs.roots.len());
    for name in ["check", "fleet-incidents", "api-v1-state", "simulate-fit"] {
        let text = read(directory.path(), &format!("{name}.schema.json"));
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        for reference in text.split("\"#/$defs/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(schema["$defs"].get(reference).is_some(), "{name} lacks {reference}");
        }
    }
}
