//! Sentences about a capability.

use capability::{Capability, CostModel, Curve, Demand, Knee, KneeReason, Origin, Point};
use charts::number;
use workload::{
    Backend, Caching, DeviceFacts, DeviceLayout, Durability, TargetKind, WriteCache, format_bytes,
};

/// "directory on ext4 mounted at /data, 120 GiB free, direct I/O in multiples of 512 B".
pub(crate) fn target_line(capability: &Capability) -> String {
    let facts = &capability.target;
    let kind = match facts.kind {
        TargetKind::Directory => "directory",
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
    };
    let mut text = kind.to_owned();
    if let Some(filesystem) = &facts.filesystem {
        text.push_str(&format!(" on {filesystem}"));
    }
    if let Some(mount) = &facts.mount {
        text.push_str(&format!(" mounted at {mount}"));
    }
    text.push_str(&format!(", {} free", format_bytes(facts.free_bytes)));
    match facts.direct_align_bytes {
        Some(align) => text.push_str(&format!(", direct I/O in multiples of {align} B")),
        None => text.push_str(", no direct I/O"),
    }
    text
}

/// The kernel's facts of a device, without unknown ones.
pub(crate) fn device_line(device: &DeviceFacts) -> String {
    let mut facts = vec![format!("{} ({} {})", device.name, device.kind, device.number)];
    facts.extend(device.model.clone());
    facts.extend(device.layout.as_ref().map(layout_of_device));
    facts.push(format_bytes(device.size_bytes));
    facts.extend(device.rotational.map(|turns| if turns { "rotational" } else { "not rotational" }.into()));
    facts.extend(device.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")));
    facts.extend(
        device
            .queues
            .zip(device.requests_max)
            .map(|(queues, requests)| format!("{queues} x {requests} requests")),
    );
    facts.extend(device.physical_block_bytes.map(|bytes| format!("{bytes} B blocks")));
    facts.extend(device.write_cache.map(|cache| match cache {
        WriteCache::WriteBack => "volatile write cache".into(),
        WriteCache::WriteThrough => "writes durable at once".into(),
    }));
    facts.extend(device.backing_file.as_ref().map(|file| format!("in {file}")));
    facts.join(", ")
}

/// "stripe:64K of sda, sdb by LVM"; "error by device mapper", which lies on nothing.
fn layout_of_device(layout: &DeviceLayout) -> String {
    if layout.members.is_empty() {
        return format!("{} by {}", layout.how, layout.made_by);
    }
    format!("{} of {} by {}", layout.how, layout.members.join(", "), layout.made_by)
}

/// The operating limit for I/Os of a curve, I/Os a second: utilisation is 100 % there. Writes that wait for each other have
/// none.
pub(crate) fn operating_limit(curve: &Curve, model: Option<&CostModel>) -> Option<f64> {
    model
        .filter(|_| curve.knee.is_some())
        .map(|model| model.iops_max(&curve.workload))
        .filter(|iops| iops.is_finite())
}

/// ", operating limit 57,900 IOPS"; nothing where it is not known.
pub(crate) fn and_limit(iops: Option<f64>) -> String {
    iops.map_or(String::new(), |iops| format!(", operating limit {} IOPS", number::rate(iops.round())))
}

/// Where the curve saturates and why, in a sentence.
pub(crate) fn knee_line(curve: &Curve, model: Option<&CostModel>) -> String {
    let Some(knee) = &curve.knee else {
        return match curve.workload.durability {
            Durability::WriteThrough => {
                "one write at a time, each on the storage before the next: as a transaction log is written"
                    .into()
            }
            Durability::Synced => {
                "one append at a time, each synced before the next: as a database on a file system commits"
                    .into()
            }
            Durability::Cached => "no knee: too few points".into(),
        };
    };
    let (low, high) = (number::rate(knee.low), number::rate(knee.high));
    let limit = and_limit(operating_limit(curve, model));
    if knee.reason == KneeReason::NotReached {
        return format!(
            "the knee was not reached: {}; highest rate at least {} IOPS{limit}, the knee lies beyond {} outstanding",
            knee.why,
            number::rate(knee.iops),
            number::rate(knee.outstanding)
        );
    }
    format!(
        "knee at {} outstanding ({low} to {high}), highest rate {} IOPS{limit}, unloaded latency {}; {}: {}",
        number::rate(knee.outstanding),
        number::rate(knee.iops),
        number::time(knee.latency_ns_floor),
        knee_reason(knee.reason),
        knee.why
    )
}

/// The knee, where it was reached.
pub(crate) fn reached_knee(curve: &Curve) -> Option<&Knee> {
    curve.knee.as_ref().filter(|knee| knee.reason != KneeReason::NotReached)
}

/// Notes that a reader of a point must know besides its figures; empty for most.
pub(crate) fn point_notes(point: &Point) -> String {
    let unsteady = (!point.steady).then(|| "not steady".to_owned());
    let failed = (point.failed > 0).then(|| format!("{} failed", number::count(point.failed)));
    unsteady.into_iter().chain(failed).collect::<Vec<String>>().join(", ")
}

/// The reason of a knee.
pub(crate) fn knee_reason(reason: KneeReason) -> &'static str {
    match reason {
        KneeReason::Device => "the storage itself is busy",
        KneeReason::Cap => "a rate limit",
        KneeReason::KernelQueue => "the kernel's queue is full",
        KneeReason::Client => "the load threads are out of CPU",
        KneeReason::NotReached => "not reached",
    }
}

