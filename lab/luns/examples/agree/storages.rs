//! The real storages and their models.

use crate::measuring::{curve_of, measure};
use capability::{Capability, Conditions, Effort, Origin};
use luns::{Lun, LunCap, LunError, LunSpec, Registry, Stalls};
use simulate::{Cost, Disk, Flash, Limit, Mechanics, Metered, Stall, Storage, Time, WriteCache, fit};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use storage::Region;
use workload::{
    Backend, Caching, CapKind, LatencyHistogram, Layout, Shape, TargetFacts, TargetKind, Workload,
};

pub const BYTES: u64 = 64 << 20;
/// Time between new tokens of a device that does not rotate (block/blk-throttle.c, DFL_THROTL_SLICE).
const SLICE_NS: u64 = 100_000_000;
pub const MS: u64 = 1_000_000;
const STRIPE: Layout = Layout::Stripe { unit_bytes: Layout::UNIT_BYTES };
/// The curve that a model is fitted to.
const FITTED_TO: [u32; 8] = [1, 2, 4, 8, 12, 16, 32, 64];

/// A real storage, and what stands for it in virtual time.
pub struct Tested {
    pub name: &'static str,
    /// Where the model's figures are from.
    pub model: &'static str,
    pub region: Region,
    pub storage: Storage,
}

/// All of them.
pub struct Real {
    pub tested: Vec<Tested>,
    /// Taken away when this is dropped.
    _luns: Luns,
}

/// LUNs that are gone when this is.
struct Luns {
    registry: Registry,
    made: Vec<Lun>,
}

impl Drop for Luns {
    fn drop(&mut self) {
        for lun in &self.made {
            if let Err(error) = self.registry.remove(lun) {
                eprintln!("{error}");
            }
        }
    }
}

impl Luns {
    fn make(&mut self, caps: &[(CapKind, u64)], model: Option<luns::DiskModel>) -> Result<Region, LunError> {
        let caps = caps.iter().map(|(kind, per_second)| LunCap { kind: *kind, per_second: *per_second });
        // Without a server process, writes allocate no space in the file below.
        let asked =
            LunSpec { bytes: BYTES, directory: None, allocate: model.is_none(), caps: caps.collect(), model };
        let program = std::env::current_exe().expect("this program");
        let lun = self.registry.create(&asked, &program)?;
        let device = lun.device.clone().expect("a LUN has a device");
        self.made.push(lun);
        if asked.allocate {
            fill(&device);
        }
        Ok(open(&device))
    }
}

/// Cost of an I/O to a LUN besides the latency that the LUN was made with.
struct PathCost {
    read: Time,
    write: Time,
    /// Of a served LUN: its I/Os pass sequentially through the process that serves it.
    fixed_ns: f64,
    byte_ns: f64,
}

impl PathCost {
    /// To a loop device without a limit, one I/O at a time.
    fn plain(luns: &mut Luns) -> Result<PathCost, LunError> {
        let region = luns.make(&[], None)?;
        let alone = |shape: Shape| time_of(&measure(&region, &shape.into(), 0.7).latency(), 0.0);
        let (read, write) = (alone(Shape::random_read(4096)), alone(Shape::random_write(4096)));
        Ok(PathCost { read, write, fixed_ns: 0.0, byte_ns: 0.0 })
    }

    /// To one that is served: from one of 10 ms, one I/O at a time, and from the ceiling of one of 1 us.
    fn served(luns: &mut Luns) -> Result<PathCost, LunError> {
        const SLOW_NS: u64 = 10 * MS;
        let model =
            |latency_ns| Some(luns::DiskModel { latency_ns, width: None, stalls: None, cache_bytes: None });
        let (slow, fast) = (luns.make(&[], model(SLOW_NS))?, luns.make(&[], model(1_000))?);
        let each_ns = |bytes| {
            let reads = Workload::from(Shape::random_read(bytes)).with_outstanding(64);
            1e9 / measure(&fast, &reads, 0.7).iops()
        };
        let (small_ns, large_ns) = (each_ns(4096), each_ns(65_536));
        let byte_ns = ((large_ns - small_ns) / f64::from(65_536 - 4096)).max(0.0);
        let fixed_ns = (small_ns - byte_ns * 4096.0).max(0.0);
        let beside_ns = SLOW_NS as f64 + small_ns;
        let alone = |shape: Shape| time_of(&measure(&slow, &shape.into(), 1.5).latency(), beside_ns);
        let (read, write) = (alone(Shape::random_read(4096)), alone(Shape::random_write(4096)));
        Ok(PathCost { read, write, fixed_ns, byte_ns })
    }

