//! A manual page of each subcommand: the sections that clap_mangen writes, but for the synopsis, which would list every
//! option, and the text after the help, whose lines it would run together.

use crate::after_help::{self, AfterHelp};
use crate::{PROGRAM, visible};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::fs;
use std::io;
use std::path::Path;

const SECTION: &str = "1";
const MANUAL: &str = "Headroom";

/// Writes the pages of all subcommands whose names are accepted into a directory.
pub fn write(tree: &Command, is_written: fn(&str) -> bool, directory: &Path) -> io::Result<()> {
    // `headroom help check` shows what the pages say.
    let mut tree = tree.clone().disable_help_subcommand(true);
    tree.build();
    let source = format!("{PROGRAM} {}", tree.get_version().unwrap_or_default());
    write_with_subcommands(&tree, (&source, is_written), None, directory)
}

fn write_with_subcommands(
    command: &Command,
    (source, is_written): (&str, fn(&str) -> bool),
    parent: Option<&str>,
    directory: &Path,
) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(PROGRAM);
    for subcommand in visible(command) {
        write_with_subcommands(subcommand, (source, is_written), Some(name), directory)?;
    }
    if !is_written(name) {
        return Ok(());
    }
    fs::write(directory.join(format!("{name}.{SECTION}")), render(command, source, parent)?)
}

fn render(command: &Command, source: &str, parent: Option<&str>) -> io::Result<Vec<u8>> {
    let page = Man::new(command.clone()).section(SECTION).source(source).manual(MANUAL);
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    let after = after_help::parse(&after.map(ToString::to_string).unwrap_or_default());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    paragraphs(&after).to_writer(&mut text)?;
    page.render_options_section(&mut text)?;
    if visible(command).next().is_some() {
        page.render_subcommands_section(&mut text)?;
    }
    exit_codes_and_examples(&after).to_writer(&mut text)?;
    see_also(command, parent).to_writer(&mut text)?;
    Ok(text)
}

/// The usage that its help has, as in `headroom check [OPTIONS] [DIR]`.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let name = command.get_bin_name().unwrap_or(PROGRAM);
    let mut roff = Roff::default();
    roff.control("SH", ["SYNOPSIS"]);
    let lines = usage.trim_start_matches("Usage:").lines().map(str::trim).filter(|line| !line.is_empty());
    for (at, line) in lines.enumerate() {
        if at > 0 {
            roff.control("br", []);
        }
        match line.strip_prefix(name) {
            Some(rest) => roff.text([bold(name), roman(rest)]),
            None => roff.text([roman(line)]),
        };
    }
    roff
}

fn paragraphs(after: &AfterHelp) -> Roff {
    let mut roff = Roff::default();
    for paragraph in &after.paragraphs {
        roff.control("PP", []);
        roff.text([roman(paragraph)]);
    }
    roff
}

fn exit_codes_and_examples(after: &AfterHelp) -> Roff {
    let mut roff = Roff::default();
    if let Some(codes) = &after.exit_codes {
        roff.control("SH", ["EXIT STATUS"]);
        roff.text([roman(codes)]);
    }
    if !after.examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        roff.control("nf", []);
        for example in &after.examples {
            roff.text([roman(example)]);
        }
        roff.control("fi", []);
    }
    roff
}

fn see_also(command: &Command, parent: Option<&str>) -> Roff {
    let mut roff = Roff::default();
    let name = command.get_display_name().unwrap_or(PROGRAM);
    // A page with subcommands names them in their section.
    let pages =
        [parent.map(str::to_owned), (name != PROGRAM && parent != Some(PROGRAM)).then(|| PROGRAM.into())];
    let pages: Vec<String> = pages.into_iter().flatten().map(|page| format!("{page}({SECTION})")).collect();
    if !pages.is_empty() {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman(pages.join(", "))]);
    }
    roff
}
