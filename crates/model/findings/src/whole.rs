//! Is there a result at all: nothing measured, errors, verification, interruption, too few I/Os.

use crate::case::Case;
use crate::{Finding, FindingKind, Weight, words};
use statistics::IOS_MIN;
use workload::{Unit, format_count};

pub fn nothing_measured(case: &Case) -> Option<Finding> {
    (case.result.ios() == 0).then(|| {
        let text = format!("No I/O completed in {}.", words::length(case.result.elapsed_ns as f64));
        Finding::new(FindingKind::NothingMeasured, Weight::Warning, text)
            .remedy("run longer, or look at the errors")
    })
}

pub fn errors(case: &Case) -> Option<Finding> {
    let result = case.result;
    let sync_failed = result.sync.failed();
    let failed = result.failed().saturating_add(sync_failed);
    if failed == 0 {
        return None;
    }
    let of = |name: &str, failed: u64| (failed > 0).then(|| words::counted(failed, name));
    let kinds =
        [of("read", result.read.failed()), of("write", result.write.failed()), of("sync", sync_failed)];
    let text = format!(
        "{} failed: the figures are those of the others, and what failed may have been quicker or slower.",
        words::list(&kinds.into_iter().flatten().collect::<Vec<String>>())
    );
    let all = failed as f64 + result.ios() as f64 + result.sync.count as f64;
    Some(
        Finding::new(FindingKind::Errors, Weight::Warning, text)
            .fact("failed", failed as f64, Unit::Ios)
            .fact("share of all", failed as f64 / all, Unit::Share)
            .remedy("read the errors' names and the kernel's log before using the figures"),
    )
}

pub fn verification(case: &Case) -> Option<Finding> {
    let result = case.result;
    let new = |weight, text: String| Finding::new(FindingKind::Verification, weight, text);
    let Some(verification) = &result.verification else {
        let asked = result.workload.verify.is_some() && result.write.count > 0;
        return asked.then(|| {
            new(Weight::Note, "What was written was to be checked, and was not: the run ended before.".into())
                .remedy("let the run come to its end")
        });
    };
    let (blocks, bad) = (format_count(verification.blocks), format_count(verification.bad));
    let finding = if verification.bad > 0 {
        new(Weight::Warning, format!("{bad} of {blocks} blocks read again are not as they were written."))
            .remedy("trust this storage with nothing until the cause is known; keep the target as it is")
    } else if verification.blocks == 0 {
        new(Weight::Note, "There was nothing to check: no block was read again.".into())
    } else {
        new(Weight::Good, format!("All {blocks} blocks that were read again are as they were written."))
    };
    Some(finding.facts([
        ("checked", verification.blocks as f64, Unit::Blocks),
        ("bad", verification.bad as f64, Unit::Blocks),
    ]))
}

pub fn interrupted(case: &Case) -> Option<Finding> {
    let elapsed_ns = case.result.elapsed_ns as f64;
    case.result.interrupted.then(|| {
        let until = words::length(elapsed_ns);
        let text = format!("Ended early by the user: the figures cover the {until} until then.");
        Finding::new(FindingKind::Interrupted, Weight::Note, text).facts([("measured", elapsed_ns, Unit::Ns)])
    })
}

pub fn stopped(case: &Case) -> Option<Finding> {
    let (stopped_ns, suspended_ns) = (case.result.stopped_ns as f64, case.result.suspended_ns as f64);
    if stopped_ns == 0.0 && suspended_ns == 0.0 {
        return None;
    }
    let elapsed = words::length(case.result.elapsed_ns as f64);
    let mut text = String::new();
    if stopped_ns > 0.0 {
        let not_valid = if case.result.was_stopped() { "Not valid: the" } else { "The" };
        text = format!(
            "{not_valid} program was stopped for {} of {elapsed}: by a signal, a debugger, a frozen control group or a paused \
             virtual machine. The figures include that time.",
            words::length(stopped_ns)
        );
    }
    if suspended_ns > 0.0 {
        let space = if text.is_empty() { "" } else { " " };
        let suspended = words::length(suspended_ns);
        let not_valid = if text.is_empty() { "Not valid: the" } else { "The" };
        text += &format!("{space}{not_valid} machine was suspended for {suspended} beside these {elapsed}.");
    }
    let weight = if case.result.was_stopped() { Weight::Warning } else { Weight::Note };
    Some(
        Finding::new(FindingKind::Stopped, weight, text)
            .fact("stopped", stopped_ns, Unit::Ns)
            .fact("suspended", suspended_ns, Unit::Ns)
            .remedy("run it again: what limited the load cannot be said of this run"),
    )
}

pub fn target_gone(case: &Case) -> Option<Finding> {
    let remedy = "name the target that is there now, and run it again where that one is meant";
    target_changed(case, false, FindingKind::TargetGone, remedy)
}

pub fn target_cut(case: &Case) -> Option<Finding> {
    target_changed(
        case,
        true,
        FindingKind::TargetCut,
        "run it again on a target that no other program changes",
    )
}

/// The changes of the target after which the figures are, or are not, those of storage.
fn target_changed(case: &Case, invalidates: bool, kind: FindingKind, remedy: &str) -> Option<Finding> {
    let changes = case.result.target_changes.iter().filter(|change| change.invalidates() == invalidates);
    let sentences: Vec<String> = changes.map(|change| format!("{change}.")).collect();
    let finding = || Finding::new(kind, Weight::Warning, sentences.join(" ")).remedy(remedy);
    (!sentences.is_empty()).then(finding)
}

