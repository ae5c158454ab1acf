//! `headroom lab luns`: disks to experiment on.

use crate::lun_failure;
use ::luns::{DiskModel, Lun, LunCap, LunSpec, LunState, Registry, Stalls};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use terminal::{Done, FINE, Failure, Output};
use workload::{CapKind, format_bytes, parse_bytes};
use workload_file::values;

/// Arguments of `headroom lab luns`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom lab luns create --count 3 --size 4G --read-iops 800        three disks of 800 reads a second
  headroom lab luns create --size 1G --latency 20ms --width 16        slow, 16 at once: 800 a second
  headroom lab luns create --size 1G --latency 5ms --stall 2s --every 30s --cache 256M
  headroom lab luns list
  headroom lab luns remove --all

Needs root. What is made stays until it is removed or the host restarts.")]
pub struct LunsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Create block devices, each with its own limits, latency and parallelism
    Create(CreateArgs),
    /// List the created devices and their state
    List,
    /// Remove devices with their content, also those of a killed run
    Remove(RemoveArgs),
    /// Process that `create` starts: serves a file with a latency until it is unmounted
    #[command(hide = true)]
    Serve(ServeArgs),
}

#[derive(clap::Args)]
struct CreateArgs {
    /// Number of devices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    count: u32,
    /// Size of each
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = values::some_bytes)]
    size: u64,
    /// Most reads a second of each
    #[arg(long, value_name = "N", help_heading = CAPS)]
    read_iops: Option<u64>,
    /// Most writes a second
    #[arg(long, value_name = "N", help_heading = CAPS)]
    write_iops: Option<u64>,
    /// Most bytes read a second
    #[arg(long, value_name = "SIZE", value_parser = bytes_a_second, help_heading = CAPS)]
    read_bandwidth: Option<u64>,
    /// Most bytes written a second
    #[arg(long, value_name = "SIZE", value_parser = bytes_a_second, help_heading = CAPS)]
    write_bandwidth: Option<u64>,
    /// Service time of one I/O
    #[arg(long, value_name = "TIME", value_parser = values::some_time, help_heading = MODEL)]
    latency: Option<Duration>,
    /// I/Os served in parallel; more wait [default: any number]
    #[arg(long, value_name = "N", requires = "latency", help_heading = MODEL)]
    width: Option<u32>,
    /// Complete nothing for this long
    #[arg(long, value_name = "TIME", requires_all = ["latency", "every"], value_parser = values::some_time, help_heading = MODEL)]
    stall: Option<Duration>,
    /// Period of the stalls, from the beginning of one to the next
    #[arg(long, value_name = "TIME", requires = "stall", value_parser = values::some_time, help_heading = MODEL)]
    every: Option<Duration>,
    /// Complete writes immediately while fewer bytes than this wait to be written
    #[arg(long, value_name = "SIZE", requires = "latency", value_parser = values::some_bytes, help_heading = MODEL)]
    cache: Option<u64>,
    /// Directory of their files [default: /var/lib/headroom/luns]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Allocate the files' space; without it they grow as they are written
    #[arg(long)]
    allocate: bool,
}

const CAPS: &str = "Limits, kept by the kernel";
const MODEL: &str = "A disk's nature, served by Headroom";

#[derive(clap::Args)]
struct RemoveArgs {
    /// Devices as `list` names them, or their numbers there
    #[arg(value_name = "DEVICE", required_unless_present = "all")]
    devices: Vec<PathBuf>,
    /// All that headroom created
    #[arg(long, conflicts_with = "devices")]
    all: bool,
}

#[derive(clap::Args)]
struct ServeArgs {
    root: PathBuf,
    id: u32,
}

fn bytes_a_second(text: &str) -> Result<u64, String> {
    parse_bytes(text.strip_suffix("/s").unwrap_or(text)).map_err(|error| error.to_string())
}

/// `headroom lab luns`.
pub fn run(args: &LunsArgs, out: &mut Output) -> Done {
    let registry = Registry::host();
    match &args.action {
        Action::Create(args) => create(args, &registry, out),
        Action::List => list(&registry, out),
        Action::Remove(args) => remove(args, &registry, out),
        Action::Serve(args) => {
            ::luns::serve(&args.root, args.id).map_err(lun_failure)?;
            Ok(FINE)
        }
    }
}

