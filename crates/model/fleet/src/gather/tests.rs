use super::*;
use crate::is_worse;
use proptest::prelude::*;

const NOW: f64 = 1_700_000_000.0;

fn sample(labels: &[(&str, &str)], value: f64) -> Sample {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sample { labels, points: vec![(NOW, value)] }
}

fn labels_of<'a>(instance: &'a str, further: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut labels = vec![("instance", instance), ("job", "headroom"), ("mount", "/data"), ("source", "pg:")];
    labels.extend(further);
    labels
}

fn verdict_since(instance: &str, verdict: &str, since_unix_s: f64) -> Sample {
    let name = ("__name__", "headroom_verdict_since_timestamp_seconds");
    sample(&labels_of(instance, &[name, ("verdict", verdict)]), since_unix_s)
}

/// Hosts with a verdict, a headroom and a measurement.
fn answers(hosts: &[(&str, &str, Option<f64>)]) -> Answers {
    let mut answers = Answers::default();
    for (instance, verdict, headroom) in hosts {
        answers.seen.push(sample(&labels_of(instance, &[]), NOW - 5.0));
        answers.figures.push(verdict_since(instance, verdict, NOW - 60.0));
        let named = labels_of(instance, &[("__name__", "headroom_headroom_ratio")]);
        answers.figures.extend(headroom.map(|headroom| sample(&named, headroom)));
        let measured = [("instance", *instance), ("job", "headroom"), ("mount", "/data")];
        answers.measured.push(sample(&measured, NOW - 86_400.0));
    }
    answers
}

fn instances(fleet: &Fleet) -> Vec<&str> {
    fleet.volumes.iter().map(|volume| volume.host.instance()).collect()
}

#[test]
fn the_least_headroom_comes_first_and_the_unknown_last() {
    let hosts = [
        ("a", "healthy", Some(8.0)),
        ("b", "cannot-say", None),
        ("c", "demand-exceeds-capability", Some(0.7)),
        ("d", "burst", Some(1.5)),
        ("e", "nobody-waits", None),
    ];
    let fleet = fleet(&answers(&hosts), NOW, 300.0);
    assert_eq!(instances(&fleet), ["c", "d", "a", "b", "e"]);
    assert!(fleet.needing_action() > 0 && !fleet.is_whole());
    assert_eq!((fleet.judged(), fleet.needing_action(), fleet.unknown().cannot_say), (4, 2, 1));
    assert_eq!(fleet.volumes[0].headroom.unwrap().origin, HeadroomOrigin::Agent);
}

#[test]
fn a_throttled_volume_has_no_headroom_now_whatever_the_storage_could_give() {
    let hosts =
        [("a", "healthy", Some(1.2)), ("b", "throttled", Some(30.0)), ("c", "storage-degraded", None)];
    assert_eq!(instances(&fleet(&answers(&hosts), NOW, 300.0)), ["b", "c", "a"]);
}

#[test]
fn what_was_not_asked_for_is_marked() {
    let mut answers = answers(&[("a", "healthy", Some(2.0)), ("b", "healthy", Some(3.0))]);
    let of = |name| labels_of("a", &[("__name__", name)]).to_vec();
    answers.details = vec![sample(&of("headroom_verdict_confidence"), 3.0)];
    answers.open = vec![sample(&of("headroom_incident_open"), 1.0)];
    answers.detailed = Some(BTreeSet::from(["a".to_owned()]));
    let seen = fleet(&answers, NOW, 300.0);
    let known = |volume: &Volume| (volume.has_details, volume.confidence, volume.incident_open);
    assert_eq!(
        seen.volumes.iter().map(known).collect::<Vec<_>>(),
        [(true, Some(3), true), (false, None, false)]
    );
    answers.detailed = None;
    assert!(fleet(&answers, NOW, 300.0).volumes.iter().all(|volume| volume.has_details));
}

#[test]
fn of_two_verdicts_the_one_that_began_last_holds() {
    for [first, second] in [[NOW - 500.0, NOW - 30.0], [NOW - 30.0, NOW - 500.0]] {
        let mut answers = answers(&[("a", "healthy", Some(3.0))]);
        answers.figures = vec![verdict_since("a", "burst", first), verdict_since("a", "throttled", second)];
        let expected = if first > second { VerdictKind::Burst } else { VerdictKind::Throttled };
        let volume = &fleet(&answers, NOW, 300.0).volumes[0];
        assert_eq!((volume.verdict, volume.since_unix_s), (Some(expected), Some(NOW - 30.0)));
    }
}

#[test]
fn without_a_planning_figure_it_is_one_over_utilisation() {
    let mut answers = answers(&[("a", "healthy", None), ("b", "cannot-say", None)]);
    for instance in ["a", "b"] {
        answers
            .figures
            .push(sample(&labels_of(instance, &[("__name__", "headroom_utilisation_ratio")]), 0.25));
    }
    let fleet = fleet(&answers, NOW, 300.0);
    let headroom = fleet.volumes[0].headroom.unwrap();
    assert_eq!((headroom.plan, headroom.origin), (4.0, HeadroomOrigin::Utilisation));
    assert_eq!(fleet.volumes[1].headroom, None, "where nothing can be said there is no headroom");
}

