//! The points of each kind of family: an unknown value has none.

use super::labels::{curve_name, layer};
use super::state::{AgentState, DeviceState, Latency, ProcessState, SourceState, SubjectState};
use crate::families::Histogram;
use crate::pushed::Dropped;
use capability::{Capability, Curve, Demand};
use filestats::{FileClass, FileTotals, OpTotals};
use incidents::Subject;
use verdict::VerdictKind;
use workload::CapKind;

/// The labels' values and the value of each series.
pub(super) type Gauges = Vec<(Vec<String>, f64)>;
/// The labels' values, the value of each series, and the time when it was zero, nanoseconds since 1970, where known.
pub(super) type Counters = Vec<(Vec<String>, f64, Option<u64>)>;
/// As of [`Counters`], with histograms.
pub(super) type Histograms = Vec<(Vec<String>, Histogram, Option<u64>)>;

/// Operations on files, by the word for them.
type FileOp = (&'static str, fn(&FileTotals) -> Option<&OpTotals>);
/// Those with bytes.
pub(super) const TRANSFERS: &[FileOp] =
    &[("read", |files| Some(&files.read)), ("write", |files| Some(&files.write))];
/// All of them.
pub(super) const FILE_OPS: &[FileOp] = &[TRANSFERS[0], TRANSFERS[1], ("sync", |files| files.sync.as_ref())];

impl AgentState {
    pub(super) fn of_process(&self, figure: fn(&ProcessState) -> f64) -> Gauges {
        self.process.iter().map(|own| (Vec::new(), figure(own))).collect()
    }

    pub(super) fn verdicts(&self) -> Gauges {
        let all = self.subjects.iter().flat_map(|(subject, state)| {
            VerdictKind::ALL.iter().map(move |kind| {
                let labels = vec![subject.mount.clone(), subject.database.clone(), kind.word().to_owned()];
                (labels, f64::from(u8::from(*kind == state.verdict)))
            })
        });
        all.collect()
    }

    pub(super) fn verdicts_since(&self) -> Gauges {
        let point = |(subject, state): (&Subject, &SubjectState)| {
            let labels =
                vec![subject.mount.clone(), subject.database.clone(), state.verdict.word().to_owned()];
            (labels, seconds(state.since_unix_ns as f64))
        };
        self.subjects.iter().map(point).collect()
    }

    pub(super) fn of_subjects(&self, value: fn(&SubjectState) -> Option<f64>) -> Gauges {
        let known = self.subjects.iter().filter_map(|(subject, state)| {
            Some((vec![subject.mount.clone(), subject.database.clone()], value(state)?))
        });
        known.collect()
    }

    pub(super) fn of_operations(&self, ns: fn(&Latency) -> Option<f64>) -> Gauges {
        let all = self.subjects.iter().flat_map(|(subject, state)| {
            [("read", state.read), ("commit", state.commit)].map(|(op, latency)| (subject, op, latency))
        });
        let known = all.filter_map(|(subject, op, latency)| {
            let labels = vec![subject.mount.clone(), subject.database.clone(), op.into()];
            Some((labels, seconds(ns(&latency)?)))
        });
        known.collect()
    }

    /// Of storages with curves: one that was only observed has none.
    pub(super) fn of_known(&self, value: fn(&Capability) -> f64) -> Gauges {
        let known = self.capabilities.iter().filter(|(_, known)| !known.curves.is_empty());
        known.map(|(mount, known)| (vec![mount.clone(), known.origin.to_string()], value(known))).collect()
    }

    pub(super) fn of_curves(&self, value: fn(&Curve) -> Option<f64>) -> Gauges {
        let curves = self
            .capabilities
            .iter()
            .flat_map(|(mount, known)| known.curves.iter().map(move |curve| (mount, curve)));
        let known = curves.filter_map(|(mount, curve)| {
            Some((vec![mount.clone(), curve_name(&curve.workload)], value(curve)?))
        });
        known.collect()
    }

    pub(super) fn of_points(&self, value: fn(&capability::Point) -> f64) -> Gauges {
        let curves = self
            .capabilities
            .iter()
            .flat_map(|(mount, known)| known.curves.iter().map(move |curve| (mount, curve)));
        let points = curves.flat_map(|(mount, curve)| {
            let name = curve_name(&curve.workload);
            curve.points.iter().map(move |point| {
                (vec![mount.clone(), name.clone(), point.outstanding.to_string()], value(point))
            })
        });
        points.collect()
    }

    pub(super) fn of_flows(&self, ns: fn(&Demand) -> f64) -> Gauges {
        let models =
            self.capabilities.iter().filter_map(|(mount, known)| Some((mount, known.cost_model.as_ref()?)));
        let flows = models.flat_map(|(mount, model)| {
            [
                ("read", "random", &model.read_random),
                ("read", "sequential", &model.read_sequential),
                ("write", "random", &model.write_random),
                ("write", "sequential", &model.write_sequential),
            ]
            .map(|(op, pattern, demand)| {
                (vec![mount.clone(), op.into(), pattern.into()], seconds(ns(demand)))
            })
        });
        flows.collect()
    }

    /// The kernel's counters are older than the agent.
    pub(super) fn of_devices(&self, value: fn(&DeviceState) -> Option<f64>) -> Counters {
        let known = self.devices.iter().filter_map(|(mount, state)| {
            Some((vec![mount.clone(), state.device.clone()], value(state)?, None))
        });
        known.collect()
    }

    pub(super) fn devices_below(&self) -> Gauges {
        let below = self.devices.iter().flat_map(|(mount, state)| {
            // One that lies on no other has a series too.
            let none = state.parents.is_empty().then(String::new);
            let parents = state.parents.iter().cloned().chain(none);
            parents.map(|parent| (vec![mount.clone(), state.device.clone(), state.kind.clone(), parent], 1.0))
        });
        below.collect()
    }

    /// The limits of these two kinds, of reads and of writes.
    pub(super) fn caps(&self, kinds: [CapKind; 2]) -> Gauges {
        let known = self.subjects.iter().flat_map(|(subject, state)| {
            ["read", "write"].into_iter().zip(kinds).filter_map(move |(op, kind)| {
                let labels = vec![subject.mount.clone(), subject.database.clone(), op.to_owned()];
                Some((labels, *state.caps.get(&kind)? as f64))
            })
        });
        known.collect()
    }

    pub(super) fn bindings(&self) -> Gauges {
        let known = self.subjects.iter().filter_map(|(subject, state)| {
            let resource = state.binding?.to_string().replace(' ', "-");
            Some((vec![subject.mount.clone(), subject.database.clone(), resource], 1.0))
        });
        known.collect()
    }

    pub(super) fn sharings(&self) -> Gauges {
        let models =
            self.capabilities.iter().filter_map(|(mount, known)| Some((mount, known.cost_model.as_ref()?)));
        let sharings = models.flat_map(|(mount, model)| {
            [("operations", model.sharing.fixed), ("bytes", model.sharing.bytes)]
                .map(|(part, share)| (vec![mount.clone(), part.into()], share))
        });
        sharings.collect()
    }

    pub(super) fn of_sources(&self, value: fn(&SourceState) -> Option<f64>) -> Gauges {
        let known =
            self.sources.iter().filter_map(|(source, state)| Some((vec![source.clone()], value(state)?)));
        known.collect()
    }

    pub(super) fn source_failures(&self) -> Counters {
        let counter = |(source, state): (&String, &SourceState)| {
            (vec![source.clone()], state.failures as f64, Some(state.since_unix_ns))
        };
        self.sources.iter().map(counter).collect()
    }

    /// Each class of files of each source, with its labels but the operation's.
    fn file_classes(&self) -> impl Iterator<Item = ([String; 4], &FileTotals)> {
        self.sources.iter().flat_map(|(source, state)| {
            state.totals.files.iter().flat_map(move |(mount, classes)| {
                classes.iter().map(move |(class, totals): (&FileClass, &FileTotals)| {
                    let labels =
                        [mount.clone(), source.clone(), class.kind.to_string(), layer(*class).to_owned()];
                    (labels, totals)
                })
            })
        })
    }

    pub(super) fn of_files(&self, ops: &[FileOp], value: fn(&OpTotals) -> Option<f64>) -> Counters {
        let known = self.file_classes().flat_map(|(labels, totals)| {
            ops.iter().filter_map(move |(op, part)| {
                let labels = labels.iter().cloned().chain([(*op).to_owned()]).collect();
                Some((labels, value(part(totals)?)?, Some(totals.since_unix_ns)))
            })
        });
        known.collect()
    }

    pub(super) fn file_latencies(&self) -> Histograms {
        let known = self.file_classes().flat_map(|(labels, totals)| {
            FILE_OPS.iter().filter_map(move |(op, part)| {
                let latencies = part(totals)?.latencies.as_ref()?;
                let labels = labels.iter().cloned().chain([(*op).to_owned()]).collect();
                Some((labels, Histogram::new(latencies), Some(latencies.since_unix_ns)))
            })
        });
        known.collect()
    }

    pub(super) fn waits(&self) -> Counters {
        let all = self.sources.iter().flat_map(|(source, state)| {
            state.totals.waits.iter().map(move |(class, wait)| {
                let labels = vec![source.clone(), class.word().to_owned()];
                (labels, seconds(wait.time_ns as f64), Some(wait.since_unix_ns))
            })
        });
        all.collect()
    }

    pub(super) fn dropped_pushes(&self) -> Counters {
        let since = self.started_unix_ns();
        let point = |((to, reason), count): (&(String, Dropped), &u64)| {
            (vec![to.clone(), reason.to_string()], *count as f64, since)
        };
        self.pushes_dropped.iter().map(point).collect()
    }

    pub(super) fn processor_time(&self) -> Counters {
        self.process.iter().map(|own| (Vec::new(), own.cpu_s, self.started_unix_ns())).collect()
    }

    fn started_unix_ns(&self) -> Option<u64> {
        self.process.as_ref().map(|own| (own.started_unix_s * 1e9) as u64)
    }
}

pub(super) fn seconds(ns: f64) -> f64 {
    ns / 1e9
}