pub fn too_few_ios(case: &Case) -> Option<Finding> {
    let ios = case.result.ios();
    (ios > 0 && ios < IOS_MIN).then(|| {
        let text = format!("{} prove nothing: {IOS_MIN} are the least.", words::counted(ios, "I/O"));
        Finding::new(FindingKind::TooFewIos, Weight::Warning, text)
            .fact("I/Os", ios as f64, Unit::Ios)
            .remedy("run longer")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{direction, finding, of_rates, plain, weight};
    use workload::{Direction, RunResult, TargetChange, TargetChangeKind, Verification, Verify};

    #[test]
    fn no_io_few_ios_and_enough() {
        let with = |count| RunResult { read: direction(count, 100_000, 200_000), ..plain() };
        let none = RunResult { read: Direction::default(), ..plain() };
        assert_eq!(weight(&none, FindingKind::NothingMeasured), Some(Weight::Warning));
        assert_eq!(weight(&with(99), FindingKind::TooFewIos), Some(Weight::Warning));
        assert_eq!(weight(&with(100), FindingKind::TooFewIos), None);
        assert_eq!(weight(&with(100), FindingKind::NothingMeasured), None);
    }

    #[test]
    fn failures_are_counted_by_what_failed() {
        let mut run = plain();
        assert_eq!(finding(&run, FindingKind::Errors), None);
        run.read.errors.insert(5, 1);
        run.sync.errors.insert(28, 2);
        let found = finding(&run, FindingKind::Errors).unwrap();
        assert!(found.text.starts_with("1 read and 2 syncs failed"), "{}", found.text);
    }

    #[test]
    fn damage_is_a_warning_that_invalidates_and_soundness_is_good() {
        let with = |blocks, bad| {
            let verification = Some(Verification { blocks, bad, first_bad: Vec::new() });
            finding(&RunResult { verification, ..plain() }, FindingKind::Verification).unwrap()
        };
        assert!(with(1_000, 1).invalidates());
        assert_eq!(with(1_000, 0).weight, Weight::Good);
        assert_eq!(with(0, 0).weight, Weight::Note);
        let mut unchecked = plain();
        unchecked.workload.verify = Some(Verify::Checksum);
        assert_eq!(weight(&unchecked, FindingKind::Verification), None, "nothing was written");
        unchecked.write = direction(10, 1, 2);
        assert_eq!(weight(&unchecked, FindingKind::Verification), Some(Weight::Note));
    }

    #[test]
    fn a_run_that_was_stopped_is_not_valid_and_blames_nothing_else() {
        // A thread that used its core, and seconds without an I/O.
        let mut run = of_rates(&[20_000, 20_000, 20_000, 0, 0, 0, 20_000, 20_000, 20_000, 20_000]);
        run.threads[1].cpu_ns = run.elapsed_ns;
        assert_eq!(weight(&run, FindingKind::Cpu), Some(Weight::Warning));
        assert_eq!(weight(&run, FindingKind::Stalls), Some(Weight::Warning));
        let stopped = RunResult { stopped_ns: 3_000_000_000, ..run.clone() };
        let found = finding(&stopped, FindingKind::Stopped).unwrap();
        assert!(
            found.invalidates()
                && found.text.starts_with("Not valid: the program was stopped for 3 s of 10 s"),
            "{found:?}"
        );
        let kinds: Vec<FindingKind> = crate::findings(&stopped, &crate::RunConditions::default())
            .iter()
            .map(|found| found.kind)
            .collect();
        assert_eq!(kinds, [FindingKind::Stopped]);
        let suspended = RunResult { suspended_ns: 60_000_000_000, ..run.clone() };
        let text = finding(&suspended, FindingKind::Stopped).unwrap().text;
        assert_eq!(text, "Not valid: the machine was suspended for 60 s beside these 10 s.");
        // A hundredth of the time explains neither.
        let shortly = RunResult { stopped_ns: 100_000_000, ..run };
        assert_eq!(weight(&shortly, FindingKind::Stopped), Some(Weight::Note));
        assert_eq!(weight(&shortly, FindingKind::Cpu), Some(Weight::Warning));
    }

    #[test]
    fn a_target_that_is_gone_is_a_warning_and_one_that_was_cut_invalidates() {
        let with = |change| {
            let target_changes = vec![TargetChange { path: "/data/f".into(), change }];
            RunResult { target_changes, ..plain() }
        };
        let gone = finding(&with(TargetChangeKind::Removed), FindingKind::TargetGone).unwrap();
        assert!(gone.weight == Weight::Warning && !gone.invalidates(), "{gone:?}");
        assert!(gone.text.starts_with("/data/f was removed, renamed or unmounted"), "{}", gone.text);
        let cut = with(TargetChangeKind::Cut { was_bytes: 1 << 20, is_bytes: 0 });
        assert!(finding(&cut, FindingKind::TargetCut).unwrap().invalidates());
        assert_eq!(weight(&cut, FindingKind::TargetGone), None);
        assert_eq!(weight(&plain(), FindingKind::TargetGone), None);
    }

    #[test]
    fn an_interrupted_run_says_so() {
        assert_eq!(weight(&plain(), FindingKind::Interrupted), None);
        assert_eq!(
            weight(&RunResult { interrupted: true, ..plain() }, FindingKind::Interrupted),
            Some(Weight::Note)
        );
    }
}
