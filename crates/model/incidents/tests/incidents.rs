//! The life of incidents, with plain values.

use Standing::{Bad, Fine, Unknown};
use VerdictKind::{Burst, DemandExceedsCapability, StorageDegraded, Throttled};
use incidents::{
    Causes, Clocks, Detail, Ending, Event, Incident, Judgement, Readings, Settings, Standing, Subject,
    Tracker,
};
use proptest::prelude::*;
use std::time::Duration;
use verdict::{Confidence, VerdictKind};

const S: u64 = 1_000_000_000;
/// Between two judgements, seconds.
const EVERY: u64 = 5;
const NOON: u64 = 1_800_000_000;

/// A tracker and a host's clocks.
struct Host {
    tracker: Tracker,
    clocks: Clocks,
    events: Vec<(u64, Event)>,
}

impl Host {
    fn new() -> Host {
        let subject = Subject { mount: "/data".into(), database: "postgres:".into() };
        Host {
            tracker: Tracker::new(subject, Settings::default()),
            clocks: Clocks { unix_ns: NOON * S, monotonic_ns: 7 * S },
            events: Vec::new(),
        }
    }

    fn passes(&mut self, seconds: u64) {
        self.clocks.unix_ns += seconds * S;
        self.clocks.monotonic_ns += seconds * S;
    }

    fn judged(&mut self, standing: Standing, utilisation: f64) {
        self.passes(EVERY);
        let at = self.clocks;
        let detail = detail(at.unix_ns, utilisation);
        if let Some(event) =
            self.tracker.judged(&Judgement { at, standing, fine_for: Duration::ZERO, detail })
        {
            self.events.push(((at.unix_ns / S).saturating_sub(NOON), event));
        }
    }

    /// Passes `seconds` of one standing.
    fn lasts(&mut self, seconds: u64, standing: Standing) {
        (0..seconds / EVERY).for_each(|_| self.judged(standing, 0.5));
    }

    fn names(&self) -> Vec<(u64, &'static str)> {
        let name = |event: &Event| match event {
            Event::Opened(_) => "opened",
            Event::Recurred(_) => "recurred",
            Event::Changed(_) => "changed",
            Event::Closed(_) => "closed",
        };
        self.events.iter().map(|(at, event)| (*at, name(event))).collect()
    }

    fn last(&self) -> &Incident {
        self.events.last().unwrap().1.incident()
    }
}

fn detail(at_unix_ns: u64, utilisation: f64) -> Detail {
    Detail {
        at_unix_ns,
        summary: format!("{utilisation}"),
        cause: None,
        confidence: Confidence::High,
        readings: Readings { utilisation: Some(utilisation), ..Readings::default() },
        evidence: vec![],
        next_step: String::new(),
        files: vec![],
        processes: vec![],
        waits: vec![],
    }
}

#[test]
fn what_was_fine_before_the_judgement_counts_towards_the_end() {
    let mut host = Host::new();
    host.lasts(60, Bad(Throttled));
    host.passes(EVERY);
    let (at, detail) = (host.clocks, detail(host.clocks.unix_ns, 0.1));
    let fine_for = Duration::from_secs(10);
    assert_eq!(host.tracker.judged(&Judgement { at, standing: Fine, fine_for, detail }), None);
    host.lasts(45, Fine);
    assert_eq!(host.names().last().unwrap().1, "opened", "fine for 55 s");
    host.lasts(5, Fine);
    assert_eq!(*host.names().last().unwrap(), (60 + 5 + 50, "closed"));
}

#[test]
fn what_was_fine_before_the_judgement_does_not_end_what_is_not_open_yet() {
    let mut host = Host::new();
    host.lasts(20, Bad(Throttled));
    host.passes(EVERY);
    let (at, detail) = (host.clocks, detail(host.clocks.unix_ns, 0.1));
    let fine_for = Duration::from_secs(15);
    assert_eq!(host.tracker.judged(&Judgement { at, standing: Fine, fine_for, detail }), None);
    host.lasts(20, Bad(Throttled));
    assert_eq!(host.names().last().unwrap().1, "opened", "one fine judgement is an interruption");
}

