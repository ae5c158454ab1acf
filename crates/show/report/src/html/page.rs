//! Parts that all pages share: the frame, the styles, a figure with its legend.

use super::sentence::sentence;
use super::table::class;
use crate::{Tone, number};
use charts::escape;
use charts::{Chart, Drawing, Ink, Mark, Panel, Size, Theme, css_variables};
use filestats::{Profile, ServiceLevel};
use std::borrow::Cow;

/// All but the colours.
const STYLES: &str = include_str!("page.css");
/// Shows the figures of a chart under the pointer. It needs nothing from outside the page, and the page is whole without it.
pub const SCRIPT: &str = include_str!("page.js");
/// A page of at least this many headings begins with a list of them.
const HEADINGS_LISTED_MIN: usize = 4;

/// A whole page.
pub fn page(title: &str, body: &str, footer: &str) -> String {
    let (light, dark) = (css_variables(Theme::Light), css_variables(Theme::Dark));
    let body = with_contents(body);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"Headroom\">\n<title>{}</title>\n<style>\n:root {{ color-scheme: light; {light} }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark} }} }}\n{STYLES}</style>\n\
         </head>\n\
         <body>\n<main>\n{body}<footer>{footer}</footer>\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        escape(title)
    )
}

/// The body with an anchor at each heading, and a list of them before the first one where there are many.
fn with_contents(body: &str) -> String {
    let mut parts = body.split("<h2>");
    let mut html = parts.next().unwrap_or_default().to_owned();
    let mut rest = String::new();
    let mut headings: Vec<(String, &str)> = Vec::new();
    for part in parts {
        let Some((title, after)) = part.split_once("</h2>") else {
            rest.push_str(&format!("<h2>{part}"));
            continue;
        };
        let id = anchor(title, &headings);
        rest.push_str(&format!(
            "<h2 id=\"{id}\">{title}<a href=\"#{id}\" aria-label=\"link to this\"></a></h2>{after}"
        ));
        headings.push((id, title));
    }
    if headings.len() >= HEADINGS_LISTED_MIN {
        let entry = |(id, title): &(String, &str)| format!("<li><a href=\"#{id}\">{title}</a></li>");
        let entries: String = headings.iter().map(entry).collect();
        html.push_str(&format!("<nav class=\"contents\" aria-label=\"contents\"><ul>{entries}</ul></nav>\n"));
    }
    html + &rest
}

/// "demand-on-the-curve", with a number where there is one of that name already.
fn anchor(title: &str, before: &[(String, &str)]) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_lowercase();
    let name = if name.is_empty() { "part".to_owned() } else { name };
    let (mut id, mut number) = (name.clone(), 1);
    while before.iter().any(|(other, _)| *other == id) {
        number += 1;
        id = format!("{name}-{number}");
    }
    id
}

/// The footer of a judgement: version, service level and scale.
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

/// The answer on top of a page, in the colour of a good or a bad answer. All parts are HTML.
pub(super) struct Banner<'a> {
    pub(super) tone: Tone,
    /// Small, above at the left: the subject of the verdict, and its time.
    pub(super) subject: String,
    /// Above at the right.
    pub(super) beside: String,
    pub(super) title: &'a str,
    pub(super) sentence: String,
    /// After the sentence.
    pub(super) more: String,
}

impl Banner<'_> {
    pub(super) fn html(&self) -> String {
        let Banner { tone, subject, beside, title, sentence, more } = self;
        format!(
            "<header class=\"card banner {}\">\n<div class=\"top\"><span class=\"small\">{subject}</span>\
             <span class=\"confidence\">{beside}</span></div>\n<h1>{title}</h1>\n\
             <p class=\"sentence\">{sentence}</p>{more}\n</header>\n",
            class(*tone)
        )
    }
}

/// A figure in large type with its explanation, which answers the page's question.
pub struct Tile {
    /// A word above the value.
    pub title: Cow<'static, str>,
    /// `None` where it is not known.
    pub value: Option<String>,
    /// A sentence below it.
    pub note: String,
    /// The colour of the value.
    pub tone: Tone,
}

impl Tile {
    /// One that is neither good nor bad.
    pub fn new(title: impl Into<Cow<'static, str>>, value: Option<String>, note: impl Into<String>) -> Tile {
        Tile { title: title.into(), value, note: note.into(), tone: Tone::Neutral }
    }

