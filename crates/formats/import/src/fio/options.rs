//! fio's job options as a workload. Its JSON holds the options as they were written, without those that stand
//! without a value (`time_based`, `group_reporting`, `stonewall`), and without defaults.

use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use workload::*;

/// Options by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options(BTreeMap<String, String>);

/// Synchronous engines: one I/O at a time.
const ONE_AT_A_TIME: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];

impl Options {
    /// Options from the JSON: an object, or in some versions a list with one object.
    pub fn from_json(value: &Value) -> Options {
        let object = match value {
            Value::Array(list) => list.first().and_then(Value::as_object),
            other => other.as_object(),
        };
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let entries = object.into_iter().flatten().map(|(key, value)| (canonical(key).into(), word(value)));
        Options(entries.collect())
    }

    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(canonical(name).into(), value.into());
    }

    /// These, and where the others say something, those.
    pub fn overlaid(mut self, others: &Options) -> Options {
        self.0.extend(others.0.iter().map(|(key, value)| (key.clone(), value.clone())));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.trim().parse().ok()
    }

    fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "0" | "none"))
    }

    pub fn threads(&self) -> u32 {
        self.number("numjobs").unwrap_or(1).clamp(1, 1 << 20)
    }

    /// Bytes of the file or region, where they are said in bytes.
    pub fn size_bytes(&self) -> Option<u64> {
        parse_bytes(self.get("size")?).ok()
    }

    pub fn ramp_ms(&self) -> u64 {
        let ramp = self.get("ramp_time").and_then(|time| parse_duration(time).ok()).unwrap_or_default();
        u64::try_from(ramp.as_millis()).unwrap_or(u64::MAX)
    }

    pub fn length(&self) -> Option<RunLength> {
        let duration = parse_duration(self.get("runtime")?).ok()?;
        Some(RunLength { warm_up: Duration::from_millis(self.ramp_ms()), duration, ..RunLength::default() })
    }

    /// Target of the job, as far as the options say.
    pub fn target(&self, job: &str) -> String {
        let target = match (self.get("filename"), self.get("directory")) {
            (Some(file), Some(directory)) if !file.starts_with('/') => format!("{directory}/{file}"),
            (Some(file), _) => file.into(),
            (None, Some(directory)) => format!("{directory}/{job}"),
            (None, None) => job.into(),
        };
        // A colon parts files; that of a drive is escaped.
        if self.names_windows_path() { target.replace("\\:", ":") } else { target }
    }

    /// Whether its file or directory is one of Windows: `E\:\data`, `.\data`, `\\.\PhysicalDrive1`.
    pub fn names_windows_path(&self) -> bool {
        let is_windows = |path: &str| {
            let has_drive = path.starts_with(|c: char| c.is_ascii_alphabetic())
                && path[1..].trim_start_matches('\\').starts_with(':');
            has_drive || path.contains('\\') && !path.starts_with('/')
        };
        ["filename", "directory"].iter().filter_map(|name| self.get(name)).any(is_windows)
    }

    fn rw(&self) -> &str {
        self.get("rw").unwrap_or("read").split(':').next().unwrap_or("read")
    }

    pub fn write_percent(&self) -> u8 {
        match self.rw() {
            "write" | "randwrite" | "trimwrite" | "randtrimwrite" => 100,
            "rw" | "readwrite" | "randrw" => {
                let reads = self.number::<u8>("rwmixread").map(|reads| 100 - reads.min(100));
                reads.or(self.number("rwmixwrite")).unwrap_or(50).min(100)
            }
            _ => 0,
        }
    }

    /// The workload; what it cannot say is said in words.
    pub fn workload(&self, name: &str, said: &mut Vec<String>) -> Workload {
        let write_percent = self.write_percent();
        let random = self.rw().starts_with("rand");
        let sizes = self.sizes(write_percent, said);
        let block_bytes = sizes.iter().map(|size| size.block_bytes).max().unwrap_or(4096);
        let engine = self.get("ioengine").unwrap_or("psync");
        let mut outstanding = self.number("iodepth").unwrap_or(1).max(1);
        if outstanding > 1 && ONE_AT_A_TIME.contains(&engine) {
            said.push(format!("iodepth {outstanding}, but the engine {engine} does one I/O at a time"));
            outstanding = 1;
        }
        let through = matches!(self.get("sync"), Some("1" | "sync" | "dsync")) || self.is("dsync");
        let shape = Shape {
            block_bytes,
            pattern: if random { Pattern::Random } else { Pattern::Sequential },
            write_percent,
            caching: match engine {
                "mmap" => Caching::Mapped,
                _ if self.is("direct") || self.get("buffered") == Some("0") => Caching::Direct,
                _ => Caching::Buffered,
            },
            durability: if through { Durability::WriteThrough } else { Durability::Cached },
        };
        for unsaid in
            ["verify", "rate_process", "thinktime_spin", "replay_redirect", "read_iolog", "zonemode"]
        {
            if let Some(value) = self.get(unsaid) {
                said.push(format!("{unsaid}={value} has no word in a workload of ours"));
            }
        }
        Workload {
            name: name.into(),
            shape,
            outstanding,
            threads: self.threads(),
            seed: self.number("randseed").unwrap_or(0),
            access: self.access(random, said),
            sizes: if sizes.len() > 1 { sizes } else { Vec::new() },
            arrival: Arrival::Closed,
            limit: self.limit(write_percent),
            burst: self.burst(),
            sync: self.syncs(),
            content: self.content(),
            verify: None,
        }
    }

    /// `bs` and `bssplit`, for reads and writes: "4k", "4k,8k", "4k/60:16k/40,8k". Where both directions are
    /// used and differ, their sizes are mixed by the share of writes.
    fn sizes(&self, write_percent: u8, said: &mut Vec<String>) -> Vec<SizeShare> {
        let of = |direction: usize| -> Vec<(u32, f64)> {
            let pick = |text: &str| {
                let parts: Vec<&str> = text.split(',').collect();
                // Beyond the last comma the last value holds; an empty one is the default.
                parts.get(direction).or(parts.last()).map(|part| (*part).to_owned()).unwrap_or_default()
            };
            if let Some(split) = self.get("bssplit") {
                return split_sizes(&pick(split));
            }
            if let Some(range) = self.get("bsrange") {
                let largest = pick(range).rsplit('-').next().and_then(block_bytes);
                return largest.map(|bytes| (bytes, 100.0)).into_iter().collect();
            }
            let bytes = self.get("bs").and_then(|bs| block_bytes(&pick(bs))).unwrap_or(4096);
            vec![(bytes, 100.0)]
        };
        if let Some(range) = self.get("bsrange") {
            said.push(format!("block sizes {range} at random: kept as the largest"));
        }
        let (reads, writes) = (of(0), of(1));
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        let write = f64::from(write_percent) / 100.0;
        for (list, weight) in [(&reads, 1.0 - write), (&writes, write)] {
            for (bytes, percent) in list.iter().filter(|_| weight > 0.0) {
                *shares.entry(*bytes).or_default() += percent * weight;
            }
        }
        if (1..100).contains(&write_percent) && reads != writes {
            said.push("reads and writes have block sizes of their own: kept as a mix".into());
        }
        whole_percents(&shares)
    }

    fn access(&self, random: bool, said: &mut Vec<String>) -> Access {
        let mut access = Access {
            base_bytes: self.get("offset").and_then(|at| parse_bytes(at).ok()).unwrap_or(0),
            length_bytes: self.size_bytes().filter(|bytes| *bytes > 0),
            random_percent: self.number("percentage_random").filter(|percent| random && *percent < 100),
            ..Access::default()
        };
        let Some(distribution) = self.get("random_distribution").filter(|_| random) else { return access };
        let (kind, rest) = distribution.split_once(':').unwrap_or((distribution, ""));
        let value = rest.split(':').next().unwrap_or_default().parse::<f64>().ok();
        access.distribution = match (kind, value) {
            ("random", _) => Distribution::Uniform,
            ("zipf", value) => Distribution::Zipf { theta: value.unwrap_or(1.1).clamp(0.0, 10.0) },
            ("pareto", value) => Distribution::Pareto { h: value.unwrap_or(0.2).clamp(0.001, 0.5) },
            ("zoned", _) => Distribution::Zones { zones: zones(rest, Extent::Percent) },
            _ => {
                said.push(format!("random_distribution={distribution}: kept as uniform"));
                Distribution::Uniform
            }
        };
        access
    }

    /// `rate` and `rate_iops` hold for each thread, and for each direction.
    fn limit(&self, write_percent: u8) -> Limit {
        let sum = |name: &str| -> Option<f64> {
            let parts: Vec<Option<u64>> =
                self.get(name)?.split(',').map(|part| parse_bytes(part).ok()).collect();
            let of = |direction: usize| parts.get(direction).or(parts.first().filter(|_| parts.len() == 1));
            let reads = of(0).copied().flatten().filter(|_| write_percent < 100);
            let writes = of(1).copied().flatten().filter(|_| write_percent > 0);
            let sum = reads.unwrap_or(0).saturating_add(writes.unwrap_or(0)) as f64;
            (sum > 0.0).then(|| sum * f64::from(self.threads()))
        };
        Limit { iops: sum("rate_iops"), bytes_per_s: sum("rate") }
    }

    fn burst(&self) -> Option<Burst> {
        let pause = self.get("thinktime").filter(|time| *time != "0")?;
        // Without a unit fio means microseconds.
        let pause = match pause.parse::<u64>() {
            Ok(us) => Duration::from_micros(us),
            Err(_) => parse_duration(pause).ok()?,
        };
        Some(Burst { ios: self.number("thinktime_blocks").unwrap_or(1).max(1), pause })
    }

    fn syncs(&self) -> Option<SyncEvery> {
        let every = |name: &str, how| {
            self.number(name).filter(|writes| *writes > 0).map(|writes| SyncEvery { writes, how })
        };
        every("fdatasync", SyncKind::Fdatasync).or_else(|| every("fsync", SyncKind::Fsync))
    }

    fn content(&self) -> Content {
        if self.is("zero_buffers") {
            return Content::Zeros;
        }
        if self.is("refill_buffers") {
            return Content::Fresh;
        }
        let percent = |name: &str| self.number::<u8>(name).unwrap_or(0).min(100);
        Content::Random {
            compressible_percent: percent("buffer_compress_percentage"),
            duplicate_percent: percent("dedupe_percentage"),
        }
    }
}

