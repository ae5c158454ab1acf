//! Guarantees of the pages: nothing from outside becomes markup, nothing is loaded, one drawing for all colours.

use crate::sample;
use filestats::Reason;
use report::{Check, Phase, html};
use workload::Unit;

const HOSTILE: &str = "</title><script>alert('x')</script>\"><img src=x onerror=1>&amp;\u{202e}\x1b[31m";

fn hostile_check() -> Check {
    let mut check = sample::demand_exceeds();
    check.source = HOSTILE.into();
    check.target = HOSTILE.into();
    check.version = HOSTILE.into();
    check.verdict.summary = HOSTILE.into();
    check.verdict.next_step = HOSTILE.into();
    check.verdict.doubts = vec![HOSTILE.into()];
    for fact in &mut check.verdict.evidence {
        fact.what = HOSTILE.into();
        fact.unit = Unit::Other(HOSTILE.into());
        fact.source = HOSTILE.into();
    }
    check.phases.push(Phase { name: HOSTILE.into(), ..check.phases[0].clone() });
    for file in check.observation.moments.iter_mut().flat_map(|moment| &mut moment.files) {
        file.file_mut().path = HOSTILE.into();
        file.file_mut().database = Some(HOSTILE.into());
        file.file_mut().instance = HOSTILE.into();
    }
    check.capability = Some(hostile_capability());
    check.others = vec![check.clone()];
    check.headroom_on = Some(HOSTILE.into());
    check
}

fn hostile_capability() -> capability::Capability {
    let mut capability = sample::capability();
    capability.target.path = HOSTILE.into();
    capability.target.filesystem = Some(HOSTILE.into());
    capability.target.mount = Some(HOSTILE.into());
    capability.target.devices[0].name = HOSTILE.into();
    capability.target.devices[0].model = Some(HOSTILE.into());
    capability.target.devices[0].scheduler = Some(HOSTILE.into());
    capability.target.devices[0].backing_file = Some(HOSTILE.into());
    capability.conditions.kernel = HOSTILE.into();
    capability.conditions.headroom_version = HOSTILE.into();
    capability.conditions.remarks = vec![HOSTILE.into()];
    for knee in capability.curves.iter_mut().filter_map(|curve| curve.knee.as_mut()) {
        knee.why = HOSTILE.into();
    }
    capability
}

/// The page without the one script that all pages have.
pub fn without_script(page: &str) -> String {
    let script = format!("<script>{}</script>", html::SCRIPT);
    assert_eq!(page.matches(&script).count(), 1);
    page.replace(&script, "")
}

#[test]
fn a_chart_has_its_values_and_a_long_page_lists_its_headings() {
    let page = html::check(&sample::demand_exceeds());
    assert!(page.contains(" data-points='{\"at\":[[") && page.contains("\"lines\":[{\"ink\":\"--"), "{page}");
    assert!(page.contains("\"x\":\"time\",\"y\":\"latency\""));
    assert!(page.contains("<li><a href=\"#evidence\">Evidence</a></li>"));
    assert!(page.contains("<h2 id=\"evidence\">Evidence<a href=\"#evidence\""));
    assert!(
        page.find("class=\"contents\"").unwrap() > page.find("Next step").unwrap(),
        "the answer comes first"
    );
    let shortened = "<span class=\"path\" title=\"";
    assert!(page.contains(shortened), "a path gives way to the figures");
}

#[test]
fn names_from_outside_never_become_markup() {
    for page in [html::check(&hostile_check()), html::capability(&hostile_capability())] {
        assert!(page.contains("&lt;script&gt;"), "the name is shown");
        let page = without_script(&page);
        assert!(!page.contains("<script") && !page.contains("<img"));
        assert!(!page.contains("alert('x')\"") && !page.contains('\u{202e}') && !page.contains('\x1b'));
        assert_eq!(page.matches("</title>").count(), 1);
    }
}

#[test]
fn a_page_loads_nothing_and_runs_only_its_own_script() {
    for page in [html::check(&sample::demand_exceeds()), html::capability(&sample::capability())] {
        let addresses = without_script(&page).replace("href=\"#", "");
        for outside in ["http:", "https:", "url(", "@import", "src=", "href=", "<script"] {
            assert!(!addresses.contains(outside), "{outside}");
        }
    }
}

#[test]
fn every_colour_of_a_chart_is_a_variable_that_the_page_defines() {
    let page = html::check(&sample::demand_exceeds());
    assert!(!page.replace("href=\"#", "").contains("=\"#"), "a placeholder was left");
    for part in page.split("var(--").skip(1) {
        let name = part.split(')').next().unwrap_or_default();
        let local = ["tone", "c", "tiles, 3"].contains(&name);
        assert!(local || page.matches(&format!("--{name}: #")).count() == 2, "{name} in light and dark");
    }
}

#[test]
fn a_restart_is_a_gap_with_its_reason() {
    let page = html::check(&sample::demand_exceeds());
    assert!(page.contains(&format!("no figures: {}", Reason::Restart)));
    let latency = page.split("latency of reads and commits over time").nth(1).unwrap();
    let chart = latency.split("</svg>").next().unwrap();
    let lines = chart.matches("stroke=\"var(--read)\"").count();
    assert_eq!(lines, 2, "one line before the restart and one after it");
}

#[test]
fn every_verdict_has_a_page() {
    let checks = [
        sample::healthy(),
        sample::degraded(),
        sample::throttled(),
        sample::serialized(),
        sample::burst(),
        sample::not_storage(),
        sample::nobody_waits(),
        sample::never_measured(),
        sample::restarted(),
    ];
    for check in checks {
        let page = html::check(&check);
        assert!(page.contains(&format!("<h1>{}</h1>", check.verdict.verdict)));
        assert!(page.contains("How to read this"));
        assert!(!page.contains("NaN"), "{}", check.verdict.verdict);
    }
}

#[test]
fn an_estimate_opens_with_what_changes_and_its_headings_name_the_workload() {
    let pages = crate::other_pages::pages();
    let page = &pages.iter().find(|(name, _)| *name == "simulate.html").unwrap().1;
    assert!(page.contains("With 3 disks striped, headroom rises from 0.916\u{a0}x to 2.66\u{a0}x."));
    assert!(page.contains("Mean error of the model: 7.3\u{a0}%, on 1 measured point kept out of the fit."));
    assert!(page.contains(">Random read 8 KiB, unchanged<") && page.contains(">Random read 8 KiB, changed<"));
    assert!(page.contains(", operating limit "), "beside the knee");
}

#[test]
fn commands_on_a_page_are_code() {
    let page = without_script(&html::check(&sample::never_measured()));
    assert!(page.contains("<code>headroom measure"));
    assert!(!page.contains('`'), "{page}");
}
