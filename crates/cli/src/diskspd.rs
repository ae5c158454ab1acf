//! `headroom diskspd`: takes diskspd command lines as they stand.

use crate::failure::Failure;
use crate::output::Output;
use crate::{Done, FINE};
use ::diskspd::checked::{Checked, Refused, check};
use ::diskspd::command_line::{CommandLine, Source, parse};
use ::diskspd::plan::to_plan;
use ::diskspd::profile::ResultFormat;
use ::diskspd::profile_xml;
use ::diskspd::report::profile_text;
use ::diskspd::usage::{USAGE, UsageError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Arguments of `headroom diskspd`: diskspd's own, not ours.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct DiskspdArgs {
    /// Flags and targets as diskspd takes them; -? lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS AND TARGETS")]
    arguments: Vec<String>,
}

/// Options of ours whose value is the next argument.
const VALUED: [&str; 1] = ["--history"];
/// More than a profile of ten thousand targets has.
const XML_BYTES_MAX: u64 = 64 << 20;

/// Our own options.
#[derive(Default)]
struct Options {
    ignore_unsupported: bool,
}

/// `headroom diskspd`.
pub fn run(args: &DiskspdArgs, out: &mut Output) -> Done {
    let asked = match parse(&args.arguments, &VALUED).map_err(wrong_usage)? {
        CommandLine::Run(asked) => asked,
        CommandLine::Usage => {
            out.answer(|_| USAGE.into(), || serde_json::json!({"usage": USAGE}));
            return Ok(FINE);
        }
    };
    let Options { ignore_unsupported } = read_options(&asked.ours, out)?;
    let xml = read_xml(&asked.source)?;
    let checked = check(&asked, xml.as_deref(), clock_seed(), ignore_unsupported)
        .map_err(|why| refused(why, &asked.source))?;
    warn(&checked, ignore_unsupported, out);
    let planned = to_plan(&checked.profile).map_err(wrong_usage)?;
    planned.notes.iter().for_each(|note| out.warn(note));
    if asked.common.profile_only {
        let text = match checked.profile.result_format {
            ResultFormat::Xml => profile_xml::write(&checked.profile),
            ResultFormat::Text => {
                let line = format!("headroom diskspd {}", args.arguments.join(" "));
                profile_text(&line, &checked.profile)
            }
        };
        out.answer(|_| text, || serde_json::json!({"plan": planned.plan, "notes": planned.notes}));
        return Ok(FINE);
    }
    Err(Failure::new("headroom diskspd reads and shows profiles, and runs none in this build")
        .with_remedy("-Rp shows what would run"))
}

/// Reads our own options, wherever they stand among diskspd's.
fn read_options(ours: &[String], out: &mut Output) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut ours = ours.iter();
    while let Some(option) = ours.next() {
        match option.as_str() {
            "--ignore-unsupported" => options.ignore_unsupported = true,
            "--json" => out.print_json(),
            // Nothing is kept of what does not run.
            "--history" => drop(ours.next()),
            history if history.starts_with("--history=") => {}
            other => {
                let remedy = "-? lists flags and options; -- stands before a target that begins with a dash";
                return Err(Failure::usage(format!("{other}: no such option")).with_remedy(remedy));
            }
        }
    }
    Ok(options)
}

fn read_xml(source: &Source) -> Result<Option<String>, Failure> {
    let Source::Xml { path, .. } = source else { return Ok(None) };
    let size = std::fs::metadata(path).map_or(0, |facts| facts.len());
    let bytes = if size <= XML_BYTES_MAX {
        std::fs::read(path)
    } else {
        Err(std::io::Error::other("it is larger than any profile"))
    };
    let bytes = bytes.map_err(|error| Failure::usage(format!("cannot read the profile {path}: {error}")))?;
    let wrong = |_| {
        let remedy = format!("iconv -f UTF-16 -t UTF-8 {path}");
        Failure::usage(format!("the profile {path} is not in UTF-8")).with_remedy(remedy)
    };
    String::from_utf8(bytes).map(Some).map_err(wrong)
}

/// What a bare `-z` stands for: milliseconds, as there.
fn clock_seed() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u32
}

fn warn(checked: &Checked, ignored: bool, out: &mut Output) {
    let what = if ignored { "ignored" } else { "would be refused" };
    checked.unsupported.iter().for_each(|one| out.warn(format_args!("{what}: {one}")));
    checked.warnings.iter().for_each(|warning| out.warn(warning));
}

fn wrong_usage(error: UsageError) -> Failure {
    let failure = Failure::usage(format!("{}: {}", error.what, error.why));
    if error.instead.is_empty() { failure } else { failure.with_remedy(error.instead) }
}

fn refused(refused: Refused, source: &Source) -> Failure {
    match refused {
        Refused::Xml(error) => {
            let path = if let Source::Xml { path, .. } = source { path } else { "" };
            Failure::usage(format!("the profile {path}: {error}"))
        }
        Refused::Rules(mut errors) if errors.len() == 1 => wrong_usage(errors.remove(0)),
        Refused::Rules(errors) => facts("the settings contradict each other", &errors),
        Refused::Unsupported(lacking) => facts("Linux has no counterpart for all of this", &lacking)
            .with_remedy("--ignore-unsupported runs without"),
    }
}

fn facts<T: std::fmt::Display>(message: &str, all: &[T]) -> Failure {
    all.iter().fold(Failure::usage(message), Failure::with_fact)
}
