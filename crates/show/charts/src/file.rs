//! A chart as a file of its own: title, notes, panels with their legends, one under the other.

use crate::chart::{Chart, Panel};
use crate::drawing::{Anchor, Baseline, Canvas, Drawing, Size, TextStyle, text_pixels};
use crate::legend::{Key, Mark};
use crate::palette::{Ink, Theme};
use crate::svg;

/// Around everything.
const EDGE: f64 = 24.0;
const WIDTH: f64 = Size::WIDE.width as f64;
const HEIGHT_MIN: f64 = 120.0;
const COLUMN_GAP: f64 = 16.0;
const LINE: f64 = 18.0;
/// Letters are about this much wider than [`text_pixels`] assumes.
const WIDER: f64 = 1.04;

/// A chart as an SVG file that needs nothing else: its own colours and ground, title, legend, and the settings
/// of its runs as `<metadata>`.
pub fn svg_file(chart: &Chart, theme: Theme) -> String {
    svg::file(&layout(chart), &chart.title, &chart.settings, theme)
}

/// The chart as one drawing.
pub(crate) fn layout(chart: &Chart) -> Drawing {
    let mut body = Body { canvas: Canvas::default(), y: EDGE };
    body.text(EDGE, &chart.title, Type::Title);
    for note in &chart.notes {
        for line in wrap(note, WIDTH) {
            body.text(EDGE, &line, Type::Note);
        }
    }
    body.y += 10.0;
    let mut panels = &chart.panels[..];
    while let [first, rest @ ..] = panels {
        let beside = rest.first().filter(|second| first.is_half() && second.is_half());
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
    let (width, height) = (WIDTH + 2.0 * EDGE, body.y.max(HEIGHT_MIN).ceil());
    let size = Size { width: width as u32, height: height as u32 };
    Drawing::new(size, &chart.notes.join(" "), |canvas| {
        canvas.rect((0.0, 0.0), (width, height), Ink::Surface, 1.0);
        canvas.shapes.append(&mut body.canvas.shapes);
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Title,
    Panel,
    Note,
}

/// The shapes so far, and how far down they reach.
struct Body {
    canvas: Canvas,
    y: f64,
}

impl Body {
    fn text(&mut self, x: f64, text: &str, kind: Type) {
        let (pixels, bold, ink, line) = match kind {
            Type::Title => (20.0, true, Ink::Text, 26.0),
            Type::Panel => (15.0, true, Ink::Text, 20.0),
            Type::Note => (13.0, false, Ink::Muted, LINE),
        };
        self.y += line;
        let style = TextStyle { anchor: Anchor::Start, baseline: Baseline::Letters, pixels, bold };
        self.canvas.styled_text((x, self.y - 5.0), text, style, ink);
    }

    fn panel(&mut self, panel: &Panel, x: f64) {
        let (width, height) = (f64::from(panel.size.width), f64::from(panel.size.height));
        self.text(x, &panel.title, Type::Panel);
        if !panel.note.is_empty() {
            wrap(&panel.note, width).iter().for_each(|line| self.text(x, line, Type::Note));
        }
        if !panel.lines_are_named {
            self.legend(&panel.legend, x, width);
        }
        self.y += 4.0;
        self.canvas.drawing((x, self.y), (panel.draw)(panel.size));
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
        const WIDTH: f64 = 18.0;
        const LINE_PIXELS: f64 = 2.5;
        const HALF: f64 = 5.5;
        let canvas = &mut self.canvas;
        let line = [(x, y), (x + WIDTH, y)];
        let (upper_left, lower_right) = ((x, y - HALF), (x + WIDTH, y + HALF));
        match mark {
            Mark::Line => canvas.line(&line, ink, LINE_PIXELS),
            Mark::Dashed => canvas.broken(&line, ink, LINE_PIXELS, (5.0, 4.0)),
            Mark::Dotted => canvas.broken(&line, ink, LINE_PIXELS, (1.5, 3.0)),
            Mark::Area => canvas.rect(upper_left, lower_right, ink, 0.55),
            Mark::Hatched => {
                canvas.rect(upper_left, lower_right, ink, 0.25);
                for left in [x, x + 10.0] {
                    canvas.line(&[(left, y + HALF), (left + 8.0, y - HALF)], ink, 1.5);
                }
            }
            Mark::Dot => canvas.dot((x + WIDTH / 2.0, y), 4.5, ink),
            Mark::Ring => canvas.ring((x + WIDTH / 2.0, y), 4.5, ink, 2.0),
            Mark::Square => canvas.square((x + WIDTH / 2.0, y), 4.0, ink),
        }
    }
}

/// The approximate width of a note: its type is a little larger than that of the panels.
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
