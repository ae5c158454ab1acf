//! A drawing as SVG text.

use crate::drawing::{
    Anchor, Baseline, CellReading, Drawing, FONT_PIXELS, HALO_OPACITY, HALO_PIXELS, Readings, Shape, Size,
    TextStyle,
};
use crate::palette::{Ink, Theme, hex};
use std::collections::HashMap;

/// How a drawing names its colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colours {
    /// By the CSS variables of the page, which has both themes.
    Variables,
    Of(Theme),
}

impl Drawing {
    /// The drawing inside a page. The page decides how large it is and defines its colours and its text.
    pub fn to_svg(&self) -> String {
        let Size { width, height } = self.size;
        let description = escape(&self.description);
        let panels =
            if self.panels > 1 { format!(" data-panels=\"{}\"", self.panels) } else { String::new() };
        let mut svg = Svg { out: String::new(), colours: Colours::Variables };
        svg.out = format!(
            "<svg role=\"img\" aria-label=\"{description}\" viewBox=\"0 0 {width} {height}\" \
             font-size=\"{FONT_PIXELS}\"{panels}{}{}>\n",
            points(&self.readings),
            cells(&self.cells)
        );
        svg.shapes(&self.shapes);
        svg.out + "</svg>\n"
    }
}

/// In JSON between apostrophes, so that its quotes need no escape.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escape(&text.replace(['"', '\\'], " ")))
}

/// The readings of cells as an attribute that `page.js` reads: `{across: [[left, right, column], ...], down: [[top, bottom,
/// row], ...], values: [value, ...], cells: [[index in across, in down, in values], ...]}`.
fn cells(readings: &[CellReading]) -> String {
    if readings.is_empty() {
        return String::new();
    }
    let (mut across, mut down, mut values) = (Numbered::default(), Numbered::default(), Numbered::default());
    let each = readings.iter().map(|CellReading { from, to, words: [column, row, value] }| {
        let part = |low: f64, high: f64, words: &str| {
            format!("[{},{},{}]", Coordinate(low), Coordinate(high), quoted(words))
        };
        let column = across.number(part(from.0.min(to.0), from.0.max(to.0), column));
        let row = down.number(part(from.1.min(to.1), from.1.max(to.1), row));
        format!("[{column},{row},{}]", values.number(quoted(value)))
    });
    let cells: Vec<String> = each.collect();
    format!(
        " data-cells='{{\"across\":[{}],\"down\":[{}],\"values\":[{}],\"cells\":[{}]}}'",
        across.texts.join(","),
        down.texts.join(","),
        values.texts.join(","),
        cells.join(",")
    )
}

/// Texts of which each is written once.
#[derive(Default)]
struct Numbered {
    texts: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Numbered {
    fn number(&mut self, text: String) -> usize {
        *self.numbers.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.texts.len() - 1
        })
    }
}

/// The values of all lines as an attribute that `page.js` of the reports reads: `{at: [[left, x], ...], lines: [{ink, x, y,
/// points: [[index in at, top, y], ...]}, ...]}`.
fn points(readings: &[Readings]) -> String {
    let (mut at, mut numbers) = (Vec::new(), HashMap::new());
    let mut lines = Vec::new();
    for one in readings.iter().filter(|one| !one.points.is_empty()) {
        let mut points = Vec::new();
        for ((left, top), [x, y]) in &one.points {
            let left = Coordinate(*left).to_string();
            let number = *numbers.entry((left.clone(), x)).or_insert_with(|| {
                at.push(format!("[{left},{}]", if one.is_clock { x.clone() } else { quoted(x) }));
                at.len() - 1
            });
            points.push(format!("[{number},{},{}]", Coordinate(*top), quoted(y)));
        }
        let [x, y] = one.names.each_ref().map(|name| quoted(name));
        let (ink, points) = (one.ink.variable(), points.join(","));
        lines.push(format!("{{\"ink\":\"{ink}\",\"x\":{x},\"y\":{y},\"points\":[{points}]}}"));
    }
    match lines.is_empty() {
        true => String::new(),
        false => format!(" data-points='{{\"at\":[{}],\"lines\":[{}]}}'", at.join(","), lines.join(",")),
    }
}

