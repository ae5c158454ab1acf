//! The help, and the errors of a command line or profile.

/// An error in a command line or a profile, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}{}{instead}", if .instead.is_empty() { "" } else { "; " })]
pub struct UsageError {
    /// The flag, element or target as it was given: `-w101`, `<WriteRatio>`, `-F8 with -t4`.
    pub what: String,
    /// Why it is refused.
    pub why: String,
    /// The remedy; may be empty.
    pub instead: String,
}

impl UsageError {
    /// An error about `what`.
    pub fn new(what: impl Into<String>, why: impl Into<String>, instead: impl Into<String>) -> UsageError {
        UsageError { what: what.into(), why: why.into(), instead: instead.into() }
    }
}

/// The help: every flag in a line or two, in diskspd's own grammar.
pub const USAGE: &str = "\
headroom diskspd [flags] TARGET...   runs a diskspd 2.2 command line on Linux

A value is glued to its flag (-b8K). Flags come before targets. Sizes are bytes, or take K M G T (powers of
1024) or b (blocks of -b). A target is a file or a block device; a target after -- may begin with a dash.
A / begins a path here, not a flag; only /? is help.

Workload
  -b8K            size of each I/O [64K]            -o8         outstanding I/Os of a thread and target [2]
  -t4             threads of each target [1]        -F8         threads over all targets, instead of -t
  -O16            outstanding of a thread over all targets, by weight, with -F
  -w30            percent of writes, by a coin for each I/O [0]
  -r[align]       random                            -rs70       70 % random, the rest in sequential runs
  -rdpct90/10:..  90 % of I/Os in 10 % of the target, ..; 0/n is a hole; the rest goes to the rest
  -rdabs90/10G:.. the same with sizes
  -s[i][stride]   sequential; i: threads share one offset. Else threads overlap, or start apart:
  -T1G            thread k starts k times that far  -p          all outstanding I/Os at one offset
  -B1G[:2G]       first byte [and length]           -f3G        first byte not used any more
  -c1G            make the file again, that size   -z[seed]    seed of all choices [0; bare: of the clock]
How long, how fast
  -d10 -W5 -C0    seconds measured, of warm-up, of cool-down
  -g80 -g100i     limit of a thread and target: bytes per millisecond, or I/Os a second
  -i20 -j100      bursts of 20 I/Os (over all threads of a target), then 100 ms rest
How
  -S[bmuwh]       b cached [default], u no software cache (= -S), w write-through, h = uw, m mapped
  -Nv             mapped writes are flushed         -fr -fs     hint: random, sequential
  -Z -Zr          write zeros; fresh random bytes [0, 1 .. 255, 0 ..]
  -Z1M[,file]     write from a buffer of random bytes, or of the file's
  -a0,2,4  -n     bind threads to these CPUs in turn [all]; do not bind
  -I1             priority: 1 very low, 2 low, 3 normal
Output
  -L              latencies and percentiles         -D[ms]      deviation of IOPS over buckets [1000]
  -Rtext -Rxml    form of the result [text]         -Rp[text|xml] print the checked profile, run nothing
  -v[s]           say more; s: waits of threads     -P[n]       (a terminal shows progress anyway)
  -Xprofile.xml   take all this from a profile; -d -W -C -z -v -R stand beside it, targets fill *1, *2 ..
Ours
  --destroy-data PATH   write over this target, which headroom did not make: its content is lost
  --target DIRECTORY    place files of Windows paths (E:\\x.dat) there; such paths are refused without
  --format 2.0.17       the text of that version     --json  the result as headroom run has it
  --ignore-unsupported  run without the flags that mean nothing on Linux: -x -ft -Sr -Nn -Ni -e.. -y..
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_why_and_what_instead() {
        let error = UsageError::new("-w101", "more than all I/Os", "give 0 to 100");
        assert_eq!(error.to_string(), "-w101: more than all I/Os; give 0 to 100");
        assert_eq!(UsageError::new("-w", "no value", "").to_string(), "-w: no value");
    }

    #[test]
    fn the_help_fits_a_terminal() {
        assert!(USAGE.lines().all(|line| line.chars().count() <= 112), "too wide");
        assert!(USAGE.lines().count() <= 50, "too long");
    }
}
