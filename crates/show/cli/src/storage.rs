//! `headroom storage`: the known figures of a storage, the ways to know them without a load, and the removal of what a killed run left.

pub mod clean;
mod instance;

use self::instance::InstanceVolume;
use capability::{Binding, Capability, DeclarationError, Declared, Origin, VolumeSize, VolumeType};
use history::History;
use report::KnownStorage;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use storage::Target;
use terminal::{Done, FINE, Failure, Output, kept, no_answer};
use workload::{Caching, DeviceFacts, TargetFacts, format_bytes, parse_bytes, parse_duration};

/// Arguments of `headroom storage`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Figures are measured (headroom measure), seen (headroom agent observes the I/O of other programs), \
declared, or borrowed from another host. What was only reached is a lower bound: at-least.

Examples:
  headroom storage /data
  headroom storage declare /data --volume-type gp3 --size 500G --latency 0.8ms
  headroom storage export capability.json /data     on one host
  headroom storage import capability.json /data     on another with such storage"
)]
pub struct StorageArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Directory on the storage in question [default: .]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// State what a storage gives, in figures or by its provider's volume type
    Declare(Box<DeclareArgs>),
    /// Write what was measured of a storage into a file, for hosts with the same storage
    Export(ExportArgs),
    /// Use what was measured on another host with the same storage
    Import(ImportArgs),
    /// Remove files that a killed headroom left in a directory
    Clean(clean::CleanArgs),
}

/// A rate of I/Os, as it is declared.
fn per_second(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number; give a number, as in 16000"))
}

#[derive(clap::Args)]
struct DeclareArgs {
    /// Directory on the storage
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Most reads a second; with --volume-type what was bought
    #[arg(long, value_name = "N", value_parser = per_second)]
    read_iops: Option<f64>,
    /// Most writes a second; with --volume-type what was bought
    #[arg(long, value_name = "N", value_parser = per_second)]
    write_iops: Option<f64>,
    /// Most bytes a second, reads and writes together: 1000M; with --volume-type what was bought
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bandwidth: Option<u64>,
    /// Latency of a small I/O at rest: 0.6ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    latency: Option<std::time::Duration>,
    /// gp2, gp3, io1, io2, st1, sc1 (AWS), premium-ssd, premium-ssd-v2, standard-ssd, ultra (Azure), pd-balanced, pd-ssd,
    /// pd-standard, hyperdisk-balanced, hyperdisk-extreme (Google)
    #[arg(long, value_name = "TYPE")]
    volume_type: Option<VolumeType>,
    /// Size of the volume [default: that of the device]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, requires = "volume_type")]
    size: Option<u64>,
}

