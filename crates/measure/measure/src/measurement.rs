use crate::first::{self, Step};
use crate::point::{Carried, Pass, PointRun};
use crate::{MeasureError, MeasureProgress, MeasuredTarget, Plan, knee_context, sweep};
use capability::{
    Capability, Conditions, CostModel, Curve, Effort, Maximum, Origin, Point, StorageLimits, find_knee,
};
use std::ops::ControlFlow;
use workload::{Backend, Caching, Shape, TargetFacts};

/// The callback of a measurement: called about every 20 ms; its break ends the pass.
pub type Watch<'a> = &'a mut dyn FnMut(&MeasureProgress) -> ControlFlow<()>;

/// A measurement in two passes, between which the caller may do other things.
pub struct Measurement {
    plan: Plan,
    stage: Stage,
    began_unix_ns: u64,
    carried: Carried,
    curves: Vec<Curve>,
    /// Highest rates of shapes that have no curve.
    fitted: Vec<Maximum>,
    held_out: Vec<Maximum>,
    /// Of the pass that ran last.
    ran_on: Option<RanOn>,
}

/// How far a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Not all points are known that decide a first verdict.
    Begun,
    /// They are.
    Preliminary,
    /// All points of the plan are known.
    Complete,
}

/// Where a pass ran.
struct RanOn {
    facts: TargetFacts,
    region_bytes: u64,
    direct: bool,
    foreign_iops: Option<f64>,
}

impl Measurement {
    /// A measurement by that plan; nothing runs yet.
    pub fn new(plan: Plan) -> Measurement {
        Measurement {
            plan,
            stage: Stage::Begun,
            began_unix_ns: host::unix_ns(),
            carried: Carried::default(),
            curves: Vec::new(),
            fitted: Vec::new(),
            held_out: Vec::new(),
            ran_on: None,
        }
    }

    /// How far it is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Measures the points that decide a first verdict, in about 12 s. A break of `watch` ends it; what was measured is kept.
    ///
    /// # Errors
    /// Where the load cannot run.
    pub fn measure_first(
        &mut self,
        target: MeasuredTarget<'_>,
        watch: Watch<'_>,
    ) -> Result<(), MeasureError> {
        self.ran_on = Some(RanOn::new(target));
        let (plan, context) = (self.plan.clone(), knee_context(target.facts));
        let mut run = PointRun::new(target.region, &plan, Pass::FIRST, self.carried.clone(), watch);
        for step in first::steps(&plan) {
            match step {
                Step::Curve(shape) => {
                    let curve = first_curve(&mut run, &shape, &plan, &context)?;
                    self.replace(curve);
                }
                Step::LogWrite(shape) => {
                    let point = run.point(&shape, 1, first::POINT_TIME)?;
                    self.replace(single(shape, point));
                }
                Step::Append(shape) => {
                    let Some(log) = target.log else { continue };
                    let point = run.append(log, &shape, first::POINT_TIME)?;
                    self.replace(single(shape, point));
                }
                Step::Maximum(shape) => {
                    let point = run.point(&shape, saturating(&shape, &self.curves), first::POINT_TIME)?;
                    keep_maximum(&mut self.fitted, shape, &point);
                }
            }
            if run.stopped {
                break;
            }
        }
        if !run.stopped {
            self.stage = Stage::Preliminary;
        }
        self.carried = run.end();
        Ok(())
    }

    /// Measures all other points of the plan. Points of the first pass are kept where they are as precise as the plan wants and
    /// the region is the same. A break of `watch` ends it; what was measured is kept.
    ///
    /// # Errors
    /// Where the load cannot run.
    pub fn complete(&mut self, target: MeasuredTarget<'_>, watch: Watch<'_>) -> Result<(), MeasureError> {
        let same = self.ran_on.as_ref().is_some_and(|ran| ran.region_bytes == target.region.bytes);
        let foreign_iops = self.ran_on.as_ref().map_or(target.foreign_iops, |first| first.foreign_iops);
        let (plan, context) = (self.plan.clone(), knee_context(target.facts));
        let mut run = PointRun::new(target.region, &plan, Pass::WHOLE, self.carried.clone(), watch);
        self.measure_curves(&mut run, &plan, &context, same)?;
        if !run.stopped {
            self.measure_log(&mut run, &plan, target, same)?;
        }
        if !run.stopped {
            self.measure_maxima(&mut run, &plan)?;
        }
        let stopped = run.stopped;
        self.carried = run.end();
        if !stopped {
            self.stage = Stage::Complete;
            self.ran_on = Some(RanOn { foreign_iops, ..RanOn::new(target) });
        }
        Ok(())
    }

