//! A matrix from a TOML file, from flags, or from both.

use crate::layouts;
use ::matrix::{BlockBytes, Matrix, Order, Time};
use std::path::PathBuf;
use terminal::{Failure, text_file};
use workload::{Caching, Durability, Layout, Pattern, parse_bytes, parse_duration};
use workload_file::values;

/// The runs to make: every flag that is given replaces the value in FILE.
#[derive(clap::Args, Default, PartialEq)]
pub struct DefinitionArgs {
    /// Definition in TOML: [axes], [fixed] and [runs] have these options as keys
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Directories (a test file is made in each), files or block devices [default: .]
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    target: Vec<String>,
    /// The targets, two or more files or devices, as one: span or stripe:UNIT; several are compared
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "target")]
    layout: Vec<Layout>,
    /// random, sequential [default: random]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = pattern)]
    pattern: Vec<Pattern>,
    /// Shares of writes in percent [default: 0]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    writes: Vec<u8>,
    /// Block sizes [default: 8K]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = block)]
    block: Vec<BlockBytes>,
    /// I/Os outstanding in each thread [default: 1,2,4,8,16,32,64]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    outstanding: Vec<u32>,
    /// Threads [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Measured time of each run [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Time>,
    /// Time before it that is not measured [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    warm_up: Option<Time>,
    /// Time after it that is not measured [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    cool_down: Option<Time>,
    /// Runs of each point; several give confidence intervals [default: 1]
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// listed or random [default: listed]
    #[arg(long, value_name = "ORDER", value_parser = order)]
    order: Option<Order>,
    /// Seed of all offsets and of the random order [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Time for all of it: a coarse pass first, then where curves bend or repeats disagree
    #[arg(long, value_name = "TIME", value_parser = time)]
    budget: Option<Time>,
    /// Skip points beyond saturation: where four times the outstanding I/Os gain less than PERCENT [default: 5]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "5")]
    prune: Option<f64>,
    /// Size of the test file in a directory [default: 1G, more for the largest point, less where little is free]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    size: Option<u64>,
    /// Through the page cache; results are labelled so
    #[arg(long)]
    buffered: bool,
    /// When a write counts: cached, write-through or synced [default: cached]
    #[arg(long, value_name = "WHEN", value_parser = durability)]
    durability: Option<Durability>,
    /// Name for lists and headings
    #[arg(long)]
    name: Option<String>,
}

impl DefinitionArgs {
    /// Whether anything says what is run.
    pub fn is_given(&self) -> bool {
        *self != DefinitionArgs::default()
    }

    /// The matrix, valid, its targets as absolute paths.
    pub fn matrix(&self) -> Result<Matrix, Failure> {
        let mut matrix = self.file()?;
        let (axes, fixed, runs) = (&mut matrix.axes, &mut matrix.fixed, &mut matrix.runs);
        list(&mut matrix.targets, &self.target);
        list(&mut axes.pattern, &self.pattern);
        list(&mut axes.write_percent, &self.writes);
        list(&mut axes.block, &self.block);
        list(&mut axes.outstanding, &self.outstanding);
        list(&mut axes.threads, &self.threads);
        one(&mut runs.duration, self.duration);
        one(&mut runs.warm_up, self.warm_up);
        one(&mut runs.cool_down, self.cool_down);
        one(&mut runs.repeats, self.repeats);
        one(&mut runs.order, self.order);
        one(&mut runs.seed, self.seed);
        one(&mut fixed.durability, self.durability);
        one(&mut matrix.name, self.name.clone());
        runs.budget = self.budget.or(runs.budget);
        runs.prune_percent = self.prune.or(runs.prune_percent);
        fixed.size = self.size.or(fixed.size);
        if self.buffered {
            fixed.caching = Caching::Buffered;
        }
        for target in &mut matrix.targets {
            if !is_foreign(target) && layouts::of_name(target).is_none() {
                let absolute = std::path::absolute(&*target).ok();
                *target = absolute
                    .and_then(|path| path.into_os_string().into_string().ok())
                    .unwrap_or_else(|| target.clone());
            }
        }
        if !self.layout.is_empty() {
            if matrix.targets.len() < 2 || matrix.targets.iter().any(|target| target.contains(", ")) {
                return Err(Failure::usage(
                    "a layout has two members at least, without a comma in their paths",
                )
                .with_remedy("--layout span,stripe:64K --target A,B"));
            }
            let name = |layout: &Layout| layouts::name(*layout, &matrix.targets);
            matrix.targets = self.layout.iter().map(name).collect();
        }
        matrix.validate().map_err(|error| match &self.file {
            Some(file) => Failure::usage(format_args!("cannot run {}: {error}", file.display())),
            None => Failure::usage(error),
        })?;
        Ok(matrix)
    }

    fn file(&self) -> Result<Matrix, Failure> {
        let Some(path) = &self.file else { return Ok(Matrix::default()) };
        if path.is_dir() {
            return Err(Failure::usage(format_args!("{} is a directory, not a definition", path.display()))
                .with_remedy(format_args!("--target {}", path.display())));
        }
        let text = text_file::read(path, "definition", "a TOML file with the parameters under [axes]")?;
        Matrix::from_toml(&text).map_err(|error| {
            Failure::usage(format_args!("cannot read {}: {error}", path.display()))
                .with_remedy("correct the TOML there: [axes], [fixed] and [runs] have the options of headroom matrix as keys")
        })
    }
}

/// A name that only another system knows: for `--emit diskspd`.
fn is_foreign(target: &str) -> bool {
    let bytes = target.as_bytes();
    target.starts_with(['#', '\\'])
        || (bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && bytes[2] == b'\\')
}

fn list<T: Clone>(value: &mut Vec<T>, given: &[T]) {
    if !given.is_empty() {
        *value = given.to_vec();
    }
}

fn one<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}

/// The value of one of a few words.
pub fn one_of<T: Copy>(choices: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = choices.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let (last, others) = choices.split_last().expect("there are words to choose from");
        let others: Vec<&str> = others.iter().map(|(word, _)| *word).collect();
        format!("give {} or {}", others.join(", "), last.0)
    })
}

fn pattern(text: &str) -> Result<Pattern, String> {
    one_of(values::PATTERNS, text)
}

fn order(text: &str) -> Result<Order, String> {
    one_of(&[("listed", Order::Listed), ("random", Order::Random)], text)
}

fn durability(text: &str) -> Result<Durability, String> {
    one_of(values::DURABILITIES, text)
}

fn time(text: &str) -> Result<Time, String> {
    parse_duration(text).map(Time).map_err(|error| error.to_string())
}

fn block(text: &str) -> Result<BlockBytes, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes).map(BlockBytes).map_err(|_| "give a multiple of 512 bytes, up to 16M".into())
}
