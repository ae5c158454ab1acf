use crate::{extension, laboratory};
use host::GroupHierarchies;
use serde::Serialize;
use std::fmt::Write;
use terminal::{Done, FINE, Output};

/// What this program is, and what of the kernel it can use here.
#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: &'static str,
    target: &'static str,
    profile: &'static str,
    /// What is installed with it.
    features: Vec<&'static str>,
    kernel: String,
    machine: &'static str,
    bpf: Ability,
    io_uring: Ability,
    cgroups: Ability,
}

/// Whether an interface of the kernel works here; how, or why it does not.
#[derive(Serialize)]
struct Ability {
    works: bool,
    detail: Option<String>,
}

impl Ability {
    fn from_result<E>(result: Result<(), E>, describe: impl FnOnce(E) -> String) -> Ability {
        let detail = result.err().map(describe);
        Ability { works: detail.is_none(), detail }
    }

    fn words(&self) -> String {
        let state = if self.works { "works" } else { "unavailable" };
        self.detail.as_ref().map_or_else(|| state.into(), |detail| format!("{state}: {detail}"))
    }
}

/// Whether the command line asks for JSON, where the version ended its parsing.
pub fn is_json(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> bool {
    arguments.into_iter().any(|argument| argument == "--json")
}

/// `headroom --version`: five lines for a report of an error. Loads one empty program into the kernel and opens no source:
/// `headroom doctor` tries all that the sources need.
pub fn run(out: &mut Output) -> Done {
    let version = find();
    out.answer(|_| text(&version), || serde_json::json!(version));
    Ok(FINE)
}

fn find() -> Version {
    let parts =
        [("headroom-lab", laboratory::is_installed()), ("sqlite-extension", extension::path().is_ok())];
    Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: env!("HEADROOM_COMMIT"),
        target: env!("HEADROOM_TARGET"),
        profile: env!("HEADROOM_PROFILE"),
        features: parts.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect(),
        kernel: host::release(),
        machine: std::env::consts::ARCH,
        bpf: Ability::from_result(collect::process::check_permission(), |error| error.to_string()),
        io_uring: Ability::from_result(load::check_ring(), |error| {
            format!("{error}; threads that block do the I/O")
        }),
        cgroups: control_groups(),
    }
}

fn control_groups() -> Ability {
    match GroupHierarchies::find() {
        Err(error) => Ability { works: false, detail: Some(error.to_string()) },
        Ok(found) => {
            let names: Vec<&str> = [
                found.has_v2_io.then_some("v2 with io.max"),
                (found.has_v2 && !found.has_v2_io).then_some("v2 without the controller io"),
                found.has_v1_blkio.then_some("v1 with blkio.throttle"),
            ]
            .into_iter()
            .flatten()
            .collect();
            let detail = if names.is_empty() { "no hierarchy is mounted".into() } else { names.join(", ") };
            Ability { works: found.has_v2_io || found.has_v1_blkio, detail: Some(detail) }
        }
    }
}

fn text(version: &Version) -> String {
    let Version { commit, target, profile, kernel, machine, .. } = version;
    let mut text = format!("headroom {} (commit {commit}, {profile}, {target}", version.version);
    for feature in &version.features {
        // Writing into a String cannot fail.
        let _ = write!(text, ", {feature}");
    }
    let _ = write!(text, ")\nkernel    Linux {kernel} {machine}");
    for (name, ability) in
        [("bpf", &version.bpf), ("io_uring", &version.io_uring), ("cgroups", &version.cgroups)]
    {
        let _ = write!(text, "\n{name:<9} {}", ability.words());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn example() -> Version {
        Version {
            version: "0.1.0",
            commit: "c7da3e91f0b2",
            target: "x86_64-unknown-linux-gnu",
            profile: "release",
            features: vec!["headroom-lab"],
            kernel: "6.1.0-28-amd64".into(),
            machine: "x86_64",
            bpf: Ability { works: false, detail: Some("not permitted".into()) },
            io_uring: Ability { works: true, detail: None },
            cgroups: Ability { works: true, detail: Some("v2 with io.max".into()) },
        }
    }

    #[test]
    fn five_lines_say_what_runs_and_what_of_the_kernel_works() {
        let expected = "headroom 0.1.0 (commit c7da3e91f0b2, release, x86_64-unknown-linux-gnu, headroom-lab)\n\
                        kernel    Linux 6.1.0-28-amd64 x86_64\n\
                        bpf       unavailable: not permitted\n\
                        io_uring  works\n\
                        cgroups   works: v2 with io.max";
        assert_eq!(text(&example()), expected);
    }

    #[test]
    fn each_key_is_documented_and_each_documented_key_is_there() {
        let value = serde_json::to_value(example()).unwrap();
        let mut found = BTreeSet::new();
        for (key, value) in value.as_object().unwrap() {
            match value.as_object() {
                Some(inner) => found.extend(inner.keys().map(|inner| format!("{key}.{inner}"))),
                None => drop(found.insert(key.clone())),
            }
        }
        let document = include_str!("../../../../docs/reference/json.md");
        let chapter = document.split("\n## ").find(|part| part.starts_with("--version\n")).unwrap();
        let rows = chapter.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        let names =
            rows.flat_map(|row| row.split(", ")).filter_map(|name| name.strip_prefix('`')?.strip_suffix('`'));
        assert_eq!(found, names.map(str::to_owned).collect());
    }

    #[test]
    fn an_ability_says_why_it_is_missing() {
        let refused =
            Ability::from_result(Err(std::io::Error::from_raw_os_error(1)), |error| error.to_string());
        assert_eq!(refused.words(), "unavailable: Operation not permitted (os error 1)");
    }
}
