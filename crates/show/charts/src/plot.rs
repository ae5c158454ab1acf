//! Axes on a canvas; shapes in the units of the data.

mod line_names;

pub(crate) use line_names::replace_legend;

use crate::axis::Axis;
use crate::drawing::{Anchor, Canvas, CellReading, Pixel, Readings, Size, text_pixels};
use crate::palette::Ink;
use filestats::{IoClass, Profile};

/// Pixels around the axes.
#[derive(Clone, Copy)]
pub struct Margins {
    /// At least: tick labels may need more. Charts under each other begin at one line with a common one.
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    /// Tick labels and the title of x.
    pub(crate) bottom: f64,
    /// From the top of the canvas to the title of y.
    pub(crate) title_y: f64,
}

impl Margins {
    /// Of a figure against outstanding I/Os and the like.
    pub const CURVE: Margins = Margins { left: 0.0, top: 26.0, right: 14.0, bottom: 42.0, title_y: 9.0 };
    /// Of all charts over time, so that their times stand under each other; band names stand at the right.
    pub(crate) const OVER_TIME: Margins = Margins { left: 58.0, right: 74.0, ..Margins::CURVE };
    /// Where the last tick of x has a long label.
    pub(crate) const LONG_TICKS: Margins = Margins { right: 24.0, ..Margins::CURVE };
    /// Names of phases above a chart over time.
    pub(crate) const WITH_PHASES: Margins = Margins { top: 48.0, ..Margins::OVER_TIME };
}

/// Values by their x; a line breaks where one is missing.
pub type Values = Vec<(f64, Option<f64>)>;

/// Axes on a canvas.
pub struct Plot<'a> {
    pub(crate) canvas: &'a mut Canvas,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    title_y: f64,
    /// Titles of the axes, without remarks on their scale.
    names: [String; 2],
    /// The unit of y, where it stands in the title: " MiB".
    unit: String,
}

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Without gaps.
    Solid,
    /// Dashes.
    Dashed,
    /// Dots.
    Dotted,
}

/// Bold text is about this much wider.
const BOLD: f64 = 1.1;

impl<'a> Plot<'a> {
    /// Axes within these margins.
    pub fn new(canvas: &'a mut Canvas, size: Size, margins: &Margins, x: Axis, y: Axis) -> Self {
        let Margins { top, title_y, .. } = *margins;
        let labels = y.ticks.iter().map(|(_, label)| text_pixels(label)).fold(18.0, f64::max);
        let left = (labels + 12.0).max(margins.left);
        let (right, bottom) =
            (f64::from(size.width) - margins.right, f64::from(size.height) - margins.bottom);
        Plot {
            canvas,
            x,
            y,
            left,
            top,
            right,
            bottom,
            title_y,
            names: [String::new(), String::new()],
            unit: String::new(),
        }
    }

