//! Hostile arguments for every subcommand.

use programs::arguments::{Program, call_any, parse_any};

fn program() -> Program {
    Program::new("headroom", headroom::arguments())
}

#[test]
fn any_arguments_are_parsed_or_refused_by_name() {
    parse_any(program());
}

#[test]
fn no_call_ends_by_a_panic_or_a_signal() {
    call_any(program);
}
