//! A fleet as text, JSON and a page.

use crate::fleet_sample::{sample, volume};
use fleet::{Fleet, NeverMeasured, VolumeIncidents};
use report::text::Style;
use report::{html, text};
use verdict::VerdictKind;

const STYLE: Style = Style { color: false, width: 132 };

#[test]
fn the_ranking_as_text() {
    insta::assert_snapshot!(text::fleet(&sample(), 3, &STYLE));
}

#[test]
fn the_headline_says_of_how_many_nothing_can_be_said() {
    let never = sample().never_measured.remove(0);
    let fleet = Fleet {
        volumes: vec![volume("db1:9187", VerdictKind::Healthy, 3.0)],
        never_measured: vec![never.clone(); 999],
        hosts: 1000,
        ..Fleet::default()
    };
    let headline = |fleet: &Fleet| text::fleet(fleet, 3, &STYLE).lines().next().unwrap().to_owned();
    assert_eq!(
        headline(&fleet),
        "none of 1 judged volume of 1,000 hosts needs action; unknown: 999 volumes never measured"
    );
    let whole = Fleet { never_measured: Vec::new(), hosts: 1, ..fleet.clone() };
    assert_eq!(headline(&whole), "none of 1 volume of 1 host needs action");
    let bad = NeverMeasured { verdict: Some(VerdictKind::NotStorage), ..never };
    let bad = Fleet { never_measured: vec![bad], hosts: 2, ..fleet };
    assert_eq!(headline(&bad), "1 of 2 volumes of 2 hosts needs action");
}

#[test]
fn a_narrow_terminal_names_what_it_leaves_out() {
    let text = text::fleet(&sample(), 3, &Style { color: false, width: 80 });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("no room here for: ") && text.contains("db2:9187 /data"), "{text}");
}

#[test]
fn a_host_with_all_that_is_known() {
    let mut fleet = sample();
    fleet.volumes.drain(..2);
    insta::assert_snapshot!(text::fleet_host(&fleet, &STYLE));
}

#[test]
fn incidents_as_text() {
    let fleet = Fleet { incomplete: false, ..sample() };
    let open = [(Some(true), 21_600.0), (None, 8640.0), (Some(false), 864.0)];
    let rows = fleet.volumes.iter().cloned().zip(open);
    let rows: Vec<VolumeIncidents> =
        rows.map(|(volume, (is_open, open_s))| VolumeIncidents { volume, is_open, open_s }).collect();
    insta::assert_snapshot!(text::fleet_incidents(&rows, 86_400, &fleet, &STYLE));
    let none = text::fleet_incidents(&[], 3600, &fleet, &STYLE);
    assert!(none.contains("no incident is known to have been open within 60 min"), "{none}");
    let whole = Fleet { stale: Vec::new(), silent_sources: Vec::new(), ..fleet };
    assert_eq!(text::fleet_incidents(&[], 3600, &whole, &STYLE), "no incident was open within 60 min\n");
}

#[test]
fn a_page_escapes_what_others_named() {
    let mut fleet = sample();
    fleet.volumes[0].mount = "/<script>".into();
    let page = html::fleet(&fleet, "headroom fleet", "0.1.0");
    assert!(page.contains("/&lt;script&gt;") && !page.contains("/<script>"), "{page}");
    for words in ["Answer incomplete: remote read", "Never measured", "db8:9187", "exhausted within 90 days"]
    {
        assert!(page.contains(words), "no {words}");
    }
}
