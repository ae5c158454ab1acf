use crate::{Point, RunKey, RunSchedule};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;
use workload::{
    Access, Caching, Content, Durability, InvalidWorkload, Limit, Pattern, Shape, SyncEvery, Workload,
    format_bytes, parse_bytes,
};

/// A matrix: what is run, on what, how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Matrix {
    /// For people; may be empty.
    pub name: String,
    /// Directories, regular files or block devices.
    pub targets: Vec<String>,
    /// The axes.
    pub axes: Axes,
    /// Settings of every run.
    pub fixed: Fixed,
    /// How the runs follow each other.
    pub runs: RunSchedule,
}

/// The values that are combined, each with each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Axes {
    /// Where the I/Os go.
    pub pattern: Vec<Pattern>,
    /// Share of writes.
    pub write_percent: Vec<u8>,
    /// Bytes of each I/O.
    pub block: Vec<BlockBytes>,
    /// I/Os outstanding in each thread.
    pub outstanding: Vec<u32>,
    /// Threads.
    pub threads: Vec<u32>,
}

/// Settings of every run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Fixed {
    /// Through the page cache or not.
    pub caching: Caching,
    /// When writes count as complete.
    pub durability: Durability,
    /// Size of the test file in a directory; `None`: 1 GiB, or what the largest point needs.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_bytes")]
    pub size: Option<u64>,
    /// Part of the target in use, and where I/Os gather.
    #[serde(skip_serializing_if = "is_default")]
    pub access: Access,
    /// Bounds of each run.
    #[serde(skip_serializing_if = "is_default")]
    pub limit: Limit,
    /// Syncs between writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncEvery>,
    /// Content of writes.
    #[serde(skip_serializing_if = "is_default")]
    pub content: Content,
}

/// A block size, written as "8K" or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct BlockBytes(pub u32);

/// A matrix that cannot be run, and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvalidMatrix {
    /// The text is no matrix.
    #[error("{0}")]
    Toml(String),
    /// Nothing to combine.
    #[error("{0} has no value: give at least one")]
    Empty(&'static str),
    /// A run that occurs twice is a repeat, not a value.
    #[error("{axis} has {value} twice: leave one out, repeats = 2 runs all points twice")]
    Twice {
        /// The axis.
        axis: &'static str,
        /// The value.
        value: String,
    },
    /// More than can be meant.
    #[error("{0} runs: give fewer values or repeats, up to {max} runs", max = Matrix::RUNS_MAX)]
    TooMany(u64),
    /// One of the points cannot be run.
    #[error("{point}: {error}")]
    Point {
        /// The point.
        point: String,
        /// Why.
        error: InvalidWorkload,
    },
    /// Another field is out of range.
    #[error("{what}: {remedy}")]
    Field {
        /// The field, with its value.
        what: String,
        /// The value to give instead.
        remedy: &'static str,
    },
}

impl Matrix {
    /// Most runs of a matrix.
    pub const RUNS_MAX: u64 = 100_000;
    /// Most repeats: of more, the chance that all lie below the median is too small a number.
    pub const REPEATS_MAX: u32 = 1000;
    /// Most points of a matrix.
    pub const POINTS_MAX: u64 = 20_000;