    /// A served LUN of that latency and width.
    fn disk(&self, model: &luns::DiskModel) -> Disk {
        let cost = |delay: &Time| Cost {
            channel: Time::Fixed { ns: self.fixed_ns as u64 },
            channel_byte_ns: self.byte_ns,
            service: Time::Fixed { ns: model.latency_ns },
            delay: delay.clone(),
            ..Cost::default()
        };
        let units = model.width.expect("it has one");
        let flash =
            Flash { units, stages: 1, duplex: false, read: cost(&self.read), write: cost(&self.write) };
        let stall =
            model.stalls.map(|stalls| Stall { every_ns: stalls.every_ns, length_ns: stalls.stall_ns });
        // Each write is 4 KiB, and drains through the units.
        let cache = model.cache_bytes.map(|bytes| WriteCache {
            bytes,
            write_ns: luns::DiskModel::CACHED_NS + self.write.mean_ns() as u64,
            drain_bytes_per_s: f64::from(units) * 4096.0 * 1e9 / model.latency_ns as f64,
        });
        Disk { stall, cache, ..Disk::plain(BYTES, Mechanics::Flash(flash)) }
    }
}

impl Real {
    pub fn set_up() -> Result<Real, LunError> {
        use CapKind::{ReadBytes, ReadIops, WriteIops};
        let mut luns = Luns { registry: Registry::host(), made: Vec::new() };
        eprint!("the way to the disks, on disks of their own ...\r");
        let (plain, served) = (PathCost::plain(&mut luns)?, PathCost::served(&mut luns)?);
        let mut tested = Vec::new();

        // Limits of the kernel.
        let limits = |caps: &[(CapKind, u64)]| -> Vec<Limit> {
            let limit = |(kind, per_second): &(CapKind, u64)| Limit {
                of: metered(*kind),
                per_second: *per_second as f64,
                burst: 0.0,
                refill_ns: SLICE_NS,
            };
            caps.iter().map(limit).collect()
        };
        let capped = |caps: &[(CapKind, u64)]| Disk {
            limits: limits(caps),
            ..Disk::flash(BYTES, 64, plain.read.clone(), plain.write.clone())
        };
        let stated = "its limit; the way of a disk without";
        let slow = [(ReadIops, 800)];
        let mut add = |name, model, region, storage| tested.push(Tested { name, model, region, storage });
        add("loop, 800 reads/s", stated, luns.make(&slow, None)?, Storage::single(capped(&slow)));
        let both = [(ReadIops, 2000), (WriteIops, 500)];
        add(
            "loop, 2000 reads/s, 500 writes/s",
            stated,
            luns.make(&both, None)?,
            Storage::single(capped(&both)),
        );
        let bytes = [(ReadBytes, 40 << 20)];
        add("loop, 40 MiB/s of reads", stated, luns.make(&bytes, None)?, Storage::single(capped(&bytes)));
        for (name, layout) in
            [("stripe of three of 800 reads/s", STRIPE), ("span of three of 800 reads/s", Layout::Span)]
        {
            let members: Result<Vec<Region>, LunError> = (0..3).map(|_| luns.make(&slow, None)).collect();
            let region = Region::combine(layout, members?).expect("a layout");
            add(name, stated, region, Storage::array(&capped(&slow), 3, layout));
        }

        // Latency and width.
        let stated = "its latency and width; the way of another";
        let model = |latency_ms, width| luns::DiskModel {
            latency_ns: latency_ms * MS,
            width: Some(width),
            stalls: None,
            cache_bytes: None,
        };
        let array = model(20, 16);
        let one = luns.make(&[], Some(array))?;
        let fitted = fit_to(&one);
        add("20 ms, 16 wide", stated, one, Storage::single(served.disk(&array)));
        let members: Result<Vec<Region>, LunError> = (0..3).map(|_| luns.make(&[], Some(array))).collect();
        let region = Region::combine(STRIPE, members?).expect("a layout");
        add(
            "stripe of three of 20 ms, 16 wide",
            stated,
            region,
            Storage::array(&served.disk(&array), 3, STRIPE),
        );
        let wide = model(5, 64);
        add("5 ms, 64 wide", stated, luns.make(&[], Some(wide))?, Storage::single(served.disk(&wide)));
        let capped = [(ReadIops, 2000)];
        let storage = Storage::single(Disk { limits: limits(&capped), ..served.disk(&wide) });
        add("5 ms, 64 wide, 2000 reads/s", stated, luns.make(&capped, Some(wide))?, storage);
        let stalls = Some(Stalls { stall_ns: 50 * MS, every_ns: 500 * MS });
        let stalling = luns::DiskModel { stalls, ..model(5, 16) };
        add(
            "5 ms, 16 wide, stalls 50 ms of 500",
            stated,
            luns.make(&[], Some(stalling))?,
            Storage::single(served.disk(&stalling)),
        );
        let cached = luns::DiskModel { cache_bytes: Some(1 << 20), ..model(5, 16) };
        add(
            "5 ms, 16 wide, write cache of 1 MiB",
            stated,
            luns.make(&[], Some(cached))?,
            Storage::single(served.disk(&cached)),
        );

        // A model that knows nothing but measured points of one disk, for three of them.
        let members: Result<Vec<Region>, LunError> = (0..3).map(|_| luns.make(&[], Some(array))).collect();
        let region = Region::combine(STRIPE, members?).expect("a layout");
        let storage = Storage::array(&fitted.disks[0], 3, STRIPE);
        add(
            "stripe of three of 20 ms, 16 wide, fitted",
            "fitted to one such disk's 4 KiB reads",
            region,
            storage,
        );
        Ok(Real { tested, _luns: luns })
    }

