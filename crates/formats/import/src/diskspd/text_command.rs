//! The parameters of a report that has its command line and lacks its list of parameters.

use super::{Span, xml};
use ::diskspd::command_line::{CommandLine, Source, parse};
use ::diskspd::profile_xml;

/// The timespan of a command line, as version 2.2 understands it; `None` where it is none, or names a profile in a file.
pub(super) fn spans(command: &str) -> Option<Vec<Span>> {
    let CommandLine::Run(run) = parse(&arguments(command), &[]).ok()? else { return None };
    let Source::Flags(mut profile) = run.source else { return None };
    run.common.apply(&mut profile, 0);
    xml::profile_spans(&profile_xml::write(&profile)).ok().filter(|spans| !spans.is_empty())
}

/// From the first flag on: before it stands the program, whose path may have blanks. Quotes hold an argument together.
fn arguments(command: &str) -> Vec<String> {
    let mut arguments: Vec<String> = Vec::new();
    let (mut quoted, mut apart) = (false, true);
    for c in command.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => apart = true,
            c => {
                if std::mem::take(&mut apart) {
                    arguments.push(String::new());
                }
                if let Some(last) = arguments.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    arguments.into_iter().skip_while(|argument| !argument.starts_with('-')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_a_timespan() {
        let line = r#""C:\Program Files\diskspd.exe" -c64M -b4K -r -t4 -o8 -w30 -d5 -Suw -W2 -D -L "D:\my data\x.dat""#;
        let spans = spans(line).unwrap();
        let (span, target) = (&spans[0], &spans[0].targets[0]);
        assert_eq!((span.duration_s, span.warm_up_s, span.latency, span.bucket_ms), (5, 2, true, Some(1000)));
        assert_eq!((target.path.as_str(), target.block_bytes), (r"D:\my data\x.dat", 4096));
        assert_eq!((target.threads, target.outstanding, target.write_percent), (Some(4), Some(8), 30));
        assert_eq!((target.random_percent, target.write_through), (100, true));
    }

    #[test]
    fn what_is_no_command_line_gives_nothing() {
        for line in ["", "diskspd.exe -?", "diskspd.exe -Xprofile.xml", "diskspd.exe -b8K -q x.dat"] {
            assert!(spans(line).is_none(), "{line}");
        }
    }
}
