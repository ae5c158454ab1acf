//! One cause, one incident: what slows a volume slows each database on it.

use crate::{Event, Incident, Subject};
use std::collections::{BTreeMap, BTreeSet};
use verdict::VerdictKind;

/// Joins the incidents of databases on one volume, and of volumes on one device. The first that is opened stands for all, and names
/// the other databases and mounts; it is over when all are.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    open: BTreeMap<Subject, Joined>,
    /// The devices of volumes, by mount: one device may be mounted at several places.
    devices: BTreeMap<String, String>,
}

/// An incident that is reported.
#[derive(Clone, Debug)]
struct Joined {
    incident: Incident,
    /// The subjects that it stands for beside its own.
    others: BTreeSet<Subject>,
    /// It is over for its own subject.
    is_over: bool,
}

impl Causes {
    /// The file system that is mounted there lies on this device, "254:0"; `None` where it has none.
    pub fn set_device(&mut self, mount: &str, device: Option<String>) {
        match device {
            Some(device) => self.devices.insert(mount.to_owned(), device),
            None => self.devices.remove(mount),
        };
    }

    /// Adds what happened to the incident of one subject. Returns what happened to the one that is reported: `None` where nothing
    /// did.
    pub fn add(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::Opened(incident) => self.opened(incident, Event::Opened),
            Event::Recurred(incident) => self.opened(incident, Event::Recurred),
            Event::Changed(incident) => self.reported(incident).map(Event::Changed),
            Event::Closed(incident) => self.closed(incident),
        }
    }

    /// The open incident of a subject as it is reported; `None` where that of another subject stands for it.
    pub fn reported(&mut self, incident: Incident) -> Option<Incident> {
        let stands_for_it = |joined: &Joined| joined.others.contains(&incident.subject);
        if self.open.values().any(stands_for_it) {
            return None;
        }
        let new = || Joined { incident: incident.clone(), others: BTreeSet::new(), is_over: false };
        let joined = self.open.entry(incident.subject.clone()).or_insert_with(new);
        joined.update(incident);
        Some(joined.incident.clone())
    }

    fn opened(&mut self, incident: Incident, event: fn(Incident) -> Event) -> Option<Event> {
        if let Some(joined) = self.open.get_mut(&incident.subject) {
            // It was over for its own subject, and not for the others.
            joined.is_over = false;
            joined.update(incident);
            return None;
        }
        let devices = &self.devices;
        let Some(joined) = self.open.values_mut().find(|joined| joined.is_cause_of(&incident, devices))
        else {
            return self.reported(incident).map(event);
        };
        let Subject { mount, database } = incident.subject.clone();
        joined.others.insert(incident.subject);
        let Incident { subject: own, also, also_mounts, .. } = &mut joined.incident;
        let is_new_database = own.database != database && !also.contains(&database);
        let is_new_mount = own.mount != mount && !also_mounts.contains(&mount);
        also.extend(Some(database).filter(|_| is_new_database));
        also_mounts.extend(Some(mount).filter(|_| is_new_mount));
        (is_new_database || is_new_mount).then(|| Event::Changed(joined.incident.clone()))
    }

    fn closed(&mut self, incident: Incident) -> Option<Event> {
        let subject = incident.subject.clone();
        let Some(joined) = self.open.get_mut(&subject) else { return self.other_closed(&incident) };
        joined.update(incident);
        joined.is_over = true;
        self.close_if_over(&subject)
    }

    /// It is over for a subject that another incident stands for.
    fn other_closed(&mut self, incident: &Incident) -> Option<Event> {
        let stands_for_it =
            self.open.iter_mut().find(|(_, joined)| joined.others.contains(&incident.subject));
        let Some((subject, joined)) = stands_for_it else { return Some(Event::Closed(incident.clone())) };
        joined.others.remove(&incident.subject);
        joined.incident.last_bad_unix_ns = joined.incident.last_bad_unix_ns.max(incident.last_bad_unix_ns);
        let subject = subject.clone();
        self.close_if_over(&subject)
    }

    fn close_if_over(&mut self, subject: &Subject) -> Option<Event> {
        self.open.get(subject).filter(|joined| joined.is_over && joined.others.is_empty())?;
        let mut closed = self.open.remove(subject)?.incident;
        closed.ended_unix_ns = closed.ended_unix_ns.map(|ended| ended.max(closed.last_bad_unix_ns));
        Some(Event::Closed(closed))
    }
}

impl Joined {
    /// Whether the incident of another subject has the same cause.
    fn is_cause_of(&self, other: &Incident, devices: &BTreeMap<String, String>) -> bool {
        let (own, theirs) = (&self.incident.subject.mount, &other.subject.mount);
        let is_on_device = || devices.get(own).is_some_and(|device| devices.get(theirs) == Some(device));
        (own == theirs || is_on_device())
            && is_of_volume(self.incident.verdict)
            && is_of_volume(other.verdict)
    }

    /// The incident of its own subject as it is now. It began when the first of them did.
    fn update(&mut self, incident: Incident) {
        let also = std::mem::take(&mut self.incident.also);
        let also_mounts = std::mem::take(&mut self.incident.also_mounts);
        let started_unix_ns = self.incident.started_unix_ns.min(incident.started_unix_ns);
        let last_bad_unix_ns = self.incident.last_bad_unix_ns.max(incident.last_bad_unix_ns);
        self.incident = Incident { also, also_mounts, started_unix_ns, last_bad_unix_ns, ..incident };
    }
}

/// Whether all databases on a volume have it.
fn is_of_volume(kind: VerdictKind) -> bool {
    match kind {
        VerdictKind::Throttled
        | VerdictKind::DemandExceedsCapability
        | VerdictKind::StorageDegraded
        | VerdictKind::Burst => true,
        VerdictKind::Healthy
        | VerdictKind::Serialized
        | VerdictKind::NotStorage
        | VerdictKind::NobodyWaits
        | VerdictKind::CannotSay => false,
    }
}
