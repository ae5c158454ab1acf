//! The unit or container that a process belongs to, by the path of its control group.
//!
//! ```text
//! /system.slice/postgresql@15-main.service                                        unit
//! /system.slice/docker-ID.scope, /docker/ID                                       docker
//! /machine.slice/libpod-ID.scope/container                                        podman
//! /kubepods.slice/kubepods-podUID.slice/cri-containerd-ID.scope, crio-ID.scope    containerd, CRI-O
//! /kubepods/burstable/podUID/ID                                                   containerd (cgroupfs driver)
//! /machine.slice/machine-NAME.scope, /lxc/NAME, /lxc.payload.NAME                 systemd-nspawn and libvirt, LXC
//! ```
//! A user may name groups of its own so: the result is a name to show, and decides nothing.

use serde::Serialize;
use std::path::{Component, Path};

/// The unit and the container of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The innermost service or scope of systemd.
    pub unit: Option<String>,
    /// The innermost container.
    pub container: Option<Container>,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Container {
    /// "docker", "podman", "containerd", "cri-o", "machine" or "lxc".
    pub runtime: &'static str,
    /// Its number or name in the path.
    pub id: String,
    /// The name that the runtime's files give it.
    pub name: Option<String>,
}

/// Digits of a container's number.
const ID_DIGITS: usize = 64;
/// Prefixes of the innermost scope.
const SCOPES: [(&str, &str); 6] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("containerd-", "containerd"),
    ("crio-", "cri-o"),
    ("nerdctl-", "containerd"),
];

impl Membership {
    /// Parses the path of a control group.
    pub fn parse(group: &Path) -> Membership {
        let parts = group.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        let parts: Vec<String> = parts.collect();
        let is_unit = |part: &&String| part.ends_with(".service") || part.ends_with(".scope");
        let container = (0..parts.len()).rev().find_map(|at| container_at(&parts, at));
        let unit = parts.iter().rev().find(is_unit).cloned();
        // The scope of a container is no unit that a person has written.
        let unit =
            unit.filter(|unit| !container.as_ref().is_some_and(|container| unit.contains(&container.id)));
        Membership { unit, container }
    }
}

fn container_at(parts: &[String], at: usize) -> Option<Container> {
    let part = parts[at].as_str();
    let above = at.checked_sub(1).map(|above| parts[above].as_str()).unwrap_or_default();
    let container = |runtime, id: &str| Some(Container { runtime, id: id.to_owned(), name: None });
    let scope = part.strip_suffix(".scope").unwrap_or(part);
    for (prefix, runtime) in SCOPES {
        if let Some(id) = scope.strip_prefix(prefix).filter(|id| is_id(id)) {
            return container(runtime, id);
        }
    }
    // "kubepods-burstable-podUID.slice:cri-containerd:ID" of containerd below its own service.
    if let Some((_, id)) = part.rsplit_once(":cri-containerd:").filter(|(_, id)| is_id(id)) {
        return container("containerd", id);
    }
    if is_id(part) {
        return match above {
            "docker" => container("docker", part),
            "libpod_parent" => container("podman", part),
            _ if parts[..at].iter().any(|part| part.starts_with("kubepods")) => container("containerd", part),
            _ => None,
        };
    }
    let named = |runtime, name: &str| if name.is_empty() { None } else { container(runtime, name) };
    match part {
        _ if above == "lxc" => named("lxc", part),
        _ => match part.strip_prefix("lxc.payload.") {
            Some(name) => named("lxc", name),
            None => {
                part.strip_prefix("machine-").and_then(|name| named("machine", name.strip_suffix(".scope")?))
            }
        },
    }
}

/// Hexadecimal, so that it can stand in a path of the runtime's files.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "4f1c9bd2a7e84f1c9bd2a7e84f1c9bd2a7e84f1c9bd2a7e84f1c9bd2a7e84f1c";

    fn shown(path: &str) -> (Option<String>, Option<(&'static str, String)>) {
        let found = Membership::parse(Path::new(&path.replace("ID", ID)));
        (found.unit, found.container.map(|container| (container.runtime, container.id)))
    }

    #[test]
    fn units_and_containers_are_known_by_their_paths() {
        let unit = |name: &str| (Some(name.to_owned()), None);
        let container = |runtime, id: &str| (None, Some((runtime, id.to_owned())));
        assert_eq!(
            shown("/system.slice/system-postgresql.slice/postgresql@15-main.service"),
            unit("postgresql@15-main.service")
        );
        assert_eq!(shown("/user.slice/user-0.slice/session-3.scope"), unit("session-3.scope"));
        assert_eq!(shown("/system.slice/docker-ID.scope"), container("docker", ID));
        assert_eq!(shown("/docker/ID"), container("docker", ID));
        assert_eq!(shown("/machine.slice/libpod-ID.scope/container"), container("podman", ID));
        assert_eq!(
            shown(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7.slice/cri-containerd-ID.scope"
            ),
            container("containerd", ID)
        );
        assert_eq!(shown("/kubepods.slice/kubepods-pod7.slice/crio-ID.scope"), container("cri-o", ID));
        assert_eq!(shown("/kubepods/burstable/pod7/ID"), container("containerd", ID));
        assert_eq!(
            shown("/system.slice/containerd.service/kubepods-pod7.slice:cri-containerd:ID").1,
            container("containerd", ID).1
        );
        assert_eq!(shown("/machine.slice/machine-web.scope"), container("machine", "web"));
        assert_eq!(
            shown("/lxc.payload.web/system.slice/mariadb.service").0.as_deref(),
            Some("mariadb.service")
        );
        assert_eq!(shown("/lxc/web"), container("lxc", "web"));
    }

    #[test]
    fn what_only_looks_like_a_container_is_none() {
        for path in
            ["/", "/docker/short", "/docker-ID", "/x/ID", "/machine.slice/machine-.scope", "/lxc.payload."]
        {
            assert_eq!(
                shown(path).1.map(|found| found.0).filter(|runtime| *runtime != "docker"),
                None,
                "{path}"
            );
        }
        assert_eq!(shown("/docker/../../etc").1, None);
    }

    proptest! {
        #[test]
        fn any_path_is_parsed_and_no_id_leaves_its_directory(path in "(/|[a-z.:-]{1,8}|docker-|libpod-|[0-9a-f]{64}|[.]scope|kubepods|\\PC){0,12}") {
            let found = Membership::parse(Path::new(&path));
            if let Some(container) = found.container {
                prop_assert!(!container.id.contains('/') && container.id != "..");
            }
        }
    }
}