/// The four demands of a model with their names.
pub(crate) fn demands(model: &CostModel) -> [(&'static str, Demand); 4] {
    [
        ("random read", model.read_random),
        ("sequential read", model.read_sequential),
        ("random write", model.write_random),
        ("sequential write", model.write_sequential),
    ]
}

/// The costs that reads and writes have in common.
pub(crate) fn sharing_line(model: &CostModel) -> String {
    let (fixed, bytes) = (model.sharing.fixed, model.sharing.bytes);
    if fixed == 1.0 && bytes == 1.0 {
        "one resource: reads and writes share everything".into()
    } else {
        format!(
            "reads and writes share {} of an I/O's fixed cost and {} of the cost of its bytes; \
             each has limits of its own besides",
            number::share(fixed),
            number::share(bytes)
        )
    }
}

/// The error of the model on points that were kept out of its fit.
pub(crate) fn error_line(model: &CostModel) -> String {
    match model.error {
        Some(error) => format!(
            "error on {} {} kept out of the fit: {}",
            model.held_out.len(),
            if model.held_out.len() == 1 { "shape" } else { "shapes" },
            number::share(error)
        ),
        None => "no shape was kept out of the fit: the model's error is not known".into(),
    }
}

/// How, when and how long it was measured.
pub(crate) fn conditions_line(capability: &Capability) -> String {
    let conditions = &capability.conditions;
    if capability.origin == Origin::Declared {
        let at = number::instant(capability.measured_unix_ns);
        return format!("declared {at}: none of these figures was measured");
    }
    let backend = match conditions.backend {
        Backend::IoUring => "io_uring",
        Backend::Blocking => "blocking I/O",
        Backend::Mapped => "a memory mapping",
        Backend::Foreign => "another tool",
    };
    let caching = match conditions.caching {
        Caching::Direct => "direct",
        Caching::Buffered => "through the page cache",
        Caching::Mapped => "through a mapping",
    };
    let foreign = match conditions.foreign_iops {
        Some(iops) => format!("{} I/Os a second of others before", number::rate(iops)),
        None => "others' I/O not known".into(),
    };
    let measured = match capability.origin {
        Origin::Borrowed => "measured on another host",
        Origin::Gentle => "measured gently",
        Origin::Measured | Origin::Seen | Origin::Declared => "measured",
    };
    let foreign = match capability.origin {
        Origin::Gentle => foreign.replace("before", "beside it, counted in"),
        _ => foreign,
    };
    format!(
        "{measured} {} in {} ({}), Headroom {}, Linux {}, {backend}, {caching}, region of {}, {foreign}",
        number::instant(capability.measured_unix_ns),
        number::duration(conditions.took_s),
        conditions.effort,
        conditions.headroom_version,
        conditions.kernel,
        format_bytes(conditions.region_bytes),
    )
}
