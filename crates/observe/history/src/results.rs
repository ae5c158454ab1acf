//! Capabilities and verdicts: plain columns to query by, and the whole value as JSON. (`runs.rs` has the runs.)

use crate::clock::latest_unix_ns;
use crate::exact::{Exact, Json, Word};
use crate::statements::insert;
use crate::{EntryKind, Error, History};
use capability::{Capability, Curve, KneeReason};
use host::unix_ns;
use rusqlite::named_params;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt;
use verdict::Verdict;
use workload::{TargetFacts, format_count};

/// The number of a run, a capability or a verdict; each kind counts for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultId(pub i64);

impl History {
    /// Keeps a capability.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_capability(&mut self, capability: &Capability) -> Result<ResultId, Error> {
        let json = storable(EntryKind::Capability, capability)?;
        let device = capability.target.devices.first();
        let iops_max = capability.curves.iter().filter_map(Curve::iops_max).max_by(f64::total_cmp);
        let saved = self.execute("save a capability", |connection| {
            insert(
                connection,
                "capabilities",
                &[
                    ("measured_unix_ns", &Exact(capability.measured_unix_ns)),
                    ("target", &capability.target.path),
                    ("mount", &capability.target.mount),
                    ("device_number", &device.map(|device| &device.number)),
                    ("device_name", &device.map(|device| &device.name)),
                    ("device_bytes", &device.map(|device| Exact(device.size_bytes))),
                    ("backing_file", &device.and_then(|device| device.backing_file.as_ref())),
                    ("iops_max", &iops_max),
                    ("summary", &summary_of(capability)),
                    ("json", &json),
                ],
            )
        });
        saved.map(ResultId)
    }

    /// A capability.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn capability(&self, id: ResultId) -> Result<Capability, Error> {
        self.value(EntryKind::Capability, "SELECT json FROM capabilities WHERE id = ?", id)
    }

    /// The best known result for the storage that the target is on: the newest measured there, else the newest borrowed, else
    /// the newest declared. A preliminary measurement counts only where there is no whole one. Same mount, and same top device
    /// by number, name, size and backing file, because after a restart another device may have the number. Without any device
    /// and mount to compare, the target must have the same path.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn latest_capability(&self, target: &TargetFacts) -> Result<Option<(ResultId, Capability)>, Error> {
        Ok(self.known_capabilities(target)?.into_iter().next())
    }

    /// The newest capability of each origin, the best known first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn known_capabilities(&self, target: &TargetFacts) -> Result<Vec<(ResultId, Capability)>, Error> {
        // Results of earlier versions have no origin: they were measured.
        let query = "WITH of_storage AS (SELECT id, json, measured_unix_ns, \
             coalesce(json_extract(json, '$.origin'), 'measured') AS origin, \
             json_extract(json, '$.conditions.effort') IS 'preliminary' AS preliminary FROM capabilities \
             WHERE mount IS :mount \
             AND device_number IS :device_number AND device_name IS :device_name \
             AND device_bytes IS :device_bytes AND backing_file IS :backing_file \
             AND (device_number IS NOT NULL OR mount IS NOT NULL OR target = :target)), \
             ranked AS (SELECT *, row_number() OVER (PARTITION BY origin ORDER BY preliminary, measured_unix_ns > :latest, \
             measured_unix_ns DESC, id DESC) AS age \
             FROM of_storage) \
             SELECT id, json FROM ranked WHERE age = 1 ORDER BY CASE origin \
             WHEN 'measured' THEN 0 WHEN 'gentle' THEN 1 WHEN 'borrowed' THEN 2 ELSE 3 END";
        let device = target.devices.first();
        let values = named_params! {
            ":mount": target.mount,
            ":device_number": device.map(|device| &device.number),
            ":device_name": device.map(|device| &device.name),
            ":device_bytes": device.map(|device| Exact(device.size_bytes)),
            ":backing_file": device.and_then(|device| device.backing_file.as_ref()),
            ":target": target.path,
            ":latest": Exact(latest_unix_ns()),
        };
        self.rows("look for a capability", query, values, |row| {
            let Json(capability) = row.get(1)?;
            Ok((ResultId(row.get(0)?), capability))
        })
    }

    /// The newest capability of each storage, as [`History::latest_capability`] distinguishes it; the newest first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn newest_capabilities(&self, limit: usize) -> Result<Vec<Capability>, Error> {
        let query = "WITH ranked AS (SELECT id, json, measured_unix_ns, row_number() OVER (\
             PARTITION BY mount, device_number, device_name, device_bytes, backing_file, \
             iif(device_number IS NULL AND mount IS NULL, target, NULL) \
             ORDER BY json_extract(json, '$.conditions.effort') IS 'preliminary', id DESC) AS age FROM capabilities) \
             SELECT json FROM ranked WHERE age = 1 ORDER BY measured_unix_ns > ?, measured_unix_ns DESC, id DESC LIMIT ?";
        self.rows("list capabilities", query, (Exact(latest_unix_ns()), limit as i64), |row| {
            row.get(0).map(|Json(one)| one)
        })
    }

    /// Keeps a verdict with its whole report, at the current time.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_verdict(
        &mut self,
        verdict: &Verdict,
        target: &str,
        source: &str,
        report_json: &serde_json::Value,
    ) -> Result<ResultId, Error> {
        let json = storable(EntryKind::Verdict, verdict)?;
        let saved = self.execute("save a verdict", |connection| {
            insert(
                connection,
                "verdicts",
                &[
                    ("judged_unix_ns", &Exact(unix_ns())),
                    ("target", &target),
                    ("source", &source),
                    ("verdict", &Word(verdict.verdict)),
                    ("confidence", &Word(verdict.confidence)),
                    ("utilisation", &verdict.utilisation),
                    ("headroom", &verdict.headroom),
                    ("summary", &verdict.summary),
                    ("json", &json),
                    ("report", &Json(report_json)),
                ],
            )
        });
        saved.map(ResultId)
    }

    /// A verdict.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn verdict(&self, id: ResultId) -> Result<Verdict, Error> {
        self.value(EntryKind::Verdict, "SELECT json FROM verdicts WHERE id = ?", id)
    }

    pub(crate) fn value<T: DeserializeOwned>(
        &self,
        kind: EntryKind,
        query: &str,
        id: ResultId,
    ) -> Result<T, Error> {
        let found =
            self.first_row("read a result", query, [id.0], |row| row.get(0).map(|Json(value)| value))?;
        found.ok_or_else(|| self.not_found(kind, id.0))
    }
}

