//! Reading a workload file.

use crate::error::FileError;
use crate::presets::{PRESETS, Preset, preset};
use crate::settings::{CONTENTS, ContentSettings, LengthSettings, Settings};
use crate::table::{Table, line_of};
use crate::values::{self, Wrong, word};
use crate::write::quoted;
use std::path::PathBuf;
use std::time::Duration;
use toml::de::{DeTable, DeValue};
use workload::{
    Arrival, Distribution, Layout, Phase, Placed, Plan, PlanLayout, PlanTarget, Pool, RunLength, Shape,
    Workload,
};

/// A longer text is refused.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// The most phases of a plan.
const PHASES_MAX: usize = 1000;
/// The most workloads of a phase.
const WORKLOADS_MAX: usize = 256;

/// The workload where neither file nor flags say otherwise: random reads of 8 KiB, 32 outstanding.
pub fn default_workload() -> Workload {
    Workload::from(Shape::random_read(8192)).with_outstanding(32)
}

/// 30 s after 5 s of warm-up.
pub fn default_length() -> RunLength {
    RunLength { warm_up: Duration::from_secs(5), duration: Duration::from_secs(30), ..RunLength::default() }
}

/// Reads a workload file. If it names no targets, the plan has none, and all workloads refer to the first target, which
/// the caller adds.
///
/// # Errors
/// The first error, with its line.
pub fn read(text: &str) -> Result<Plan, FileError> {
    read_with(text, |_| Ok(())).map(|(plan, ())| plan)
}

impl Preset {
    /// The phase that it runs.
    ///
    /// # Panics
    /// Never: a test reads all presets.
    pub fn phase(&self) -> Phase {
        let plan = read(self.text).expect("presets are read by a test");
        plan.phases.into_iter().next().expect("a plan has a phase")
    }
}

/// Reads a workload file with further keys at its top level: `more` takes them.
///
/// # Errors
/// The first error, with its line.
pub fn read_with<T>(
    text: &str,
    more: impl FnOnce(&mut Table<'_>) -> Result<T, FileError>,
) -> Result<(Plan, T), FileError> {
    if text.len() > FILE_BYTES_MAX {
        let wrong = Wrong::new(
            format!("it has {} bytes", text.len()),
            format!("a workload file has at most {FILE_BYTES_MAX}: is this one?"),
        );
        return Err(FileError::new(1, "the file", wrong));
    }
    let root = DeTable::parse(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        let wrong =
            Wrong::new(error.message().lines().collect::<Vec<_>>().join(", "), "correct the TOML there");
        FileError::new(line, "the text", wrong)
    })?;
    let mut root = Table::new(text, "the file", &(0..0), root.get_ref());
    let more = more(&mut root)?;
    let targets = match root.table("targets")? {
        Some(table) => read_targets(table, text)?,
        None => Vec::new(),
    };
    let phases = root.tables("phases", "[[phases]]")?;
    finish(root, phases.len(), PHASES_MAX, "phases", "[[phases]]")?;
    let names: Vec<&str> = targets.iter().map(|(name, _)| name.as_str()).collect();
    let phases = phases.into_iter().map(|phase| read_phase(phase, &names)).collect::<Result<_, _>>()?;
    Ok((Plan { targets: targets.into_iter().map(|(_, target)| target).collect(), phases }, more))
}

/// Ends a table that has 1 to `most` tables below it. A misspelt key is the better explanation of none.
fn finish(table: Table<'_>, count: usize, most: usize, what: &str, heading: &str) -> Result<(), FileError> {
    let wrong =
        Wrong::new(format!("it has {count} {what}"), format!("give 1 to {most}, each under {heading}"));
    let wrong = table.wrong(wrong);
    table.finish()?;
    if (1..=most).contains(&count) { Ok(()) } else { Err(wrong) }
}