    /// Parses a matrix; missing fields have the value of [`Matrix::default`].
    ///
    /// # Errors
    /// [`InvalidMatrix::Toml`] with line and column; it is not [validated](Matrix::validate) yet.
    pub fn from_toml(text: &str) -> Result<Matrix, InvalidMatrix> {
        toml::from_str(text).map_err(|error| InvalidMatrix::Toml(error.to_string().trim_end().into()))
    }

    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), InvalidMatrix> {
        let field = |what: String, remedy| Err(InvalidMatrix::Field { what, remedy });
        let runs = &self.runs;
        if let Some(odd) = self.targets.iter().find(|it| it.is_empty() || it.contains(char::is_control)) {
            return field(format!("target {odd:?}"), "give a path without control characters");
        }
        values("targets", &self.targets)?;
        values("pattern", &self.axes.pattern.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>())?;
        values("write_percent", &self.axes.write_percent)?;
        values("block", &self.axes.block)?;
        values("outstanding", &self.axes.outstanding)?;
        values("threads", &self.axes.threads)?;
        if runs.repeats == 0 || runs.repeats > Self::REPEATS_MAX {
            return field(format!("repeats {}", runs.repeats), "give 1 to 1000");
        }
        let points = self.point_count();
        let all = points.saturating_mul(u64::from(runs.repeats));
        if points > Self::POINTS_MAX || all > Self::RUNS_MAX {
            return Err(InvalidMatrix::TooMany(all));
        }
        if runs.duration.0 < Duration::from_millis(1) {
            return field("a duration of less than 1 ms".into(), "give one as in 500ms or 10s");
        }
        if let Some(percent) =
            runs.prune_percent.filter(|percent| !(percent.is_finite() && (0.0..=100.0).contains(percent)))
        {
            return field(format!("prune_percent {percent}"), "give 0 to 100");
        }
        if runs.budget.is_some_and(|budget| budget.0 < runs.length().total()) {
            return field("a budget shorter than one run".into(), "give more time, or a shorter duration");
        }
        if let Some(percent) = self.axes.write_percent.iter().find(|percent| **percent > 100) {
            return field(format!("write_percent {percent}"), "give 0 to 100");
        }
        for point in self.points() {
            let workload = self.workload(&point, 0);
            workload.validate().map_err(|error| InvalidMatrix::Point { point: self.label(&point), error })?;
        }
        if let Some(size) = self.fixed.size.filter(|size| *size < self.bytes_least()) {
            let what = format!("size {}", format_bytes(size));
            return field(what, "each thread needs room for a block of its own: give more, or fewer threads");
        }
        Ok(())
    }

    /// Number of points.
    pub fn point_count(&self) -> u64 {
        let Axes { pattern, write_percent, block, outstanding, threads } = &self.axes;
        let lengths = [
            self.targets.len(),
            pattern.len(),
            write_percent.len(),
            block.len(),
            outstanding.len(),
            threads.len(),
        ];
        lengths.iter().fold(1, |product, length| product.saturating_mul(*length as u64))
    }

    /// Whether any point writes.
    pub fn writes(&self) -> bool {
        self.axes.write_percent.iter().any(|percent| *percent > 0)
    }

    /// Bytes without which a point could not run: a block for each thread.
    pub fn bytes_least(&self) -> u64 {
        self.points().iter().map(|it| u64::from(it.block_bytes) * u64::from(it.threads)).max().unwrap_or(0)
    }

    /// Bytes that the largest point keeps in flight: in a smaller file I/Os would meet on the same blocks.
    pub fn bytes_in_flight(&self) -> u64 {
        let bytes =
            |it: &Point| u64::from(it.block_bytes) * u64::from(it.threads) * u64::from(it.outstanding);
        self.points().iter().map(bytes).max().unwrap_or(0)
    }

    /// Size of the test file that is made in a directory where there is room for it.
    pub fn test_file_bytes(&self) -> u64 {
        self.fixed.size.unwrap_or_else(|| TEST_FILE_BYTES.max(self.bytes_in_flight()))
    }

    /// The workload of a point.
    pub fn workload(&self, point: &Point, seed: u64) -> Workload {
        let shape = Shape {
            block_bytes: point.block_bytes,
            pattern: point.pattern,
            write_percent: point.write_percent,
            caching: self.fixed.caching,
            durability: self.fixed.durability,
        };
        Workload {
            outstanding: point.outstanding,
            threads: point.threads,
            seed,
            access: self.fixed.access.clone(),
            limit: self.fixed.limit,
            // A run without writes has nothing to sync.
            sync: self.fixed.sync.filter(|_| shape.writes()),
            content: self.fixed.content.clone(),
            ..Workload::from(shape)
        }
    }

    /// The seed of a run: from the matrix's seed, the point's values and the number of the repeat, so that a
    /// point has the same seeds in a larger matrix as well.
    pub fn seed(&self, run: RunKey, point: &Point) -> u64 {
        point.seed(self.runs.seed, run.repeat)
    }

    /// A point in words: "random 75/25 8 KiB, 4 x 8 outstanding", and its target where there are several.
    pub fn label(&self, point: &Point) -> String {
        let shape = self.workload(point, 0).shape;
        let mut text = format!("{shape}, {} x {} outstanding", point.threads, point.outstanding);
        if self.targets.len() > 1 {
            text.push_str(&format!(", {}", self.targets[point.target]));
        }
        text
    }
}

/// Default size of the test file.
const TEST_FILE_BYTES: u64 = 1 << 30;

/// Random 8 KiB reads in the current directory, at rising outstanding I/Os.
impl Default for Matrix {
    fn default() -> Matrix {
        Matrix {
            name: String::new(),
            targets: vec![".".into()],
            axes: Axes::default(),
            fixed: Fixed::default(),
            runs: RunSchedule::default(),
        }
    }
}

