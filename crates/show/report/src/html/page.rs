//! What both pages share: the frame, the styles, a figure with its legend.

use super::escape;
use super::table::class;
use crate::chart::{Chart, Ink, Mark, Panel, Size, Theme};
use crate::{Tone, number};
use filestats::{Profile, ServiceLevel};

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

/// What was judged by which promise and on which scale.
pub(super) fn judged_by(version: &str, level: &ServiceLevel, profile: &Profile) -> String {
    format!(
        "Headroom {}; service level: reads {}, writes {}, log writes {}; bands: {} ({})",
        escape(version),
        number::time(level.read_ns as f64),
        number::time(level.write_ns as f64),
        number::time(level.log_write_ns as f64),
        profile.name,
        escape(profile.origin)
    )
}

/// The answer on top of a page, in the colour of good or bad news; all parts are HTML already.
pub(super) struct Banner<'a> {
    pub(super) tone: Tone,
    /// Small, above at the left: of what, when.
    pub(super) of: String,
    /// Above at the right.
    pub(super) beside: String,
    pub(super) title: &'a str,
    pub(super) sentence: String,
    /// After the sentence.
    pub(super) more: String,
}

impl Banner<'_> {
    pub(super) fn html(&self) -> String {
        let Banner { tone, of, beside, title, sentence, more } = self;
        format!(
            "<header class=\"card banner {}\">\n<div class=\"top\"><span class=\"small\">{of}</span>\
             <span class=\"confidence\">{beside}</span></div>\n<h1>{title}</h1>\n\
             <p class=\"sentence\">{sentence}</p>{more}\n</header>\n",
            class(*tone)
        )
    }
}

/// What the marks of a chart mean.
pub(super) fn legend(entries: &[(Mark, Ink, &str)]) -> String {
    let entry = |(mark, ink, name): &(Mark, Ink, &str)| {
        let class = match mark {
            Mark::Line => "line",
            Mark::Dashed => "dashed",
            Mark::Area => "area",
            Mark::Dot => "dot",
            Mark::Dotted => "dotted",
            Mark::Hatched => "hatched",
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
    drawn_twice(title, note, legend, [wide, Size::NARROW], draw)
}

fn drawn_twice(
    title: &str,
    note: &str,
    legend: &str,
    [wide, narrow]: [Size; 2],
    draw: impl Fn(Size) -> String,
) -> String {
    let note = if note.is_empty() { String::new() } else { escape(note) };
    format!(
        "<figure class=\"card\">\n<figcaption><b>{}</b>{note}</figcaption>\n{legend}\
         <div class=\"wide-only\">{}</div>\n<div class=\"narrow\">{}</div>\n</figure>\n",
        escape(title),
        draw(wide),
        draw(narrow)
    )
}

/// A panel of a chart of runs.
pub(super) fn panel(panel: &Panel) -> String {
    let keys: Vec<(Mark, Ink, &str)> =
        panel.legend.iter().map(|(mark, ink, name)| (*mark, *ink, name.as_str())).collect();
    let legend = if keys.is_empty() { String::new() } else { legend(&keys) };
    drawn_twice(&panel.title, &panel.note, &legend, [panel.size, panel.narrow], |size| (panel.draw)(size))
}

/// A chart of runs under its heading, with what is to be known of it.
pub(super) fn run_chart(chart: &Chart) -> String {
    // Narrow ones side by side, wide ones under each other, in their order.
    let is_half = |panel: &Panel| panel.size.width <= Size::HALF.width;
    let beside = |one: &Panel, other: &Panel| is_half(one) == is_half(other);
    let grids = chart.panels.chunk_by(beside).map(|panels| {
        let wide = if panels.len() > 1 && is_half(&panels[0]) { "" } else { " wide" };
        format!("<div class=\"charts{wide}\">\n{}</div>\n", panels.iter().map(panel).collect::<String>())
    });
    format!(
        "<h2>{}</h2>\n<p class=\"small\">{}</p>\n{}",
        escape(&chart.title),
        super::sentence(&chart.notes.join(" ")),
        grids.collect::<String>()
    )
}

/// The colour that a variable of the page has in a theme: the page's own styles are asked, so that files and
/// pages never differ.
pub(crate) fn page_colour(variable: &str, theme: Theme) -> &'static str {
    let name = format!("{variable}: ");
    let mut found = STYLES.match_indices(&name).map(|(at, name)| &STYLES[at + name.len()..]);
    let colour = match theme {
        Theme::Light => found.next(),
        Theme::Dark => found.nth(1),
    };
    colour.and_then(|rest| rest.get(..7)).filter(|colour| colour.starts_with('#')).unwrap_or("#808080")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ink_has_a_colour_in_both_themes() {
        for ink in Ink::all() {
            let name = ink.variable();
            let (light, dark) = (page_colour(&name, Theme::Light), page_colour(&name, Theme::Dark));
            assert!(light != "#808080" && dark != "#808080" && light != dark, "{name}: {light} {dark}");
        }
    }
}
