//! PowerShell that calls diskspd.exe. Not a batch file: those have no way to quote every path.

use super::{Place, ScriptRun, TEST_FILE, head, part_bytes, runs, short};
use crate::Matrix;
use std::fmt::Write as _;
use std::time::Duration;
use workload::{Caching, Content, Durability, Pattern};

pub(super) fn emit(matrix: &Matrix, places: &[Place]) -> Result<String, String> {
    if matrix.fixed.durability == Durability::Synced || matrix.fixed.sync.is_some() {
        return Err("it has no sync; give the durability write-through, or leave fixed.sync out".into());
    }
    let length =
        [matrix.runs.warm_up, matrix.runs.duration, matrix.runs.cool_down].map(|time| seconds(time.0));
    let [warm_up, duration, cool_down] = [length[0], length[1].max(1), length[2]];
    let each = Duration::from_secs(warm_up + duration + cool_down);
    let notes = [
        "Needs diskspd 2.1 or later, in the path or named as the first argument:",
        "  powershell -ExecutionPolicy Bypass -File matrix.ps1 C:\\tools\\diskspd.exe",
        "Times are rounded up to whole seconds. Each thread of a sequential run starts in a part of its own, but",
        "unlike Headroom's walks on to the end of the file.",
    ];
    let mut script = head(matrix, "#", each, &notes);
    let points = matrix.points();
    let runs = runs(matrix, &points, places);
    let bytes = matrix.test_file_bytes();
    let _ = write!(
        script,
        "{}",
        PROLOGUE.replace("@RUNS@", &runs.len().to_string()).replace("@FILE@", TEST_FILE)
    );
    script.push_str("try {\n");
    for place in places {
        if let Place::File(path) = place {
            let _ = writeln!(script, "    New-TestFile {} {bytes}L", quoted(path));
        }
    }
    for run in &runs {
        let flags = flags(matrix, run, bytes);
        let _ = writeln!(
            script,
            "    run '{}' '-d{duration} -W{warm_up} -C{cool_down} {flags}' {}",
            run.name,
            quoted(run.place.path())
        );
    }
    script.push_str("} finally {\n    $made | ForEach-Object { Remove-Item -LiteralPath $_ }\n}\n");
    Ok(script.replace('\n', "\r\n"))
}

const PROLOGUE: &str = r##"
param([string]$DiskSpd = 'diskspd.exe')
$ErrorActionPreference = 'Stop'
$output = Join-Path (Get-Location) ('diskspd-' + (Get-Date -Format 'yyyy-MM-dd') + '.txt')
$runs = @RUNS@
$script:k = 0
$made = New-Object System.Collections.Generic.List[string]

# Full of random bytes, so that reads come from the storage. An existing file is never touched.
function New-TestFile([string]$Path, [long]$Bytes) {
    $stream = [System.IO.File]::Open($Path, [System.IO.FileMode]::CreateNew)
    $made.Add($Path)
    try {
        $random = [System.Security.Cryptography.RandomNumberGenerator]::Create()
        $buffer = New-Object byte[] 1048576
        for ($done = 0L; $done -lt $Bytes; $done += $buffer.Length) {
            $random.GetBytes($buffer)
            $stream.Write($buffer, 0, [Math]::Min($buffer.Length, $Bytes - $done))
            Write-Progress -Activity 'writing @FILE@' -PercentComplete (100 * $done / $Bytes)
        }
        $stream.Flush($true)
    } finally { $stream.Dispose() }
}

function run([string]$Name, [string]$Flags, [string]$Target) {
    $script:k++
    Write-Host "run $script:k of ${runs}: $Name"
    $result = & $DiskSpd ($Flags -split ' ') $Target
    if ($LASTEXITCODE -ne 0) { throw "diskspd failed with $LASTEXITCODE in ${Name}: $result" }
    Add-Content -LiteralPath $output -Encoding utf8 -Value "# $Name"
    Add-Content -LiteralPath $output -Encoding utf8 -Value $result
}

"##;

fn flags(matrix: &Matrix, run: &ScriptRun<'_>, bytes: u64) -> String {
    let (point, fixed) = (run.point, &matrix.fixed);
    let mut flags = format!(
        "-b{} -t{} -o{} -w{}",
        short(u64::from(point.block_bytes)).to_uppercase(),
        point.threads,
        point.outstanding,
        point.write_percent
    );
    match point.pattern {
        Pattern::Random => flags.push_str(" -r"),
        Pattern::Sequential if point.threads > 1 => {
            let _ = write!(flags, " -s -T{}", part_bytes(bytes, point));
        }
        Pattern::Sequential => flags.push_str(" -s"),
    }
    flags.push_str(match (fixed.caching, fixed.durability) {
        (Caching::Buffered, Durability::Cached) => " -Sb",
        (Caching::Buffered, _) => " -Sbw",
        (_, Durability::Cached) => " -Su",
        (_, _) => " -Suw",
    });
    if fixed.size.is_some() && matches!(run.place, Place::Device(_)) {
        let _ = write!(flags, " -f{bytes}");
    }
    if fixed.content == Content::Zeros {
        flags.push_str(" -Z");
    } else {
        // Each write takes a random place in it.
        let _ = write!(flags, " -Z{}", (64 << 20).max(point.block_bytes));
    }
    // diskspd's seed is a 32-bit number.
    let _ = write!(flags, " -z{} -L -D", run.seed & 0x7fff_ffff);
    flags
}

fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// In single quotes nothing has a meaning but the quote, of which PowerShell knows five.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        if matches!(c, '\'' | '\u{2018}'..='\u{201b}') {
            quoted.push(c);
        }
        quoted.push(c);
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{ScriptFormat, emit};

    #[test]
    fn a_run_says_what_study_c_says() {
        let mut matrix = Matrix { targets: vec!["E:\\it's \u{2018}here".into()], ..Matrix::default() };
        matrix.axes.write_percent = vec![25];
        matrix.axes.pattern = vec![Pattern::Random, Pattern::Sequential];
        matrix.axes.outstanding = vec![4];
        matrix.axes.threads = vec![8];
        matrix.fixed.durability = Durability::WriteThrough;
        matrix.runs.duration = crate::Time(Duration::from_millis(100));
        let script = emit(ScriptFormat::Diskspd, &matrix, false).unwrap();
        let lines: Vec<&str> = script.lines().filter(|line| line.starts_with("    run '")).collect();
        assert!(
            lines[0].starts_with(
                "    run 'random-w25-8k-o4-t8' '-d1 -W1 -C0 -b8K -t8 -o4 -w25 -r -Suw -Z67108864 -z"
            ),
            "{}",
            lines[0]
        );
        assert!(
            lines[0].ends_with("-L -D' 'E:\\it''s \u{2018}\u{2018}here\\headroom-test.dat'"),
            "{}",
            lines[0]
        );
        assert!(lines[1].contains(" -s -T134217728 "), "{}", lines[1]);
        assert!(script.contains("[System.IO.FileMode]::CreateNew"), "an existing file is never touched");
    }

    #[test]
    fn a_device_is_neither_made_nor_removed() {
        let mut matrix = Matrix { targets: vec!["#1".into()], ..Matrix::default() };
        matrix.axes.write_percent = vec![100];
        assert!(emit(ScriptFormat::Diskspd, &matrix, false).is_err());
        let script = emit(ScriptFormat::Diskspd, &matrix, true).unwrap();
        assert!(!script.contains("    New-TestFile '"));
        assert!(script.contains(" '#1'\r\n"));
    }
}