fn create(args: &CreateArgs, registry: &Registry, out: &mut Output) -> Done {
    let spec = spec(args);
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format_args!("cannot find this program itself: {error}")))?;
    let mut made: Vec<Lun> = Vec::new();
    for _ in 0..args.count {
        match registry.create(&spec, &program) {
            Ok(lun) => made.push(lun),
            Err(error) => {
                // All or none.
                made.iter().for_each(|lun| drop(registry.remove(lun)));
                return Err(lun_failure(error));
            }
        }
    }
    let luns: Vec<(Lun, LunState)> = made.into_iter().map(|lun| (lun, LunState::Ready)).collect();
    out.answer(|_| created(&luns), || json(&luns));
    Ok(FINE)
}

/// The disks that were created, and how to remove them.
fn created(luns: &[(Lun, LunState)]) -> String {
    let ids: Vec<u32> = luns.iter().map(|(lun, _)| lun.id).collect();
    let [what, remove] = created_lines(&ids);
    format!("{what}\n{}{remove}\n", text(luns))
}

/// The lines above and below the list.
fn created_lines(ids: &[u32]) -> [String; 2] {
    let disks = if ids.len() == 1 { "disk" } else { "disks" };
    let names: Vec<String> = ids.iter().map(u32::to_string).collect();
    [
        format!("created {} {disks}:", ids.len()),
        format!("to remove: headroom lab luns remove {}", names.join(" ")),
    ]
}

fn spec(args: &CreateArgs) -> LunSpec {
    let cap = |kind, per_second: Option<u64>| Some(LunCap { kind, per_second: per_second? });
    let caps = [
        cap(CapKind::ReadIops, args.read_iops),
        cap(CapKind::WriteIops, args.write_iops),
        cap(CapKind::ReadBytes, args.read_bandwidth),
        cap(CapKind::WriteBytes, args.write_bandwidth),
    ];
    let ns = |time: Duration| time.as_nanos() as u64;
    let stalls = args.stall.zip(args.every);
    LunSpec {
        bytes: args.size,
        directory: args.directory.clone(),
        allocate: args.allocate,
        caps: caps.into_iter().flatten().collect(),
        model: args.latency.map(|latency| DiskModel {
            latency_ns: ns(latency),
            width: args.width,
            stalls: stalls.map(|(stall, every)| Stalls { stall_ns: ns(stall), every_ns: ns(every) }),
            cache_bytes: args.cache,
        }),
    }
}

fn list(registry: &Registry, out: &mut Output) -> Done {
    let luns = registry.list().map_err(lun_failure)?;
    out.answer(
        |_| if luns.is_empty() { "headroom made no LUNs here".into() } else { text(&luns) },
        || json(&luns),
    );
    Ok(FINE)
}

fn remove(args: &RemoveArgs, registry: &Registry, out: &mut Output) -> Done {
    let luns = match args.all {
        // A device that another process is just making belongs to that process.
        true => registry
            .list()
            .map_err(lun_failure)?
            .into_iter()
            .filter(|(_, state)| *state != LunState::Making)
            .collect(),
        false => {
            let all = registry.list().map_err(lun_failure)?;
            let named = |name: &PathBuf| -> Result<(Lun, LunState), Failure> {
                let number = name.to_str().and_then(|name| name.parse().ok());
                let lun = match all.iter().find(|(lun, _)| Some(lun.id) == number) {
                    Some((lun, _)) => lun.clone(),
                    None => registry.find_by_device(name).map_err(lun_failure)?,
                };
                Ok((lun, LunState::Ready))
            };
            args.devices.iter().map(named).collect::<Result<Vec<_>, Failure>>()?
        }
    };
    let mut removed = Vec::new();
    let mut done = Ok(());
    for (lun, _) in luns {
        match registry.remove(&lun) {
            Ok(()) => removed.push(lun.device.unwrap_or(lun.file)),
            Err(error) => done = done.and(Err(error)),
        }
    }
    out.answer(
        |_| match removed.as_slice() {
            [] => "nothing to remove".into(),
            removed => {
                let names: Vec<String> = removed.iter().map(|device| device.display().to_string()).collect();
                format!("removed {}", names.join(", "))
            }
        },
        || removed_json(&removed),
    );
    done.map_err(lun_failure)?;
    Ok(FINE)
}