fn read_targets(mut table: Table<'_>, text: &str) -> Result<Vec<(String, PlanTarget)>, FileError> {
    let target = |(name, line, value): (&str, usize, &DeValue<'_>)| match value {
        DeValue::String(path) if !path.is_empty() => {
            Ok((name.to_owned(), PlanTarget { path: PathBuf::from(path.as_ref()), ..PlanTarget::default() }))
        }
        DeValue::Table(inner) => {
            let mut inner = Table::new(text, format!("target {name}"), &(0..0), inner);
            let path = inner.take("path", some_path)?;
            let create_bytes = inner.take("create", values::some_bytes)?;
            let layout = inner.take("layout", |text| {
                text.parse::<Layout>()
                    .map_err(|bad| Wrong::new(bad.to_string(), "as in layout = \"stripe:64K\""))
            })?;
            let others: Vec<PathBuf> = inner.strings("with")?.into_iter().map(PathBuf::from).collect();
            let laid = match (layout, others.is_empty()) {
                (None, true) => None,
                (Some(layout), false) => Some(PlanLayout { layout, others }),
                (layout, _) => {
                    let lacks = if layout.is_some() { "its other members" } else { "its layout" };
                    let form = "layout = \"stripe:64K\", with = [\"/dev/b\", \"/dev/c\"]";
                    let wrong = Wrong::new(format!("it does not say {lacks}"), form);
                    return Err(FileError::new(line, name, wrong));
                }
            };
            inner.finish()?;
            let missing =
                || FileError::new(line, name, Wrong::new("it has no path", "add path = \"/where/it/is\""));
            Ok((name.to_owned(), PlanTarget { path: path.ok_or_else(missing)?, create_bytes, laid }))
        }
        _ => {
            let form = format!("{name} = \"/path\", or {name} = {{ path = \"/path\", create = \"1G\" }}");
            Err(FileError::new(line, name, Wrong::new("that is no target", form)))
        }
    };
    table.rest().into_iter().map(target).collect()
}

fn some_path(text: &str) -> Result<PathBuf, Wrong> {
    if text.is_empty() { Err(Wrong::new("it is empty", "give a path")) } else { Ok(text.into()) }
}

fn read_phase(mut table: Table<'_>, targets: &[&str]) -> Result<Phase, FileError> {
    let name = table.take("name", |text| Ok(text.to_owned()))?.unwrap_or_default();
    let said = LengthSettings {
        warm_up: table.take("warm-up", values::time)?,
        duration: table.take("duration", values::some_time)?,
        ios_max: table.take("ios", values::ios)?,
        cool_down: table.take("cool-down", values::time)?,
    };
    let slice = table.take("series", slice)?.unwrap_or(Phase::SLICE);
    let pool = table.table("pool")?.map(read_pool).transpose()?;
    let tables = table.tables("workloads", "[[phases.workloads]]")?;
    finish(table, tables.len(), WORKLOADS_MAX, "workloads", "[[phases.workloads]]")?;
    let mut workloads = Vec::new();
    for table in tables {
        workloads.extend(read_workload(table, targets)?);
    }
    let mut phase = Phase { name, length: default_length(), slice, pool, workloads };
    said.apply(&mut phase);
    Ok(phase)
}

/// The width of a row of the series.
fn slice(text: &str) -> Result<Duration, Wrong> {
    let width = values::some_time(text)?;
    if width < Duration::from_millis(1) {
        return Err(Wrong::new(format!("a row each {width:?} is too fine"), "give 1ms or more"));
    }
    Ok(width)
}

fn read_pool(mut table: Table<'_>) -> Result<Pool, FileError> {
    let threads = table.take("threads", values::count)?;
    let outstanding = table.take("outstanding", values::count)?;
    let missing = table.wrong(Wrong::new("it has no threads", "pool = { threads = 4 }"));
    table.finish()?;
    Ok(Pool { threads: threads.ok_or(missing)?, outstanding })
}

/// One workload, or those of a preset: what stands beside the preset's name is laid over its first and main
/// one; the target, the caching and the seed are those of all of them.
fn read_workload(mut table: Table<'_>, targets: &[&str]) -> Result<Vec<Placed>, FileError> {
    let named = table.take("preset", |name| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        let unknown =
            || Wrong::new(format!("there is no preset '{name}'"), format!("one of {}", names.join(", ")));
        preset(name).ok_or_else(unknown)
    })?;
    let target = table.take("target", |name| match targets.iter().position(|known| *known == name) {
        Some(at) => Ok(at),
        None if targets.is_empty() => {
            Err(Wrong::new(format!("there is no target '{name}'"), "name it under [targets], with its path"))
        }
        None => {
            Err(Wrong::new(format!("there is no target '{name}'"), format!("one of {}", targets.join(", "))))
        }
    })?;
    if target.is_none() && targets.len() > 1 {
        let wrong = Wrong::new(
            format!("it does not say which of the {} targets", targets.len()),
            format!("add target = \"{}\"", targets[0]),
        );
        return Err(table.wrong(wrong));
    }
    let replays = table.has("replay");
    let settings = read_settings(&mut table, replays)?;
    let mut workloads = match named {
        Some(preset) => preset.phase().workloads,
        None => vec![Placed { target: 0, weight: 1, workload: default_workload(), replay: None }],
    };
    let shared = Settings { caching: settings.caching, seed: settings.seed, ..Settings::default() };
    for (at, placed) in workloads.iter_mut().enumerate() {
        placed.target = target.unwrap_or(0);
        if at == 0 {
            settings.apply(placed);
        } else {
            shared.apply(placed);
        }
        placed.workload.validate().map_err(|invalid| table.wrong(invalid.into()))?;
    }
    table.finish()?;
    Ok(workloads)
}

