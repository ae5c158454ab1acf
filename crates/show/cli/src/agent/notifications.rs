//! Notifications of incidents to receivers.

use crate::service_log::log;
use history::{History, IncidentId};
use incidents::{Event, Incident};
use metrics::Identity;
use notify::{Happened, Notification, Notifier, Receiver, StateChange};
use report::NumberedIncident;
use std::path::{Path, PathBuf};
use std::time::Duration;
use terminal::{Failure, kept};

/// Waiting notifications are sent within this time at the end, while systemd and people wait.
const END_WITHIN: Duration = Duration::from_secs(2);
/// Newest incidents that are searched for those that a receiver was not given before the agent ended.
const LOOKED_AT: usize = 100;
/// An incident that has been over for longer is not news.
const MISSED_NS_MAX: u64 = 86_400 * 1_000_000_000;

/// The receivers, each in a thread of its own.
pub struct Notifications {
    notifiers: Vec<Notifier>,
    identity: Identity,
}

/// Receivers by their URLs and programs.
pub fn receivers(
    alertmanager: &[String],
    webhook: &[String],
    on_incident: &[PathBuf],
) -> Result<Vec<Receiver>, Failure> {
    let mut receivers = Vec::new();
    for url in alertmanager {
        let receiver = Receiver::alertmanager(url, credential(Receiver::ALERTMANAGER_AUTH)?);
        receivers.push(receiver.map_err(|why| Failure::usage(format_args!("--alertmanager: {why}")))?);
    }
    for url in webhook {
        let receiver = Receiver::webhook(url, credential(Receiver::WEBHOOK_AUTH)?);
        receivers.push(receiver.map_err(|why| Failure::usage(format_args!("--webhook: {why}")))?);
    }
    receivers.extend(on_incident.iter().cloned().map(Receiver::Command));
    Ok(receivers)
}

fn credential(variable: &str) -> Result<Option<push::Credential>, Failure> {
    let Some(text) = std::env::var(variable).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    let credential = text.parse();
    credential.map(Some).map_err(|why| Failure::usage(format_args!("{variable} holds {why}")))
}

/// Starts them, and sends the notifications that they were not given before the agent ended.
pub fn start(receivers: Vec<Receiver>, path: &Path, identity: &Identity) -> Result<Notifications, Failure> {
    let mut notifiers = Vec::new();
    for receiver in receivers {
        let name = receiver.to_string();
        if receiver.shows_credential() {
            log(
                4,
                &format!("{name}: the credential goes over http:// and can be read on the way; use https://"),
            );
        }
        let history = kept::open(Some(path))?;
        let left = left(&history, &receiver)?;
        let notifier = Notifier::start(receiver, remember(history), |receiver, change: &StateChange| {
            let priority = if matches!(change, StateChange::Again) { 6 } else { 4 };
            log(priority, &format!("{receiver}: {change}"));
        });
        left.into_iter().for_each(|(id, happened, incident)| {
            notifier.send(notification(id, happened, incident, identity));
        });
        notifiers.push(notifier);
    }
    Ok(Notifications { notifiers, identity: identity.clone() })
}

/// Keeps the notifications that a receiver was given.
fn remember(mut history: History) -> impl FnMut(&str, &Notification) + Send {
    move |receiver, notification| {
        let id = IncidentId(notification.id);
        if let Err(error) = history.save_notified(receiver, id, &notification.stage()) {
            log(4, &format!("{receiver}: may be sent again what it has: {error}"));
        }
    }
}

/// Incidents that a receiver was not given: those that are open, that it knows as open, or that opened and closed recently
/// while it was away. An Alertmanager is given open ones again, since it forgets what is not repeated, and knows them by their
/// labels.
fn left(history: &History, receiver: &Receiver) -> Result<Vec<(i64, Happened, Incident)>, Failure> {
    let (mut left, name) = (Vec::new(), receiver.to_string());
    let mut all = Vec::new();
    for (id, incident) in history.incidents(LOOKED_AT)? {
        let unsaved = IncidentId(unsaved_number(&incident));
        let known = history.notified(&name, id)?.or(history.notified(&name, unsaved)?);
        all.push((known, id, incident));
    }
    // It is not given incidents that were over before it was configured.
    let first_known = all.iter().filter(|(known, ..)| known.is_some()).map(|(_, id, _)| *id).min();
    let since_unix_ns = host::unix_ns().saturating_sub(MISSED_NS_MAX);
    for (known, id, incident) in all {
        let is_new = known.as_ref().is_some_and(|stage| *stage != notify::stage(&incident));
        let repeats = matches!(receiver, Receiver::Alertmanager(_));
        let happened = match (incident.is_open(), &known) {
            (true, None) => Happened::Opened,
            (true, Some(_)) if is_new || repeats => Happened::Changed,
            (false, Some(_)) if is_new => Happened::Closed,
            // An Alertmanager sends no notification of an alert that is already resolved.
            (false, None)
                if first_known.is_some_and(|first| id > first)
                    && !repeats
                    && incident.ended_unix_ns.is_some_and(|ended| ended > since_unix_ns) =>
            {
                Happened::Closed
            }
            (true, Some(_)) | (false, _) => continue,
        };
        left.push((id.0, happened, incident));
    }
    left.reverse();
    Ok(left)
}