    pub(crate) fn pixel(&self, x: f64, y: f64) -> Option<Pixel> {
        let across = self.x.share(x)?.clamp(0.0, 1.0);
        let up = self.y.share(y)?.clamp(0.0, 1.0);
        Some((self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)))
    }

    /// The pixels between two values of x, the height of the plot.
    pub(crate) fn stripe(&mut self, from: f64, to: f64, ink: Ink, opacity: f64) {
        if let (Some((from, _)), Some((to, _))) =
            (self.pixel(from, self.y.from()), self.pixel(to, self.y.from()))
        {
            self.canvas.rect((from, self.top), (to, self.bottom), ink, opacity);
        }
    }

    /// A stripe between two values of y with its name at the right; no name where it is too thin for one.
    pub(crate) fn layer(&mut self, from: f64, to: f64, ink: Ink, name: &str) {
        let (Some((left, low)), Some((right, high))) =
            (self.pixel(self.x.from(), from), self.pixel(self.x.to(), to))
        else {
            return;
        };
        if low - high < 0.5 {
            return;
        }
        self.canvas.rect((left, high), (right, low), ink, 1.0);
        if low - high >= 13.0 {
            self.canvas.text((right + 6.0, (low + high) / 2.0), name, Anchor::Start, Ink::Muted, false);
        }
    }

    /// The bands of a profile as layers behind latencies.
    pub(crate) fn bands(&mut self, profile: &Profile, class: IoClass) {
        let bands = profile.bands(class);
        let mut lower = self.y.from();
        for band in &bands {
            let upper = band.upper_ns.map_or(self.y.to(), |upper| upper as f64).min(self.y.to());
            if upper > lower {
                self.layer(lower, upper, Ink::band(band.rank, bands.len()), band.name);
                lower = upper;
            }
        }
    }

    /// Grid, tick labels and titles.
    pub fn axes(&mut self, x_title: &str, y_title: &str) {
        self.rows(y_title);
        self.columns(x_title);
    }

    /// The grid of y with its labels and its title.
    pub(crate) fn rows(&mut self, y_title: &str) {
        self.names[1] = without_scale(y_title);
        let unit = y_title.split_once(", ").map(|(_, rest)| rest).filter(|rest| !rest.contains("scale"));
        self.unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
        let ticks = std::mem::take(&mut self.y.ticks);
        for (value, label) in &ticks {
            if let Some((_, y)) = self.pixel(self.x.from(), *value) {
                self.canvas.line(&[(self.left, y), (self.right, y)], Ink::Grid, 1.0);
                self.canvas.text((self.left - 8.0, y), label, Anchor::End, Ink::Muted, false);
            }
        }
        self.y.ticks = ticks;
        self.canvas.line(&[(self.left, self.bottom), (self.right, self.bottom)], Ink::Axis, 1.0);
        self.canvas.text((4.0, self.title_y), y_title, Anchor::Start, Ink::Text, true);
    }

    /// The ticks of x with its title.
    fn columns(&mut self, x_title: &str) {
        self.names[0] = without_scale(x_title);
        let ticks = std::mem::take(&mut self.x.ticks);
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in &ticks {
            let Some((x, _)) = self.pixel(*value, self.y.from()) else { continue };
            self.canvas.line(&[(x, self.bottom), (x, self.bottom + 4.0)], Ink::Axis, 1.0);
            let half = text_pixels(label) / 2.0;
            if x - half >= free_from {
                self.canvas.text((x, self.bottom + 14.0), label, Anchor::Middle, Ink::Muted, false);
                free_from = x + half + 6.0;
            }
        }
        self.x.ticks = ticks;
        let middle = (self.left + self.right) / 2.0;
        self.canvas.text((middle, self.bottom + 33.0), x_title, Anchor::Middle, Ink::Muted, false);
    }

    /// Lines up from the ticks of x, for charts that are read by x.
    pub(crate) fn vertical_grid(&mut self) {
        let ticks: Vec<f64> = self.x.ticks.iter().map(|(value, _)| *value).collect();
        for value in ticks {
            if let Some((x, _)) = self.pixel(value, self.y.from()) {
                self.canvas.line(&[(x, self.top), (x, self.bottom)], Ink::Grid, 1.0);
            }
        }
    }

    /// The values joined by a line that breaks where one is missing; a single value is a dot.
    pub fn series(&mut self, values: &[(f64, Option<f64>)], ink: Ink, dots: bool) {
        self.read(values, ink);
        for run in self.unbroken(values) {
            self.canvas.line(&run, ink, 2.0);
            if dots || run.len() == 1 {
                run.into_iter().for_each(|at| self.canvas.dot(at, 2.6, ink));
            }
        }
    }

    /// The values joined by a thinner line of that stroke, which breaks where one is missing.
    pub fn thin(&mut self, values: &[(f64, Option<f64>)], ink: Ink, stroke: Stroke) {
        self.read(values, ink);
        for run in self.unbroken(values) {
            match (run.as_slice(), stroke) {
                ([single], _) => self.canvas.dot(*single, 2.0, ink),
                (_, Stroke::Solid) => self.canvas.line(&run, ink, 1.6),
                (_, Stroke::Dashed) => self.canvas.dashed(&run, ink, 1.6),
                (_, Stroke::Dotted) => self.canvas.dotted(&run, ink, 1.6),
            }
        }
    }

    /// Keeps the values of a line, which a page shows under the pointer; of several under one another, the highest.
    fn read(&mut self, values: &[(f64, Option<f64>)], ink: Ink) {
        const APART_PIXELS: f64 = 2.0;
        let most = ((self.right - self.left) / APART_PIXELS).max(1.0) as usize;
        let each = values.chunks(values.len().div_ceil(most).max(1));
        let highest = each.filter_map(|several| {
            let known = several.iter().filter_map(|(x, y)| Some((*x, (*y)?)));
            known.max_by(|a, b| a.1.total_cmp(&b.1))
        });
        let written = |(x, y)| Some((self.pixel(x, y)?, [self.x.written(x), self.y.written(y)]));
        let points: Vec<_> = highest.filter_map(written).collect();
        let (names, is_clock) = (self.names.clone(), self.x.is_clock());
        self.canvas.readings.push(Readings { ink, names, is_clock, points });
    }

    fn unbroken(&self, values: &[(f64, Option<f64>)]) -> Vec<Vec<Pixel>> {
        let pixels: Vec<Option<Pixel>> =
            values.iter().map(|(x, y)| y.and_then(|y| self.pixel(*x, y))).collect();
        pixels.split(Option::is_none).map(|run| run.iter().flatten().copied().collect()).collect()
    }

    /// The points of a line.
    pub fn marks(&mut self, values: &[(f64, Option<f64>)], ink: Ink, radius: f64) {
        for (x, y) in values {
            if let Some(at) = y.and_then(|y| self.pixel(*x, y)) {
                self.canvas.dot(at, radius, ink);
            }
        }
    }

    /// Points that no line joins.
    pub(crate) fn dots(&mut self, values: &[(f64, f64)], ink: Ink, radius: f64) {
        for (x, y) in values {
            if let Some(at) = self.pixel(*x, *y) {
                self.canvas.dot(at, radius, ink);
            }
        }
    }

    /// A bar between two values of x from the bottom up, at least as high as can be seen.
    pub(crate) fn bar(&mut self, (from, to): (f64, f64), y: f64, ink: Ink, opacity: f64) {
        const HEIGHT_MIN: f64 = 1.5;
        if let (Some((left, top)), Some((right, bottom))) =
            (self.pixel(from, y), self.pixel(to, self.y.from()))
        {
            let top = top.min(bottom - HEIGHT_MIN);
            self.canvas.rect((left, top), (right, bottom), ink, opacity);
            self.canvas.line(&[(left, top), (right, top)], ink, 1.5);
        }
    }

    /// A surface between two values of x and two of y, which stands for `value`.
    pub(crate) fn cell(&mut self, x: (f64, f64), y: (f64, f64), ink: Ink, opacity: f64, value: String) {
        if let (Some(from), Some(to)) = (self.pixel(x.0, y.0), self.pixel(x.1, y.1)) {
            self.canvas.rect(from, to, ink, opacity);
            let range = |axis: &Axis, (low, high)| format!("{} to {}", axis.written(low), axis.written(high));
            let words = self.in_words(&range(&self.x, x), &range(&self.y, y), value);
            self.canvas.cells.push(CellReading { from, to, words });
        }
    }

    /// Keeps what a single point stands for.
    pub(crate) fn read_point(&mut self, (x, y): (f64, f64), value: String) {
        /// A pointer within this distance is at the point.
        const NEAR_PIXELS: f64 = 5.0;
        if let Some((left, top)) = self.pixel(x, y) {
            let (from, to) =
                ((left - NEAR_PIXELS, top - NEAR_PIXELS), (left + NEAR_PIXELS, top + NEAR_PIXELS));
            let words = self.in_words(&self.x.written(x), &self.y.written(y), value);
            self.canvas.cells.push(CellReading { from, to, words });
        }
    }

    /// "1.20 s since its first I/O" without the unit of the ticks, "latency: 120 us", "offset: 512 MiB".
    fn in_words(&self, x: &str, y: &str, value: String) -> [String; 3] {
        let since = self.names[0].find("since ").map_or("", |at| &self.names[0][at..]);
        [format!("{x} {since}").trim_end().to_owned(), format!("{}: {y}{}", self.names[1], self.unit), value]
    }

    pub(crate) fn dashed(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        if let (Some(from), Some(to)) = (self.pixel(from.0, from.1), self.pixel(to.0, to.1)) {
            self.canvas.dashed(&[from, to], ink, 1.5);
        }
    }

    /// Names above the plot, each between two values of x, with an edge at each end through the plot. Where a
    /// phase is too short for its name, the name extends to the left as far as the one before it permits.
    pub(crate) fn phases(&mut self, phases: &[(f64, f64, String)]) {
        let (low, y) = (self.y.from(), self.top - 6.0);
        let mut free_from = self.left;
        for (from, to, name) in phases {
            let (Some((from, _)), Some((to, _))) = (self.pixel(*from, low), self.pixel(*to, low)) else {
                continue;
            };
            if to - from < 1.0 {
                continue;
            }
            self.canvas.line(&[(from + 1.0, y), (to - 1.0, y)], Ink::Muted, 2.0);
            for edge in [from, to] {
                self.canvas.dashed(&[(edge, self.top - 10.0), (edge, self.bottom)], Ink::Muted, 1.0);
            }
            if let Some((begin, shown)) = fit_name(name, (from, to), free_from) {
                self.canvas.text((begin, y - 11.0), &shown, Anchor::Start, Ink::Text, false);
                free_from = begin + text_pixels(&shown) + 8.0;
            }
        }
    }

    /// A marked point with its label where a rising curve leaves space: above at the left, or `below` at
    /// the right.
    pub(crate) fn marked(&mut self, x: f64, y: f64, label: &str, ink: Ink, below: bool) {
        let Some(at) = self.pixel(x, y) else { return };
        self.read(&[(x, Some(y))], ink);
        self.canvas.ring(at, 5.5, ink, 2.5);
        let width = text_pixels(label) * BOLD + 14.0;
        let (fits_left, fits_right) = (at.0 - width > self.left, at.0 + width < self.right);
        let leftwards = if below { !fits_right } else { fits_left };
        let (x, anchor) = match (leftwards, below) {
            (true, _) => (at.0 - 11.0, Anchor::End),
            (false, true) => (at.0 + 11.0, Anchor::Start),
            // Over the point, as far left as possible: at the right the curve rises.
            (false, false) => (self.left + 4.0, Anchor::Start),
        };
        let y = match below {
            false if !leftwards && at.1 - self.top > 26.0 => at.1 - 16.0,
            true if self.bottom - at.1 > 26.0 => at.1 + 14.0,
            false if at.1 - self.top > 26.0 => at.1 - 12.0,
            true => at.1.min(self.bottom - 8.0),
            false => at.1.max(self.top + 8.0),
        };
        self.canvas.text((x, y), label, anchor, ink, true);
    }

    /// A label beside a value of x, at a share of the height (0 the bottom, 1 the top).
    pub(crate) fn beside(&mut self, x: f64, height: f64, label: &str, ink: Ink) {
        let Some((x, _)) = self.pixel(x, self.y.from()) else { return };
        let y = self.bottom - height.clamp(0.0, 1.0) * (self.bottom - self.top);
        let fits_right = x + 8.0 + text_pixels(label) <= self.right;
        let (x, anchor) = if fits_right { (x + 8.0, Anchor::Start) } else { (x - 8.0, Anchor::End) };
        self.canvas.text((x, y), label, anchor, ink, false);
    }

    /// The distance between two points: a line with an arrow at each end and a label beside it.
    pub(crate) fn span(&mut self, from: (f64, f64), to: (f64, f64), label: &str, ink: Ink) {
        let (Some(from), Some(to)) = (self.pixel(from.0, from.1), self.pixel(to.0, to.1)) else { return };
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let length = across.hypot(down);
        if length < 12.0 {
            return;
        }
        let (x, y) = (across / length * 6.0, down / length * 6.0);
        self.canvas.line(&[from, to], ink, 1.6);
        for (end, sign) in [(from, 1.0), (to, -1.0)] {
            let foot = (end.0 + sign * x, end.1 + sign * y);
            let side = (y * 0.6, -x * 0.6);
            self.canvas.line(&[(foot.0 + side.0, foot.1 + side.1), end], ink, 1.6);
            self.canvas.line(&[(foot.0 - side.0, foot.1 - side.1), end], ink, 1.6);
        }
        let width = text_pixels(label) * BOLD;
        let right = from.0.max(to.0) + 8.0;
        let middle = f64::midpoint(from.1, to.1);
        let (x, anchor) = if right + width <= self.right {
            (right, Anchor::Start)
        } else {
            (from.0.min(to.0) - 8.0, Anchor::End)
        };
        self.canvas.text((x, middle), label, anchor, ink, true);
    }

    /// A label over a value of y, at the left end of the plot.
    pub(crate) fn over(&mut self, y: f64, label: &str, ink: Ink) {
        if let Some((x, y)) = self.pixel(self.x.from(), y) {
            self.canvas.text((x + 6.0, y - 9.0), label, Anchor::Start, ink, false);
        }
    }

    /// A label over a value of y, at the right end.
    pub(crate) fn over_end(&mut self, y: f64, label: &str, ink: Ink) {
        if let Some((x, y)) = self.pixel(self.x.to(), y) {
            self.canvas.text((x - 6.0, y - 9.0), label, Anchor::End, ink, false);
        }
    }

    /// States in the middle why there is nothing to show.
    pub fn nothing(&mut self, why: &str) {
        let middle = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        self.canvas.text(middle, why, Anchor::Middle, Ink::Text, false);
    }

    /// How high a value lies, 0 to 1.
    pub(crate) fn height(&self, y: f64) -> f64 {
        self.y.share(y).unwrap_or(0.0)
    }
}

/// "latency" of "latency, log scale".
fn without_scale(title: &str) -> String {
    title.split(',').next().unwrap_or(title).to_owned()
}

/// Where the name of a phase begins and as much of it as fits, where some of it does.
fn fit_name(name: &str, (from, to): (f64, f64), free_from: f64) -> Option<(f64, String)> {
    const LETTERS_MIN: usize = 4;
    let width = text_pixels(name);
    let (begin, room) = if width <= to - from.max(free_from) {
        (from.max(free_from), to - from.max(free_from))
    } else {
        (free_from.max(to - width), to - free_from)
    };
    let fitting = (room / text_pixels("n")) as usize;
    let shown = if width <= room {
        name.to_owned()
    } else {
        name.chars().take(fitting.saturating_sub(1)).chain(['…']).collect()
    };
    (fitting >= LETTERS_MIN).then_some((begin, shown))
}
