use crate::{laboratory, sources::sqlite_extension as extension};
use host::GroupHierarchies;
use serde::Serialize;
use std::fmt::Write;
use terminal::{Done, FINE, Output};

/// Output of `headroom --version --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Version {
    /// Version of Headroom.
    version: &'static str,
    /// The commit that it was built from, 12 digits; `unknown` outside of git.
    commit: &'static str,
    /// For what it was built, `x86_64-unknown-linux-musl`.
    target: &'static str,
    /// How it was built, `release`.
    profile: &'static str,
    /// Parts that are installed with it: `headroom-lab`, `sqlite-extension`.
    features: Vec<&'static str>,
    /// Release of the running kernel.
    kernel: String,
    /// The processor's architecture.
    machine: &'static str,
    /// Whether this user may load BPF programs, and the kernel has its types (BTF).
    bpf: Ability,
    /// Whether this user may create a ring; where not, threads that block do the I/O.
    io_uring: Ability,
    /// Whether a hierarchy that limits I/O is mounted.
    cgroups: Ability,
}

/// Whether an interface of the kernel works here.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Ability {
    /// It works.
    works: bool,
    /// How, or why it does not; null where there is nothing to say.
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
/// `headroom sources doctor` tries all that the sources need.
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
    fn an_ability_says_why_it_is_missing() {
        let refused =
            Ability::from_result(Err(std::io::Error::from_raw_os_error(1)), |error| error.to_string());
        assert_eq!(refused.words(), "unavailable: Operation not permitted (os error 1)");
    }
}