/// A file of its own: title, description, and the settings in a namespace of our own, as SVG allows.
pub(crate) fn file(drawing: &Drawing, title: &str, settings: &[(String, String)], theme: Theme) -> String {
    const FONTS: &str = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";
    let Size { width, height } = drawing.size;
    let setting = |(name, value): &(String, String)| {
        element("h:setting", &format!(" name=\"{}\"", escape(name)), value)
    };
    let halo = hex(Ink::Surface.rgb(theme));
    let out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{}\" font-size=\"{FONT_PIXELS}\">\n{}{}<metadata>\n\
         <h:chart xmlns:h=\"urn:headroom:chart\">\n{}</h:chart>\n</metadata>\n\
         <style>g text {{ font-variant-numeric: tabular-nums; paint-order: stroke; stroke: {halo}; \
         stroke-width: {HALO_PIXELS}; stroke-opacity: {HALO_OPACITY} }} g text.plain {{ stroke: none }} \
         g rect {{ shape-rendering: crispEdges }}</style>\n",
        escape(FONTS),
        element("title", "", title),
        element("desc", "", &drawing.description),
        settings.iter().map(setting).collect::<String>(),
    );
    let mut svg = Svg { out, colours: Colours::Of(theme) };
    svg.shapes(&drawing.shapes);
    svg.out + "</svg>\n"
}

/// An element with a text in it; the attributes are written already, each after a space.
fn element(name: &str, attributes: &str, text: &str) -> String {
    format!("<{name}{attributes}>{}</{name}>\n", escape(text))
}

/// SVG text so far.
struct Svg {
    out: String,
    colours: Colours,
}

impl Svg {
    fn shapes(&mut self, shapes: &[Shape]) {
        shapes.iter().for_each(|shape| self.shape(shape));
    }

    fn shape(&mut self, shape: &Shape) {
        let written = match shape {
            Shape::Line { points, ink, width } => {
                let points: Vec<String> =
                    points.iter().map(|(x, y)| format!("{},{}", Coordinate(*x), Coordinate(*y))).collect();
                let (stroke, points) = (self.stroke(*ink, *width), points.join(" "));
                format!("<polyline {stroke} points=\"{points}\"/>\n")
            }
            Shape::Rect { from, to, ink, opacity } => {
                // Cells that touch have the same rounded edge.
                let (left, top) = (rounded(from.0), rounded(from.1));
                let (width, height) = (Coordinate(rounded(to.0) - left), Coordinate(rounded(to.1) - top));
                let (x, y, fill) = (Coordinate(left), Coordinate(top), self.colour(*ink));
                format!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"{}/>\n",
                    opacity_attribute(*opacity)
                )
            }
            Shape::Circle { at, radius, ink, stroke } => {
                let (x, y, radius) = (Coordinate(at.0), Coordinate(at.1), Coordinate(*radius));
                let paint = match stroke {
                    None => format!("fill=\"{}\"", self.colour(*ink)),
                    Some(width) => self.stroke(*ink, *width),
                };
                format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {paint}/>\n")
            }
            Shape::Text { at, text, style, ink } => {
                element("text", &self.text_attributes(*at, style, *ink), text)
            }
            Shape::Drawing { at, drawing } => {
                self.out.push_str(&format!(
                    "<g transform=\"translate({} {})\" role=\"img\" aria-label=\"{}\">\n",
                    Coordinate(at.0),
                    Coordinate(at.1),
                    escape(&drawing.description)
                ));
                self.shapes(&drawing.shapes);
                "</g>\n".to_owned()
            }
        };
        self.out.push_str(&written);
    }

    fn text_attributes(&self, at: (f64, f64), style: &TextStyle, ink: Ink) -> String {
        let mut text = format!(" x=\"{}\" y=\"{}\"", Coordinate(at.0), Coordinate(at.1));
        if style.baseline == Baseline::Middle {
            text.push_str(" dy=\"0.5ex\"");
        }
        text.push_str(match style.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        });
        if style.pixels != FONT_PIXELS {
            text.push_str(&format!(" font-size=\"{}\"", Coordinate(style.pixels)));
        }
        if style.bold {
            text.push_str(" font-weight=\"bold\"");
        }
        // On a coloured cell a halo would be a blot.
        if ink == Ink::OnHeat {
            text.push_str(" class=\"plain\"");
        }
        text + &format!(" fill=\"{}\"", self.colour(ink))
    }

    fn stroke(&self, ink: Ink, width: f64) -> String {
        format!("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"", self.colour(ink), Coordinate(width))
    }

    fn colour(&self, ink: Ink) -> String {
        match self.colours {
            Colours::Variables => format!("var({})", ink.variable()),
            Colours::Of(theme) => hex(ink.rgb(theme)),
        }
    }
}

