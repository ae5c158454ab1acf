//! A drawing as SVG text.

use crate::drawing::{Anchor, Baseline, Drawing, FONT_PIXELS, HALO_OPACITY, HALO_PIXELS, Shape, TextStyle};
use crate::palette::{Ink, Theme, hex};

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
        let mut svg = Svg { out: String::new(), colours: Colours::Variables };
        let mut root = svg
            .open("svg")
            .word("role", "img")
            .word("aria-label", &self.description)
            .word("viewBox", &format!("0 0 {} {}", self.size.width, self.size.height))
            .word("font-size", &FONT_PIXELS.to_string());
        if self.panels > 1 {
            root = root.word("data-panels", &self.panels.to_string());
        }
        root.parent();
        svg.shapes(&self.shapes);
        svg.close("svg");
        svg.out
    }
}

/// A file of its own: title, description, and the settings in a namespace of our own, as SVG allows.
pub(crate) fn file(drawing: &Drawing, title: &str, settings: &[(String, String)], theme: Theme) -> String {
    const FONTS: &str = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";
    let mut svg = Svg { out: String::new(), colours: Colours::Of(theme) };
    let (width, height) = (f64::from(drawing.size.width), f64::from(drawing.size.height));
    svg.open("svg")
        .word("xmlns", "http://www.w3.org/2000/svg")
        .number("width", width)
        .number("height", height)
        .word("viewBox", &format!("0 0 {width} {height}"))
        .word("font-family", FONTS)
        .word("font-size", &FONT_PIXELS.to_string())
        .parent();
    svg.open("title").text(title);
    svg.open("desc").text(&drawing.description);
    svg.open("metadata").parent();
    svg.open("h:chart").word("xmlns:h", "urn:headroom:chart").parent();
    for (name, value) in settings {
        svg.open("h:setting").word("name", name).text(value);
    }
    svg.close("h:chart");
    svg.close("metadata");
    let halo = hex(Ink::Surface.rgb(theme));
    svg.open("style").text(&format!(
        "g text {{ font-variant-numeric: tabular-nums; paint-order: stroke; stroke: {halo}; \
         stroke-width: {HALO_PIXELS}; stroke-opacity: {HALO_OPACITY} }} g text.plain {{ stroke: none }} \
         g rect {{ shape-rendering: crispEdges }}"
    ));
    svg.shapes(&drawing.shapes);
    svg.close("svg");
    svg.out
}

/// SVG text so far.
struct Svg {
    out: String,
    colours: Colours,
}

impl Svg {
    fn open(&mut self, name: &str) -> Element<'_> {
        self.out.push('<');
        self.out.push_str(name);
        Element { svg: self, name: name.to_owned() }
    }

    fn close(&mut self, name: &str) {
        self.out.push_str(&format!("</{name}>\n"));
    }

    fn shapes(&mut self, shapes: &[Shape]) {
        shapes.iter().for_each(|shape| self.shape(shape));
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { points, ink, width } => {
                let points: Vec<String> =
                    points.iter().map(|(x, y)| format!("{},{}", Coordinate(*x), Coordinate(*y))).collect();
                self.open("polyline")
                    .word("fill", "none")
                    .ink("stroke", *ink)
                    .number("stroke-width", *width)
                    .word("points", &points.join(" "))
                    .empty();
            }
            Shape::Rect { from, to, ink, opacity } => {
                // Cells that touch have the same rounded edge.
                let (left, top) = (rounded(from.0), rounded(from.1));
                self.open("rect")
                    .number("x", left)
                    .number("y", top)
                    .number("width", rounded(to.0) - left)
                    .number("height", rounded(to.1) - top)
                    .ink("fill", *ink)
                    .opacity(*opacity)
                    .empty();
            }
            Shape::Circle { at, radius, ink, stroke } => {
                let circle = self.open("circle").number("cx", at.0).number("cy", at.1).number("r", *radius);
                match stroke {
                    None => circle.ink("fill", *ink),
                    Some(width) => {
                        circle.word("fill", "none").ink("stroke", *ink).number("stroke-width", *width)
                    }
                }
                .empty();
            }
            Shape::Text { at, text, style, ink } => self.label(*at, text, style, *ink),
            Shape::Drawing { at, drawing } => {
                self.open("g")
                    .word("transform", &format!("translate({} {})", Coordinate(at.0), Coordinate(at.1)))
                    .word("role", "img")
                    .word("aria-label", &drawing.description)
                    .parent();
                self.shapes(&drawing.shapes);
                self.close("g");
            }
        }
    }

    fn label(&mut self, at: (f64, f64), text: &str, style: &TextStyle, ink: Ink) {
        let mut label = self.open("text").number("x", at.0).number("y", at.1);
        label = match style.baseline {
            Baseline::Middle => label.word("dy", "0.5ex"),
            Baseline::Letters => label,
        };
        label = match style.anchor {
            Anchor::Start => label,
            Anchor::Middle => label.word("text-anchor", "middle"),
            Anchor::End => label.word("text-anchor", "end"),
        };
        if style.pixels != FONT_PIXELS {
            label = label.number("font-size", style.pixels);
        }
        if style.bold {
            label = label.word("font-weight", "bold");
        }
        // On a coloured cell a halo would be a blot.
        if ink == Ink::OnHeat {
            label = label.word("class", "plain");
        }
        label.ink("fill", ink).text(text);
    }
}

/// An element whose attributes are being written.
#[must_use]
struct Element<'a> {
    svg: &'a mut Svg,
    name: String,
}

impl Element<'_> {
    fn word(self, name: &str, value: &str) -> Self {
        self.svg.out.push_str(&format!(" {name}=\"{}\"", escape(value)));
        self
    }

    fn number(self, name: &str, value: f64) -> Self {
        self.svg.out.push_str(&format!(" {name}=\"{}\"", Coordinate(value)));
        self
    }

    fn opacity(self, opacity: f64) -> Self {
        let opacity = if opacity.is_finite() { (opacity.clamp(0.0, 1.0) * 1e3).round() / 1e3 } else { 1.0 };
        if opacity == 1.0 { self } else { self.word("opacity", &opacity.to_string()) }
    }

    fn ink(self, name: &str, ink: Ink) -> Self {
        let value = match self.svg.colours {
            Colours::Variables => format!("var({})", ink.variable()),
            Colours::Of(theme) => hex(ink.rgb(theme)),
        };
        self.word(name, &value)
    }

    /// Ends an element that has nothing in it.
    fn empty(self) {
        self.svg.out.push_str("/>\n");
    }

    /// Ends the attributes of an element that others follow in.
    fn parent(self) {
        self.svg.out.push_str(">\n");
    }

    /// Ends an element with text in it.
    fn text(self, text: &str) {
        self.svg.out.push_str(&format!(">{}</{}>\n", escape(text), self.name));
    }
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
    fn names_from_outside_are_harmless() {
        assert_eq!(escape("a\x1b\u{202e}'<"), "a\u{fffd}\u{fffd}&#39;&lt;");
    }
}
