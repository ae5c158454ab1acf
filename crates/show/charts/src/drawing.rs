use super::Size;
use plotters::prelude::{DrawingBackend, IntoFont, RGBAColor, RGBColor, SVGBackend, ShapeStyle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, TextStyle};

/// plotters draws in whole units: this many of them make a pixel, so that lines do not stagger.
const UNITS: f64 = 8.0;
/// plotters divides the size of a font by this before it writes it.
const FONT_DIVISOR: f64 = 1.24;
/// Beyond any page: coordinates are kept within, whatever the data.
const COORDINATE_MAX: f64 = 20_000.0;

/// What a stroke or a surface stands for. In the SVG each is a CSS variable, so that one drawing serves
/// light, dark and print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Text,
    Muted,
    Grid,
    Axis,
    Curve,
    Bound,
    Knee,
    Demand,
    Read,
    Commit,
    Database,
    Device,
    Gap,
    Surface,
    /// The lower end of every heat map's scale, and its upper end for rates and for times.
    HeatLow,
    HeatRate,
    HeatTime,
    /// Text on a heat map's cell, without a halo.
    OnHeat,
    /// Of a difference.
    Better,
    Worse,
    /// Background of a latency band, 0 the best, 6 the worst.
    Band(u8),
    /// One of several lines that are compared.
    Series(u8),
}

/// Bands that the page has colours for.
pub(super) const BAND_INKS: usize = 7;
/// Lines of one chart that can be told apart by their colour.
pub(super) const SERIES_INKS: usize = 8;

