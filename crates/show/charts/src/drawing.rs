//! A picture as a list of shapes in pixels. [`svg`](crate::svg) and [`png`](crate::png) write it.

use crate::palette::Ink;

/// Pixels of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

impl Size {
    /// Across a page.
    pub const WIDE: Size = Size { width: 1040, height: 300 };
    /// Half a page.
    pub const HALF: Size = Size { width: 512, height: 320 };
    /// Across a phone.
    pub const NARROW: Size = Size { width: 372, height: 270 };
}

/// A place in pixels from the upper left corner.
pub type Pixel = (f64, f64);

/// Shapes in the order in which they are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    pub(crate) size: Size,
    /// Description for readers who do not see it.
    pub(crate) description: String,
    /// Pairs of axes under each other.
    pub(crate) panels: u32,
    pub(crate) shapes: Vec<Shape>,
    /// The values behind its lines, for a page that shows them under the pointer.
    pub(crate) readings: Vec<Readings>,
    /// The values behind its cells and single points.
    pub(crate) cells: Vec<CellReading>,
}

/// A cell's meaning, in words, and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CellReading {
    pub(crate) from: Pixel,
    pub(crate) to: Pixel,
    /// Its column, its row, its value.
    pub(crate) words: [String; 3],
}

/// The values of a line in words, with where they stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Readings {
    pub(crate) ink: Ink,
    /// Titles of the axes.
    pub(crate) names: [String; 2],
    /// Their x is a time, seconds since 1970.
    pub(crate) is_clock: bool,
    pub(crate) points: Vec<(Pixel, [String; 2])>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A line through all points.
    Line {
        points: Vec<Pixel>,
        ink: Ink,
        width: f64,
    },
    /// A surface between two corners, the upper left one first.
    Rect {
        from: Pixel,
        to: Pixel,
        ink: Ink,
        opacity: f64,
    },
    /// A disc, or a circle that is `stroke` pixels wide.
    Circle {
        at: Pixel,
        radius: f64,
        ink: Ink,
        stroke: Option<f64>,
    },
    Text {
        at: Pixel,
        text: String,
        style: TextStyle,
        ink: Ink,
    },
    /// Another drawing with its upper left corner there.
    Drawing {
        at: Pixel,
        drawing: Drawing,
    },
}

/// How a text stands to its point, and its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TextStyle {
    pub(crate) anchor: Anchor,
    pub(crate) baseline: Baseline,
    pub(crate) pixels: f64,
    pub(crate) bold: bool,
}

/// The part of a text that is at the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its first letter.
    Start,
    /// Its middle.
    Middle,
    /// Its last letter.
    End,
}

/// Height of the letters at the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Baseline {
    Letters,
    /// Half the height of an x above the foot of the letters.
    Middle,
}

/// Larger than any page: all coordinates are kept within, whatever the data.
const COORDINATE_MAX: f64 = 20_000.0;

/// Size of all text on axes.
pub(crate) const FONT_PIXELS: f64 = 12.0;
/// The halo that keeps labels apart from the lines they cross.
pub(crate) const HALO_PIXELS: f64 = 3.0;
pub(crate) const HALO_OPACITY: f64 = 0.85;

impl Drawing {
    /// A drawing of the shapes that `draw` makes; readers who do not see it hear the description.
    pub fn new(size: Size, description: &str, draw: impl FnOnce(&mut Canvas)) -> Drawing {
        let mut canvas = Canvas::default();
        draw(&mut canvas);
        let Canvas { shapes, readings, cells } = canvas;
        Drawing { size, description: description.to_owned(), panels: 1, shapes, readings, cells }
    }
}

/// Collects shapes.
#[derive(Default)]
pub struct Canvas {
    pub(crate) shapes: Vec<Shape>,
    pub(crate) readings: Vec<Readings>,
    pub(crate) cells: Vec<CellReading>,
}

impl Canvas {
    /// A line through all points.
    pub fn line(&mut self, points: &[Pixel], ink: Ink, width: f64) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line {
                points: points.iter().copied().map(bounded).collect(),
                ink,
                width,
            });
        }
    }

    /// A dashed line; the dashes continue around corners.
    pub(crate) fn dashed(&mut self, points: &[Pixel], ink: Ink, width: f64) {
        self.broken(points, ink, width, (5.0, 5.0));
    }

    /// A line of dots.
    pub(crate) fn dotted(&mut self, points: &[Pixel], ink: Ink, width: f64) {
        self.broken(points, ink, width, (1.5, 3.0));
    }

    /// A line of dashes and gaps of those pixels.
    pub(crate) fn broken(&mut self, points: &[Pixel], ink: Ink, width: f64, (on, off): (f64, f64)) {
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

    /// A surface between two corners, the upper left one first.
    pub fn rect(&mut self, from: Pixel, to: Pixel, ink: Ink, opacity: f64) {
        let (from, to) = ((from.0.min(to.0), from.1.min(to.1)), (from.0.max(to.0), from.1.max(to.1)));
        self.shapes.push(Shape::Rect { from: bounded(from), to: bounded(to), ink, opacity });
    }

    /// A surface with lines across it: nothing is known there.
    pub(crate) fn hatch(&mut self, from: Pixel, to: Pixel, ink: Ink) {
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

    pub(crate) fn dot(&mut self, at: Pixel, radius: f64, ink: Ink) {
        self.shapes.push(Shape::Circle { at: bounded(at), radius, ink, stroke: None });
    }

    pub(crate) fn ring(&mut self, at: Pixel, radius: f64, ink: Ink, width: f64) {
        self.dot(at, radius, Ink::Surface);
        self.shapes.push(Shape::Circle { at: bounded(at), radius, ink, stroke: Some(width) });
    }

    pub(crate) fn square(&mut self, (x, y): Pixel, half: f64, ink: Ink) {
        self.rect((x - half, y - half), (x + half, y + half), ink, 1.0);
    }

    /// A text whose middle line is at the point.
    pub fn text(&mut self, at: Pixel, text: &str, anchor: Anchor, ink: Ink, bold: bool) {
        let style = TextStyle { anchor, baseline: Baseline::Middle, pixels: FONT_PIXELS, bold };
        self.styled_text(at, text, style, ink);
    }

    pub(crate) fn styled_text(&mut self, at: Pixel, text: &str, style: TextStyle, ink: Ink) {
        self.shapes.push(Shape::Text { at: bounded(at), text: text.to_owned(), style, ink });
    }

    pub(crate) fn drawing(&mut self, at: Pixel, drawing: Drawing) {
        self.shapes.push(Shape::Drawing { at: bounded(at), drawing });
    }
}

fn bounded((x, y): Pixel) -> Pixel {
    let bounded =
        |pixels: f64| if pixels.is_finite() { pixels.clamp(-COORDINATE_MAX, COORDINATE_MAX) } else { 0.0 };
    (bounded(x), bounded(y))
}

/// The approximate width of a text on an axis, whatever the font.
pub fn text_pixels(text: &str) -> f64 {
    text.chars().count() as f64 * FONT_PIXELS * 0.56
}
