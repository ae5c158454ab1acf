//! A matrix from a TOML file, from flags, or from both: every flag that is given replaces the value in the file.

use super::MatrixFlags;
use crate::layouts;
use crate::run::RunArgs;
use ::matrix::{BlockBytes, Matrix, Order, Time};
use std::path::Path;
use terminal::Failure;
use workload::{Caching, Layout, Placed, Workload};
use workload_file::{LengthSettings, Settings, default_workload};

/// Whether the text of a file is a matrix: it has one of the tables that a workload file does not have.
pub fn is_definition(text: &str) -> bool {
    let table = text.parse::<toml::Table>();
    table.is_ok_and(|table| ["axes", "fixed", "runs"].iter().any(|key| table.contains_key(*key)))
}

/// The matrix of the arguments, valid, its targets as absolute paths.
pub fn matrix(args: &RunArgs, text: Option<&str>) -> Result<Matrix, Failure> {
    let mut matrix = match (&args.file, text) {
        (Some(path), Some(text)) => read(path, text)?,
        _ => one_point(),
    };
    let flags = &args.flags;
    let settings = flags.settings();
    refuse_others(args, &settings, flags.length())?;
    let (axes, runs) = (&mut matrix.axes, &mut matrix.runs);
    let blocks: Vec<BlockBytes> = flags.block.iter().copied().map(BlockBytes).collect();
    list(&mut axes.pattern, &flags.pattern);
    list(&mut axes.write_percent, &flags.writes);
    list(&mut axes.block, &blocks);
    list(&mut axes.outstanding, &flags.outstanding);
    list(&mut axes.threads, &flags.threads);
    let length = flags.length();
    one(&mut runs.duration, length.duration.map(Time));
    one(&mut runs.warm_up, length.warm_up.map(Time));
    one(&mut runs.cool_down, length.cool_down.map(Time));
    one(&mut runs.seed, settings.seed);
    let MatrixFlags { repeats, order, budget, prune, name, .. } = &args.several;
    one(&mut runs.repeats, *repeats);
    one(&mut runs.order, *order);
    one(&mut matrix.name, name.clone());
    runs.budget = budget.map(Time).or(runs.budget);
    runs.prune_percent = prune.or(runs.prune_percent);
    fix(&mut matrix, settings);
    matrix.fixed.size = args.size.or(matrix.fixed.size);
    let targets: Vec<String> = args.targets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    list(&mut matrix.targets, &targets);
    name_targets(&mut matrix, &args.layout)?;
    matrix.validate().map_err(|error| match &args.file {
        Some(file) => Failure::usage(format_args!("cannot run {}: {error}", file.display())),
        None => Failure::usage(error),
    })?;
    Ok(matrix)
}

/// The defaults of one run, as a matrix of one point.
fn one_point() -> Matrix {
    let mut matrix = Matrix::default();
    matrix.axes.outstanding = vec![default_workload().outstanding];
    matrix
}

/// Settings of every run, in the words of a workload file.
fn fix(matrix: &mut Matrix, settings: Settings) {
    let fixed = &mut matrix.fixed;
    let mut workload = Workload {
        access: fixed.access.clone(),
        limit: fixed.limit,
        sync: fixed.sync,
        content: fixed.content.clone(),
        ..default_workload()
    };
    workload.shape.caching = fixed.caching;
    workload.shape.durability = fixed.durability;
    let mut placed = Placed { target: 0, weight: 1, workload, replay: None };
    // A pattern belongs to the axes: it must not remove a distribution of the file.
    Settings { pattern: None, ..settings }.apply(&mut placed);
    let Workload { shape, access, limit, sync, content, .. } = placed.workload;
    (fixed.caching, fixed.durability) = (shape.caching, shape.durability);
    (fixed.access, fixed.limit, fixed.sync, fixed.content) = (access, limit, sync, content);
}

/// Refuses flags that a matrix does not have.
fn refuse_others(args: &RunArgs, settings: &Settings, length: LengthSettings) -> Result<(), Failure> {
    let given = [
        ("--preset", args.preset.is_some()),
        ("--print-file", args.print_file),
        ("--sizes", settings.sizes.is_some()),
        ("--rate, poisson and speed", settings.arrival.is_some()),
        ("burst", settings.burst.is_some()),
        ("--replay", settings.replay.is_some()),
        ("--verify", settings.verify.is_some()),
        ("caching=mapped", settings.caching == Some(Caching::Mapped)),
        ("--ios", length.ios_max.is_some()),
        ("--series", args.flags.series.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Failure::usage(format_args!("{flag}: not for several runs at once"))
            .with_remedy("one value of each flag and one target, or one run after another")),
        None => Ok(()),
    }
}

/// Makes the targets absolute, and one of all of them for each layout.
fn name_targets(matrix: &mut Matrix, layouts: &[Layout]) -> Result<(), Failure> {
    for target in &mut matrix.targets {
        if !is_foreign(target) && layouts::of_name(target).is_none() {
            let absolute = std::path::absolute(&*target).ok();
            *target = absolute
                .and_then(|path| path.into_os_string().into_string().ok())
                .unwrap_or_else(|| target.clone());
        }
    }
    if layouts.is_empty() {
        return Ok(());
    }
    if matrix.targets.len() < 2 || matrix.targets.iter().any(|target| target.contains(", ")) {
        return Err(Failure::usage("a layout has two members at least, without a comma in their paths")
            .with_remedy("--layout span,stripe:64K A B"));
    }
    let name = |layout: &Layout| layouts::name(*layout, &matrix.targets);
    matrix.targets = layouts.iter().map(name).collect();
    Ok(())
}

fn read(path: &Path, text: &str) -> Result<Matrix, Failure> {
    Matrix::from_toml(text).map_err(|error| {
        Failure::usage(format_args!("cannot read {}: {error}", path.display())).with_remedy(
            "correct the TOML there: [axes], [fixed] and [runs] have the options of headroom run as keys",
        )
    })
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

pub fn order(text: &str) -> Result<Order, String> {
    one_of(&[("listed", Order::Listed), ("random", Order::Random)], text)
}