#[test]
fn a_bad_verdict_that_holds_for_30_s_opens_an_incident_and_60_s_without_it_close_it() {
    let mut host = Host::new();
    host.lasts(20, Fine);
    host.lasts(100, Bad(Throttled));
    host.lasts(100, Fine);
    assert_eq!(host.names(), [(55, "opened"), (185, "closed")]);
    let incident = host.last();
    assert_eq!(incident.verdict, Throttled);
    let seconds = |ns: u64| ns / S - NOON;
    // It began after the last judgement that was fine.
    assert_eq!((seconds(incident.started_unix_ns), seconds(incident.ended_unix_ns.unwrap())), (20, 120));
    assert_eq!(incident.ending, Some(Ending::Recovered));
    assert!(host.tracker.open().is_none());
}

#[test]
fn what_holds_for_less_opens_nothing() {
    let mut host = Host::new();
    for _ in 0..20 {
        host.lasts(30, Bad(Throttled));
        host.lasts(20, Fine);
    }
    assert_eq!(host.names(), []);
}

#[test]
fn one_judgement_between_two_kinds_that_agrees_with_none_interrupts_nothing() {
    let mut host = Host::new();
    host.lasts(15, Bad(Burst));
    host.lasts(5, Fine);
    host.lasts(60, Bad(DemandExceedsCapability));
    assert_eq!(host.names().len(), 1);
    assert_eq!(host.tracker.open().unwrap().verdict, DemandExceedsCapability);
}

#[test]
fn a_cause_that_shows_as_another_kind_later_is_one_incident_that_changes() {
    let mut host = Host::new();
    host.lasts(40, Bad(Throttled));
    host.lasts(100, Bad(StorageDegraded));
    host.lasts(15, Bad(Throttled));
    assert_eq!(host.names(), [(35, "opened"), (80, "changed")]);
    let open = host.tracker.open().unwrap();
    assert_eq!((open.verdict, open.held.len()), (StorageDegraded, 2));
}

#[test]
fn the_worst_moment_is_that_of_the_kind_that_it_is_called_by() {
    let mut host = Host::new();
    [0.4, 0.9, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5].iter().for_each(|used| host.judged(Bad(Throttled), *used));
    host.judged(Bad(Burst), 1.3);
    let open = host.tracker.open().unwrap();
    assert_eq!(open.worst().unwrap().summary, "0.9");
    assert_eq!(open.utilisation_max, Some(1.3));
    assert!((open.utilisation_mean.unwrap() - 5.9 / 9.0).abs() < 1e-9, "{:?}", open.utilisation_mean);
}

#[test]
fn latency_far_above_the_expected_is_worse_than_a_high_utilisation() {
    let readings = |utilisation, times: f64| Readings {
        utilisation: Some(utilisation),
        latency_ns: Some(times * 100.0),
        expected_ns: Some(100.0),
        ..Readings::default()
    };
    assert_eq!(readings(0.2, 40.0).severity(), 40.0);
    assert_eq!(readings(0.2, f64::NAN).severity(), 0.2);
    assert_eq!(Readings::default().severity(), 0.0);
}

#[test]
fn what_is_unknown_neither_opens_nor_closes() {
    let mut host = Host::new();
    host.lasts(600, Unknown);
    assert_eq!(host.names(), []);
    host.lasts(25, Bad(Throttled));
    host.lasts(20, Unknown);
    host.lasts(25, Bad(Throttled));
    assert_eq!(host.names(), [], "what was before the gap does not count");
    host.lasts(40, Bad(Throttled));
    assert_eq!(host.names().len(), 1);
    for _ in 0..20 {
        host.lasts(40, Fine);
        host.lasts(5, Unknown);
    }
    assert_eq!(host.names().len(), 1, "no minute in a row was fine");
    host.lasts(70, Fine);
    assert_eq!(host.names().len(), 2);
}

