//! An observer of a window: it keeps the newest moments, gives its observations again, and forgets what lies before a gap.

use collect::{Source, SourceError};
use everyday::{Extent, Observer, Scope};
use filestats::{
    Cache, Counters, Epoch, Figure, FileClass, FileIdentity, FileKind, Meaning, Ops, Sample, Snapshot,
    SourceTotals, WaitClass, WaitSample,
};
use std::time::Duration;
use storage::Target;
use verdict::{Figures, Observation};

const S: u64 = 1_000_000_000;

/// A second passes with each snapshot, in which one of three files is read 100 times, and sessions wait for half of it.
#[derive(Default)]
struct Database {
    seconds: u64,
}

impl Source for Database {
    fn name(&self) -> &str {
        "database"
    }

    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        self.seconds += 1;
        let at_ns = 1_800_000_000 * S + self.seconds * S;
        let file = |path: &str, reads: u64| {
            let file = FileIdentity { path: path.into(), kind: FileKind::Data, ..FileIdentity::default() };
            let counters =
                Counters { read: Ops::timed(reads, reads * 8192, reads * 1_000_000), ..Counters::ZERO };
            // Past the page cache: what the host's disk does meanwhile changes no figure.
            let meaning = Meaning { cache: Cache::Missed, ..Meaning::REQUESTS };
            Sample::new(file, Epoch::for_run("1"), meaning, counters)
        };
        let wait = WaitSample {
            instance: "database".into(),
            event: "DataFileRead".into(),
            class: WaitClass::DataRead,
            epoch: Epoch::for_run("1"),
            count: Figure::Known(self.seconds),
            wait_ns: Figure::Known(self.seconds * S / 2),
        };
        Ok(Snapshot {
            source: "database".into(),
            taken_unix_ns: at_ns,
            clock_ns: at_ns,
            samples: vec![file("idle", 7), file("busy", 100 * self.seconds), file("unused", 0)],
            waits: vec![wait],
            ..Snapshot::default()
        })
    }
}

fn observer(extent: Extent) -> Observer<'static> {
    let dir = std::env::temp_dir();
    Observer::new(Box::new(Database::default()), Target::open(&dir).unwrap(), Scope::All).with_extent(extent)
}

fn sampled(observer: &mut Observer<'_>, times: u32) -> Observation {
    (0..times).for_each(|_| observer.sample(None).unwrap());
    observer.observations().remove(0).1
}

#[test]
fn the_newest_moments_are_kept_and_can_be_asked_for_again() {
    let mut observer = observer(Extent::Window(Duration::from_secs(5)));
    let first = sampled(&mut observer, 20);
    assert_eq!(first.moments.len(), 5);
    assert_eq!(first.moments[4].ended_unix_ns, 1_800_000_020 * S);
    assert_eq!(observer.observations()[0].1.moments, first.moments);
    let next = sampled(&mut observer, 1);
    assert_eq!(next.moments[..4], first.moments[1..]);
    let newest = next.newest(2 * S);
    assert_eq!(newest.moments[..], next.moments[3..]);
}

#[test]
fn the_figures_are_those_of_the_whole() {
    let mut window = observer(Extent::Window(Duration::from_secs(3_600)));
    let mut whole = observer(Extent::Whole);
    let (of_window, of_whole) = (sampled(&mut window, 12), sampled(&mut whole, 12));
    assert_eq!(of_window.moments[3].files.len(), 1, "files that were not used are left out");
    assert_eq!(of_whole.moments[3].files.len(), 3);
    let figures = |observation: &Observation| {
        let figures = Figures::from_moments(&observation.moments, None);
        (figures.coverage, figures.outstanding, figures.database.map(|delta| delta.counters))
    };
    assert_eq!(figures(&of_window), figures(&of_whole));
    let waits = window.waits();
    assert_eq!(waits, whole.waits());
    assert_eq!(waits[0].interval.known().unwrap().wait_ns, Figure::Known(11 * S / 2));
}

#[test]
fn a_moment_in_which_nothing_was_used_is_known() {
    struct Idle(Database);
    impl Source for Idle {
        fn name(&self) -> &str {
            "idle"
        }
        fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
            let mut snapshot = self.0.snapshot()?;
            snapshot.samples.retain(|sample| sample.file.path != "busy");
            Ok(snapshot)
        }
    }
    let target = Target::open(&std::env::temp_dir()).unwrap();
    let observer = Observer::new(Box::new(Idle(Database::default())), target, Scope::All);
    let idle = sampled(&mut observer.with_extent(Extent::Window(Duration::from_secs(60))), 9);
    assert!(idle.moments.iter().all(|moment| moment.files.len() == 1 && moment.database().is_some()));
    assert_eq!(Figures::from_moments(&idle.moments, None).coverage, 1.0);
}

#[test]
fn totals_grow_with_each_sample_and_another_observer_goes_on_with_them() {
    let window = Extent::Window(Duration::from_secs(3));
    let mut first = observer(window).with_totals(SourceTotals::default());
    sampled(&mut first, 11);
    let mut second = observer(window).with_totals(first.totals());
    sampled(&mut second, 6);
    let totals = second.totals();
    let classes = totals.files.values().next().unwrap();
    let data = &classes[&FileClass { kind: FileKind::Data, below_cache: false }];
    assert_eq!((data.read.count, data.read.bytes), (1500, 1500 * 8192), "10 and 5 intervals");
    assert_eq!(data.since_unix_ns, 1_800_000_001 * S, "when the first sample was taken");
    assert_eq!(totals.waits[&WaitClass::DataRead].time_ns, 15 * S / 2);
    assert_eq!((totals.files.len(), classes.len()), (1, 1));
    assert_eq!(observer(window).totals(), SourceTotals::default(), "counted only where it is wanted");
}

#[test]
fn what_lies_before_a_gap_is_forgotten() {
    let mut observer = observer(Extent::Window(Duration::from_secs(60)));
    assert_eq!(sampled(&mut observer, 8).moments.len(), 7);
    observer.forget();
    let after = sampled(&mut observer, 1);
    assert!(after.moments.is_empty() && observer.waits().is_empty());
    assert_eq!(sampled(&mut observer, 2).moments.len(), 2);
}

#[test]
fn the_moment_in_which_this_program_was_stopped_is_left_out_and_its_counts_are_not() {
    let mut observer = observer(Extent::Whole).with_totals(SourceTotals::default());
    observer.sample(None).unwrap();
    observer.sample(None).unwrap();
    observer.note_stop(3 * S);
    observer.sample(None).unwrap();
    observer.sample(None).unwrap();
    let (_, observation) = observer.observations().remove(0);
    let ends: Vec<u64> = observation.moments.iter().map(|moment| moment.ended_unix_ns / S % 100).collect();
    assert_eq!((ends, observer.stopped_ns()), (vec![2, 4], 3 * S));
    let totals = observer.totals();
    assert_ne!(totals, SourceTotals::default());
}
