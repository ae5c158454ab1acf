use crate::settings::{CONTENTS, ContentKind};
use crate::values::{CACHINGS, DURABILITIES, PATTERNS, SYNCS, VERIFIES, name_of};
use std::fmt::Write;
use std::time::Duration;
use workload::{
    Access, Arrival, Content, Distribution, Extent, Phase, Placed, Plan, SizeShare, SyncEvery, Walk, Zone,
};

/// A plan as a workload file that reads back as that plan.
pub fn write(plan: &Plan) -> String {
    let mut text = String::from("# A workload file of Headroom: headroom run --file THIS\n");
    if !plan.targets.is_empty() {
        text.push_str("\n[targets]\n");
    }
    for (at, target) in plan.targets.iter().enumerate() {
        let path = quoted(&target.path.to_string_lossy());
        let name = target_name(plan, at);
        let mut keys = Vec::new();
        if let Some(bytes) = target.create_bytes {
            keys.push(format!("create = {}", quoted(&size(bytes))));
        }
        if let Some(laid) = &target.laid {
            let with: Vec<String> =
                laid.others.iter().map(|other| quoted(&other.to_string_lossy())).collect();
            keys.push(format!("layout = {}", quoted(&laid.layout.to_string())));
            keys.push(format!("with = [{}]", with.join(", ")));
        }
        if keys.is_empty() {
            line(&mut text, &name, path);
        } else {
            line(&mut text, &name, format!("{{ path = {path}, {} }}", keys.join(", ")));
        }
    }
    plan.phases.iter().for_each(|phase| write_phase(&mut text, plan, phase));
    text
}

fn target_name(plan: &Plan, at: usize) -> String {
    if plan.targets.len() == 1 { "data".into() } else { format!("data-{}", at + 1) }
}

fn write_phase(text: &mut String, plan: &Plan, phase: &Phase) {
    text.push_str("\n[[phases]]\n");
    optional(text, "name", (!phase.name.is_empty()).then(|| quoted(&phase.name)));
    line(text, "warm-up", quoted(&time(phase.length.warm_up)));
    line(text, "duration", quoted(&time(phase.length.duration)));
    optional(text, "ios", phase.length.ios_max);
    let cool_down = Some(phase.length.cool_down).filter(|time| !time.is_zero());
    optional(text, "cool-down", cool_down.map(|cool_down| quoted(&time(cool_down))));
    optional(text, "series", (phase.slice != Phase::SLICE).then(|| quoted(&time(phase.slice))));
    if let Some(pool) = phase.pool {
        let outstanding = pool.outstanding.map_or(String::new(), |each| format!(", outstanding = {each}"));
        line(text, "pool", format!("{{ threads = {}{outstanding} }}", pool.threads));
    }
    phase.workloads.iter().for_each(|placed| write_workload(text, plan, placed));
}

fn write_workload(text: &mut String, plan: &Plan, placed: &Placed) {
    let workload = &placed.workload;
    let shape = &workload.shape;
    text.push_str("\n[[phases.workloads]]\n");
    optional(text, "name", (!workload.name.is_empty()).then(|| quoted(&workload.name)));
    optional(text, "target", (plan.targets.len() > 1).then(|| quoted(&target_name(plan, placed.target))));
    if workload.sizes.is_empty() {
        line(text, "block", quoted(&size(u64::from(shape.block_bytes))));
    } else {
        line(text, "sizes", quoted(&sizes(&workload.sizes)));
    }
    line(text, "pattern", quoted(name_of(&shape.pattern, PATTERNS)));
    line(text, "writes", quoted(&format!("{}%", shape.write_percent)));
    line(text, "outstanding", workload.outstanding);
    line(text, "threads", workload.threads);
    line(text, "caching", quoted(name_of(&shape.caching, CACHINGS)));
    line(text, "durability", quoted(name_of(&shape.durability, DURABILITIES)));
    line(text, "seed", workload.seed);
    write_access(text, &workload.access);
    write_demand(text, placed);
    write_content(text, &workload.content);
    optional(text, "verify", workload.verify.map(|verify| quoted(name_of(&verify, VERIFIES))));
    optional(text, "weight", (placed.weight != 1).then_some(placed.weight));
}

