//! The reference of all options, from the arguments themselves.

use crate::{PROGRAM, visible};
use clap::{Arg, Command};
use std::fmt::Write;

/// The reference of all options, as a page of the documentation that begins with `opening`.
#[must_use]
pub fn page(tree: Command, opening: &str) -> String {
    let mut tree = tree.disable_help_subcommand(true);
    tree.build();
    let mut page = opening.to_owned();
    let global: Vec<&Arg> = tree.get_arguments().filter(|argument| argument.is_global_set()).collect();
    table(&mut page, &global);
    subcommands(&mut page, &tree, PROGRAM);
    page
}

/// Options that a command takes for all of its subcommands are listed with that command only.
fn subcommands(page: &mut String, command: &Command, name: &str) {
    let is_of_parent = |argument: &Arg| {
        argument.is_global_set() && command.get_arguments().any(|own| own.get_id() == argument.get_id())
    };
    for subcommand in visible(command) {
        let name = format!("{name} {}", subcommand.get_name());
        let about = subcommand.get_about().map(|about| one_line(&about.to_string())).unwrap_or_default();
        writeln!(page, "\n## {name}\n\n{about}.").expect("a String takes all");
        let own = subcommand.get_arguments().filter(|argument| {
            !is_of_parent(argument) && !argument.is_hide_set() && argument.get_id() != "help"
        });
        table(page, &own.collect::<Vec<&Arg>>());
        subcommands(page, subcommand, &name);
    }
}

fn table(page: &mut String, arguments: &[&Arg]) {
    if arguments.is_empty() {
        return;
    }
    page.push_str("\n| option | |\n|---|---|\n");
    for argument in arguments {
        writeln!(page, "| `{}` | {} |", form(argument).replace('|', "\\|"), meaning(argument))
            .expect("a String takes all");
    }
}

/// As it is typed: `-n, --count <N>`, or `[DIR]`.
fn form(argument: &Arg) -> String {
    let names = argument.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    if argument.is_positional() {
        let (open, close) = if argument.is_required_set() { ('<', '>') } else { ('[', ']') };
        return format!("{open}{names}{close}");
    }
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let long = argument.get_long().map(|word| format!("--{word}"));
    let mut form = [short, long].into_iter().flatten().collect::<Vec<String>>().join(", ");
    if argument.get_action().takes_values() {
        write!(form, " <{names}>").expect("a String takes all");
    }
    form
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_help().or_else(|| argument.get_long_help());
    let mut meaning = help.map(|help| one_line(&help.to_string())).unwrap_or_default();
    let shows_default = argument.get_action().takes_values() && !argument.is_hide_default_value_set();
    let defaults = argument.get_default_values();
    if shows_default && !defaults.is_empty() {
        let defaults: Vec<String> =
            defaults.iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        write!(meaning, " (default {})", defaults.join(" ")).expect("a String takes all");
    }
    meaning
}

/// Without line breaks, and with nothing that Markdown would take for a table's border or for HTML.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    text.replace('|', "\\|").replace('<', "\\<")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    #[test]
    fn a_row_has_the_form_and_the_default() {
        let count =
            Arg::new("count").long("count").short('n').value_name("N").default_value("5").help("How\nmany");
        let flag = Arg::new("quick").long("quick").action(ArgAction::SetTrue).help("Half | less");
        let directory = Arg::new("dir").value_name("DIR").help("Where");
        let mut page = String::new();
        table(&mut page, &[&count, &flag, &directory]);
        let expected = "\n| option | |\n|---|---|\n| `-n, --count <N>` | How many (default `5`) |\n| `--quick` | Half \\| less |\n| `[DIR]` | Where |\n";
        assert_eq!(page, expected);
    }
}
