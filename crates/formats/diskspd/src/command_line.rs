//! diskspd's command line, by the grammar of version 2.2 but stricter: text that diskspd ignores silently (`-t4x`, `-Lx`)
//! is an error.
//!
//! Flags begin with `-`, have their value attached, and precede the targets. Windows also takes `/` as
//! the switch. Here `/` begins a path: `/?` alone is help, and an argument that would be a flag if its `/`
//! were a `-` (`/b4K`, `/Sh`) is refused, so that no script makes a file of that name by mistake; `//b4K`
//! names such a file. After `--` everything is a target. Headroom's own options begin with `--`, may stand anywhere before
//! that, and are returned unchanged.

mod affinity;
mod caching;
mod distribution;
mod flags;
mod number;

use crate::profile::{Profile, ResultFormat};
use crate::usage::UsageError;
use flags::{Reading, block_bytes};

/// Request of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// `-?`, `/?`, `--help`: the help.
    Usage,
    /// A run, or a profile to show.
    Run(Box<RunRequest>),
}

/// The run that a command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The source of its settings.
    pub source: Source,
    /// The settings beside either source.
    pub common: Common,
    /// Flags that no profile carries and that mean nothing here; what the profile carries is listed by
    /// [`crate::unsupported::of`].
    pub unsupported: Vec<UsageError>,
    /// Headroom's own options, unchanged: `--json`, `--format`, `2.0.17`.
    pub ours: Vec<String>,
}

/// The source of the settings of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Flags; `common` is applied already, except a seed from the clock.
    Flags(Profile),
    /// An XML profile.
    Xml {
        /// Its path.
        path: String,
        /// The targets for `*1`, `*2` ... in it.
        targets: Vec<String>,
    },
}

/// The settings that can be combined with an XML profile. `None` and `false` leave the profile unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// `-d`.
    pub duration_s: Option<u32>,
    /// `-W`.
    pub warm_up_s: Option<u32>,
    /// `-C`.
    pub cool_down_s: Option<u32>,
    /// `-z`.
    pub seed: Option<Seed>,
    /// `-R`.
    pub result_format: Option<ResultFormat>,
    /// `-Rp`: the checked profile is printed and nothing runs.
    pub profile_only: bool,
    /// `-v`.
    pub verbose: bool,
    /// `-vs`.
    pub verbose_stats: bool,
    /// `-:`.
    pub experiment_flags: Option<u32>,
}

/// The seed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// A fixed seed.
    Number(u32),
    /// Another seed for each run.
    Clock,
}

/// Parses a command line without the program name. `valued` lists Headroom's own options whose value is the next argument
/// unless it is attached with `=`.
///
/// # Errors
/// The first argument that is not a flag, or has a wrong value. [`crate::rules::check`] finds contradictions between
/// flags.
pub fn parse(args: &[String], valued: &[&str]) -> Result<CommandLine, UsageError> {
    let Some(Arguments { flags, targets, ours }) = divide(args, valued)? else {
        return Ok(CommandLine::Usage);
    };
    let block_bytes = block_bytes(&flags)?;
    let mut reading = Reading::new(block_bytes);
    for flag in &flags {
        reading.flag(flag).map_err(|(why, instead)| UsageError::new(flag.as_str(), why, instead))?;
    }
    let unsupported = std::mem::take(&mut reading.unsupported);
    let common = reading.common.clone();
    let source = match reading.xml.take() {
        Some(path) => Source::Xml { path, targets },
        None => Source::Flags(reading.profile(targets)?),
    };
    Ok(CommandLine::Run(Box::new(RunRequest { source, common, unsupported, ours })))
}

impl Common {
    /// Applies these settings to a profile.
    pub fn apply(&self, profile: &mut Profile, clock_seed: u32) {
        profile.verbose |= self.verbose;
        profile.verbose_stats |= self.verbose_stats;
        profile.experiment_flags = self.experiment_flags.unwrap_or(profile.experiment_flags);
        profile.result_format = self.result_format.unwrap_or(profile.result_format);
        for span in &mut profile.time_spans {
            span.duration_s = self.duration_s.unwrap_or(span.duration_s);
            span.warm_up_s = self.warm_up_s.unwrap_or(span.warm_up_s);
            span.cool_down_s = self.cool_down_s.unwrap_or(span.cool_down_s);
            span.seed = match self.seed {
                Some(Seed::Number(seed)) => seed,
                Some(Seed::Clock) => clock_seed,
                None => span.seed,
            };
        }
    }
}

struct Arguments {
    flags: Vec<String>,
    targets: Vec<String>,
    ours: Vec<String>,
}

/// Separates flags, targets and Headroom's own options; `None` where help is requested.
fn divide(args: &[String], valued: &[&str]) -> Result<Option<Arguments>, UsageError> {
    let mut divided = Arguments { flags: Vec::new(), targets: Vec::new(), ours: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if matches!(arg.as_str(), "-?" | "/?" | "--help") {
            return Ok(None);
        } else if arg == "--" {
            divided.targets.extend(args.by_ref().cloned());
        } else if arg.starts_with("--") {
            divided.ours.push(arg.clone());
            if valued.contains(&arg.as_str()) {
                let value =
                    args.next().ok_or_else(|| UsageError::new(arg.as_str(), "its value is missing", ""))?;
                divided.ours.push(value.clone());
            }
        } else if arg.starts_with('-') && !divided.targets.is_empty() {
            let instead = "put it before the first target, or -- before a target that begins with a dash";
            return Err(UsageError::new(arg.as_str(), "flags come before targets", instead));
        } else if arg.starts_with('-') {
            divided.flags.push(arg.clone());
        } else {
            refuse_windows_forms(arg, divided.targets.is_empty())?;
            divided.targets.push(arg.clone());
        }
    }
    Ok(Some(divided))
}

/// Refuses targets that exist only on Windows, and flags that begin with `/`.
fn refuse_windows_forms(arg: &str, before_targets: bool) -> Result<(), UsageError> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if arg.is_empty() {
        return Err(UsageError::new("''", "a target without a name", "name a file or a block device"));
    }
    if arg.strip_prefix('#').is_some_and(digits) {
        let instead = format!("name the device, as in /dev/nvme0n1, or ./{arg} for a file of that name");
        return Err(UsageError::new(arg, "a physical drive of Windows", instead));
    }
    if matches!(arg.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic()) {
        let instead = format!("name the block device or a file on it, or ./{arg} for a file of that name");
        return Err(UsageError::new(arg, "a volume of Windows", instead));
    }
    if before_targets && looks_like_a_switch(arg) {
        let why = "a flag behind a / is a path on Linux";
        let instead = format!("write -{}, or /{arg} for a file of that name", &arg[1..]);
        return Err(UsageError::new(arg, why, instead));
    }
    Ok(())
}

/// Whether `/...` would be a flag. `-X` and `-y` take any text, so most paths would match them; they are not checked.
fn looks_like_a_switch(arg: &str) -> bool {
    let Some(rest) = arg.strip_prefix('/') else { return false };
    let flag = format!("-{rest}");
    !rest.contains('/')
        && !rest.starts_with(['X', 'y'])
        && Reading::new(1).flag(&flag).is_ok()
        && block_bytes(&[flag]).is_ok()
}

#[cfg(test)]
mod tests;
