//! A storage that was measured, and of which its provider states less or more.

use crate::builder::{Load, MS, disk, steady};
use capability::{Binding, Declared};
use filestats::ServiceLevel;
use verdict::{Observation, VerdictKind, judge};

#[test]
fn what_is_paid_for_stands_beside_what_is_there() {
    let mut limits = Declared { latency_ns: Some(1e6), ..Declared::default() };
    limits.set(Binding::Operations, 800.0);
    let declared = limits.capability(disk().target, 0, "0.1.0").unwrap();
    let reads = steady(Load { reads: 400, read_ns: 4 * MS, ..Load::default() });
    let verdict =
        judge(&Observation { declared: Some(declared), ..reads }, Some(&disk()), &ServiceLevel::OLTP);
    // The disk gives 4,000 reads a second, which decides.
    assert_eq!(verdict.verdict, VerdictKind::Healthy, "{verdict:#?}");
    let used = |what: &str| verdict.evidence.iter().find(|fact| fact.what == what).unwrap().value;
    let (there, paid) = (used("utilisation"), used("utilisation of the declared limits"));
    assert!((there - 0.1).abs() < 0.02 && (paid - 0.5).abs() < 0.05, "{verdict:#?}");
    assert_eq!(verdict.utilisation, Some(there));
}