impl Default for Axes {
    fn default() -> Axes {
        Axes {
            pattern: vec![Pattern::Random],
            write_percent: vec![0],
            block: vec![BlockBytes(8192)],
            outstanding: vec![1, 2, 4, 8, 16, 32, 64],
            threads: vec![1],
        }
    }
}

impl Default for Fixed {
    fn default() -> Fixed {
        Fixed {
            caching: Caching::Direct,
            durability: Durability::Cached,
            size: None,
            access: Access::default(),
            limit: Limit::default(),
            sync: None,
            content: Content::default(),
        }
    }
}

fn values<T: Ord + Debug>(axis: &'static str, values: &[T]) -> Result<(), InvalidMatrix> {
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(*value)) {
        Some(value) => Err(InvalidMatrix::Twice { axis, value: format!("{value:?}") }),
        None if values.is_empty() => Err(InvalidMatrix::Empty(axis)),
        None => Ok(()),
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a size as in \"8K\" or 8192")]
enum Written {
    Bytes(u64),
    Text(String),
}

impl Written {
    fn bytes<E: serde::de::Error>(&self) -> Result<u64, E> {
        match self {
            Written::Bytes(bytes) => Ok(*bytes),
            Written::Text(text) => parse_bytes(text).map_err(E::custom),
        }
    }
}

fn some_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Written::deserialize(deserializer)?.bytes().map(Some)
}

impl<'de> Deserialize<'de> for BlockBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BlockBytes, D::Error> {
        let bytes: u64 = Written::deserialize(deserializer)?.bytes()?;
        let small = u32::try_from(bytes).map_err(|_| D::Error::custom(InvalidWorkload::BlockBytes(u32::MAX)));
        small.map(BlockBytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Order;
    use std::time::Duration;

    const STUDY_C: &str = r#"
        targets = ["/data"]
        [axes]
        pattern = ["random", "sequential"]
        write_percent = [0, 10, 25, 100]
        block = ["8K", "64K", "512K", "2M"]
        outstanding = [2, 4, 8, 16]
        threads = [4, 8, 16, 32]
        [fixed]
        size = "440G"
        durability = "write-through"
        [runs]
        warm_up = "5s"
        duration = 120
        order = "random"
        budget = "2h"
        "#;

    #[test]
    fn the_generator_of_study_c_is_a_few_lines_of_toml() {
        let matrix = Matrix::from_toml(STUDY_C).unwrap();
        assert_eq!(matrix.validate(), Ok(()));
        assert_eq!(matrix.point_count(), 2 * 4 * 4 * 4 * 4);
        assert_eq!(matrix.runs.length().total(), Duration::from_secs(125));
        assert_eq!(matrix.runs.order, Order::Random);
        assert_eq!(matrix.fixed.size, Some(440 << 30));
        assert_eq!(matrix.bytes_in_flight(), (32 * 16) << 21);
        let json = serde_json::to_string(&matrix).unwrap();
        assert_eq!(serde_json::from_str::<Matrix>(&json).unwrap(), matrix);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |text: &str| Matrix::from_toml(text).unwrap_err().to_string();
        assert!(error("[axes]\nblocks = [1]").contains("line 2"), "{}", error("[axes]\nblocks = [1]"));
        assert!(error("[axes]\nblock = ['8X']").contains("'8X' is not a size"));
        assert!(error("[runs]\nduration = 'long'").contains("'long' is not a time"));
        let refused = |text: &str| Matrix::from_toml(text).unwrap().validate().unwrap_err().to_string();
        assert!(refused("[axes]\nthreads = []").starts_with("threads has no value"));
        assert!(refused("[axes]\nthreads = [4, 4]").starts_with("threads has 4 twice"));
        assert!(refused("[axes]\nblock = [1000]").contains("block size 1000 B"));
        assert!(refused("[axes]\nwrite_percent = [101]").contains("write_percent 101"));
        assert!(refused("[runs]\nrepeats = 0").contains("give 1 to 1000"));
        assert!(
            refused(
                "[runs]\nrepeats = 1000\n[axes]\nwrite_percent = [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"
            )
            .contains("112000 runs")
        );
        assert!(refused("[runs]\nbudget = '5s'").contains("shorter than one run"));
        assert!(refused("[fixed]\nsize = 4096").contains("size 4 KiB"));
    }
}
