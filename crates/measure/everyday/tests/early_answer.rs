//! An experiment that is judged before it has ended. In a program of its own: the VFS counts all databases of a process.

use everyday::{Listener, Observer, Phase, Plan, Scope, counted_sqlite, experiment, prepare};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use storage::Target;

/// Requests an answer as soon as the workload runs.
#[derive(Default)]
struct Hasty {
    answered: Option<(usize, Vec<Phase>)>,
}

impl Listener for Hasty {
    fn progress(&mut self, _: &'static str, _: Duration) {}

    fn is_answer_due(&self) -> bool {
        self.answered.is_none()
    }

    fn answer(&mut self, observer: &mut Observer, phases: &[Phase]) {
        let moments = observer.observations().remove(0).1.moments.len();
        self.answered = Some((moments, phases.to_vec()));
    }
}

#[test]
fn an_answer_before_the_end_has_what_was_observed_so_far_and_takes_nothing_from_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    let source = collect::sqlite::InProcess::new(counted_sqlite().unwrap());
    let plan = Plan {
        customers: 500,
        duration: Duration::from_secs(1),
        vfs: Some("headroom".into()),
        ..Plan::default()
    };
    prepare(&path, &plan, &mut |_, _| {}).unwrap();
    let mut observer = Observer::new(Box::new(source), Target::open(dir.path()).unwrap(), Scope::One);
    let mut listener = Hasty::default();
    experiment(&path, &plan, &mut observer, &AtomicBool::new(false), &mut listener).unwrap();
    let (moments, phases) = listener.answered.unwrap();
    assert_eq!((moments, phases[0].name, phases.len()), (1, "everyday workload", 1));
    let (_, observation) = observer.observations().remove(0);
    assert!(observation.moments.len() > moments, "what was judged before is part of the whole");
}