#[test]
fn what_is_stale_or_was_never_measured_is_listed_apart_and_never_ranked() {
    let mut answers =
        answers(&[("a", "healthy", Some(3.0)), ("b", "healthy", Some(9.0)), ("c", "cannot-say", None)]);
    answers.seen[1].points[0].1 = NOW - 301.0;
    answers.measured.pop();
    let fleet = fleet(&answers, NOW, 300.0);
    assert_eq!(instances(&fleet), ["a"]);
    assert_eq!(fleet.stale[0].host.instance(), "b");
    assert_eq!(fleet.never_measured[0].host.instance(), "c");
    assert!(!fleet.is_whole() && fleet.needing_action() == 0);
}

#[test]
fn a_fleet_is_whole_only_where_something_can_be_said_of_each_part() {
    let whole = || fleet(&answers(&[("a", "healthy", Some(3.0)), ("b", "burst", Some(2.0))]), NOW, 300.0);
    assert!(whole().is_whole());
    let with_another_host = Fleet { without_database: vec![Host::default()], ..whole() };
    assert!(with_another_host.is_whole());
    let changes: [fn(&mut Fleet); 5] = [
        |fleet| fleet.incomplete = true,
        |fleet| fleet.volumes[1].verdict = Some(VerdictKind::CannotSay),
        |fleet| fleet.volumes[1].verdict = None,
        |fleet| fleet.silent_sources.push(SilentSource { host: Host::default(), source: "pg:".into() }),
        |fleet| fleet.volumes.clear(),
    ];
    for change in changes {
        let mut fleet = whole();
        change(&mut fleet);
        assert!(!fleet.is_whole(), "{fleet:#?}");
    }
    let mut unmeasured = answers(&[("a", "healthy", Some(3.0)), ("b", "cannot-say", None)]);
    unmeasured.measured.pop();
    let unmeasured = fleet(&unmeasured, NOW, 300.0);
    assert!(!unmeasured.is_whole() && unmeasured.unknown().never_measured == 1);
}

#[test]
fn whether_an_incident_is_open_on_a_host_that_is_gone_is_unknown() {
    let mut answers = answers(&[("a", "healthy", Some(3.0)), ("b", "healthy", Some(9.0))]);
    answers.seen[1].points[0].1 = NOW - 301.0;
    let fleet = fleet(&answers, NOW, 300.0);
    let found = [sample(&labels_of("a", &[]), 700.0), sample(&labels_of("b", &[]), 60.0)];
    let rows = with_incidents(&fleet, &found);
    let open: Vec<_> = rows.iter().map(|row| (row.volume.host.instance(), row.is_open, row.open_s)).collect();
    assert_eq!(open, [("b", None, 60.0), ("a", Some(false), 700.0)]);
    assert!(fleet.hides_incidents());
}

#[test]
fn hosts_of_the_same_name_in_two_clusters_are_two() {
    let mut answers = answers(&[("a", "healthy", Some(3.0)), ("a", "throttled", Some(1.0))]);
    for (part, of_each) in [(&mut answers.seen, 1), (&mut answers.figures, 2), (&mut answers.measured, 1)] {
        for (at, sample) in part.iter_mut().enumerate() {
            sample.labels.insert("cluster".into(), ["x", "y"][at / of_each].into());
        }
    }
    let fleet = fleet(&answers, NOW, 300.0);
    assert_eq!(fleet.hosts, 2);
    assert_eq!(fleet.volumes[0].host.added().collect::<Vec<_>>(), [("cluster", "y")]);
    assert_eq!(fleet.volumes[1].verdict, Some(VerdictKind::Healthy));
}

#[test]
fn an_agent_without_a_database_is_named_and_a_new_word_is_no_verdict() {
    let mut answers = answers(&[("a", "levitates", None)]);
    answers.agents.push(sample(&[("instance", "a"), ("job", "headroom"), ("version", "1")], 1.0));
    answers.agents.push(sample(&[("instance", "z"), ("job", "headroom"), ("version", "1")], 1.0));
    let fleet = fleet(&answers, NOW, 300.0);
    assert_eq!((fleet.hosts, fleet.without_database[0].instance()), (2, "z"));
    assert_eq!(fleet.volumes[0].verdict, None);
}

#[test]
fn the_trend_is_that_of_the_volume_though_a_rule_added_a_label() {
    let mut answers = answers(&[("a", "healthy", Some(1.5))]);
    let points =
        (0..30).map(|day| (NOW - 86_400.0 * f64::from(29 - day), 0.3 + 0.02 * f64::from(day))).collect();
    let mut daily = sample(&labels_of("a", &[("rules", "vmalert")]), 0.0);
    daily.points = points;
    answers.trend = vec![sample(&labels_of("b", &[]), 0.5), daily];
    let fleet = fleet(&answers, NOW, 300.0);
    let trend = fleet.volumes[0].trend.as_ref().unwrap();
    assert!((trend.today - 0.88).abs() < 1e-9 && trend.runs_out_within(30), "{trend:?}");
}

proptest! {
    #[test]
    fn the_order_is_that_of_headroom(values in proptest::collection::vec(0.01..100.0_f64, 1..40)) {
        let names: Vec<String> = (0..values.len()).map(|at| format!("host-{at}")).collect();
        let hosts: Vec<_> = names.iter().zip(&values).map(|(name, value)| (name.as_str(), "healthy", Some(*value))).collect();
        let fleet = fleet(&answers(&hosts), NOW, 300.0);
        prop_assert_eq!(fleet.volumes.len(), values.len());
        for pair in fleet.volumes.windows(2) {
            prop_assert!(pair[0].headroom.unwrap().plan <= pair[1].headroom.unwrap().plan);
            prop_assert!(!is_worse(&pair[1], &pair[0]));
        }
    }
}