fn text(luns: &[(Lun, LunState)]) -> String {
    let mut text = format!("{:>3}  {:<12} {:>9}  {:<40} {}\n", "", "device", "size", "nature", "state");
    for (lun, state) in luns {
        let device = lun.device.as_ref().map_or("-".into(), |device| device.display().to_string());
        let _ = writeln!(
            text,
            "{:>3}  {device:<12} {:>9}  {:<40} {}",
            lun.id,
            format_bytes(lun.bytes),
            lun.nature(),
            in_words(state)
        );
    }
    text
}

fn in_words(state: &LunState) -> String {
    match state {
        LunState::Ready => "ready".into(),
        LunState::Making => "being made".into(),
        LunState::Broken(missing) => missing.join(", "),
    }
}

/// Output of `headroom lab luns create` and `headroom lab luns list`.
#[derive(Serialize)]
struct Listed {
    /// The disks.
    luns: Vec<LunOutput>,
}

/// Output of `headroom lab luns remove`.
#[derive(Serialize)]
struct Removed<'a> {
    /// The devices that were removed.
    removed: &'a [PathBuf],
}

/// A disk to experiment on. Its latency is null where Headroom does not serve the disk.
#[derive(Serialize)]
struct LunOutput {
    /// Its number.
    id: u32,
    /// The block device; null before there is one.
    device: Option<PathBuf>,
    /// The device's number, "7:3".
    number: Option<String>,
    /// The file that holds its content.
    file: PathBuf,
    /// Its size.
    bytes: u64,
    /// When it was made, nanoseconds since 1970.
    made_unix_ns: u64,
    /// The kernel's limits, those that were set: `read_iops`, `write_iops`, `read_bytes_per_s`, `write_bytes_per_s`.
    caps: BTreeMap<&'static str, u64>,
    /// Latency of an I/O, nanoseconds.
    latency_ns: Option<u64>,
    /// I/Os at once; null: any number.
    width: Option<u32>,
    /// How long it stalls, nanoseconds.
    stall_ns: Option<u64>,
    /// How often, nanoseconds.
    stall_every_ns: Option<u64>,
    /// Its write cache, bytes; null: none.
    cache_bytes: Option<u64>,
    /// width / latency less the stalls, I/Os a second; null: no bound.
    iops_max: Option<f64>,
    /// Whether all of it is there.
    ready: bool,
    /// `ready`, `being made`, or what is missing.
    state: String,
}

fn json(luns: &[(Lun, LunState)]) -> serde_json::Value {
    let one = |(lun, state): &(Lun, LunState)| LunOutput {
        id: lun.id,
        device: lun.device.clone(),
        number: lun.number.clone(),
        file: lun.file.clone(),
        bytes: lun.bytes,
        made_unix_ns: lun.made_unix_ns,
        caps: lun.caps.iter().map(|cap| (name(cap.kind), cap.per_second)).collect(),
        latency_ns: lun.model.map(|model| model.latency_ns),
        width: lun.model.and_then(|model| model.width),
        stall_ns: lun.model.and_then(|model| model.stalls).map(|stalls| stalls.stall_ns),
        stall_every_ns: lun.model.and_then(|model| model.stalls).map(|stalls| stalls.every_ns),
        cache_bytes: lun.model.and_then(|model| model.cache_bytes),
        iops_max: lun.model.and_then(|model| model.iops_max()),
        ready: *state == LunState::Ready,
        state: in_words(state),
    };
    serde_json::json!(Listed { luns: luns.iter().map(one).collect() })
}

fn removed_json(removed: &[PathBuf]) -> serde_json::Value {
    serde_json::json!(Removed { removed })
}

fn name(kind: CapKind) -> &'static str {
    match kind {
        CapKind::ReadIops => "read_iops",
        CapKind::WriteIops => "write_iops",
        CapKind::ReadBytes => "read_bytes_per_s",
        CapKind::WriteBytes => "write_bytes_per_s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn create_says_what_it_created_and_how_to_remove_it() {
        assert_eq!(created_lines(&[4]), ["created 1 disk:", "to remove: headroom lab luns remove 4"]);
        assert_eq!(
            created_lines(&[1, 2, 3]),
            ["created 3 disks:", "to remove: headroom lab luns remove 1 2 3"]
        );
    }
}