/// The number of an incident that could not be saved.
fn unsaved_number(incident: &Incident) -> i64 {
    -i64::try_from(incident.started_unix_ns / 1_000_000_000).unwrap_or(i64::MAX)
}

fn notification(id: i64, happened: Happened, incident: Incident, identity: &Identity) -> Notification {
    let numbered = NumberedIncident { id, incident };
    let document = serde_json::json!({
        "event": happened.word(),
        "host": host::hostname(),
        "instance": identity.instance,
        "headroom_version": env!("CARGO_PKG_VERSION"),
        "incident": report::json::incident(&numbered),
    });
    let labels = identity.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let instance = identity.instance.clone();
    Notification { id, happened, incident: numbered.incident, instance, labels, document }
}

impl Notifications {
    /// Notifies all of them of an event of an incident. One that could not be kept has a negative number.
    pub fn send(&self, id: Option<IncidentId>, event: &Event) {
        let happened = match event {
            Event::Opened(_) | Event::Recurred(_) => Happened::Opened,
            Event::Changed(_) => Happened::Changed,
            Event::Closed(_) => Happened::Closed,
        };
        let incident = event.incident();
        let id = id.map_or_else(|| unsaved_number(incident), |id| id.0);
        for notifier in &self.notifiers {
            notifier.send(notification(id, happened, incident.clone(), &self.identity));
        }
    }

    /// Ends them.
    pub fn finish(self) {
        self.notifiers.into_iter().for_each(|notifier| notifier.finish(END_WITHIN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::Judged;
    use incidents::{Clocks, Detail, Judgement, Readings, Settings, Standing, Subject, Tracker};
    use verdict::{Confidence, VerdictKind};

    const S: u64 = 1_000_000_000;

    /// An incident that began this long ago, and is open or over.
    fn incident(began_ago_s: u64, is_open: bool) -> Incident {
        let began = host::unix_ns() - began_ago_s * S;
        let subject = Subject { mount: "/data".into(), database: "postgres:".into() };
        let mut tracker = Tracker::new(subject, Settings::default());
        let mut last = None;
        for tick in 0..if is_open { 10 } else { 30 } {
            let at = Clocks { unix_ns: began + tick * 5 * S, monotonic_ns: tick * 5 * S };
            let standing = if tick < 10 { Standing::Bad(VerdictKind::Throttled) } else { Standing::Fine };
            let detail = Detail {
                at_unix_ns: at.unix_ns,
                summary: String::new(),
                cause: None,
                confidence: Confidence::High,
                readings: Readings::default(),
                evidence: vec![],
                next_step: String::new(),
                files: vec![],
                processes: vec![],
                waits: vec![],
            };
            last = tracker.judged(&Judgement { at, standing, fine_for: Duration::ZERO, detail }).or(last);
        }
        last.unwrap().incident().clone()
    }

    #[test]
    fn a_receiver_that_was_away_is_given_what_is_over_by_now_and_a_new_one_only_what_is_open() {
        let place = tempfile::tempdir().unwrap();
        let mut history = History::open(&place.path().join("history.db")).unwrap();
        let times = [(200_000, false), (90_000, false), (50_000, false), (40_000, false), (100, true)];
        let incidents: Vec<Incident> = times.iter().map(|(ago, open)| incident(*ago, *open)).collect();
        let ids = history.save_judged(&Judged { incidents: incidents.clone(), ..Judged::default() }).unwrap();
        let webhook = Receiver::webhook("http://127.0.0.1:1/", None).unwrap();
        let given = |history: &History, receiver: &Receiver| -> Vec<(i64, Happened)> {
            left(history, receiver).unwrap().into_iter().map(|(id, happened, _)| (id, happened)).collect()
        };
        assert_eq!(given(&history, &webhook), [(ids[4].0, Happened::Opened)]);
        history.save_notified(&webhook.to_string(), ids[2], &notify::stage(&incidents[2])).unwrap();
        let missed = [(ids[3].0, Happened::Closed), (ids[4].0, Happened::Opened)];
        assert_eq!(given(&history, &webhook), missed);
        // Given while the history could not be written.
        let unsaved = IncidentId(unsaved_number(&incidents[3]));
        history.save_notified(&webhook.to_string(), unsaved, &notify::stage(&incidents[3])).unwrap();
        assert_eq!(given(&history, &webhook), [(ids[4].0, Happened::Opened)]);
        let alertmanager = Receiver::alertmanager("http://127.0.0.1:1", None).unwrap();
        history.save_notified(&alertmanager.to_string(), ids[2], &notify::stage(&incidents[2])).unwrap();
        assert_eq!(given(&history, &alertmanager), [(ids[4].0, Happened::Opened)]);
    }
}
