//! From a command line to a checked profile that can run or be shown.

use crate::command_line::{RunRequest, Source};
use crate::profile::Profile;
use crate::profile_xml::{self, ProfileError};
use crate::rules::{self, Origin};
use crate::unsupported;
use crate::usage::UsageError;

/// A profile without contradictions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The profile that runs, without the ignored settings.
    pub profile: Profile,
    /// Warnings about unusual settings.
    pub warnings: Vec<String>,
    /// Unsupported settings, ignored on request or only shown.
    pub unsupported: Vec<UsageError>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The XML is not a profile.
    #[error(transparent)]
    Xml(#[from] ProfileError),
    /// The settings contradict each other; at least one.
    #[error("{}", lines(.0))]
    Rules(Vec<UsageError>),
    /// Unsupported settings that were not to be ignored; at least one.
    #[error("{}", lines(.0))]
    Unsupported(Vec<UsageError>),
}

/// Checks a request. `xml` is the text of the profile that [`Source::Xml`] names; `clock_seed` is
/// the seed of a bare `-z`. A profile that is only shown (`-Rp`) may hold templates and unsupported settings.
///
/// # Errors
/// [`Refused`], with all errors.
pub fn check(
    asked: &RunRequest,
    xml: Option<&str>,
    clock_seed: u32,
    ignore_unsupported: bool,
) -> Result<Checked, Refused> {
    let mut lacking = asked.unsupported.clone();
    let (mut profile, origin) = match &asked.source {
        Source::Flags(profile) => (profile.clone(), Origin::CommandLine),
        Source::Xml { targets, .. } => {
            let read = profile_xml::read(xml.unwrap_or_default(), targets)?;
            lacking.extend(read.unsupported);
            (read.profile, Origin::Xml)
        }
    };
    asked.common.apply(&mut profile, clock_seed);
    let warnings = rules::check(&profile, origin).map_err(Refused::Rules)?;
    lacking.extend(unsupported::list(&profile));
    if !asked.common.profile_only {
        rules::check_no_templates(&profile).map_err(Refused::Rules)?;
        if !lacking.is_empty() && !ignore_unsupported {
            return Err(Refused::Unsupported(lacking));
        }
    }
    if ignore_unsupported {
        unsupported::remove(&mut profile);
    }
    Ok(Checked { profile, warnings, unsupported: lacking })
}

fn lines<T: std::fmt::Display>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{CommandLine, parse};

    fn checked(line: &str, xml: Option<&str>, ignore_unsupported: bool) -> Result<Checked, Refused> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Ok(CommandLine::Run(asked)) = parse(&args, &[]) else { panic!("{line}") };
        check(&asked, xml, 77, ignore_unsupported)
    }

    const XML: &str = "<Profile><ETW><Process>true</Process></ETW><TimeSpans><TimeSpan><Targets><Target>\
        <Path>*1</Path><DisableLocalCache>true</DisableLocalCache></Target></Targets></TimeSpan></TimeSpans></Profile>";

    #[test]
    fn what_linux_lacks_is_refused_unless_it_is_to_be_ignored() {
        let Err(Refused::Unsupported(lacking)) = checked("-x -ysgo -ft t", None, false) else {
            panic!("taken")
        };
        assert_eq!(lacking.iter().map(|one| one.what.as_str()).collect::<Vec<_>>(), ["-ysgo", "-x", "-ft"]);
        let ignored = checked("-x -ysgo -ft t", None, true).expect("ignored");
        assert_eq!((ignored.unsupported.len(), unsupported::list(&ignored.profile)), (3, vec![]));
        let shown = checked("-x -Rp t", None, false).expect("shown");
        assert!(shown.profile.time_spans[0].completion_routines);
    }

    #[test]
    fn a_profile_of_xml_takes_what_stands_beside_it() {
        let ours = checked("-d7 -z -Xp.xml disk.bin", Some(XML), true).expect("a profile");
        let span = &ours.profile.time_spans[0];
        assert_eq!((span.duration_s, span.seed, span.targets[0].path.as_str()), (7, 77, "disk.bin"));
        assert_eq!(
            ours.unsupported.iter().map(|one| one.what.as_str()).collect::<Vec<_>>(),
            ["<ETW>", "-Sr"]
        );
        assert!(
            matches!(checked("-Xp.xml", Some(XML), true), Err(Refused::Rules(all)) if all[0].what == "*1")
        );
        assert!(checked("-Rpxml -Xp.xml", Some(XML), false).is_ok());
        assert!(matches!(checked("-Xp.xml", Some(""), false), Err(Refused::Xml(_))));
        assert!(matches!(checked("-d0 -Xp.xml t", Some(XML), true), Err(Refused::Rules(_))));
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let error = checked("-i5 -Nv -d0 t", None, false).expect_err("three errors").to_string();
        assert_eq!(error.lines().count(), 3, "{error}");
    }
}
