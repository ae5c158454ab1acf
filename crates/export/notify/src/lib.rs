//! Notifications of incidents: Alertmanager's API v2, a webhook, a command.
//!
//! ```text
//! Notification ─> Notifier::send() ─> a bounded queue for each receiver ─> its thread ─> POST or a process
//!                                                  taken: `delivered` is called, once for each stage of an incident
//!                                                  a connection, 429, 5xx, an exit code: again, later and later
//!                                                  any other 4xx: dropped, not retried
//! Alertmanager forgets an alert that is not repeated: open ones are sent again every minute.
//! ```
//!
//! Main path: [`Receiver`], [`Notifier::start`], [`Notifier::send`], [`Notifier::finish`]. The caller keeps which
//! [`stage`](Notification::stage) of an incident each receiver was given, so that an agent that is started again repeats
//! nothing.
//!
//! No message contains a credential.

mod alert;
mod delivery;
mod notifier;
mod receiver;

pub use notifier::{Notifier, StateChange};
pub use receiver::Receiver;

use incidents::Incident;
use serde_json::Value;

/// A change of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It was opened, or a burst came again.
    Opened,
    /// It is of another kind, or affects another database.
    Changed,
    /// It was closed.
    Closed,
}

/// One notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The number of the incident in the history.
    pub id: i64,
    /// The change.
    pub happened: Happened,
    /// The incident after it.
    pub incident: Incident,
    /// The label `instance`, by which servers identify this host.
    pub instance: String,
    /// Its further labels.
    pub labels: Vec<(String, String)>,
    /// The document that a webhook and a command receive.
    pub document: Value,
}

impl Happened {
    /// The word in documents.
    pub fn word(self) -> &'static str {
        match self {
            Happened::Opened => "opened",
            Happened::Changed => "changed",
            Happened::Closed => "closed",
        }
    }
}

impl Notification {
    /// The stage of the incident that the receiver knows once it has this: a later notification of the same stage says
    /// nothing new.
    pub fn stage(&self) -> String {
        stage(&self.incident)
    }
}

/// The stage of an incident: open or closed, its kind, how often it came again, and how many more databases and mounts it affects.
pub fn stage(incident: &Incident) -> String {
    let state = if incident.is_open() { "open" } else { "closed" };
    let others = incident.also.len() + incident.also_mounts.len();
    format!("{state}, {}, {}, {others}", incident.verdict, incident.recurrence.repeated)
}
