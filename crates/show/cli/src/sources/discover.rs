use collect::discovery::Engine;
use discover::{Database, Options, Refusal, Scan, Scanner, Volume, add_capabilities};
use report::text::{DiscoveredDatabase, DiscoveredVolume};
use std::path::Path;
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, interrupt, kept};
use workload::parse_duration;

/// Arguments of `headroom sources discover`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom sources discover               databases and programs that use storage
  headroom sources discover --share 30%   programs with at least 30 % of a device's I/O
  headroom sources discover --json | jq -r '.databases[].source'
  headroom check --source 'SOURCE'        with a source that it printed

Finds database servers by their processes, SQLite programs and other engines by \
their counters, and any other program with much I/O. Run as root, it sees the \
files and sockets of all users. It changes nothing and keeps no connection.
Exit codes: 0 done, 3 the processes of this host cannot be read.")]
pub struct DiscoverArgs {
    /// List any program that does at least this share of a device's I/O
    #[arg(long, default_value = "10%", value_name = "SHARE", value_parser = parse_share)]
    share: f64,
    /// How long the I/O of programs is counted
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = parse_sample)]
    sample: Duration,
}

/// "10%", "0.1".
fn parse_share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "give a share as in 10% or 0.1, up to 100%".into())
}

const SAMPLE_MAX: Duration = Duration::from_secs(600);

fn parse_sample(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match time {
        Duration::ZERO => Err("in no time no I/O is seen; give a time as in 1s".into()),
        time if time > SAMPLE_MAX => Err("give at most 10m".into()),
        time => Ok(time),
    }
}

/// Sleep between two checks whether Ctrl-C was pressed.
const STEP: Duration = Duration::from_millis(100);

/// `headroom sources discover`: databases and programs that use storage, and the best source for each.
pub fn run(args: &DiscoverArgs, history: Option<&Path>, out: &mut Output) -> Done {
    interrupt::install();
    let unreadable = |error| {
        Failure::new(format_args!("cannot list the processes of this host: {error}"))
            .with_fact("directory: /proc")
            .with_remedy("mount it: mount -t proc proc /proc")
    };
    let options = Options { share_min: args.share, ..Options::default() };
    let mut scanner = Scanner::new(options).map_err(unreadable)?;
    count_for(args.sample, out);
    out.progress("trying the sources that may work", None);
    let mut scan = scanner.scan().map_err(unreadable)?;
    add_known(&mut scan, history, out);
    out.answer(
        |style| {
            let found: Vec<DiscoveredDatabase> = scan.databases.iter().map(described).collect();
            report::text::discover(&found, &scan.notes, style)
        },
        || serde_json::json!(scan),
    );
    Ok(FINE)
}

fn count_for(sample: Duration, out: &mut Output) {
    let began = Instant::now();
    while began.elapsed() < sample && !interrupt::requested() {
        let left = sample.saturating_sub(began.elapsed());
        out.progress("counting the I/O of programs", Some(left));
        std::thread::sleep(STEP.min(left));
    }
}

/// A host that was never measured has no history, which is no error here.
fn add_known(scan: &mut Scan, history: Option<&Path>, out: &mut Output) {
    let is_kept = kept::path(history).is_ok_and(|path| path.exists());
    if !is_kept {
        return;
    }
    let added = kept::open(history).and_then(|history| Ok(add_capabilities(scan, &history)?));
    if let Err(failure) = added {
        out.warn(format_args!("what was measured is not known: {failure}"));
    }
}

fn described(database: &Database) -> DiscoveredDatabase {
    let mut details: Vec<String> =
        database.version.iter().map(|version| format!("version {version}")).collect();
    if let Some(container) = &database.container {
        let name = container.name.as_ref().unwrap_or(&container.id);
        details.push(format!("{} container {name}", container.runtime));
    }
    details.extend(database.unit.clone().filter(|unit| *unit != database.name));
    if database.engine != Engine::Program && database.program != database.engine.name() {
        details.push(format!("program {}", database.program));
    }
    details.extend(database.share.as_ref().map(|share| {
        let percent = share.share * 100.0;
        format!("{percent:.0} % of the I/O of {}", share.device)
    }));
    // Beside a connection that works, another one gives nothing more.
    let is_connected = database.source.as_ref().is_some_and(|source| !source.starts_with("process:"));
    let refused = database.refused.iter().filter(|_| !is_connected).map(refused);
    DiscoveredDatabase {
        engine: database.engine.name().into(),
        pid: database.pid,
        name: database.name.clone(),
        details,
        source: database.source.clone(),
        volumes: database.volumes.iter().map(described_volume).collect(),
        grants: refused.chain(database.lacks.iter().cloned()).collect(),
        notes: database.notes.clone(),
    }
}

/// In one paragraph, as `doctor` has it in lines.
fn refused(refusal: &Refusal) -> String {
    let details =
        refusal.facts.iter().cloned().chain(refusal.remedy.iter().map(|remedy| format!("try: {remedy}")));
    let details = details.fold(String::new(), |text, detail| text + "; " + &detail);
    format!("for {}: {}{details}", refusal.source, refusal.error)
}

fn described_volume(volume: &Volume) -> DiscoveredVolume {
    let roles: Vec<&str> = volume.roles.iter().map(|role| role.name()).collect();
    let device = volume.device.iter().chain([&volume.filesystem]).cloned().collect::<Vec<_>>().join(", ");
    let capability = match volume.capability {
        Some(known) => format!("measured {} ago", format_age(known.age_s)),
        None if volume.is_visible => {
            let mount = shlex::try_quote(&volume.mount).map_or_else(|_| volume.mount.clone(), Into::into);
            format!("never measured: headroom measure {mount}")
        }
        None => "not visible on this host".into(),
    };
    DiscoveredVolume { roles: roles.join(", "), mount: volume.mount.clone(), device, capability }
}

fn format_age(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..60 => return "less than a minute".into(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage_or_a_fraction() {
        assert_eq!(
            (parse_share("10%"), parse_share("0.25"), parse_share("100%")),
            (Ok(0.1), Ok(0.25), Ok(1.0))
        );
        for wrong in ["", "%", "0", "-1%", "101%", "2", "nan", "x"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
        assert!(parse_sample("0s").is_err() && parse_sample("1h").is_err() && parse_sample("2s").is_ok());
    }

    #[test]
    fn an_age_is_said_in_the_largest_unit() {
        assert_eq!(
            [3, 60, 7200, 90_000].map(format_age),
            ["less than a minute", "1 minute", "2 hours", "1 day"]
        );
    }
}
