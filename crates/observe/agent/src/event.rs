use history::IncidentId;
use record::PresenceChange;
use std::fmt;
use std::time::Duration;

/// An event for the log.
#[derive(Debug)]
pub enum Event<'a> {
    /// A source gives counters, for the first time or after a failure.
    Watching {
        /// Its name.
        source: &'a str,
        /// Where its volumes are mounted.
        mounts: Vec<&'a str>,
    },
    /// A source gives nothing, for a new reason.
    Nothing {
        /// Its name.
        source: &'a str,
        /// Why.
        why: &'a str,
    },
    /// A source is no longer there.
    Gone {
        /// Its name.
        source: &'a str,
    },
    /// A block device below volumes went, or is back.
    Device {
        /// The device that went or is back.
        change: &'a PresenceChange,
        /// Where the volumes are mounted.
        mounts: &'a [String],
    },
    /// An incident opened, changed or closed.
    Incident {
        /// Its number in the history; `None` where it is not kept yet.
        id: Option<IncidentId>,
        /// The event of an incident.
        event: &'a incidents::Event,
    },
    /// The history cannot be written, for a new reason.
    NotKept {
        /// Why.
        why: &'a str,
    },
    /// The history can be written again.
    KeptAgain {
        /// How long it could not be written.
        after: Duration,
    },
}

impl Event<'_> {
    /// Its priority by syslog(3): 3 error, 4 warning, 6 information.
    pub fn priority(&self) -> u8 {
        match self {
            Event::NotKept { .. } => 3,
            Event::Nothing { .. } | Event::Device { change: PresenceChange::Lost { .. }, .. } => 4,
            Event::Incident { event, .. } => match event {
                incidents::Event::Closed(_) => 6,
                _ => 4,
            },
            Event::Watching { .. }
            | Event::Gone { .. }
            | Event::KeptAgain { .. }
            | Event::Device { change: PresenceChange::Back { .. }, .. } => 6,
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Watching { source, mounts } => write!(f, "{source}: watching, on {}", mounts.join(", ")),
            Event::Nothing { source, why } => write!(f, "{source}: {why}; nothing is known of it meanwhile"),
            Event::Gone { source } => write!(f, "{source}: is not there any more"),
            Event::Device { change, mounts } => {
                let mounts = mounts.join(", ");
                match change {
                    PresenceChange::Lost { device } => {
                        write!(f, "the device {device} below {mounts} is gone")
                    }
                    PresenceChange::Back { device, after } => {
                        let seconds = after.as_secs();
                        write!(f, "the device {device} below {mounts} is there again, after {seconds} s")
                    }
                }
            }
            Event::Incident { id, event } => {
                let number = id.map_or_else(String::new, |id| format!(" {}", id.0));
                let what = match event {
                    incidents::Event::Opened(_) => "opened",
                    incidents::Event::Recurred(_) => "came again",
                    incidents::Event::Changed(_) => "changed",
                    incidents::Event::Closed(_) => "closed",
                };
                let incident = event.incident();
                let summary = incident.worst().map_or("", |worst| worst.summary.as_str());
                write!(f, "incident{number} {what}: {}, {}: {summary}", incident.subject, incident.verdict)
            }
            Event::NotKept { why } => {
                write!(
                    f,
                    "nothing is added to the history: {why}; what was judged is kept in memory and tried again"
                )
            }
            Event::KeptAgain { after } => {
                write!(f, "the history can be written again, after {} s", after.as_secs())
            }
        }
    }
}