/// Reads one setting of a workload outside of a file: a key and its value.
///
/// # Errors
/// As for a file of that line alone. A speed is taken without its trace, which the caller checks.
pub fn read_setting(key: &str, value: &str) -> Result<Settings, FileError> {
    let form = || FileError::new(1, key, Wrong::new("that is no key", "give KEY=VALUE, as in zones=80%:20%"));
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err(form());
    }
    let text = format!("{key} = {}", quoted(value));
    let root = DeTable::parse(&text).map_err(|_| form())?;
    let mut table = Table::new(&text, "a workload", &(0..0), root.get_ref());
    let settings = read_settings(&mut table, true)?;
    table.finish()?;
    Ok(settings)
}

/// `replays` says whether a trace is issued, which alone has a speed.
fn read_settings(table: &mut Table<'_>, replays: bool) -> Result<Settings, FileError> {
    let path = |text: &str| some_path(text);
    let rate = table.take("rate", values::rate)?.map(|iops| Arrival::Constant { iops });
    let poisson = table.take("poisson", values::rate)?.map(|iops| Arrival::Poisson { iops });
    let replay = table.take("replay", path)?;
    let speed = table.take("speed", |text| {
        if !replays {
            return Err(Wrong::new("only a trace has a speed", "add replay = \"FILE\""));
        }
        values::speed(text)
    })?;
    let speed = speed.map(|speed| speed.map_or(Arrival::Closed, |speed| Arrival::Recorded { speed }));
    let arrival = one_of(table, "rate, poisson and speed", [rate, poisson, speed])?;
    let zipf = table.take("zipf", values::fraction)?.map(|theta| Distribution::Zipf { theta });
    let pareto = table.take("pareto", values::fraction)?.map(|h| Distribution::Pareto { h });
    let zones = table.take("zones", values::zones)?.map(|zones| Distribution::Zones { zones });
    let distribution = one_of(table, "zipf, pareto and zones", [zipf, pareto, zones])?;
    Ok(Settings {
        name: table.take("name", |text| Ok(text.to_owned()))?,
        block_bytes: table.take("block", values::block)?,
        sizes: table.take("sizes", values::sizes)?,
        pattern: table.take("pattern", word(values::PATTERNS))?,
        write_percent: table.take("writes", values::percent)?,
        caching: table.take("caching", word(values::CACHINGS))?,
        durability: table.take("durability", word(values::DURABILITIES))?,
        outstanding: table.take("outstanding", values::count)?,
        threads: table.take("threads", values::count)?,
        seed: table.take("seed", values::seed)?,
        from_bytes: table.take("offset", values::bytes)?,
        length_bytes: table.take("length", values::some_bytes)?,
        align_bytes: table.take("align", values::some_bytes)?,
        stride_bytes: table.take("stride", values::some_bytes)?,
        distribution,
        walk: table.take("walk", values::walk)?,
        random_percent: table.take("random-share", values::percent)?,
        same_offset: table.take("same-offset", word(values::YES))?,
        arrival,
        limit: table.take("limit", values::limit)?,
        burst: table.take("burst", values::burst)?,
        sync: table.take("sync", word(values::SYNCS))?,
        sync_every: table.take("sync-every", values::count)?,
        content: ContentSettings {
            kind: table.take("content", word(CONTENTS))?,
            compressible_percent: table.take("compressible", values::percent)?,
            duplicate_percent: table.take("duplicate", values::percent)?,
            buffer_bytes: table.take("buffer", values::some_bytes)?,
            buffer_file: table.take("buffer-file", path)?,
        },
        verify: table.take("verify", word(values::VERIFIES))?,
        replay,
        weight: table.take("weight", values::count)?,
    })
}

fn one_of<T>(table: &Table<'_>, what: &str, said: [Option<T>; 3]) -> Result<Option<T>, FileError> {
    let mut said = said.into_iter().flatten();
    let first = said.next();
    match said.next() {
        None => Ok(first),
        Some(_) => Err(table.wrong(Wrong::new(format!("{what} exclude each other"), "keep one of them"))),
    }
}