/// fio's older and longer names.
fn canonical(name: &str) -> &str {
    match name {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "blocksize_range" => "bsrange",
        "fileoffset" | "io_offset" => "offset",
        other => other,
    }
}

fn block_bytes(text: &str) -> Option<u32> {
    let bytes = parse_bytes(text).ok()?;
    u32::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}

/// "4k/60:16k/40"; sizes without a share divide what the others leave.
fn split_sizes(text: &str) -> Vec<(u32, f64)> {
    let parts = text.split(':').filter_map(|part| {
        let (bytes, percent) = part.split_once('/').unwrap_or((part, ""));
        Some((
            block_bytes(bytes)?,
            percent.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent)),
        ))
    });
    let parts: Vec<(u32, Option<f64>)> = parts.collect();
    let given: f64 = parts.iter().filter_map(|(_, percent)| *percent).sum();
    let open = parts.iter().filter(|(_, percent)| percent.is_none()).count();
    let each = (100.0 - given).max(0.0) / open.max(1) as f64;
    parts.into_iter().map(|(bytes, percent)| (bytes, percent.unwrap_or(each))).collect()
}

/// Shares in whole percents that sum to 100: what rounding leaves goes to the largest.
fn whole_percents(shares: &BTreeMap<u32, f64>) -> Vec<SizeShare> {
    let sum: f64 = shares.values().sum();
    if sum <= 0.0 {
        return Vec::new();
    }
    let mut whole: Vec<SizeShare> = shares
        .iter()
        .map(|(bytes, share)| SizeShare { block_bytes: *bytes, percent: (share / sum * 100.0).round() as u8 })
        .collect();
    let rounded: i32 = whole.iter().map(|size| i32::from(size.percent)).sum();
    if let Some(largest) = whole.iter_mut().max_by_key(|size| size.percent) {
        largest.percent = u8::try_from(i32::from(largest.percent) + 100 - rounded).unwrap_or(largest.percent);
    }
    whole
}

