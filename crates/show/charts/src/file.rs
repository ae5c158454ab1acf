use super::canvas::{Ink, text_pixels};
use super::{Chart, Key, Mark, Panel, Size};
use crate::html::{escape, page_colour};
use std::str::FromStr;

/// Which colours a file has; a page has both and asks its reader's system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Theme {
    /// Dark on white: for documents and print.
    #[default]
    Light,
    /// Light on dark.
    Dark,
}

/// Around everything.
const EDGE: f64 = 24.0;
const WIDTH: f64 = Size::WIDE.width as f64;
const COLUMN_GAP: f64 = 16.0;
const LINE: f64 = 18.0;
/// Letters are about so much wider than the canvas reckons digits.
const WIDER: f64 = 1.04;

/// A chart as an SVG file that needs nothing else: its own colours and ground, title, legend, and the settings
/// of its runs as `<metadata>`.
pub fn svg_file(chart: &Chart, theme: Theme) -> String {
    let mut body = Body { svg: String::new(), y: EDGE };
    body.text(EDGE, &chart.title, Type::Title);
    for note in &chart.notes {
        for line in wrap(note, WIDTH) {
            body.text(EDGE, &line, Type::Note);
        }
    }
    body.y += 10.0;
    let mut panels = &chart.panels[..];
    while let [first, rest @ ..] = panels {
        let beside = rest.first().filter(|second| is_half(first) && is_half(second));
        let top = body.y;
        body.panel(first, EDGE);
        if let Some(second) = beside {
            let bottom = std::mem::replace(&mut body.y, top);
            body.panel(second, EDGE + f64::from(first.size.width) + COLUMN_GAP);
            body.y = body.y.max(bottom);
        }
        panels = if beside.is_some() { &rest[1..] } else { rest };
        body.y += 14.0;
    }
    let (width, height) = (WIDTH + 2.0 * EDGE, body.y.max(120.0).ceil());
    let description = escape(&chart.notes.join(" "));
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\">\n<title>{}</title>\n<desc>{description}</desc>\n\
         {}<style>{STYLE}</style>\n<rect width=\"{width}\" height=\"{height}\" fill=\"var(--surface)\"/>\n{}</svg>\n",
        escape(&chart.title),
        metadata(chart),
        body.svg
    );
    coloured(&svg, theme)
}

fn is_half(panel: &Panel) -> bool {
    panel.size.width <= Size::HALF.width
}

const FONTS: &str = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";
/// A halo of 3 px keeps labels apart from the lines they cross; a panel has 8 units to the pixel.
const STYLE: &str = "svg svg text { font-family: inherit; font-variant-numeric: tabular-nums; paint-order: stroke; \
stroke: var(--surface); stroke-width: 24; stroke-opacity: .85 } svg svg text.plain { stroke: none } \
svg svg rect { shape-rendering: crispEdges }";

/// What a renderer cannot look up: every variable of the page as the colour it has in a theme.
fn coloured(svg: &str, theme: Theme) -> String {
    Ink::all().fold(svg.to_owned(), |svg, ink| {
        let name = ink.variable();
        svg.replace(&format!("var({name})"), page_colour(&name, theme))
    })
}

/// The settings in a namespace of our own, as SVG allows.
fn metadata(chart: &Chart) -> String {
    let setting = |(name, value): &(String, String)| {
        format!("<h:setting name=\"{}\">{}</h:setting>\n", escape(name), escape(value))
    };
    let settings: String = chart.settings.iter().map(setting).collect();
    format!("<metadata><h:chart xmlns:h=\"urn:headroom:chart\">\n{settings}</h:chart></metadata>\n")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Title,
    Panel,
    Note,
}

/// What stands so far, and where the next thing goes.
struct Body {
    svg: String,
    y: f64,
}

impl Body {
    fn text(&mut self, x: f64, text: &str, kind: Type) {
        let (size, weight, ink, line) = match kind {
            Type::Title => (20, 700, Ink::Text, 26.0),
            Type::Panel => (15, 700, Ink::Text, 20.0),
            Type::Note => (13, 400, Ink::Muted, LINE),
        };
        self.y += line;
        let (y, ink) = (self.y - 5.0, ink.variable());
        self.svg.push_str(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" fill=\"var({ink})\">{}</text>\n",
            escape(text)
        ));
    }

    fn panel(&mut self, panel: &Panel, x: f64) {
        let (width, height) = (f64::from(panel.size.width), f64::from(panel.size.height));
        self.text(x, &panel.title, Type::Panel);
        if !panel.note.is_empty() {
            wrap(&panel.note, width).iter().for_each(|line| self.text(x, line, Type::Note));
        }
        self.legend(&panel.legend, x, width);
        self.y += 4.0;
        // The drawing opens as `<svg … viewBox=`: it gets its place in this one.
        let drawing = (panel.draw)(panel.size);
        let place = format!("<svg x=\"{x:.1}\" y=\"{:.1}\" width=\"{width}\" height=\"{height}\"", self.y);
        self.svg.push_str(&drawing.replacen("<svg", &place, 1));
        self.svg.push('\n');
        self.y += height;
    }

    fn legend(&mut self, legend: &[Key], left: f64, width: f64) {
        if legend.is_empty() {
            return;
        }
        self.y += LINE;
        let mut x = left;
        for (mark, ink, name) in legend {
            let most = ((width - 40.0) / (text_pixels("n") * WIDER)) as usize;
            let name: String = name.chars().take(most).collect();
            let wanted = 26.0 + note_pixels(&name) + 18.0;
            if x > left && x + wanted > left + width {
                x = left;
                self.y += LINE;
            }
            self.mark(*mark, *ink, x, self.y - 9.0);
            self.y -= LINE;
            self.text(x + 25.0, &name, Type::Note);
            x += wanted;
        }
    }

    fn mark(&mut self, mark: Mark, ink: Ink, x: f64, y: f64) {
        let ink = ink.variable();
        let line = |extra: &str| {
            let end = x + 18.0;
            format!(
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{end:.1}\" y2=\"{y:.1}\" stroke=\"var({ink})\" stroke-width=\"2.5\"{extra}/>\n"
            )
        };
        let area = |opacity: f64| {
            format!(
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"18\" height=\"11\" fill=\"var({ink})\" fill-opacity=\"{opacity}\"/>\n",
                y - 5.5
            )
        };
        self.svg.push_str(&match mark {
            Mark::Line => line(""),
            Mark::Dashed => line(" stroke-dasharray=\"5 4\""),
            Mark::Dotted => line(" stroke-dasharray=\"1.5 3\""),
            Mark::Area => area(0.55),
            Mark::Hatched => format!(
                "{}<path d=\"M{:.1} {:.1}l8 -11m2 11l8 -11\" stroke=\"var({ink})\" stroke-width=\"1.5\"/>\n",
                area(0.25),
                x,
                y + 5.5
            ),
            Mark::Dot => {
                format!("<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"var({ink})\"/>\n", x + 9.0)
            }
        });
    }
}

/// About how wide a note is: its type is a little larger than that of the panels.
fn note_pixels(text: &str) -> f64 {
    text_pixels(text) * 13.0 / 12.0 * WIDER
}

fn wrap(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if note_pixels(line) + note_pixels(word) + 8.0 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

impl FromStr for Theme {
    type Err = String;

    fn from_str(text: &str) -> Result<Theme, String> {
        match text {
            "light" => Ok(Theme::Light),
            "dark" => Ok(Theme::Dark),
            other => Err(format!("'{other}' is no theme; give light or dark")),
        }
    }
}