#[test]
fn the_time_in_which_nothing_was_known_is_not_held() {
    let mut host = Host::new();
    host.lasts(40, Bad(Throttled));
    host.lasts(10, Unknown);
    host.lasts(10, Bad(Throttled));
    assert_eq!(host.tracker.open().unwrap().held_ns(), 40 * S);
}

#[test]
fn a_suspended_machine_and_a_clock_that_is_set_are_gaps() {
    let suspended = |host: &mut Host| host.clocks.unix_ns += 8 * 3600 * S;
    let set_back = |host: &mut Host| host.clocks.unix_ns -= 3600 * S;
    let stopped = |host: &mut Host| host.passes(300);
    for gap in [suspended as fn(&mut Host), set_back, stopped] {
        let mut host = Host::new();
        host.lasts(25, Bad(Throttled));
        gap(&mut host);
        host.lasts(25, Bad(Throttled));
        assert!(host.events.is_empty(), "50 s with a gap in them");

        let mut host = Host::new();
        host.lasts(60, Bad(Throttled));
        host.lasts(40, Fine);
        gap(&mut host);
        host.lasts(40, Fine);
        assert_eq!(host.events.len(), 1, "not closed by what is before the gap");
        host.lasts(40, Fine);
        let incident = host.last();
        assert!(incident.ended_unix_ns.unwrap() >= incident.started_unix_ns);
        assert_eq!(incident.ending, Some(Ending::Recovered));
    }
}

#[test]
fn a_server_that_is_gone_for_an_hour_keeps_no_incident_open() {
    let mut host = Host::new();
    host.lasts(60, Bad(Throttled));
    host.lasts(3550, Unknown);
    assert_eq!(host.events.len(), 1);
    host.lasts(60, Unknown);
    assert_eq!(host.last().ending, Some(Ending::NothingKnown));
    assert_eq!(host.last().ended_unix_ns, Some((NOON + 60) * S));
}

#[test]
fn an_agent_that_is_started_again_goes_on_with_what_is_open() {
    let mut host = Host::new();
    host.lasts(60, Bad(Throttled));
    // The copy that the history keeps of it.
    let kept = serde_json::to_string(host.tracker.open().unwrap()).unwrap();
    let mut again = Host::new();
    again.clocks = host.clocks;
    again.passes(45);
    again.tracker.resume(Some(serde_json::from_str(&kept).unwrap()), None, again.clocks);
    again.lasts(30, Bad(Throttled));
    assert!(again.events.is_empty(), "it is open already: no second one, no second notification");
    again.lasts(70, Fine);
    assert_eq!(again.names().len(), 1);
    assert_eq!(again.last().started_unix_ns, host.events[0].1.incident().started_unix_ns);
}

#[test]
fn what_is_watched_no_longer_is_closed_as_such() {
    let mut host = Host::new();
    assert_eq!(host.tracker.end(), None);
    host.lasts(60, Bad(Throttled));
    let Some(Event::Closed(incident)) = host.tracker.end() else { panic!() };
    assert_eq!(incident.ending, Some(Ending::NotWatched));
}

#[test]
fn a_burst_that_comes_again_is_one_incident_with_its_period() {
    let mut host = Host::new();
    for _ in 0..20 {
        host.lasts(60, Bad(Burst));
        host.lasts(540, Fine);
    }
    let opened = host.names().iter().filter(|(_, name)| *name == "opened").count();
    assert_eq!((opened, host.names().len()), (1, 40));
    let recurrence = &host.last().recurrence;
    assert_eq!((recurrence.repeated, recurrence.period_ns()), (19, Some(600 * S)));
    assert_eq!(recurrence.starts_unix_ns.len(), incidents::STARTS_MAX, "bounded");
    host.lasts(60, Bad(Throttled));
    assert_eq!(host.names().last().unwrap().1, "opened", "another kind is another incident");
}

