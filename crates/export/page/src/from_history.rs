//! A history that nothing is added to, as a page shows it.

use crate::live::{Database, Judged, Live};
use history::{Error, History};
use incidents::{Incident, Readings, Subject};
use std::sync::Arc;
use verdict::{Confidence, Verdict, VerdictKind};

const MINUTE_NS: u64 = 60_000_000_000;
const INCIDENTS_MAX: usize = 1_000;
const CAPABILITIES_MAX: usize = 200;

impl Live {
    /// The last judgements that a history has of all databases and volumes, and the time of the newest.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn from_history(history: &History, service_level_ns: u64) -> Result<(Live, Option<u64>), Error> {
        let live = Live::default();
        let incidents = history.incidents(INCIDENTS_MAX)?;
        let capabilities = history.newest_capabilities(CAPABILITIES_MAX)?;
        let (mut ended_unix_ns, mut databases) = (None, Vec::new());
        for subject in history.subjects()? {
            let minute = history.last_judged_minute(&subject)?;
            let change = history.verdict_changes(&subject)?.pop();
            let minute_ns = minute.as_ref().map(|(minute, _)| minute.saturating_mul(MINUTE_NS));
            let Some(at_unix_ns) = minute_ns.max(change.map(|(at, _)| at)) else { continue };
            ended_unix_ns = ended_unix_ns.max(Some(at_unix_ns));
            let readings = minute.map(|(_, readings)| readings).unwrap_or_default();
            let kind = change.and_then(|(_, kind)| kind);
            let last = incidents.iter().map(|(_, incident)| incident);
            let last = last
                .filter(|incident| incident.subject == subject)
                .max_by_key(|incident| incident.started_unix_ns);
            let capability =
                capabilities.iter().find(|one| one.target.mount.as_deref() == Some(&subject.mount));
            let judged = Judged {
                at_unix_ns,
                verdict: verdict(kind, last, readings),
                readings,
                capability: capability.cloned().map(Arc::new),
                caps: Vec::new(),
                service_level_ns,
            };
            live.began(&subject.database);
            live.keep(&subject, judged, change.map(|(at, _)| at));
            databases.push(database(&subject));
        }
        databases.dedup();
        live.found(databases);
        Ok((live, ended_unix_ns))
    }

    fn keep(&self, subject: &Subject, judged: Judged, since_unix_ns: Option<u64>) {
        let mut known = self.known();
        if let Some(volume) = known.volume(subject) {
            (volume.judged, volume.since_unix_ns) = (Some(judged), since_unix_ns);
        }
    }
}

fn database(subject: &Subject) -> Database {
    let source = subject.database.clone();
    let engine = source.split_once(':').map_or(source.as_str(), |(engine, _)| engine).to_owned();
    Database { name: source.clone(), engine, pid: None, source: Some(source), lacks: Vec::new() }
}

/// The last verdict: of its words, the history has those of incidents.
fn verdict(kind: Option<VerdictKind>, last: Option<&Incident>, readings: Readings) -> Verdict {
    let verdict = kind.unwrap_or(VerdictKind::CannotSay);
    let worst =
        last.filter(|incident| incident.is_open() && incident.verdict == verdict).and_then(Incident::worst);
    let summary = worst.map_or_else(
        || match kind {
            Some(kind) => format!("the last verdict that was kept: {kind}"),
            None => "nothing was known of it at the end of this history".to_owned(),
        },
        |worst| worst.summary.clone(),
    );
    Verdict {
        verdict,
        cause: worst.and_then(|worst| worst.cause),
        summary,
        confidence: worst.map_or(Confidence::Low, |worst| worst.confidence),
        doubts: vec!["this is a history: it is as old as its end".to_owned()],
        utilisation: readings.utilisation,
        headroom: None,
        headroom_low: None,
        headroom_high: None,
        headroom_reason: None,
        binding: None,
        evidence: worst.map(|worst| worst.evidence.clone()).unwrap_or_default(),
        next_step: worst.map_or_else(
            || "headroom agent judges what happens now".to_owned(),
            |worst| worst.next_step.clone(),
        ),
        place: None,
    }
}