fn opacity_attribute(opacity: f64) -> String {
    let opacity = if opacity.is_finite() { (opacity.clamp(0.0, 1.0) * 1e3).round() / 1e3 } else { 1.0 };
    if opacity == 1.0 { String::new() } else { format!(" opacity=\"{opacity}\"") }
}

/// To a tenth of a pixel.
fn rounded(pixels: f64) -> f64 {
    (pixels * 10.0).round() / 10.0
}

/// Written with at most one decimal.
struct Coordinate(f64);

impl std::fmt::Display for Coordinate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // -0 is 0.
        let pixels = rounded(self.0) + 0.0;
        if pixels.fract() == 0.0 { write!(f, "{pixels:.0}") } else { write!(f, "{pixels:.1}") }
    }
}

/// Outside text, harmless in SVG, in HTML and in their attributes.
pub fn escape(text: &str) -> String {
    let harmful = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Control characters, and marks that reverse the order of what follows.
            c if harmful(c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::Size;

    #[test]
    fn a_drawing_is_written_as_elements_with_the_page_s_colours() {
        let drawing = Drawing::new(Size { width: 20, height: 10 }, "a & b", |canvas| {
            canvas.line(&[(0.0, -0.01), (f64::NAN, 1e9)], Ink::Axis, 1.5);
            canvas.rect((7.26, 3.0), (1.0, 2.0), Ink::Series(1), 0.25);
            canvas.text((1.0, 2.0), "<b>", Anchor::End, Ink::OnHeat, true);
        });
        assert_eq!(
            drawing.to_svg(),
            "<svg role=\"img\" aria-label=\"a &amp; b\" viewBox=\"0 0 20 10\" font-size=\"12\">\n\
             <polyline fill=\"none\" stroke=\"var(--axis)\" stroke-width=\"1.5\" points=\"0,0 0,20000\"/>\n\
             <rect x=\"1\" y=\"2\" width=\"6.3\" height=\"1\" fill=\"var(--series-1)\" opacity=\"0.25\"/>\n\
             <text x=\"1\" y=\"2\" dy=\"0.5ex\" text-anchor=\"end\" font-weight=\"bold\" class=\"plain\" \
             fill=\"var(--on-heat)\">&lt;b&gt;</text>\n</svg>\n"
        );
    }

    #[test]
    fn cells_name_their_column_and_row_once() {
        let cell = |left: f64, value: &str| CellReading {
            from: (left, 20.0),
            to: (left + 5.0, 10.0),
            words: ["1 s".into(), "a'b\"".into(), value.into()],
        };
        let drawing = Drawing::new(Size { width: 20, height: 10 }, "", |canvas| {
            canvas.cells = vec![cell(0.0, "3 %"), cell(5.0, "3 %")];
        });
        let expected = " data-cells='{\"across\":[[0,5,\"1 s\"],[5,10,\"1 s\"]],\"down\":[[10,20,\"a&#39;b \"]],\
                        \"values\":[\"3 %\"],\"cells\":[[0,0,0],[1,0,0]]}'";
        assert!(drawing.to_svg().contains(expected), "{}", drawing.to_svg());
    }

    #[test]
    fn names_from_outside_are_harmless() {
        assert_eq!(escape("a\x1b\u{202e}'<"), "a\u{fffd}\u{fffd}&#39;&lt;");
    }
}
