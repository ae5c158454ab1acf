/// The text that a subcommand's help ends with, by what it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AfterHelp {
    /// Paragraphs without their line breaks.
    pub paragraphs: Vec<String>,
    /// The meaning of its exit codes.
    pub exit_codes: Option<String>,
    /// Command lines with their explanations, without the indentation.
    pub examples: Vec<String>,
}

/// Part that a line belongs to.
enum Part {
    Paragraph,
    ExitCodes,
    Examples,
}

/// Splits it: lines below `Examples:` that are indented are examples; a line that begins with `Exit code` begins the exit
/// codes; an empty line or another part ends each.
pub fn parse(text: &str) -> AfterHelp {
    let mut parsed = AfterHelp::default();
    let mut part = None;
    for line in text.lines() {
        let is_indented = line.starts_with(' ');
        let line = line.trim();
        match part {
            _ if line.is_empty() => part = None,
            _ if line == "Examples:" => part = Some(Part::Examples),
            Some(Part::Examples) if is_indented => parsed.examples.push(line.into()),
            _ if line.starts_with("Exit code") => {
                parsed.exit_codes = Some(line.into());
                part = Some(Part::ExitCodes);
            }
            Some(Part::ExitCodes) => append(parsed.exit_codes.as_mut(), line),
            Some(Part::Paragraph) => append(parsed.paragraphs.last_mut(), line),
            None | Some(Part::Examples) => {
                parsed.paragraphs.push(line.into());
                part = Some(Part::Paragraph);
            }
        }
    }
    parsed
}

fn append(text: Option<&mut String>, line: &str) {
    if let Some(text) = text {
        text.push(' ');
        text.push_str(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_the_rest_is_paragraphs() {
        let text = "Without --source: measures DIR,\njudges.\nExit code: 0 for healthy,\nelse 1.\n\nExamples:\n  headroom check\n  headroom check /data   there\nNeeds root.";
        let expected = AfterHelp {
            paragraphs: vec!["Without --source: measures DIR, judges.".into(), "Needs root.".into()],
            exit_codes: Some("Exit code: 0 for healthy, else 1.".into()),
            examples: vec!["headroom check".into(), "headroom check /data   there".into()],
        };
        assert_eq!(parse(text), expected);
        assert_eq!(parse(""), AfterHelp::default());
    }
}
