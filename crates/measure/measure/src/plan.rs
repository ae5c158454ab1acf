use capability::Effort;
use std::time::Duration;
use workload::{Caching, Durability, Shape};

/// Scope and precision of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Time that it may take.
    pub effort: Effort,
    /// Whether the region may be written. Without writes there is no cost model.
    pub writes: bool,
    /// Direct, or buffered where direct I/O is unavailable.
    pub caching: Caching,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time of the whole measurement.
    pub time_max: Duration,
    /// Longest time of one point.
    pub point_time_max: Duration,
    /// A point ends when half the width of its 95 % interval is below this share of its mean.
    pub precision: f64,
    /// Highest N of a sweep.
    pub outstanding_max: u32,
}

const KIB: u32 = 1024;

impl Plan {
    /// The plan of an effort; everything is measured, directly.
    pub fn new(effort: Effort) -> Plan {
        let (time_s, point_ms, precision, outstanding_max) = match effort {
            Effort::Preliminary => (13, 500, 0.06, 256),
            Effort::Quick => (32, 1_000, 0.04, 256),
            Effort::Default => (75, 1_800, 0.025, 512),
            Effort::Thorough => (300, 6_000, 0.01, 1024),
        };
        Plan {
            effort,
            writes: true,
            caching: Caching::Direct,
            seed: 0,
            time_max: Duration::from_secs(time_s),
            point_time_max: Duration::from_millis(point_ms),
            precision,
            outstanding_max,
        }
    }

    pub(crate) fn shape(&self, shape: Shape) -> Shape {
        Shape { caching: self.caching, ..shape }
    }

    fn allowed(&self, shapes: Vec<(Shape, f64)>) -> Vec<(Shape, f64)> {
        let allowed = shapes.into_iter().filter(|(shape, _)| self.writes || !shape.writes());
        allowed.map(|(shape, weight)| (self.shape(shape), weight)).collect()
    }

    /// Shapes that are swept, each with its share of the time; reads first.
    pub(crate) fn curves(&self) -> Vec<(Shape, f64)> {
        let mut shapes = vec![(Shape::random_read(8 * KIB), 1.5)];
        if matches!(self.effort, Effort::Default | Effort::Thorough) {
            shapes.push((Shape::random_read(64 * KIB), 1.0));
            shapes.push((Shape::sequential_read(64 * KIB), 0.8));
        }
        shapes.push((Shape::sequential_read(512 * KIB), 0.8));
        shapes.push((Shape::random_read(8 * KIB).with_writes(30), 1.0));
        shapes.push((Shape::random_write(8 * KIB), 1.2));
        self.allowed(shapes)
    }

    /// One writer of a transaction log, one outstanding. Each write is durable ([`Shape::log_write`]), or it appends and
    /// syncs ([`Shape::log_append`]): what a commit waits for on this file system.
    pub(crate) fn log_shapes(&self, of_size: fn(u32) -> Shape) -> Vec<Shape> {
        let sizes = if self.writes { vec![4 * KIB, 60 * KIB] } else { Vec::new() };
        sizes.into_iter().map(of_size).collect()
    }

    /// Further shapes for the cost model, and whether they take part in the fit (or are held out).
    pub(crate) fn maxima(&self) -> Vec<(Shape, bool)> {
        if !self.writes {
            return Vec::new();
        }
        let random = |kib: u32, writes: u8| Shape::random_read(kib * KIB).with_writes(writes);
        let mut shapes = vec![(random(64, 100), true), (random(64, 30), true), (random(16, 50), false)];
        match self.effort {
            Effort::Preliminary | Effort::Quick => shapes.insert(0, (random(64, 0), true)),
            Effort::Default | Effort::Thorough => shapes.extend([
                (Shape::sequential_write(64 * KIB), true),
                (Shape::sequential_write(512 * KIB), true),
                (random(32, 0), false),
                (random(32, 100), false),
                (random(64, 50), false),
            ]),
        }
        shapes.into_iter().map(|(shape, fit)| (self.shape(shape), fit)).collect()
    }

    /// Time reserved for the maxima.
    pub(crate) fn maxima_time(&self) -> Duration {
        let points = self.maxima().len() + 2 * self.log_shapes(Shape::log_write).len();
        self.point_time_max.mul_f64(0.8) * points as u32
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.writes {
            remarks.push("read only: writes were not measured, so there is no cost model".into());
        }
        if self.caching == Caching::Buffered {
            remarks.push("buffered: what was measured includes the page cache, not the storage alone".into());
        }
        debug_assert!(self.curves().iter().all(|(shape, _)| shape.durability == Durability::Cached));
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_plan_writes_nothing() {
        for effort in [Effort::Quick, Effort::Default, Effort::Thorough] {
            let plan = Plan { writes: false, ..Plan::new(effort) };
            assert!(plan.curves().iter().all(|(shape, _)| !shape.writes()));
            assert!(plan.maxima().is_empty() && plan.log_shapes(Shape::log_write).is_empty());
        }
    }

    #[test]
    fn held_out_shapes_are_not_fitted() {
        for effort in [Effort::Quick, Effort::Default, Effort::Thorough] {
            let plan = Plan::new(effort);
            let maxima = plan.maxima();
            let fitted = |shape: &Shape| {
                plan.curves().iter().any(|(curve, _)| curve == shape)
                    || maxima.iter().any(|(other, fit)| *fit && other == shape)
            };
            assert!(maxima.iter().any(|(_, fit)| !fit));
            assert!(maxima.iter().filter(|(_, fit)| !fit).all(|(shape, _)| !fitted(shape)));
        }
    }
}
