use crate::Point;
use crate::limits::{METERED_SPREAD_MAX, THREAD_BUSY_MIN};
use serde::{Deserialize, Serialize};
use workload::{Cap, CapKind, Shape};

/// Why a curve saturates where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KneeReason {
    /// The storage itself is busy.
    Device,
    /// A rate limit of a cgroup, a hypervisor or a cloud volume.
    Cap,
    /// The kernel lets no more requests through to the device.
    KernelQueue,
    /// Our own load threads ran out of CPU: the storage may give more.
    Client,
    /// It had not saturated where the sweep ended.
    NotReached,
}

/// Where a curve saturates: the crossing of its two asymptotes, N* = Xmax x R0.
///
/// Left of it throughput grows with N and latency stays near R0; right of it throughput stays at Xmax and
/// latency grows with N.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knee {
    /// N*, in outstanding I/Os. A lower bound if the reason is `not-reached`.
    pub outstanding: f64,
    /// Xmax, I/Os a second.
    pub iops: f64,
    /// Lower end of the 95 % confidence interval of `outstanding`.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Lower and upper end of the 95 % confidence interval of `iops`.
    pub iops_interval: (f64, f64),
    /// R0, the mean latency with nothing in the way, nanoseconds.
    pub latency_ns_floor: f64,
    /// The smallest measured N that gives at least 95 % of Xmax.
    pub outstanding_full: u32,
    /// How far the points stray above the bounds X(N) <= min(N / R0, Xmax), as a share: near 0 when the
    /// model holds.
    pub above_bounds: f64,
    /// Why it saturates.
    pub reason: KneeReason,
    /// The evidence for the reason, for people.
    pub why: String,
}

/// Limits of throughput outside the device: they name the reason of a knee.
#[derive(Clone, Debug, Default)]
pub struct StorageLimits {
    /// Throttles found on the device chain.
    pub caps: Vec<Cap>,
    /// Requests that the kernel lets through to the device at once, all hardware queues together.
    pub requests_max: Option<u32>,
}

/// A point belongs to the plateau from this share of the highest throughput on.
const PLATEAU_SHARE: f64 = 0.95;
/// A point may reach the plateau by its interval, of which no more than this share of its throughput counts.
const DOUBT_SHARE_MAX: f64 = 0.1;

/// Finds the knee of a curve's points (by rising N); `None` with fewer than two of them.
pub fn find_knee(shape: &Shape, points: &[Point], limits: &StorageLimits) -> Option<Knee> {
    if points.len() < 2 {
        return None;
    }
    let floor = points.iter().min_by(|a, b| a.latency_ns.total_cmp(&b.latency_ns))?;
    let iops_best = points.iter().map(|point| point.iops).max_by(f64::total_cmp)?;
    if floor.latency_ns <= 0.0 || iops_best <= 0.0 {
        return None;
    }
    let plateau = Plateau::find(points, iops_best);
    let (iops, half_width) = plateau.mean_iops();
    let outstanding = iops * floor.latency_ns / 1e9;
    // At a fixed N latency is N / X, so that both have the same relative error.
    let relative = (half_width / iops).hypot(floor.iops_half_width / floor.iops);
    let above_bounds = points
        .iter()
        .map(|point| point.iops / (f64::from(point.outstanding) * 1e9 / floor.latency_ns).min(iops) - 1.0)
        .fold(0.0, f64::max);
    let (reason, why) = reason(shape, &plateau, outstanding, limits);
    Some(Knee {
        outstanding,
        iops,
        low: outstanding * (1.0 - relative).max(0.0),
        high: outstanding * (1.0 + relative),
        iops_interval: (iops - half_width, iops + half_width),
        latency_ns_floor: floor.latency_ns,
        outstanding_full: points.iter().find(|point| point.iops >= 0.95 * iops)?.outstanding,
        above_bounds,
        reason,
        why,
    })
}

/// Names the reason of a knee with its evidence: the first check that holds.
fn reason(
    shape: &Shape,
    plateau: &Plateau<'_>,
    outstanding: f64,
    limits: &StorageLimits,
) -> (KneeReason, String) {
    let checks = [
        (KneeReason::NotReached, plateau.still_rises()),
        (KneeReason::Cap, plateau.known_cap(shape, &limits.caps)),
        (KneeReason::Client, plateau.busy_client()),
        (KneeReason::Cap, plateau.token_bucket()),
        (KneeReason::Cap, plateau.metered()),
        (KneeReason::KernelQueue, plateau.kernel_queue(outstanding, limits.requests_max)),
    ];
    let found = checks.into_iter().find_map(|(reason, why)| Some((reason, why?)));
    found.unwrap_or_else(|| (KneeReason::Device, plateau.busy_device()))
}

/// The points of a curve that reach the highest throughput.
struct Plateau<'a> {
    points: Vec<&'a Point>,
    first: &'a Point,
    last: &'a Point,
    /// The last point of the whole curve.
    end: &'a Point,
    iops_high: f64,
    /// Highest less lowest throughput, as a share of the highest.
    spread: f64,
}

