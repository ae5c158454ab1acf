//! The points of each kind of family: what is unknown has none.

use super::labels::curve_name;
use super::state::{AgentState, DeviceState, Latency, ProcessState, SourceState, SubjectState};
use crate::pushed::Dropped;
use capability::{Capability, Curve, Demand};
use incidents::Subject;
use verdict::VerdictKind;

/// The labels' values and the value of each series.
pub(super) type Points = Vec<(Vec<String>, f64)>;

impl AgentState {
    pub(super) fn of_process(&self, figure: fn(&ProcessState) -> f64) -> Points {
        self.process.iter().map(|own| (Vec::new(), figure(own))).collect()
    }

    pub(super) fn verdicts(&self) -> Points {
        let all = self.subjects.iter().flat_map(|(subject, state)| {
            VerdictKind::ALL.iter().map(move |kind| {
                let labels = vec![subject.mount.clone(), subject.database.clone(), kind.word().to_owned()];
                (labels, f64::from(u8::from(*kind == state.verdict)))
            })
        });
        all.collect()
    }

    pub(super) fn verdicts_since(&self) -> Points {
        let point = |(subject, state): (&Subject, &SubjectState)| {
            let labels =
                vec![subject.mount.clone(), subject.database.clone(), state.verdict.word().to_owned()];
            (labels, seconds(state.since_unix_ns as f64))
        };
        self.subjects.iter().map(point).collect()
    }

    pub(super) fn of_subjects(&self, value: fn(&SubjectState) -> Option<f64>) -> Points {
        let known = self.subjects.iter().filter_map(|(subject, state)| {
            Some((vec![subject.mount.clone(), subject.database.clone()], value(state)?))
        });
        known.collect()
    }

    pub(super) fn of_operations(&self, ns: fn(&Latency) -> Option<f64>) -> Points {
        let all = self.subjects.iter().flat_map(|(subject, state)| {
            [("read", state.read), ("commit", state.commit)].map(|(op, latency)| (subject, op, latency))
        });
        let known = all.filter_map(|(subject, op, latency)| {
            let labels = vec![subject.mount.clone(), subject.database.clone(), op.into()];
            Some((labels, seconds(ns(&latency)?)))
        });
        known.collect()
    }

    /// Of what has curves: what was only seen has none.
    pub(super) fn of_known(&self, value: fn(&Capability) -> f64) -> Points {
        let known = self.capabilities.iter().filter(|(_, known)| !known.curves.is_empty());
        known.map(|(mount, known)| (vec![mount.clone(), known.origin.to_string()], value(known))).collect()
    }

    pub(super) fn of_curves(&self, value: fn(&Curve) -> Option<f64>) -> Points {
        let curves = self
            .capabilities
            .iter()
            .flat_map(|(mount, known)| known.curves.iter().map(move |curve| (mount, curve)));
        let known = curves.filter_map(|(mount, curve)| {
            Some((vec![mount.clone(), curve_name(&curve.workload)], value(curve)?))
        });
        known.collect()
    }

    pub(super) fn of_points(&self, value: fn(&capability::Point) -> f64) -> Points {
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

    pub(super) fn of_flows(&self, ns: fn(&Demand) -> f64) -> Points {
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

    pub(super) fn of_devices(&self, value: fn(&DeviceState) -> f64) -> Points {
        let all = self
            .devices
            .iter()
            .map(|(mount, state)| (vec![mount.clone(), state.device.clone()], value(state)));
        all.collect()
    }

    pub(super) fn bindings(&self) -> Points {
        let known = self.subjects.iter().filter_map(|(subject, state)| {
            let resource = state.binding?.to_string().replace(' ', "-");
            Some((vec![subject.mount.clone(), subject.database.clone(), resource], 1.0))
        });
        known.collect()
    }

    pub(super) fn sharings(&self) -> Points {
        let models =
            self.capabilities.iter().filter_map(|(mount, known)| Some((mount, known.cost_model.as_ref()?)));
        let sharings = models.flat_map(|(mount, model)| {
            [("operations", model.sharing.fixed), ("bytes", model.sharing.bytes)]
                .map(|(part, share)| (vec![mount.clone(), part.into()], share))
        });
        sharings.collect()
    }

    pub(super) fn of_sources(&self, value: fn(&SourceState) -> Option<f64>) -> Points {
        let known =
            self.sources.iter().filter_map(|(source, state)| Some((vec![source.clone()], value(state)?)));
        known.collect()
    }

    pub(super) fn dropped_pushes(&self) -> Points {
        let point = |((to, reason), count): (&(String, Dropped), &u64)| {
            (vec![to.clone(), reason.to_string()], *count as f64)
        };
        self.pushes_dropped.iter().map(point).collect()
    }
}

pub(super) fn seconds(ns: f64) -> f64 {
    ns / 1e9
}