    fn measure_curves(
        &mut self,
        run: &mut PointRun,
        plan: &Plan,
        context: &StorageLimits,
        same: bool,
    ) -> Result<(), MeasureError> {
        let shapes = plan.curves();
        let mut weight_left: f64 = shapes.iter().map(|(_, weight)| weight).sum();
        for (shape, weight) in shapes {
            let allotted = run.time_left().saturating_sub(plan.maxima_time()).mul_f64(weight / weight_left);
            weight_left -= weight;
            let known = if same { self.known_points(&shape) } else { Vec::new() };
            let curve = sweep::curve(run, &shape, plan, context, (allotted, &known))?;
            // Half a sweep says less than a whole first curve.
            let has_first = self.curves.iter().any(|first| first.workload == shape);
            if !(run.stopped && has_first) {
                self.replace(curve);
            }
            if run.stopped {
                break;
            }
        }
        Ok(())
    }

    fn measure_log(
        &mut self,
        run: &mut PointRun,
        plan: &Plan,
        target: MeasuredTarget<'_>,
        same: bool,
    ) -> Result<(), MeasureError> {
        let writes = plan.log_shapes(Shape::log_write).into_iter().map(|shape| (plan.shape(shape), None));
        let appends = plan.log_shapes(Shape::log_append).into_iter();
        let appends = appends.filter_map(|shape| Some((shape, Some(target.log?))));
        for (shape, log) in writes.chain(appends) {
            if same && !self.known_points(&shape).is_empty() {
                continue;
            }
            let point = match log {
                None => run.point(&shape, 1, plan.point_time_max)?,
                Some(log) => run.append(log, &shape, plan.point_time_max)?,
            };
            self.replace(single(shape, point));
            if run.stopped {
                break;
            }
        }
        Ok(())
    }

    /// The highest rates for the cost model, one point each: of shapes that it is fitted to, and of those kept out of the fit to
    /// test it.
    fn measure_maxima(&mut self, run: &mut PointRun, plan: &Plan) -> Result<(), MeasureError> {
        let shapes = plan.maxima();
        let mut left = shapes.len() as u32;
        for (shape, fit) in shapes {
            let time_max = (run.time_left() / left).min(plan.point_time_max);
            left -= 1;
            let point = run.point(&shape, saturating(&shape, &self.curves), time_max)?;
            keep_maximum(if fit { &mut self.fitted } else { &mut self.held_out }, shape, &point);
            if run.stopped {
                break;
            }
        }
        Ok(())
    }

    /// Points of a shape that are precise enough.
    fn known_points(&self, shape: &Shape) -> Vec<Point> {
        let curve = self.curves.iter().find(|curve| curve.workload == *shape);
        let points = curve.into_iter().flat_map(|curve| &curve.points);
        points.filter(|point| first::is_as_good(point, &self.plan)).cloned().collect()
    }

    /// Keeps a curve in the place of the one of its shape. Without a point there is none.
    fn replace(&mut self, curve: Curve) {
        if curve.points.is_empty() {
            return;
        }
        match self.curves.iter_mut().find(|other| other.workload == curve.workload) {
            Some(other) => *other = curve,
            None => self.curves.push(curve),
        }
    }

    /// Returns the capability as known by now. It is complete, or its effort is [`Effort::Preliminary`], or it was ended before
    /// its first verdict could be given, which its remarks say.
    ///
    /// # Errors
    /// [`MeasureError::Nothing`] before the first point is known.
    pub fn capability(&self) -> Result<Capability, MeasureError> {
        let ran_on = self.ran_on.as_ref().filter(|_| !self.curves.is_empty()).ok_or(MeasureError::Nothing)?;
        let mut remarks = self.plan.remarks();
        let mut cost_model = None;
        if self.stage > Stage::Begun {
            match CostModel::fit(&self.maxima(), &self.held_out) {
                Ok(model) => cost_model = Some(model),
                Err(error) => remarks.push(error.to_string()),
            }
        }
        remarks.extend(match self.stage {
            Stage::Begun => Some("ended early by the user: the later curves are missing".to_owned()),
            Stage::Preliminary => Some(PRELIMINARY.to_owned()),
            Stage::Complete => None,
        });
        let failed: u64 = self.curves.iter().flat_map(|curve| &curve.points).map(|point| point.failed).sum();
        if failed > 0 {
            remarks.push(format!("{failed} I/Os failed during the measurement"));
        }
        remarks.extend(self.carried.stopped.remark());
        remarks.extend(self.carried.changes.iter().map(ToString::to_string));
        let direct = ran_on.direct && self.plan.caching == Caching::Direct;
        Ok(Capability {
            target: ran_on.facts.clone(),
            measured_unix_ns: self.began_unix_ns,
            conditions: Conditions {
                headroom_version: env!("CARGO_PKG_VERSION").into(),
                kernel: host::release(),
                backend: self.carried.backend.unwrap_or(Backend::IoUring),
                caching: if direct { Caching::Direct } else { Caching::Buffered },
                region_bytes: ran_on.region_bytes,
                foreign_iops: ran_on.foreign_iops,
                took_s: self.carried.spent.as_secs_f64(),
                effort: if self.stage == Stage::Preliminary { Effort::Preliminary } else { self.plan.effort },
                remarks,
                target_changes: self.carried.changes.clone(),
            },
            curves: self.in_order(),
            cost_model,
            origin: Origin::Measured,
        })
    }