/// The events of two databases on the same volume.
fn two_databases() -> ([Incident; 2], [Incident; 2]) {
    let of = |database: &str| {
        let mut host = Host::new();
        let subject = Subject { mount: "/data".into(), database: database.into() };
        host.tracker = Tracker::new(subject, Settings::default());
        host.lasts(60, Bad(Throttled));
        host.lasts(70, Fine);
        let incidents: Vec<Incident> =
            host.events.iter().map(|(_, event)| event.incident().clone()).collect();
        <[Incident; 2]>::try_from(incidents).unwrap()
    };
    (of("postgres:"), of("mysql:"))
}

#[test]
fn what_slows_a_volume_is_one_incident_of_all_databases_on_it() {
    let ([first_open, first_closed], [second_open, second_closed]) = two_databases();
    for first_ends_first in [true, false] {
        let mut causes = Causes::default();
        assert_eq!(causes.add(Event::Opened(first_open.clone())), Some(Event::Opened(first_open.clone())));
        let Some(Event::Changed(joined)) = causes.add(Event::Opened(second_open.clone())) else { panic!() };
        assert_eq!((&joined.subject, &joined.also[..]), (&first_open.subject, &["mysql:".to_owned()][..]));
        assert_eq!(causes.reported(second_open.clone()), None);
        assert_eq!(causes.reported(first_open.clone()).unwrap().also, joined.also);
        let mut ends = [first_closed.clone(), second_closed.clone()];
        ends[1].last_bad_unix_ns += 7 * S;
        if !first_ends_first {
            ends.reverse();
        }
        assert_eq!(causes.add(Event::Closed(ends[0].clone())), None);
        let Some(Event::Closed(closed)) = causes.add(Event::Closed(ends[1].clone())) else { panic!() };
        assert_eq!((&closed.subject, closed.also.len()), (&first_open.subject, 1));
        assert_eq!(closed.ended_unix_ns, first_closed.ended_unix_ns.map(|ended| ended + 7 * S));
    }
}

#[test]
fn a_device_that_is_mounted_twice_is_one_cause() {
    let ([first_open, first_closed], [second_open, second_closed]) = two_databases();
    let mount = |incident: &Incident, database: &str| {
        let mut other = incident.clone();
        other.subject = Subject { mount: "/elsewhere".into(), database: database.to_owned() };
        other
    };
    for database in ["mysql:", "postgres:"] {
        let mut causes = Causes::default();
        causes.set_device(&first_open.subject.mount, Some("254:0".into()));
        causes.set_device("/elsewhere", Some("254:0".into()));
        causes.add(Event::Opened(first_open.clone()));
        let joined = causes.add(Event::Opened(mount(&second_open, database)));
        let joined = joined.unwrap().incident().clone();
        assert_eq!(
            (joined.also.len(), &joined.also_mounts[..]),
            (usize::from(database == "mysql:"), &["/elsewhere".to_owned()][..])
        );
        assert!(
            joined.affects(&mount(&second_open, database).subject) && joined.affects(&first_open.subject)
        );
        let third = Subject { mount: "/log".into(), ..first_open.subject.clone() };
        assert!(!joined.affects(&third));
        assert_eq!(causes.add(Event::Closed(mount(&second_closed, database))), None);
        assert!(matches!(causes.add(Event::Closed(first_closed.clone())), Some(Event::Closed(_))));
    }
    for device in [None, Some("254:1".to_owned())] {
        let mut causes = Causes::default();
        causes.set_device(&first_open.subject.mount, Some("254:0".into()));
        causes.set_device("/elsewhere", device);
        causes.add(Event::Opened(first_open.clone()));
        let other = Event::Opened(mount(&second_open, "mysql:"));
        assert_eq!(causes.add(other.clone()), Some(other));
    }
}

