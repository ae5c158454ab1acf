//! What both pages share: the frame, the styles, a figure with its legend.

use super::escape;
use crate::chart::{Ink, Size};

const STYLES: &str = include_str!("page.css");

/// A whole page.
pub(super) fn page(title: &str, body: &str, footer: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"Headroom\">\n<title>{}</title>\n<style>\n{STYLES}</style>\n</head>\n\
         <body>\n<main>\n{body}<footer>{footer}</footer>\n</main>\n</body>\n</html>\n",
        escape(title)
    )
}

/// How a thing is drawn, for the legend.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    Line,
    Dashed,
    Area,
    Dot,
}

/// What the marks of a chart mean.
pub(super) fn legend(entries: &[(Mark, Ink, &str)]) -> String {
    let entry = |(mark, ink, name): &(Mark, Ink, &str)| {
        let class = match mark {
            Mark::Line => "line",
            Mark::Dashed => "dashed",
            Mark::Area => "area",
            Mark::Dot => "dot",
        };
        let (variable, name) = (ink.variable(), escape(name));
        format!("<li><i class=\"{class}\" style=\"--c:var({variable})\"></i>{name}</li>")
    };
    format!("<ul class=\"legend\">{}</ul>\n", entries.iter().map(entry).collect::<String>())
}

/// A chart drawn for a page and again for a phone, so that its text stays readable on both.
pub(super) fn chart(
    title: &str,
    note: &str,
    legend: &str,
    wide: Size,
    draw: impl Fn(Size) -> String,
) -> String {
    let note = if note.is_empty() { String::new() } else { escape(note) };
    format!(
        "<figure class=\"card\">\n<figcaption><b>{}</b>{note}</figcaption>\n{legend}\
         <div class=\"wide-only\">{}</div>\n<div class=\"narrow\">{}</div>\n</figure>\n",
        escape(title),
        draw(wide),
        draw(Size::NARROW)
    )
}
