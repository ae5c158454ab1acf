//! Sentences about waits.

use charts::number;
use filestats::Figure;
use filestats::waits::{Agreement, Reconciled};

/// Whether the waits of a class and the times of its files agree, with both times.
pub fn reconciliation(one: &Reconciled) -> String {
    let class = one.class;
    let time = |ns: u64| number::time(ns as f64);
    let both = match (one.wait_ns, one.stall_ns) {
        (Figure::Known(waited), Figure::Known(took)) => {
            format!("sessions waited {}, its files took {}", time(waited), time(took))
        }
        (Figure::Known(waited), Figure::Unknown { unknown }) => {
            format!("sessions waited {}, what its files took is unknown ({unknown})", time(waited))
        }
        (Figure::Unknown { unknown }, _) => format!("how long sessions waited is unknown ({unknown})"),
    };
    match one.agreement {
        Agreement::Agrees => format!("the files account for the waits for {class}: {both}"),
        Agreement::NotTheDisk => format!("the waits for {class} are not the disk: {both}"),
        Agreement::NobodyWaits => format!("hardly any session waits for {class}: {both}"),
        Agreement::CannotSay => format!("whether the waits for {class} are the disk cannot be said: {both}"),
    }
}