/// The JSON of a value, checked to read back as the value: JSON has no infinity and no NaN.
pub(crate) fn storable<T: Serialize + DeserializeOwned>(kind: EntryKind, value: &T) -> Result<String, Error> {
    let not_storable = |source| Error::NotStorable { kind, source };
    let text = serde_json::to_string(value).map_err(not_storable)?;
    serde_json::from_str::<T>(&text).map_err(not_storable)?;
    Ok(text)
}

fn summary_of(capability: &Capability) -> String {
    let summary = summary_of_curves(capability);
    if capability.is_preliminary() {
        format!("{}: {summary}", capability.conditions.effort)
    } else if capability.origin.is_measured() {
        summary
    } else {
        format!("{}: {summary}", capability.origin)
    }
}

fn summary_of_curves(capability: &Capability) -> String {
    let knee = capability.curves.iter().find_map(|curve| Some((curve.workload, curve.knee.as_ref()?)));
    match knee {
        Some((shape, knee)) if knee.reason == KneeReason::NotReached => {
            format!("at least {} IOPS, knee not reached; {shape}", format_count(knee.iops.round() as u64))
        }
        Some((shape, knee)) => {
            let iops = format_count(knee.iops.round() as u64);
            format!("{iops} IOPS, knee at {:.0} outstanding; {shape}", knee.outstanding)
        }
        None => format!("{} curves, no knee", capability.curves.len()),
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