#[derive(clap::Args)]
struct ExportArgs {
    /// File to write; - is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Directory on the storage [default: .]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(clap::Args)]
struct ImportArgs {
    /// File that was exported; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Directory on storage of the same kind here
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// An exported capability is some 100 KiB.
const IMPORT_BYTES_MAX: u64 = 16 << 20;
const GIB: f64 = 1_073_741_824.0;

/// `headroom storage`.
pub fn run(args: &StorageArgs, history: Option<&Path>, out: &mut Output) -> Done {
    match &args.action {
        None => show(args.dir.as_deref(), history, out),
        Some(Action::Declare(declared)) => declare(declared, history, out),
        Some(Action::Export(exported)) => export(exported, history),
        Some(Action::Import(imported)) => import(imported, history, out),
        Some(Action::Clean(args)) => clean::run(args, history, out),
    }
}

fn show(dir: Option<&Path>, history: Option<&Path>, out: &mut Output) -> Done {
    let target = Target::open(dir.unwrap_or(Path::new(".")))?;
    let known = known_storage(&kept::open(history)?, target.facts())?;
    answer(&known, out);
    Ok(if known.resources().is_empty() { no_answer() } else { FINE })
}

fn known_storage(history: &History, facts: &TargetFacts) -> Result<KnownStorage, Failure> {
    let capabilities = history.known_capabilities(facts)?.into_iter().map(|(_, capability)| capability);
    Ok(KnownStorage {
        target: facts.path.clone(),
        now_unix_ns: host::unix_ns(),
        capabilities: capabilities.collect(),
        seen: history.seen(facts)?,
        caps: Some(host::caps_on(&facts.devices)),
    })
}

fn answer(known: &KnownStorage, out: &mut Output) {
    out.answer(|style| report::text::known_storage(known, style), || report::json::known_storage(known));
}

fn declare(args: &DeclareArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let target = Target::open(&args.dir)?;
    let found = args.says_nothing().then(|| instance::find(target.facts())).flatten();
    if let Some(found) = &found {
        out.note(format_args!("{} of {:.0} GiB, as {} says", found.volume_type, found.gib, found.file));
    }
    let declared = declared(args, target.facts(), found.as_ref())?;
    let remedy = |error: &DeclarationError| match error {
        DeclarationError::NoOperations(_) => {
            "--read-iops and --write-iops, or --volume-type: no file of this instance says it"
        }
        DeclarationError::NoLatency => {
            "--latency, as in 0.6ms: the provider's figure, or what small reads take at rest"
        }
        DeclarationError::NotPositive => "figures above 0",
    };
    let capability = declared
        .capability(target.facts().clone(), host::unix_ns(), env!("CARGO_PKG_VERSION"))
        .map_err(|error| Failure::usage(error).with_remedy(remedy(&error)))?;
    let mut history = kept::open_to_write(history)?;
    history.save_capability(&capability)?;
    answer(&known_storage(&history, target.facts())?, out);
    Ok(FINE)
}

impl DeclareArgs {
    /// Neither a volume type nor a limit is stated.
    fn says_nothing(&self) -> bool {
        let limits = [self.read_iops, self.write_iops, self.bandwidth.map(|bytes| bytes as f64)];
        self.volume_type.is_none() && limits.iter().all(Option::is_none)
    }
}

/// The stated figures, and those of the instance's own files where nothing is stated.
fn declared(
    args: &DeclareArgs,
    facts: &TargetFacts,
    found: Option<&InstanceVolume>,
) -> Result<Declared, Failure> {
    let mut declared = Declared::default();
    let found_type = found.and_then(|found| found.volume_type.parse().ok());
    if let Some(volume) = args.volume_type.or(found_type) {
        let device_bytes = facts.devices.first().map_or(0, |device| device.size_bytes);
        let bought = args.read_iops.into_iter().chain(args.write_iops).reduce(f64::max);
        let size = VolumeSize {
            gib: found.map_or(args.size.unwrap_or(device_bytes) as f64 / GIB, |found| found.gib),
            iops: bought.or(found.and_then(|found| found.iops)),
            bytes_per_s: args
                .bandwidth
                .map(|bytes| bytes as f64)
                .or(found.and_then(|found| found.bytes_per_s)),
        };
        declared = volume.declared(&size).map_err(|error| {
            Failure::usage(error)
                .with_remedy("--size, --read-iops, --write-iops and --bandwidth say what was bought")
        })?;
    }
    let limits = [
        (Binding::ReadOperations, args.read_iops),
        (Binding::WriteOperations, args.write_iops),
        (Binding::Bandwidth, args.bandwidth.map(|bytes| bytes as f64)),
    ];
    for (of, stated) in limits {
        stated.into_iter().for_each(|per_second| declared.set(of, per_second));
    }
    if let Some(latency) = args.latency {
        declared.latency_ns = Some(latency.as_nanos() as f64);
    }
    Ok(declared)
}

fn export(args: &ExportArgs, history: Option<&Path>) -> Done {
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let target = Target::open(&dir)?;
    let known = kept::open(history)?.known_capabilities(target.facts())?;
    let measured = known.into_iter().map(|(_, capability)| capability).find(|capability| {
        matches!(capability.origin, Origin::Measured | Origin::Gentle)
            && capability.conditions.caching == Caching::Direct
    });
    let mut capability = measured.ok_or_else(|| {
        let dir = dir.display();
        Failure::new(format_args!("cannot export the capability of {dir}: it was never measured here"))
            .with_remedy(format_args!("headroom measure {dir}"))
    })?;
    capability.conditions.remarks.push(format!(
        "measured at {} of {}",
        target.facts().path,
        host::hostname()
    ));
    let text = serde_json::to_string_pretty(&capability).map_err(Failure::new)? + "\n";
    let written = match is_standard(&args.file) {
        true => std::io::stdout().write_all(text.as_bytes()),
        false => std::fs::write(&args.file, text),
    };
    written.map_err(|error| Failure::new(format_args!("cannot write {}: {error}", args.file.display())))?;
    Ok(FINE)
}

fn is_standard(file: &Path) -> bool {
    file == Path::new("-")
}

fn import(args: &ImportArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let target = Target::open(&args.dir)?;
    let lent = read(&args.file)?;
    let facts = target.facts();
    if !matches!(lent.origin, Origin::Measured | Origin::Gentle) {
        let file = args.file.display();
        return Err(Failure::new(format_args!(
            "cannot use {file}: its figures are {}, not measured",
            lent.origin
        )));
    }
    let differences = differences(&lent.target, facts);
    if !differences.is_empty() {
        let failure = Failure::new(format_args!(
            "cannot use {} for {}: it was measured on other storage",
            args.file.display(),
            facts.path
        ));
        let failure = differences.iter().fold(failure, Failure::with_fact);
        return Err(failure.with_remedy("a file from a host with the same storage, or headroom measure here"));
    }
    // Its remarks name the host that lent it.
    let borrowed = Capability { target: facts.clone(), origin: Origin::Borrowed, ..lent };
    let mut history = kept::open_to_write(history)?;
    history.save_capability(&borrowed)?;
    answer(&known_storage(&history, facts)?, out);
    Ok(FINE)
}

fn read(file: &Path) -> Result<Capability, Failure> {
    let mut text = String::new();
    let read = match is_standard(file) {
        true => std::io::stdin().take(IMPORT_BYTES_MAX).read_to_string(&mut text),
        false => host::open_regular_file(file)
            .and_then(|file| file.take(IMPORT_BYTES_MAX).read_to_string(&mut text)),
    };
    read.map_err(|error| Failure::new(format_args!("cannot read {}: {error}", file.display())))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::new(format_args!("{} is not an exported capability: {error}", file.display()))
            .with_remedy("headroom storage export writes one")
    })
}