impl Ink {
    const NAMED: [(Ink, &'static str); 20] = [
        (Ink::Text, "--text"),
        (Ink::Muted, "--muted"),
        (Ink::Grid, "--grid"),
        (Ink::Axis, "--axis"),
        (Ink::Curve, "--curve"),
        (Ink::Bound, "--bound"),
        (Ink::Knee, "--knee"),
        (Ink::Demand, "--demand"),
        (Ink::Read, "--read"),
        (Ink::Commit, "--commit"),
        (Ink::Database, "--database"),
        (Ink::Device, "--device"),
        (Ink::Gap, "--gap"),
        (Ink::Surface, "--surface"),
        (Ink::HeatLow, "--heat-low"),
        (Ink::HeatRate, "--heat-rate"),
        (Ink::HeatTime, "--heat-time"),
        (Ink::OnHeat, "--on-heat"),
        (Ink::Better, "--good"),
        (Ink::Worse, "--bad"),
    ];

    /// The CSS variable.
    pub(crate) fn variable(self) -> String {
        match self {
            Ink::Band(rank) => format!("--band-{rank}"),
            Ink::Series(at) => format!("--series-{at}"),
            ink => {
                Ink::NAMED.iter().find(|(named, _)| *named == ink).map_or("--text", |(_, name)| name).into()
            }
        }
    }

    /// The band of that rank on a scale of so many bands.
    pub(crate) fn band(rank: usize, bands: usize) -> Ink {
        let last = bands.saturating_sub(1).max(1);
        Ink::Band((rank * (BAND_INKS - 1) / last).min(BAND_INKS - 1) as u8)
    }

    /// The colour of the line that is drawn as number `at`, over again after the last.
    pub(crate) fn series(at: usize) -> Ink {
        Ink::Series((at % SERIES_INKS) as u8)
    }

    /// The colour plotters is told, which no page shows: `#0000NN` is replaced by the variable.
    fn placeholder(self) -> u8 {
        match self {
            Ink::Band(rank) => 100 + rank,
            Ink::Series(at) => 120 + at,
            ink => Ink::NAMED.iter().position(|(named, _)| *named == ink).unwrap_or(0) as u8 + 1,
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Ink> {
        let named = Ink::NAMED.iter().map(|(ink, _)| *ink);
        let bands = (0..BAND_INKS as u8).map(Ink::Band);
        named.chain(bands).chain((0..SERIES_INKS as u8).map(Ink::Series))
    }
}

/// Where a text stands to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

pub(super) struct Canvas<'a> {
    backend: SVGBackend<'a>,
}

pub(super) type Pixel = (f64, f64);

/// Draws an SVG of that size. `description` is what it shows, for those who do not see it.
pub(super) fn svg(size: Size, description: &str, draw: impl FnOnce(&mut Canvas)) -> String {
    let units = |pixels: u32| (f64::from(pixels) * UNITS) as u32;
    let mut text = String::new();
    {
        let mut canvas =
            Canvas { backend: SVGBackend::with_string(&mut text, (units(size.width), units(size.height))) };
        draw(&mut canvas);
        // Writing into a string cannot fail.
        let _ = canvas.backend.present();
    }
    for ink in Ink::all() {
        let placeholder = format!("=\"#0000{:02X}\"", ink.placeholder());
        text = text.replace(&placeholder, &format!("=\"var({})\"", ink.variable()));
    }
    // On a coloured cell the page's halo would be a blot.
    let on_heat = format!("fill=\"var({})\"", Ink::OnHeat.variable());
    text = text.replace(&on_heat, &format!("{on_heat} class=\"plain\""));
    // The page decides how large the drawing is.
    let label = crate::html::escape(description);
    match text.find("viewBox") {
        Some(at) => format!("<svg role=\"img\" aria-label=\"{label}\" {}", &text[at..]),
        None => text,
    }
}

fn units((x, y): Pixel) -> (i32, i32) {
    let unit = |pixels: f64| {
        let pixels = if pixels.is_finite() { pixels.clamp(-COORDINATE_MAX, COORDINATE_MAX) } else { 0.0 };
        (pixels * UNITS).round() as i32
    };
    (unit(x), unit(y))
}

fn color(ink: Ink, opacity: f64) -> RGBAColor {
    let RGBColor(red, green, blue) = RGBColor(0, 0, ink.placeholder());
    RGBAColor(red, green, blue, opacity)
}

fn stroke(ink: Ink, width: f64) -> ShapeStyle {
    ShapeStyle { color: color(ink, 1.0), filled: false, stroke_width: (width * UNITS).round() as u32 }
}

// Each `let _`: the SVG backend writes into a string and cannot fail.
impl Canvas<'_> {
    pub(super) fn line(&mut self, points: &[Pixel], ink: Ink, width: f64) {
        if points.len() > 1 {
            let points: Vec<(i32, i32)> = points.iter().copied().map(units).collect();
            let _ = self.backend.draw_path(points, &stroke(ink, width));
        }
    }

    /// A dashed line; the dashes go on around corners.
    pub(super) fn dashed(&mut self, points: &[Pixel], ink: Ink, width: f64) {
        self.broken(points, ink, width, (5.0, 5.0));
    }

    /// A line of points.
    pub(super) fn dotted(&mut self, points: &[Pixel], ink: Ink, width: f64) {
        self.broken(points, ink, width, (1.5, 3.0));
    }

    /// A line that is drawn for some pixels and not for some others, in turn.
    fn broken(&mut self, points: &[Pixel], ink: Ink, width: f64, (on, off): (f64, f64)) {
        const DASHES_MAX: usize = 1_000;
        let mut dash: Vec<Pixel> = points.first().copied().into_iter().collect();
        let (mut drawn, mut left, mut dashes) = (true, on, 0);
        for pair in points.windows(2) {
            let (mut from, to) = (pair[0], pair[1]);
            let mut length = (to.0 - from.0).hypot(to.1 - from.1);
            while length > left && dashes < DASHES_MAX {
                let share = left / length;
                from = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
                dash.push(from);
                if drawn {
                    self.line(&dash, ink, width);
                    dashes += 1;
                }
                dash = vec![from];
                length -= left;
                (drawn, left) = (!drawn, if drawn { off } else { on });
            }
            left -= length;
            dash.push(to);
        }
        if drawn {
            self.line(&dash, ink, width);
        }
    }

    pub(super) fn rect(&mut self, from: Pixel, to: Pixel, ink: Ink, opacity: f64) {
        let upper_left = (from.0.min(to.0), from.1.min(to.1));
        let lower_right = (from.0.max(to.0), from.1.max(to.1));
        let style = ShapeStyle { color: color(ink, opacity), filled: true, stroke_width: 0 };
        let _ = self.backend.draw_rect(units(upper_left), units(lower_right), &style, true);
    }

    /// A surface with lines across it: nothing is known there.
    pub(super) fn hatch(&mut self, from: Pixel, to: Pixel, ink: Ink) {
        const APART: f64 = 7.0;
        const LINES_MAX: usize = 400;
        let (left, right) = (from.0.min(to.0), from.0.max(to.0));
        let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
        // Lines x + y = sum, cut to the rectangle.
        let mut sum = ((left + top) / APART).floor() * APART + APART;
        let mut lines = 0;
        while sum < right + bottom && lines < LINES_MAX {
            let begin = (sum - bottom).max(left);
            let end = (sum - top).min(right);
            self.line(&[(begin, sum - begin), (end, sum - end)], ink, 1.0);
            sum += APART;
            lines += 1;
        }
    }

    pub(super) fn dot(&mut self, at: Pixel, radius: f64, ink: Ink) {
        let style = ShapeStyle { color: color(ink, 1.0), filled: true, stroke_width: 0 };
        let _ = self.backend.draw_circle(units(at), (radius * UNITS) as u32, &style, true);
    }

    pub(super) fn ring(&mut self, at: Pixel, radius: f64, ink: Ink, width: f64) {
        self.dot(at, radius, Ink::Surface);
        let _ = self.backend.draw_circle(units(at), (radius * UNITS) as u32, &stroke(ink, width), false);
    }

    /// A text whose middle line is at the point.
    pub(super) fn text(&mut self, at: Pixel, text: &str, anchor: Anchor, ink: Ink, bold: bool) {
        let size = FONT_PIXELS * UNITS * FONT_DIVISOR;
        let font = ("sans-serif", size).into_font();
        let font = if bold { font.style(FontStyle::Bold) } else { font };
        let horizontal = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let color = color(ink, 1.0);
        let style = TextStyle::from(font).color(&color).pos(Pos::new(horizontal, VPos::Center));
        let text = crate::html::harmless(text);
        let _ = self.backend.draw_text(&text, &style, units(at));
    }
}

/// Size of all text in charts.
const FONT_PIXELS: f64 = 12.0;

/// About how wide a text is; no font is asked.
pub(super) fn text_pixels(text: &str) -> f64 {
    text.chars().count() as f64 * FONT_PIXELS * 0.56
}