/// "50/10:30/15": percent of the I/Os in percent of the target.
fn zones(text: &str, extent: fn(u8) -> Extent) -> Vec<Zone> {
    let zone = |part: &str| {
        let (ios, size) = part.split_once('/')?;
        Some(Zone { ios_percent: ios.trim().parse().ok()?, extent: extent(size.trim().parse().ok()?) })
    };
    text.split(',').next().unwrap_or_default().split(':').filter_map(zone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(options: &[(&str, &str)]) -> (Workload, Vec<String>) {
        let mut all = Options::default();
        options.iter().for_each(|(key, value)| all.set(key, *value));
        let mut said = Vec::new();
        (all.workload("job", &mut said), said)
    }

    #[test]
    fn options_make_a_workload() {
        let (asked, said) = workload(&[
            ("rw", "randrw"),
            ("rwmixread", "70"),
            ("bs", "8k"),
            ("iodepth", "16"),
            ("numjobs", "4"),
            ("ioengine", "libaio"),
            ("direct", "1"),
            ("rate_iops", "100,50"),
            ("fdatasync", "8"),
        ]);
        assert_eq!(said, Vec::<String>::new());
        assert_eq!(asked.shape, Shape::random_read(8192).with_writes(30));
        assert_eq!((asked.outstanding, asked.threads), (16, 4));
        assert_eq!(asked.limit.iops, Some(600.0));
        assert_eq!(asked.sync, Some(SyncEvery { writes: 8, how: SyncKind::Fdatasync }));
        assert_eq!(asked.validate(), Ok(()));
    }

    #[test]
    fn a_mix_of_sizes_sums_to_all_ios() {
        let mix = |split: &str| {
            let (asked, _) = workload(&[("rw", "randread"), ("bssplit", split)]);
            assert_eq!(asked.validate(), Ok(()), "{split}");
            asked.sizes.iter().map(|size| (size.block_bytes, size.percent)).collect::<Vec<_>>()
        };
        assert_eq!(mix("4k/60:16k/40"), [(4096, 60), (16384, 40)]);
        assert_eq!(mix("4k/50:8k:16k"), [(4096, 50), (8192, 25), (16384, 25)]);
        assert_eq!(mix("4k:8k:16k"), [(4096, 33), (8192, 33), (16384, 34)]);
    }

    #[test]
    fn what_an_engine_cannot_is_said() {
        let (asked, said) = workload(&[("rw", "read"), ("iodepth", "32")]);
        assert_eq!(asked.outstanding, 1);
        assert_eq!(said, ["iodepth 32, but the engine psync does one I/O at a time"]);
    }
}