impl<'a> Plateau<'a> {
    /// The points within [`PLATEAU_SHARE`] of the best throughput, as far as their intervals allow.
    fn find(all: &'a [Point], iops_best: f64) -> Plateau<'a> {
        let reaches = |point: &&Point| {
            point.iops + point.iops_half_width.min(DOUBT_SHARE_MAX * point.iops) >= PLATEAU_SHARE * iops_best
        };
        let points: Vec<&Point> = all.iter().filter(reaches).collect();
        let iops_low = points.iter().map(|point| point.iops).fold(f64::MAX, f64::min);
        let iops_high = points.iter().map(|point| point.iops).fold(f64::MIN, f64::max);
        Plateau {
            first: points[0],
            last: points[points.len() - 1],
            end: &all[all.len() - 1],
            iops_high,
            spread: (iops_high - iops_low) / iops_high,
            points,
        }
    }

    /// Mean throughput and half the width of its interval; points are weighted by their inverse variance.
    fn mean_iops(&self) -> (f64, f64) {
        let weight = |point: &Point| point.iops_half_width.max(0.005 * point.iops).powi(-2);
        let weights: f64 = self.points.iter().map(|point| weight(point)).sum();
        let mean = |value: &dyn Fn(&Point) -> f64| {
            self.points.iter().map(|point| value(point) * weight(point)).sum::<f64>() / weights
        };
        let iops = mean(&|point| point.iops);
        let spread = mean(&|point| (point.iops - iops).powi(2)) / self.points.len() as f64;
        (iops, (1.0 / weights + 4.0 * spread).sqrt())
    }

    /// Throughput falls again beyond the plateau.
    fn falls_again(&self) -> bool {
        self.end.outstanding > self.last.outstanding
    }

    fn still_rises(&self) -> Option<String> {
        let flat = self.last.outstanding >= self.first.outstanding.saturating_mul(2);
        (!flat && !self.falls_again()).then(|| {
            format!("throughput still rose at {} outstanding, the last point measured", self.end.outstanding)
        })
    }

    fn known_cap(&self, shape: &Shape, caps: &[Cap]) -> Option<String> {
        let cap = caps.iter().find(|cap| cap_explains(cap, shape, self.first))?;
        Some(format!("{} limits device {} to {}", cap.origin, cap.device, cap))
    }

    fn busy_client(&self) -> Option<String> {
        let busy = self.points.iter().map(|point| point.client_busy).max_by(f64::total_cmp)?;
        (busy >= THREAD_BUSY_MIN).then(|| {
            format!("a load thread used {:.0} % of its core: the storage may give more", busy * 100.0)
        })
    }

    /// Two groups of latencies at a nearly flat throughput.
    fn token_bucket(&self) -> Option<String> {
        let gap = self.points.iter().find_map(|point| point.humps)?;
        (self.spread <= 3.0 * METERED_SPREAD_MAX).then(|| {
            format!(
                "latencies form two groups, up to {} and from {} on, as a token bucket makes them",
                workload::format_ns(gap.fast_ns),
                workload::format_ns(gap.slow_ns)
            )
        })
    }

    /// Throughput is flat over a four-fold range of N.
    fn metered(&self) -> Option<String> {
        let wide =
            self.points.len() >= 3 && self.last.outstanding >= self.first.outstanding.saturating_mul(4);
        (wide && self.spread <= METERED_SPREAD_MAX).then(|| {
            format!(
                "throughput is flat within {:.2} % from {} to {} outstanding",
                self.spread * 100.0,
                self.first.outstanding,
                self.last.outstanding
            )
        })
    }

    /// Either the asymptotes cross at the kernel's limit, or throughput rose until its queue was full and further
    /// requests waited before they counted as outstanding.
    fn kernel_queue(&self, outstanding: f64, requests_max: Option<u32>) -> Option<String> {
        let requests_max = requests_max?;
        let limit = f64::from(requests_max);
        let held_back =
            f64::from(self.end.outstanding) >= 1.5 * limit && self.end.outstanding_measured <= 1.2 * limit;
        let full = held_back && f64::from(self.first.outstanding) >= 0.8 * limit;
        (outstanding >= 0.9 * limit || full)
            .then(|| format!("the kernel lets {requests_max} requests through to the device at once"))
    }

    fn busy_device(&self) -> String {
        if self.falls_again() {
            format!(
                "throughput is highest at {} outstanding and falls by {:.0} % towards {}",
                self.last.outstanding,
                (1.0 - self.end.iops / self.iops_high) * 100.0,
                self.end.outstanding
            )
        } else {
            format!(
                "throughput stays within {:.1} % from {} to {} outstanding while latency grows with N",
                self.spread * 100.0,
                self.first.outstanding,
                self.last.outstanding
            )
        }
    }
}

/// Whether a throttle alone accounts for the throughput of a point.
fn cap_explains(cap: &Cap, shape: &Shape, point: &Point) -> bool {
    let writes = point.iops * f64::from(shape.write_percent) / 100.0;
    let reads = point.iops - writes;
    let bytes = f64::from(shape.block_bytes);
    let rate = match cap.kind {
        CapKind::ReadIops => reads,
        CapKind::WriteIops => writes,
        CapKind::ReadBytes => reads * bytes,
        CapKind::WriteBytes => writes * bytes,
    };
    (0.9..1.1).contains(&(rate / cap.per_second as f64))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A point as Little's law makes it from N and latency.
    pub(crate) fn point(outstanding: u32, latency_ns: f64) -> Point {
        let iops = f64::from(outstanding) * 1e9 / latency_ns;
        Point {
            outstanding,
            iops,
            iops_half_width: iops * 0.01,
            mib_per_s: iops * 8192.0 / 1048576.0,
            latency_ns,
            latency_ns_p50: latency_ns as u64,
            latency_ns_p99: Some(latency_ns as u64 * 2),
            latency_ns_max: latency_ns as u64 * 3,
            outstanding_measured: f64::from(outstanding),
            ios: 10_000,
            failed: 0,
            seconds: 1.0,
            steady: true,
            cpu_ns_per_io: 2_000.0,
            client_busy: 0.3,
            humps: None,
        }
    }

    /// Points of a device with `servers` parallel units of `service_ns`; `wobble` keeps the plateau from
    /// being suspiciously flat.
    fn device(servers: f64, service_ns: f64, outstanding: &[u32], wobble: f64) -> Vec<Point> {
        let mut sign = 1.0;
        outstanding
            .iter()
            .map(|n| {
                sign = -sign;
                let waiting = (f64::from(*n) / servers).max(1.0);
                point(*n, service_ns * waiting * (1.0 + sign * wobble))
            })
            .collect()
    }

    const SWEEP: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

    #[test]
    fn sixteen_wide_at_20_ms_has_its_knee_at_sixteen() {
        let points = device(16.0, 20e6, &SWEEP, 0.008);
        let shape = Shape::random_read(65536);
        let knee = find_knee(&shape, &points, &StorageLimits::default()).unwrap();
        assert!((15.0..17.0).contains(&knee.outstanding), "{knee:?}");
        assert!(knee.low < 16.0 && knee.high > 16.0, "{knee:?}");
        assert!((780.0..820.0).contains(&knee.iops));
        assert_eq!(knee.reason, KneeReason::Device, "{knee:?}");
        assert_eq!(knee.outstanding_full, 16);
    }

    #[test]
    fn a_curve_that_still_rises_is_not_given_a_knee() {
        let knee = find_knee(
            &Shape::random_read(8192),
            &device(400.0, 1e5, &SWEEP, 0.01),
            &StorageLimits::default(),
        )
        .unwrap();
        assert_eq!(knee.reason, KneeReason::NotReached);
    }

    #[test]
    fn each_reason_has_its_evidence() {
        let shape = Shape::random_read(8192);
        let limits = StorageLimits::default();
        let flat = device(4.0, 1e6, &SWEEP, 0.0001);
        assert_eq!(find_knee(&shape, &flat, &limits).unwrap().reason, KneeReason::Cap);

        let mut busy = device(4.0, 1e6, &SWEEP, 0.01);
        busy.iter_mut().for_each(|point| point.client_busy = 0.99);
        assert_eq!(find_knee(&shape, &busy, &limits).unwrap().reason, KneeReason::Client);

        let cap = Cap {
            kind: CapKind::ReadIops,
            per_second: 4_000,
            device: "7:0".into(),
            origin: "blkio cgroup /".into(),
        };
        let capped = StorageLimits { caps: vec![cap], ..limits.clone() };
        let knee = find_knee(&shape, &device(4.0, 1e6, &SWEEP, 0.01), &capped).unwrap();
        assert_eq!(knee.reason, KneeReason::Cap);
        assert!(knee.why.contains("4000 reads a second"), "{}", knee.why);

        let queue = StorageLimits { requests_max: Some(32), ..limits };
        let knee = find_knee(&shape, &device(32.0, 1e6, &SWEEP, 0.01), &queue).unwrap();
        assert_eq!(knee.reason, KneeReason::KernelQueue);
    }

    proptest! {
        #[test]
        fn the_knee_is_that_of_the_device_wherever_it_lies(
            servers in 1.0_f64..100.0,
            service_us in 10.0_f64..50_000.0,
        ) {
            let points = device(servers, service_us * 1e3, &SWEEP, 0.005);
            let knee = find_knee(&Shape::random_read(8192), &points, &StorageLimits::default()).unwrap();
            prop_assert!((knee.outstanding / servers - 1.0).abs() < 0.05, "{:?} for {}", knee, servers);
        }
    }
}