    /// The highest rates that the cost model is fitted to.
    fn maxima(&self) -> Vec<Maximum> {
        let of_curves = self.curves.iter().filter_map(|curve| {
            let knee = curve.knee.as_ref()?;
            let (low, high) = knee.iops_interval;
            Some(Maximum { workload: curve.workload, iops: knee.iops, iops_half_width: (high - low) / 2.0 })
        });
        let of_curves: Vec<Maximum> = of_curves.collect();
        let has_curve = |shape: &Shape| of_curves.iter().any(|max| max.workload == *shape);
        let single = self.fitted.iter().filter(|max| !has_curve(&max.workload)).copied();
        of_curves.iter().copied().chain(single).collect()
    }

    /// The curves as the plan lists them, then those of one point, writes before appends.
    fn in_order(&self) -> Vec<Curve> {
        let plan = &self.plan;
        let swept = plan.curves().into_iter().map(|(shape, _)| shape);
        let log = plan.log_shapes(Shape::log_write).into_iter().map(|shape| plan.shape(shape));
        let order: Vec<Shape> = swept.chain(log).chain(plan.log_shapes(Shape::log_append)).collect();
        let place = |curve: &Curve| order.iter().position(|shape| *shape == curve.workload);
        let mut curves = self.curves.clone();
        curves.sort_by_key(|curve| place(curve).unwrap_or(order.len()));
        curves
    }
}

/// Remark of every preliminary capability.
const PRELIMINARY: &str =
    "preliminary: only the points that decide a first verdict were measured, and its intervals are wider";

impl RanOn {
    fn new(target: MeasuredTarget<'_>) -> RanOn {
        RanOn {
            facts: target.facts.clone(),
            region_bytes: target.region.bytes,
            direct: target.region.direct,
            foreign_iops: target.foreign_iops,
        }
    }
}

fn first_curve(
    run: &mut PointRun,
    shape: &Shape,
    plan: &Plan,
    context: &StorageLimits,
) -> Result<Curve, MeasureError> {
    let mut points = Vec::new();
    while let Some(outstanding) = first::next_step(&points, shape, plan.outstanding_max, context) {
        let point = run.point(shape, outstanding, first::POINT_TIME)?;
        if point.ios == 0 {
            break;
        }
        sweep::insert(&mut points, point);
        if run.stopped {
            break;
        }
    }
    let knee = find_knee(shape, &points, context);
    Ok(Curve { workload: *shape, points, knee })
}

/// A curve of one point; without a completed I/O of none.
fn single(shape: Shape, point: Point) -> Curve {
    let points = if point.ios > 0 { vec![point] } else { Vec::new() };
    Curve { workload: shape, points, knee: None }
}

/// Keeps the highest rate of a shape in the place of the one known before. Without a completed I/O there is none.
fn keep_maximum(list: &mut Vec<Maximum>, shape: Shape, point: &Point) {
    if point.ios == 0 {
        return;
    }
    list.retain(|known| known.workload != shape);
    list.push(Maximum { workload: shape, iops: point.iops, iops_half_width: point.iops_half_width });
}

/// An N that saturates a shape: twice what the most similar curve needed for its full throughput.
fn saturating(shape: &Shape, curves: &[Curve]) -> u32 {
    let knees = curves.iter().filter_map(|curve| curve.knee.as_ref().map(|knee| (curve.workload, knee)));
    let nearest = knees.min_by_key(|(other, _)| {
        (other.write_percent.abs_diff(shape.write_percent), other.block_bytes.abs_diff(shape.block_bytes))
    });
    nearest.map_or(32, |(_, knee)| (2 * knee.outstanding_full).clamp(8, 256))
}
