use serde::Serialize;
use std::fmt::Write;

/// The figures that one source reports, and those that it lacks.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceFinding {
    /// Its name, as `--source` takes it.
    pub source: String,
    /// Whether it reports counters.
    pub works: bool,
    /// Files, devices and rows of the first snapshot.
    pub files: usize,
    /// Wait events of the first snapshot.
    pub waits: usize,
    /// Why it reports none.
    pub error: Option<String>,
    /// Details of the error.
    pub facts: Vec<String>,
    /// How to mend the error.
    pub remedy: Option<String>,
    /// Figures that it could also report, and how.
    pub notes: Vec<String>,
    /// Remarks on its figures that need no action.
    pub remarks: Vec<String>,
}

/// The findings about each source, with remedies.
pub fn doctor(findings: &[SourceFinding]) -> String {
    let mut text = String::new();
    for finding in findings {
        // Writing into a String cannot fail.
        let _ = match &finding.error {
            None => {
                writeln!(text, "{}  works: {} files, {} waits", finding.source, finding.files, finding.waits)
            }
            Some(error) => writeln!(text, "{}  {error}", finding.source),
        };
        for fact in &finding.facts {
            let _ = writeln!(text, "  {fact}");
        }
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "  try: {remedy}");
        }
        for note in &finding.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        for remark in &finding.remarks {
            let _ = writeln!(text, "  good to know: {remark}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_works_has_its_counts_and_notes_and_one_that_does_not_its_remedy() {
        let works = SourceFinding {
            source: "process:all".into(),
            works: true,
            files: 3,
            waits: 2,
            notes: vec!["no stalls".into()],
            remarks: vec!["exact".into()],
            ..SourceFinding::default()
        };
        let fails = SourceFinding {
            source: "postgres:host=/run".into(),
            error: Some("no server listens".into()),
            facts: vec!["socket: /run/.s.PGSQL.5432".into()],
            remedy: Some("start it".into()),
            ..SourceFinding::default()
        };
        let expected = "process:all  works: 3 files, 2 waits\n  note: no stalls\n  good to know: exact\n\
                        postgres:host=/run  no server listens\n  socket: /run/.s.PGSQL.5432\n  try: start it\n";
        assert_eq!(doctor(&[works, fails]), expected);
    }
}
