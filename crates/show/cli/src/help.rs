//! Help texts. `headroom --help` prints the commands by task, `headroom COMMAND --help` all options, a line each.

use clap::Command;
use clap::builder::styling::Styles;
use std::ffi::OsString;
use std::fmt::Write;

/// Tasks, and the commands for each.
const TASKS: [(&str, &[&str]); 5] = [
    ("Judge", &["check", "agent", "fleet"]),
    ("Measure", &["measure", "storage", "run", "diskspd"]),
    ("Watch", &["sources", "watch", "trace"]),
    ("Compare", &["compare", "simulate", "history"]),
    ("Laboratory", &["lab", "log"]),
];
/// Columns before a command's description.
const INDENT: usize = 20;
/// As `max_term_width` of all other help.
const COLUMNS_MAX: usize = 100;

/// The command with its help by task, for a terminal of that width.
pub fn by_task(command: Command, columns: usize) -> Command {
    let styles = Styles::default();
    let header = styles.get_header();
    let literal = styles.get_literal();
    let columns = columns.clamp(2 * INDENT, COLUMNS_MAX);
    let mut list = String::new();
    for (task, names) in tasks(&command) {
        let _ = writeln!(list, "{header}{task}:{header:#}");
        for name in names {
            let about = command.find_subcommand(&name).and_then(Command::get_about);
            let about = wrapped(&about.map(ToString::to_string).unwrap_or_default(), columns - INDENT);
            let _ = writeln!(list, "  {literal}{name:<width$}{literal:#}{about}", width = INDENT - 2);
        }
        list.push('\n');
    }
    let more = "headroom COMMAND --help shows the options of one.";
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{more}\n\n\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

/// The command for these arguments. `-h` lists the options that are used most; where `--help` or `help` asks for all, none is hidden.
/// clap's own long form has three lines for an option: of `run` that is three screens.
pub fn with_all_options(command: Command, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let asks_for_all =
        arguments.into_iter().enumerate().any(|(at, word)| word == "--help" || (at == 1 && word == "help"));
    let show = |command: Command| command.mut_args(|argument| argument.hide_short_help(false));
    if asks_for_all { command.mut_subcommands(show) } else { command }
}

/// The tasks with their commands; a command that is in no task comes last.
fn tasks(command: &Command) -> Vec<(&'static str, Vec<String>)> {
    let is_listed = |name: &str| TASKS.iter().any(|(_, names)| names.contains(&name));
    let all = || command.get_subcommands().filter(|it| !it.is_hide_set()).map(|it| it.get_name().to_owned());
    let listed = TASKS.iter().map(|(task, names)| {
        let there = names.iter().map(|name| (*name).to_owned());
        (*task, there.filter(|name| all().any(|other| other == *name)).collect())
    });
    let others: Vec<String> = all().filter(|name| !is_listed(name)).collect();
    let others = Some(("Others", others)).filter(|(_, names)| !names.is_empty());
    listed.chain(others).collect()
}

/// The words in lines of `columns` columns, all but the first indented.
fn wrapped(text: &str, columns: usize) -> String {
    let (mut lines, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if used > 0 && used + 1 + width > columns {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', INDENT));
            used = 0;
        } else if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += width;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_task() {
        let command = crate::arguments();
        let mut listed: Vec<&str> = TASKS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    #[test]
    fn help_names_every_command_under_its_task_and_fits_the_terminal() {
        for columns in [80, 100, 300] {
            let help = by_task(crate::arguments(), columns).render_help().to_string();
            let of_tasks = help.split("headroom COMMAND --help").next().unwrap();
            for (task, names) in TASKS {
                let listed = of_tasks.split(&format!("\n{task}:\n")).nth(1).unwrap();
                let listed = listed.split("\n\n").next().unwrap();
                for name in names {
                    assert!(
                        listed.lines().any(|line| line.split_whitespace().next() == Some(name)),
                        "{name}"
                    );
                }
            }
            // Above them is what the program is, in one line that clap wraps.
            let widest = of_tasks
                .lines()
                .skip_while(|line| *line != "Judge:")
                .map(|line| line.chars().count())
                .max()
                .unwrap();
            assert!(widest <= columns.min(COLUMNS_MAX), "{widest} of {columns}: {help}");
            assert!(help.contains("--history") && help.contains("Examples:"), "{help}");
        }
    }

    #[test]
    fn all_options_have_a_line_each_and_the_short_help_has_fewer() {
        let help = |flag: &str| {
            let words = ["headroom", "run", flag];
            let command = with_all_options(crate::arguments(), words.map(OsString::from));
            command.term_width(100).try_get_matches_from(words).unwrap_err().to_string()
        };
        let (all, most_used) = (help("--help"), help("-h"));
        assert!(all.contains("--cool-down") && !most_used.contains("--cool-down"), "{most_used}");
        assert!(most_used.contains("see more with '--help'"), "{most_used}");
        let lines = |help: &str| help.lines().count();
        assert!(lines(&most_used) <= 70 && lines(&all) <= 110, "{all}");
    }

    #[test]
    fn examples_fit_a_line_and_no_note_is_broken_by_hand() {
        fn check(command: &mut Command) {
            let name = command.get_name().to_owned();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_note = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let lines: Vec<&str> = help.lines().collect();
            for line in lines.iter().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= COLUMNS_MAX, "{name}: {line}");
            }
            // clap breaks long lines: one that ends within a sentence would be broken twice.
            for pair in lines.windows(2).filter(|pair| is_note(pair[0]) && is_note(pair[1])) {
                assert!(pair[0].ends_with(['.', ':']), "{name}: {}", pair[0]);
            }
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut crate::arguments());
    }

    #[test]
    fn no_help_names_a_file_of_the_documentation() {
        fn check(command: &mut Command) {
            let help = command.render_long_help().to_string();
            assert!(
                !help.contains("docs/"),
                "{}: an installed user has no docs/:\n{help}",
                command.get_name()
            );
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut crate::arguments());
    }

    #[test]
    fn a_command_without_a_task_is_shown_all_the_same() {
        let command = Command::new("headroom").subcommand(Command::new("new").about("Is new"));
        let help = by_task(command, 80).render_help().to_string();
        assert!(help.contains("Others:\n  new               Is new"), "{help}");
    }
}