    pub fn named(&self, name: &str) -> usize {
        self.tested.iter().position(|it| it.name == name).expect("a storage of that name")
    }
}

/// Storage that `headroom simulate --fit` makes of the curve of 4 KiB reads.
fn fit_to(region: &Region) -> Storage {
    let curve =
        curve_of(&Shape::random_read(4096), &FITTED_TO, &mut |workload| measure(region, workload, 0.7));
    let target = TargetFacts {
        path: region.path.display().to_string(),
        kind: TargetKind::BlockDevice,
        filesystem: None,
        mount: None,
        free_bytes: 0,
        devices: Vec::new(),
        direct_align_bytes: Some(4096),
        memory_align_bytes: 4096,
        caps: Vec::new(),
    };
    let conditions = Conditions {
        headroom_version: String::new(),
        kernel: String::new(),
        backend: Backend::IoUring,
        caching: Caching::Direct,
        region_bytes: region.bytes,
        foreign_iops: None,
        took_s: 0.0,
        effort: Effort::default(),
        remarks: Vec::new(),
        target_changes: Vec::new(),
    };
    let capability = Capability {
        target,
        measured_unix_ns: 0,
        conditions,
        curves: vec![curve],
        cost_model: None,
        origin: Origin::Measured,
    };
    fit(&capability).expect("a curve to fit to").storage
}

fn metered(kind: CapKind) -> Metered {
    match kind {
        CapKind::ReadIops => Metered::Reads,
        CapKind::WriteIops => Metered::Writes,
        CapKind::ReadBytes => Metered::ReadBytes,
        CapKind::WriteBytes => Metered::WriteBytes,
    }
}

/// Measured latencies, less a part that the model has elsewhere, as a time to draw from.
fn time_of(latency: &LatencyHistogram, less_ns: f64) -> Time {
    let beside = |ns: u64| (ns as f64 - less_ns).max(0.0) as u64;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (to, count) in latency.filled() {
        // Nothing was counted between one range of the histogram and the next: each is 1 part in 1024 wide at most.
        let (from, to) = (beside(to - to / 1024), beside(to));
        let last = ranges.last().map_or(0, |(to, _)| *to);
        ranges.push((from.max(last), 0));
        ranges.push((to.max(last), count));
    }
    Time::Empirical { ranges }
}

fn open(device: &Path) -> Region {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device);
    Region {
        file: file.expect("the loop device"),
        offset_bytes: 0,
        bytes: BYTES,
        direct: true,
        align_bytes: 4096,
        memory_align_bytes: 4096,
        path: device.into(),
        volume: None,
    }
}

fn fill(device: &Path) {
    use std::io::Write;
    let mut file = OpenOptions::new().write(true).open(device).expect("the loop device");
    let block = vec![0x5a_u8; 1 << 20];
    (0..BYTES >> 20).for_each(|_| file.write_all(&block).expect("room"));
    file.sync_all().expect("a loop device syncs");
}