/// Facts by which one storage gives something else than another: "model: A there, B here".
fn differences(there: &TargetFacts, here: &TargetFacts) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: String, there: String, here: String| {
        if there != here {
            found.push(format!("{what}: {there} there, {here} here"));
        }
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    compare("file system".into(), text(&there.filesystem), text(&here.filesystem));
    compare("devices".into(), there.devices.len().to_string(), here.devices.len().to_string());
    for (depth, (there, here)) in there.devices.iter().zip(&here.devices).enumerate() {
        let mut of_device = |what: &str, fact: fn(&DeviceFacts) -> String| {
            compare(format!("{what} of device {}", depth + 1), fact(there), fact(here));
        };
        of_device("model", |device| device.model.clone().unwrap_or_else(|| "unknown".into()));
        of_device("kind", |device| device.kind.to_string());
        of_device("size", |device| format!("{} ({} B)", format_bytes(device.size_bytes), device.size_bytes));
        of_device("layout", |device| {
            device.layout.as_ref().map_or("none".into(), |layout| layout.how.clone())
        });
    }
    let caps = |facts: &TargetFacts| {
        let mut caps: Vec<String> = facts.caps.iter().map(ToString::to_string).collect();
        caps.sort_unstable();
        if caps.is_empty() { "none".into() } else { caps.join(", ") }
    };
    compare("caps".into(), caps(there), caps(here));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Cap, CapKind, DeviceKind, TargetKind};

    fn facts() -> TargetFacts {
        let device = DeviceFacts {
            name: "vda".into(),
            number: "254:0".into(),
            kind: DeviceKind::Disk,
            model: Some("A".into()),
            backing_file: None,
            size_bytes: 1 << 30,
            rotational: None,
            scheduler: None,
            requests_max: None,
            queues: None,
            request_bytes_max: None,
            logical_block_bytes: None,
            physical_block_bytes: None,
            write_cache: None,
            layout: None,
        };
        TargetFacts {
            path: "/data".into(),
            kind: TargetKind::Directory,
            filesystem: Some("ext4".into()),
            mount: Some("/data".into()),
            free_bytes: 0,
            devices: vec![device],
            direct_align_bytes: None,
            memory_align_bytes: 512,
            caps: Vec::new(),
        }
    }

    #[test]
    fn each_difference_is_named_and_names_do_not_count() {
        let mut other = facts();
        (other.path, other.mount) = ("/srv".into(), Some("/srv".into()));
        (other.devices[0].name, other.devices[0].number) = ("sdb".into(), "8:16".into());
        assert_eq!(differences(&facts(), &other), Vec::<String>::new());
        other.filesystem = Some("xfs".into());
        other.devices[0].model = None;
        other.devices[0].size_bytes = 2 << 30;
        other.caps.push(Cap {
            kind: CapKind::ReadIops,
            per_second: 9,
            device: "8:16".into(),
            origin: "a".into(),
        });
        assert_eq!(
            differences(&facts(), &other),
            [
                "file system: ext4 there, xfs here",
                "model of device 1: A there, unknown here",
                "size of device 1: 1 GiB (1073741824 B) there, 2 GiB (2147483648 B) here",
                "caps: none there, 9 reads a second here",
            ]
        );
    }
}