    fn html(&self) -> String {
        let toned =
            if self.tone == Tone::Neutral { String::new() } else { format!(" toned {}", class(self.tone)) };
        format!(
            "<div class=\"card figure{toned}\"><div class=\"title\">{}</div><div class=\"value\">{}</div>\
             <div class=\"note\">{}</div></div>\n",
            escape(&self.title),
            escape(self.value.as_deref().unwrap_or("–")),
            sentence(&self.note)
        )
    }
}

/// A single tile is not stretched over the page.
const TILES_MIN: usize = 2;
/// More do not fit beside each other.
pub(super) const TILES_MAX: usize = 4;

/// Tiles side by side.
pub fn tiles(tiles: &[Tile]) -> String {
    if tiles.is_empty() {
        return String::new();
    }
    let side_by_side = tiles.len().clamp(TILES_MIN, TILES_MAX);
    let html: String = tiles.iter().map(Tile::html).collect();
    format!("<section class=\"figures\" style=\"--tiles:{side_by_side}\">\n{html}</section>\n")
}

/// The key of the marks of a chart.
pub(super) fn legend(entries: &[(Mark, Ink, &str)]) -> String {
    legend_of_class("legend", entries)
}

fn legend_of_class(class: &str, entries: &[(Mark, Ink, &str)]) -> String {
    let entry = |(mark, ink, name): &(Mark, Ink, &str)| {
        let class = match mark {
            Mark::Line => "line",
            Mark::Dashed => "dashed",
            Mark::Area => "area",
            Mark::Dot => "dot",
            Mark::Ring => "ring",
            Mark::Square => "square",
            Mark::Dotted => "dotted",
            Mark::Hatched => "hatched",
        };
        let (variable, name) = (ink.variable(), escape(name));
        format!("<li><i class=\"{class}\" style=\"--c:var({variable})\"></i>{name}</li>")
    };
    format!("<ul class=\"{class}\">{}</ul>\n", entries.iter().map(entry).collect::<String>())
}

/// A chart drawn twice, for a page and for a phone, so that its text stays readable on both.
pub(super) fn chart(
    title: &str,
    note: &str,
    legend: &str,
    wide: Size,
    draw: impl Fn(Size) -> Drawing,
) -> String {
    drawn_twice(title, note, legend, [wide, Size::NARROW], draw)
}

fn drawn_twice(
    title: &str,
    note: &str,
    legend: &str,
    [wide, narrow]: [Size; 2],
    draw: impl Fn(Size) -> Drawing,
) -> String {
    let note = if note.is_empty() { String::new() } else { escape(note) };
    format!(
        "<figure class=\"card\">\n<figcaption><b>{}</b>{note}</figcaption>\n{legend}\
         <div class=\"wide-only\">{}</div>\n<div class=\"narrow\">{}</div>\n</figure>\n",
        escape(title),
        draw(wide).to_svg(),
        draw(narrow).to_svg()
    )
}

/// A panel of a chart.
pub(super) fn panel(panel: &Panel) -> String {
    let keys: Vec<(Mark, Ink, &str)> =
        panel.legend.iter().map(|(mark, ink, name)| (*mark, *ink, name.as_str())).collect();
    // Where the lines have their names at their ends, only the narrow drawing needs it.
    let class = if panel.lines_are_named { "legend narrow" } else { "legend" };
    let legend = if keys.is_empty() { String::new() } else { legend_of_class(class, &keys) };
    drawn_twice(&panel.title, &panel.note, &legend, [panel.size, panel.narrow], |size| (panel.draw)(size))
}

/// A chart under its heading with its notes.
pub fn run_chart(chart: &Chart) -> String {
    // Narrow ones side by side, wide ones under each other, in their order.
    let beside = |one: &Panel, other: &Panel| one.is_half() == other.is_half();
    let grids = chart.panels.chunk_by(beside).map(|panels| {
        let wide = if panels.len() > 1 && panels[0].is_half() { "" } else { " wide" };
        format!("<div class=\"charts{wide}\">\n{}</div>\n", panels.iter().map(panel).collect::<String>())
    });
    format!(
        "<h2>{}</h2>\n<p class=\"small\">{}</p>\n{}",
        escape(&chart.title),
        sentence(&chart.notes.join(" ")),
        grids.collect::<String>()
    )
}
