//! Several files or devices as one target: `--layout`, for all commands that run load.

use std::path::PathBuf;
use storage::{Access, Region, Target};
use terminal::Failure;
use workload::{
    Caching, DeviceFacts, DeviceKind, DeviceLayout, Layout, PlanLayout, PlanTarget, TargetFacts, TargetKind,
};

/// Those members as one target.
pub fn laid(layout: Layout, members: &[PathBuf]) -> Result<PlanTarget, Failure> {
    match members {
        [first, others @ ..] if !others.is_empty() => Ok(PlanTarget {
            path: first.clone(),
            create_bytes: None,
            laid: Some(PlanLayout { layout, others: others.to_vec() }),
        }),
        _ => Err(Failure::usage("a layout has two members at least")
            .with_remedy(format_args!("--layout {layout} A B"))),
    }
}

/// Opens a file or device, or several as one region, with what is known of them together.
pub fn open(target: &PlanTarget, access: Access, caching: Caching) -> Result<(Region, TargetFacts), Failure> {
    let Some(PlanLayout { layout, .. }) = target.laid else {
        let target = Target::open(&target.path)?;
        return Ok((target.open_for(access, caching)?, target.facts().clone()));
    };
    let (mut regions, mut facts) = (Vec::new(), Vec::new());
    for path in target.members() {
        let target = Target::open(path)?;
        if target.facts().kind == TargetKind::Directory {
            let what = format!("cannot lay out {}: it is a directory", path.display());
            return Err(Failure::usage(what).with_remedy("files or block devices"));
        }
        regions.push(target.open_for(access, caching)?);
        facts.push(target.facts().clone());
    }
    let region = Region::combine(layout, regions)?;
    let facts = together(&region, facts);
    Ok((region, facts))
}

/// The facts of a layout: those of its members, named as it is.
pub fn together(region: &Region, members: Vec<TargetFacts>) -> TargetFacts {
    let mut members = members.into_iter();
    let mut all = members.next().expect("a layout has members");
    let tops = |facts: &TargetFacts| facts.devices.first().cloned();
    let mut top: Vec<DeviceFacts> = tops(&all).into_iter().collect();
    for member in members {
        top.extend(tops(&member));
        for device in member.devices {
            if all.devices.iter().all(|other| other.number != device.number) {
                all.devices.push(device);
            }
        }
        all.caps.extend(member.caps.into_iter().filter(|cap| !all.caps.contains(cap)).collect::<Vec<_>>());
        all.free_bytes = all.free_bytes.min(member.free_bytes);
        all.direct_align_bytes = all.direct_align_bytes.max(member.direct_align_bytes);
    }
    all.path = region.name();
    if let Some(first) = top.first() {
        // The layout gets a device of its own, so that its results are not taken for those of its first member.
        let numbers: Vec<&str> = top.iter().map(|device| device.number.as_str()).collect();
        let layout = region.volume.as_ref().map(|laid| laid.layout.to_string()).unwrap_or_default();
        let sum = |of: fn(&DeviceFacts) -> Option<u32>| top.iter().map(of).sum::<Option<u32>>();
        let itself = DeviceFacts {
            name: layout.clone(),
            number: format!("{layout} of {}", numbers.join("+")),
            kind: DeviceKind::Layout,
            model: None,
            backing_file: None,
            layout: Some(DeviceLayout {
                made_by: "headroom".into(),
                how: layout,
                members: top.iter().map(|device| device.name.clone()).collect(),
            }),
            size_bytes: region.bytes,
            requests_max: sum(|device| Some(device.requests_max? * device.queues.unwrap_or(1).max(1))),
            queues: Some(1),
            ..first.clone()
        };
        all.devices.insert(0, itself);
    }
    all
}

/// Name of a layout in lists: "/dev/a, /dev/b as stripe:64K".
pub fn name(layout: Layout, members: &[String]) -> String {
    format!("{} as {layout}", members.join(", "))
}

/// The layout and its members, if that is a name of one.
pub fn of_name(name: &str) -> Option<(Layout, Vec<PathBuf>)> {
    let (members, layout) = name.rsplit_once(" as ")?;
    Some((layout.parse().ok()?, members.split(", ").map(PathBuf::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_layout_and_its_members() {
        let members = ["/dev/loop0".to_owned(), "/dev/loop1".to_owned()];
        let name = name("stripe:64K".parse().unwrap(), &members);
        assert_eq!(name, "/dev/loop0, /dev/loop1 as stripe:64K");
        let (layout, found) = of_name(&name).unwrap();
        assert_eq!((layout.to_string(), found), ("stripe:64K".into(), members.map(PathBuf::from).to_vec()));
        assert!(of_name("/data").is_none() && of_name("/best as /data").is_none());
    }
}
