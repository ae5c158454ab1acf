//! Wrong arguments: exit 2, the argument by its name, and what it may be.

use super::headroom;
use crate::programs::Headroom;

#[test]
fn wrong_arguments_are_named_with_the_accepted_form() {
    let ours = Headroom::new();
    let cases: [(&[&str], &str, &str); 10] = [
        (&["measure", "--size", "abc"], "--size", "give bytes, or a number with K, M, G or T"),
        (&["measure", "--size", "0"], "--size", "give a size as in 64M or 1G"),
        (&["check", "--duration", "soon"], "--duration", "as in 500ms, 15s or 2m"),
        (&["check", "--duration", "0s"], "--duration", "as in 20s or 2m"),
        (&["check", "--source", "pg:x"], "--source", "sqlite:PATH"),
        (&["capture", "--source", "sqlite:"], "--source", "sqlite:PATH"),
        (&["check", "--bands", "nice"], "--bands", "there are randal, microsoft-css"),
        (&["check", "--service-level", "fast"], "--service-level", "milliseconds as in 20/20/5"),
        (&["measure", "--quick", "--thorough"], "--quick", "cannot be used with"),
        (&["history", "show", "thing", "1"], "<KIND>", "capture"),
    ];
    for (arguments, name, form) in cases {
        headroom(&ours, arguments).refused(2, &[name, form]);
    }
    headroom(&ours, &["history", "show", "verdict", "9"])
        .refused(3, &["has no verdict 9", "try: headroom history"]);
    headroom(&ours, &["intervals"]).refused(3, &["there are 0", "try: headroom capture --source"]);
    headroom(&ours, &["intervals", "1", "x"])
        .refused(3, &["number or label '1'", "try: headroom history captures"]);
}
