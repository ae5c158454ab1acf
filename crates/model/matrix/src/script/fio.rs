//! fio, as one job file or as a shell script that calls it for each run. Both say the same options.

use super::{Place, ScriptRun, head, part_bytes, runs, short};
use crate::{Matrix, Time};
use std::fmt::Write as _;
use workload::{Caching, Content, Durability, Pattern, SyncKind};

/// Options as (name, value).
type Options = Vec<(&'static str, String)>;

pub(super) fn job_file(matrix: &Matrix, places: &[Place]) -> Result<String, String> {
    for place in places {
        let path = place.path();
        // A comment begins anywhere, and there are no quotes against it.
        if path.contains("${") || path.contains(['"', ';', '#']) || path.trim() != path {
            return Err(format!("a job file cannot hold the path {path}; emit sh instead, or rename it"));
        }
    }
    let notes = [
        "fio --output-format=json --output=result.json THIS-FILE",
        "One job of the result is one run. io_uring needs Linux 5.1; else write libaio.",
        "fio makes headroom-test.dat, full, before the first run; remove it afterwards. fio has no cool-down.",
    ];
    let mut file = head(matrix, ";", matrix.runs.length().total(), &notes);
    file.push_str("\n[global]\n");
    lines(&mut file, &common(matrix));
    let points = matrix.points();
    for run in runs(matrix, &points, places) {
        let _ = writeln!(file, "\n[{}]\nstonewall", run.name);
        let _ = writeln!(file, "filename={}", escaped(run.place.path()));
        lines(&mut file, &run_options(matrix, &run));
    }
    Ok(file)
}

fn lines(file: &mut String, options: &Options) {
    for (name, value) in options {
        let _ = writeln!(file, "{name}={value}");
    }
}

pub(super) fn shell(matrix: &Matrix, places: &[Place]) -> Result<String, String> {
    let notes = [
        "sh THIS-FILE [FOLDER]   results go to FOLDER, a JSON file each; started again it does what is missing",
        "ENGINE=libaio sh ...    where io_uring is unavailable; fio has no cool-down",
    ];
    let mut script = String::from("#!/bin/sh\n");
    script += &head(matrix, "#", matrix.runs.length().total(), &notes);
    let points = matrix.points();
    let runs = runs(matrix, &points, places);
    let common = common(matrix).into_iter().filter(|(name, _)| *name != "ioengine");
    let common: String = common.map(|(name, value)| format!(" --{name}={value}")).collect();
    script += &SHELL.replace("@RUNS@", &runs.len().to_string()).replace("@COMMON@", &common);
    let bytes = matrix.test_file_bytes();
    for place in places {
        if let Place::File(path) = place {
            let _ = writeln!(script, "make_file {} {} {bytes}", quoted(path), quoted(&escaped(path)));
        }
    }
    for run in &runs {
        let options = run_options(matrix, run).into_iter().map(|(name, value)| format!(" --{name}={value}"));
        let options: String = options.collect();
        let _ =
            writeln!(script, "run {} --filename={}{options}", run.name, quoted(&escaped(run.place.path())));
    }
    script.push_str("echo \"results are in $out\" >&2\n");
    Ok(script)
}

const SHELL: &str = r#"
set -eu
out=${1:-headroom-matrix-$(date +%Y-%m-%d)}
mkdir -p -- "$out"
runs=@RUNS@
k=0
trap 'exit 130' INT TERM HUP

# Full, so that reads come from the storage. An existing file is never touched.
make_file() { # PATH, PATH as fio takes it, BYTES
  if ! (set -C; : > "$1"); then
    echo "error: $1 exists or cannot be made; where it is of an earlier run that was killed, remove it" >&2
    exit 3
  fi
  made="$made
$1"
  echo "writing $1" >&2
  fio --name=prepare --filename="$2" --rw=write --bs=1m --size="$3" --ioengine=psync --end_fsync=1 \
    --refill_buffers --output=/dev/null
}

made=
remove_files() {
  printf '%s\n' "$made" | while IFS= read -r path; do
    if [ -n "$path" ]; then rm -f -- "$path"; fi
  done
}
trap remove_files EXIT

run() { # NAME, options
  k=$((k + 1))
  name=$1
  shift
  if [ -s "$out/$name.json" ]; then return 0; fi
  echo "run $k of $runs: $name" >&2
  fio --name="$name" --ioengine="${ENGINE:-io_uring}"@COMMON@ "$@" \
    --output-format=json+ --output="$out/$name.part"
  mv -- "$out/$name.part" "$out/$name.json"
}

"#;

/// The options that all runs share.
fn common(matrix: &Matrix) -> Options {
    let fixed = &matrix.fixed;
    let direct = fixed.caching == Caching::Direct;
    let mut options: Options = vec![
        ("ioengine", "io_uring".into()),
        ("direct", u8::from(direct).to_string()),
        ("time_based", "1".into()),
        ("runtime", millis(matrix.runs.duration)),
        ("ramp_time", millis(matrix.runs.warm_up)),
        ("norandommap", "1".into()),
        // A file that is only written is laid out in full as well.
        ("overwrite", "1".into()),
        ("group_reporting", "1".into()),
        ("thread", "1".into()),
    ];
    match fixed.durability {
        Durability::Cached => {}
        Durability::WriteThrough => options.push(("sync", "dsync".into())),
        Durability::Synced => options.push(("fdatasync", "1".into())),
    }
    if let Some(sync) = fixed.sync {
        let name = match sync.how {
            SyncKind::Fsync => "fsync",
            SyncKind::Fdatasync => "fdatasync",
        };
        options.push((name, sync.writes.to_string()));
    }
    if fixed.content == Content::Zeros {
        options.push(("zero_buffers", "1".into()));
    } else {
        options.push(("refill_buffers", "1".into()));
    }
    options
}

/// The options of one run.
fn run_options(matrix: &Matrix, run: &ScriptRun<'_>) -> Options {
    let point = run.point;
    let bytes = matrix.test_file_bytes();
    let rw = match (point.pattern, point.write_percent) {
        (Pattern::Random, 0) => "randread",
        (Pattern::Random, 100) => "randwrite",
        (Pattern::Random, _) => "randrw",
        (Pattern::Sequential, 0) => "read",
        (Pattern::Sequential, 100) => "write",
        (Pattern::Sequential, _) => "rw",
    };
    let mut options: Options = vec![("rw", rw.into())];
    if !matches!(point.write_percent, 0 | 100) {
        options.push(("rwmixwrite", point.write_percent.to_string()));
    }
    options.push(("bs", short(u64::from(point.block_bytes))));
    options.push(("iodepth", point.outstanding.to_string()));
    options.push(("numjobs", point.threads.to_string()));
    // fio reads a signed number.
    options.push(("randseed", (run.seed >> 1).to_string()));
    let sized = matches!(run.place, Place::File(_)) || matrix.fixed.size.is_some();
    if point.pattern == Pattern::Sequential && point.threads > 1 {
        let part = part_bytes(bytes, point);
        options.push(("size", part.to_string()));
        options.push(("offset_increment", part.to_string()));
    } else if sized {
        options.push(("size", bytes.to_string()));
    }
    options
}

fn millis(time: Time) -> String {
    format!("{}ms", time.0.as_millis())
}

/// A colon would end the name.
fn escaped(path: &str) -> String {
    path.replace('\\', "\\\\").replace(':', "\\:")
}

/// In single quotes nothing has a meaning but the quote.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{ScriptFormat, emit};

    #[test]
    fn a_path_that_a_job_file_cannot_hold_is_refused() {
        for path in ["/a;b", "/a#b", "/${HOME}", "/a\"b"] {
            let matrix = Matrix { targets: vec![path.into()], ..Matrix::default() };
            assert!(emit(ScriptFormat::Fio, &matrix, false).is_err(), "{path}");
            assert!(emit(ScriptFormat::Sh, &matrix, false).is_ok(), "{path}");
        }
    }

    #[test]
    fn quotes_hold_whatever_a_path_holds() {
        assert_eq!(quoted("it's $(rm) `x`"), "'it'\\''s $(rm) `x`'");
        assert_eq!(escaped("/a:b\\c"), "/a\\:b\\\\c");
    }
}