fn write_access(text: &mut String, access: &Access) {
    optional(text, "offset", (access.base_bytes > 0).then(|| quoted(&size(access.base_bytes))));
    optional(text, "length", access.length_bytes.map(|bytes| quoted(&size(bytes))));
    optional(text, "align", access.align_bytes.map(|bytes| quoted(&size(bytes))));
    optional(text, "stride", access.stride_bytes.map(|bytes| quoted(&size(bytes))));
    match &access.distribution {
        Distribution::Uniform => {}
        Distribution::Zipf { theta } => line(text, "zipf", format!("{theta:?}")),
        Distribution::Pareto { h } => line(text, "pareto", format!("{h:?}")),
        Distribution::Zones { zones: all } => line(text, "zones", quoted(&zones(all))),
    }
    match access.walk {
        Walk::OwnParts => {}
        Walk::Shared => line(text, "walk", quoted("shared")),
        Walk::Apart(bytes) => line(text, "walk", quoted(&format!("apart:{}", size(bytes)))),
    }
    optional(text, "random-share", access.random_percent.map(|percent| quoted(&format!("{percent}%"))));
    optional(text, "same-offset", access.same_offset.then_some(true));
}

fn write_demand(text: &mut String, placed: &Placed) {
    let workload = &placed.workload;
    optional(text, "replay", placed.replay.as_ref().map(|trace| quoted(&trace.to_string_lossy())));
    match workload.arrival {
        Arrival::Closed if placed.replay.is_some() => line(text, "speed", quoted("max")),
        Arrival::Closed => {}
        Arrival::Constant { iops } => line(text, "rate", quoted(&format!("{iops}/s"))),
        Arrival::Poisson { iops } => line(text, "poisson", quoted(&format!("{iops}/s"))),
        Arrival::Recorded { speed } => line(text, "speed", format!("{speed:?}")),
    }
    let iops = workload.limit.iops.map(|iops| format!("{iops}/s"));
    let bytes = workload.limit.bytes_per_s.map(|bytes| format!("{}/s", byte_rate(bytes)));
    let both: Vec<String> = iops.into_iter().chain(bytes).collect();
    optional(text, "limit", (!both.is_empty()).then(|| quoted(&both.join(", "))));
    optional(
        text,
        "burst",
        workload.burst.map(|burst| quoted(&format!("{}:{}", burst.ios, time(burst.pause)))),
    );
    if let Some(SyncEvery { writes, how }) = workload.sync {
        line(text, "sync", quoted(name_of(&Some(how), SYNCS)));
        line(text, "sync-every", writes);
    }
}

fn write_content(text: &mut String, content: &Content) {
    let kind = match content {
        Content::Random { compressible_percent, duplicate_percent } => {
            let share = |percent: &u8| (*percent > 0).then(|| quoted(&format!("{percent}%")));
            optional(text, "compressible", share(compressible_percent));
            optional(text, "duplicate", share(duplicate_percent));
            return;
        }
        Content::Fresh => ContentKind::Fresh,
        Content::Zeros => ContentKind::Zeros,
        Content::Counting => ContentKind::Counting,
        Content::Buffer { bytes, file } => {
            line(text, "buffer", quoted(&size(*bytes)));
            optional(text, "buffer-file", file.as_ref().map(|file| quoted(&file.to_string_lossy())));
            ContentKind::Buffer
        }
    };
    line(text, "content", quoted(name_of(&kind, CONTENTS)));
}

fn line(text: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn optional(text: &mut String, key: &str, value: Option<impl std::fmt::Display>) {
    if let Some(value) = value {
        line(text, key, value);
    }
}

/// A TOML string; whatever is not plain is escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// With the largest suffix that leaves a whole number.
fn size(bytes: u64) -> String {
    let units = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or(bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

fn byte_rate(bytes_per_s: f64) -> String {
    let whole = bytes_per_s.fract() == 0.0 && bytes_per_s < (1_u64 << 53) as f64;
    let text = if whole { size(bytes_per_s as u64) } else { bytes_per_s.to_string() };
    if text.ends_with(|c: char| c.is_ascii_digit()) { text + "B" } else { text }
}

fn time(time: Duration) -> String {
    match (time.as_secs(), time.subsec_nanos()) {
        (seconds, 0) => format!("{seconds}s"),
        (0, nanos) if nanos % 1_000_000 == 0 => format!("{}ms", nanos / 1_000_000),
        (seconds, nanos) => format!("{}s", format!("{seconds}.{nanos:09}").trim_end_matches('0')),
    }
}

fn sizes(sizes: &[SizeShare]) -> String {
    let one = |share: &SizeShare| format!("{}:{}%", size(u64::from(share.block_bytes)), share.percent);
    sizes.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn zones(zones: &[Zone]) -> String {
    let one = |zone: &Zone| match zone.extent {
        Extent::Percent(percent) => format!("{}%:{percent}%", zone.ios_percent),
        Extent::Bytes(bytes) => format!("{}%:{}", zone.ios_percent, size(bytes)),
    };
    zones.iter().map(one).collect::<Vec<_>>().join(", ")
}
