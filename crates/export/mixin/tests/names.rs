//! The names in rules, alerts, dashboards and the queries of `headroom fleet` are those that the agent exposes.

use metrics::FAMILIES;
use regex::Regex;
use std::collections::BTreeSet;
use yaml_rust2::{Yaml, YamlLoader};

/// The groups of a file of rules or alerts.
fn groups(file: &mixin::File) -> Vec<Yaml> {
    let document = YamlLoader::load_from_str(&file.text).unwrap().remove(0);
    document["groups"].as_vec().unwrap().clone()
}

/// A field of each rule of a group.
fn fields<'a>(group: &'a Yaml, name: &str) -> Vec<&'a str> {
    group["rules"].as_vec().unwrap().iter().map(|rule| rule[name].as_str().unwrap()).collect()
}

fn alerts() -> mixin::File {
    mixin::alerts(mixin::RUNBOOKS)
}

fn expressions() -> Vec<String> {
    let files = [mixin::rules(), alerts()];
    let groups: Vec<Yaml> = files.iter().flat_map(groups).collect();
    let rules = groups.iter().flat_map(|group| fields(group, "expr")).map(str::to_owned);
    let dashboards = mixin::dashboards().into_iter().map(|dashboard| dashboard.text);
    let scope = fleet::Scope { filters: Vec::new(), lookback_s: 3600, trend_from_samples: false };
    let queries = fleet::Part::ALL.into_iter().map(|part| part.expression(&scope).text);
    let incidents = fleet::incidents_within(&scope, 3600).text;
    rules.chain(dashboards).chain(queries).chain([incidents]).collect()
}

#[test]
fn each_name_is_a_family_of_the_agent_or_a_rule() {
    let groups = groups(&mixin::rules());
    let records: BTreeSet<&str> = groups.iter().flat_map(|group| fields(group, "record")).collect();
    let families: BTreeSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
    // A name with a colon is a rule's.
    let names = Regex::new(
        r"[a-z_]+:headroom_[a-z_]+:[a-z0-9_]+|storage:[a-z_]+:[a-z]+|headroom_[a-z_]+|process_[a-z_]+",
    )
    .unwrap();
    let mut unused = families.clone();
    for expression in expressions() {
        for name in names.find_iter(&expression).map(|found| found.as_str()) {
            let family = ["_total", "_bucket"].into_iter().find_map(|end| name.strip_suffix(end));
            let family = family.unwrap_or(name);
            unused.remove(family);
            assert!(
                records.contains(name) || families.contains(family),
                "{name} is not a family in: {expression}"
            );
        }
    }
    assert!(unused.is_empty(), "on no dashboard and in no rule: {unused:?}");
}

#[test]
fn no_rule_uses_another_one_of_its_group() {
    for group in groups(&mixin::rules()) {
        for expression in fields(&group, "expr") {
            let used: Vec<&str> =
                fields(&group, "record").into_iter().filter(|record| expression.contains(record)).collect();
            assert!(used.is_empty(), "{expression} uses {used:?} of its group");
        }
    }
}

#[test]
fn each_alert_has_a_runbook_on_the_page_that_is_named() {
    let page = include_str!("../../../../docs/reference/fleet.md");
    let named = mixin::alerts("https://wiki.example/a\"b");
    for (default, named) in groups(&alerts()).iter().zip(&groups(&named)) {
        let (names, urls) = (fields(default, "alert"), named["rules"].as_vec().unwrap());
        for (alert, rule) in names.into_iter().zip(urls) {
            assert!(page.contains(&format!("### {alert}")), "docs/reference/fleet.md has no {alert}");
            let url = rule["annotations"]["runbook_url"].as_str().unwrap();
            assert_eq!(url, format!("https://wiki.example/a\"b#{}", alert.to_lowercase()));
        }
    }
}

#[test]
fn each_file_has_the_mark_by_which_it_is_replaced() {
    for file in [mixin::rules(), alerts(), mixin::jsonnet()] {
        assert!(file.text.lines().next().unwrap().contains(mixin::MARK), "{}", file.name);
    }
}