#[test]
fn what_is_of_a_database_alone_is_its_own_incident() {
    let ([first_open, first_closed], [second_open, _]) = two_databases();
    let mut serialized = second_open.clone();
    serialized.verdict = VerdictKind::Serialized;
    let mut elsewhere = second_open.clone();
    elsewhere.subject.mount = "/log".into();
    for other in [serialized, elsewhere] {
        let mut causes = Causes::default();
        causes.add(Event::Opened(first_open.clone()));
        assert_eq!(causes.add(Event::Opened(other.clone())), Some(Event::Opened(other)));
        let closed = Event::Closed(first_closed.clone());
        assert_eq!(causes.add(closed.clone()), Some(closed));
    }
}

#[test]
fn one_that_is_over_and_begins_again_before_the_others_are_over_goes_on() {
    let ([first_open, first_closed], [second_open, second_closed]) = two_databases();
    let mut causes = Causes::default();
    for event in [Event::Opened(first_open.clone()), Event::Opened(second_open)] {
        causes.add(event);
    }
    assert_eq!(causes.add(Event::Closed(first_closed.clone())), None);
    let mut again = first_open.clone();
    again.started_unix_ns += 200 * S;
    assert_eq!(causes.add(Event::Opened(again.clone())), None);
    assert_eq!(causes.add(Event::Closed(second_closed)), None);
    let mut closed = first_closed;
    closed.started_unix_ns = again.started_unix_ns;
    let Some(Event::Closed(closed)) = causes.add(Event::Closed(closed)) else { panic!() };
    assert_eq!(closed.started_unix_ns, first_open.started_unix_ns);
}

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![Just(Fine), Just(Unknown), Just(Bad(Throttled)), Just(Bad(StorageDegraded)), Just(Bad(Burst)),]
}

#[derive(Clone, Debug)]
enum Happening {
    Lasts(u64, Standing),
    Suspended(u64),
    SetBack(u64),
    Restarted,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (1_u64..150, standing()).prop_map(|(seconds, standing)| Happening::Lasts(seconds, standing)),
        1 => (1_u64..10_000).prop_map(Happening::Suspended),
        1 => (1_u64..10_000).prop_map(Happening::SetBack),
        1 => Just(Happening::Restarted),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_each_incident_opens_once_and_then_closes_once(
        happenings in prop::collection::vec(happening(), 0..60)
    ) {
        let mut host = Host::new();
        let mut last_burst = None;
        for happening in happenings {
            match happening {
                Happening::Lasts(seconds, standing) => host.lasts(seconds, standing),
                Happening::Suspended(seconds) => host.clocks.unix_ns += seconds * S,
                Happening::SetBack(seconds) => host.clocks.unix_ns -= seconds * S,
                Happening::Restarted => {
                    let open = host.tracker.open().cloned();
                    host.tracker = Host::new().tracker;
                    host.tracker.resume(open, last_burst.clone(), host.clocks);
                }
            }
            if let Some((_, Event::Closed(closed))) = host.events.last() {
                last_burst = Some(closed.clone());
            }
        }
        let mut is_open = false;
        for (_, event) in &host.events {
            let incident = event.incident();
            prop_assert!(incident.verdict.needs_action());
            prop_assert!(incident.held.len() <= 3);
            prop_assert!(incident.worst().is_some());
            match event {
                Event::Opened(_) | Event::Recurred(_) => {
                    prop_assert!(!is_open, "opened twice");
                    prop_assert!(incident.held_ns() >= 30 * S);
                    is_open = true;
                }
                Event::Changed(_) => prop_assert!(is_open),
                Event::Closed(_) => {
                    prop_assert!(is_open, "closed, and never opened");
                    prop_assert!(incident.ended_unix_ns.unwrap() >= incident.started_unix_ns);
                    is_open = false;
                }
            }
        }
        prop_assert_eq!(is_open, host.tracker.open().is_some());
    }

    #[test]
    fn without_anything_bad_there_is_no_incident(
        standings in prop::collection::vec(prop_oneof![Just(Fine), Just(Unknown)], 0..300)
    ) {
        let mut host = Host::new();
        standings.into_iter().for_each(|standing| host.judged(standing, 0.99));
        prop_assert!(host.events.is_empty());
    }
}
