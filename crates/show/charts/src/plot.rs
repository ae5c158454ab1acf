use super::Size;
use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Ink, Pixel, text_pixels};
use filestats::{IoClass, Profile};

/// Of all charts over time, so that their times stand under each other; band names go to the right.
pub(super) const OVER_TIME: Margins = Margins { left: 58.0, top: 26.0, right: 74.0 };

/// Axes on a canvas; everything in the units of the data.
pub(super) struct Plot<'a, 'b> {
    pub(super) canvas: &'a mut Canvas<'b>,
    pub(super) x: Axis,
    pub(super) y: Axis,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    /// Where the title of y stands.
    title_y: f64,
}

/// How a line beside the main one is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Thin {
    Dashed,
    Dotted,
}

/// Bold text is about this much wider.
const BOLD: f64 = 1.1;

/// Tick labels and the title below the axes, pixels.
pub(super) const BELOW: f64 = 42.0;

/// Space around the axes, pixels.
pub(super) struct Margins {
    /// More where the tick labels need it. Charts one under the other begin at one line with a common one.
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
}

impl<'a, 'b> Plot<'a, 'b> {
    pub(super) fn new(canvas: &'a mut Canvas<'b>, size: Size, margins: &Margins, x: Axis, y: Axis) -> Self {
        let plot = Plot::between(canvas, size, margins, f64::from(size.height) - BELOW, x, y);
        Plot { title_y: 9.0, ..plot }
    }

    /// Axes that end at a height of the canvas, for several under each other.
    pub(super) fn between(
        canvas: &'a mut Canvas<'b>,
        size: Size,
        margins: &Margins,
        bottom: f64,
        x: Axis,
        y: Axis,
    ) -> Self {
        let labels = y.ticks.iter().map(|(_, label)| text_pixels(label)).fold(18.0, f64::max);
        let (left, right) = ((labels + 12.0).max(margins.left), f64::from(size.width) - margins.right);
        Plot { canvas, x, y, left, top: margins.top, right, bottom, title_y: margins.top - 17.0 }
    }

    pub(super) fn pixel(&self, x: f64, y: f64) -> Option<Pixel> {
        let across = self.x.share(x)?.clamp(0.0, 1.0);
        let up = self.y.share(y)?.clamp(0.0, 1.0);
        Some((self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)))
    }

    /// The pixels between two values of x, the height of the plot.
    pub(super) fn stripe(&mut self, from: f64, to: f64, ink: Ink, opacity: f64) {
        if let (Some((from, _)), Some((to, _))) =
            (self.pixel(from, self.y.from()), self.pixel(to, self.y.from()))
        {
            self.canvas.rect((from, self.top), (to, self.bottom), ink, opacity);
        }
    }

    /// A stripe between two values of y with its name at the right; no name where it is too thin for one.
    pub(super) fn layer(&mut self, from: f64, to: f64, ink: Ink, name: &str) {
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
    pub(super) fn bands(&mut self, profile: &Profile, class: IoClass) {
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
    pub(super) fn axes(&mut self, x_title: &str, y_title: &str) {
        self.rows(y_title);
        self.columns(x_title);
    }

    /// The grid of y with its labels and its title.
    pub(super) fn rows(&mut self, y_title: &str) {
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

    /// Lines up from the ticks of x, where x is what is read.
    pub(super) fn vertical_grid(&mut self) {
        let ticks: Vec<f64> = self.x.ticks.iter().map(|(value, _)| *value).collect();
        for value in ticks {
            if let Some((x, _)) = self.pixel(value, self.y.from()) {
                self.canvas.line(&[(x, self.top), (x, self.bottom)], Ink::Grid, 1.0);
            }
        }
    }

    /// The values joined by a line that breaks where one is missing; a lone value is a dot.
    pub(super) fn series(&mut self, values: &[(f64, Option<f64>)], ink: Ink, dots: bool) {
        let pixels: Vec<Option<Pixel>> =
            values.iter().map(|(x, y)| y.and_then(|y| self.pixel(*x, y))).collect();
        for run in pixels.split(Option::is_none) {
            let run: Vec<Pixel> = run.iter().flatten().copied().collect();
            self.canvas.line(&run, ink, 2.0);
            if dots || run.len() == 1 {
                for at in run {
                    self.canvas.dot(at, 2.6, ink);
                }
            }
        }
    }

    /// The values joined by dashes or points, broken where one is missing.
    pub(super) fn thin(&mut self, values: &[(f64, Option<f64>)], ink: Ink, stroke: Thin) {
        let pixels: Vec<Option<Pixel>> =
            values.iter().map(|(x, y)| y.and_then(|y| self.pixel(*x, y))).collect();
        for run in pixels.split(Option::is_none) {
            let run: Vec<Pixel> = run.iter().flatten().copied().collect();
            match (run.as_slice(), stroke) {
                ([alone], _) => self.canvas.dot(*alone, 2.0, ink),
                (_, Thin::Dashed) => self.canvas.dashed(&run, ink, 1.6),
                (_, Thin::Dotted) => self.canvas.dotted(&run, ink, 1.6),
            }
        }
    }

    /// The points of a line.
    pub(super) fn marks(&mut self, values: &[(f64, Option<f64>)], ink: Ink, radius: f64) {
        for (x, y) in values {
            if let Some(at) = y.and_then(|y| self.pixel(*x, y)) {
                self.canvas.dot(at, radius, ink);
            }
        }
    }

    /// Points that no line joins.
    pub(super) fn dots(&mut self, values: &[(f64, f64)], ink: Ink) {
        for (x, y) in values {
            if let Some(at) = self.pixel(*x, *y) {
                self.canvas.dot(at, 2.0, ink);
            }
        }
    }

    /// A bar between two values of x from the ground up, at least so high that it is seen.
    pub(super) fn bar(&mut self, (from, to): (f64, f64), y: f64, ink: Ink, opacity: f64) {
        const HEIGHT_MIN: f64 = 1.5;
        if let (Some((left, top)), Some((right, bottom))) =
            (self.pixel(from, y), self.pixel(to, self.y.from()))
        {
            let top = top.min(bottom - HEIGHT_MIN);
            self.canvas.rect((left, top), (right, bottom), ink, opacity);
            self.canvas.line(&[(left, top), (right, top)], ink, 1.5);
        }
    }

    /// A surface between two values of x and two of y.
    pub(super) fn cell(&mut self, x: (f64, f64), y: (f64, f64), ink: Ink, opacity: f64) {
        if let (Some(from), Some(to)) = (self.pixel(x.0, y.0), self.pixel(x.1, y.1)) {
            self.canvas.rect(from, to, ink, opacity);
        }
    }

    pub(super) fn dashed(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        if let (Some(from), Some(to)) = (self.pixel(from.0, from.1), self.pixel(to.0, to.1)) {
            self.canvas.dashed(&[from, to], ink, 1.5);
        }
    }

    /// Names above the plot, each between two values of x, with an edge at each end through the plot. The name
    /// of a stretch too short for it reaches to the left, as far as the name before it leaves room.
    pub(super) fn phases(&mut self, phases: &[(f64, f64, &str)]) {
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
            let width = text_pixels(name);
            let (begin, room) = if width <= to - from.max(free_from) {
                (from.max(free_from), to - from.max(free_from))
            } else {
                (free_from.max(to - width), to - free_from)
            };
            let fitting = (room / text_pixels("n")) as usize;
            if fitting < 4 {
                continue;
            }
            let shown: String = if width <= room {
                (*name).into()
            } else {
                name.chars().take(fitting - 1).chain(['…']).collect()
            };
            self.canvas.text((begin, y - 11.0), &shown, Anchor::Start, Ink::Text, false);
            free_from = begin + text_pixels(&shown) + 8.0;
        }
    }

    /// A marked point with its label, where a rising curve leaves room: above at the left, or `below` at
    /// the right.
    pub(super) fn marked(&mut self, x: f64, y: f64, label: &str, ink: Ink, below: bool) {
        let Some(at) = self.pixel(x, y) else { return };
        self.canvas.ring(at, 5.5, ink, 2.5);
        let width = text_pixels(label) * BOLD + 14.0;
        let (fits_left, fits_right) = (at.0 - width > self.left, at.0 + width < self.right);
        let leftwards = if below { !fits_right } else { fits_left };
        let (x, anchor) = match (leftwards, below) {
            (true, _) => (at.0 - 11.0, Anchor::End),
            (false, true) => (at.0 + 11.0, Anchor::Start),
            // Over the point, as far left as there is room: at the right the curve rises.
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
    pub(super) fn beside(&mut self, x: f64, height: f64, label: &str, ink: Ink) {
        let Some((x, _)) = self.pixel(x, self.y.from()) else { return };
        let y = self.bottom - height.clamp(0.0, 1.0) * (self.bottom - self.top);
        let fits_right = x + 8.0 + text_pixels(label) <= self.right;
        let (x, anchor) = if fits_right { (x + 8.0, Anchor::Start) } else { (x - 8.0, Anchor::End) };
        self.canvas.text((x, y), label, anchor, ink, false);
    }

    /// A line with an arrow at each end, and its label beside it: how far it is from one value to another.
    pub(super) fn span(&mut self, from: (f64, f64), to: (f64, f64), label: &str, ink: Ink) {
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
    pub(super) fn over(&mut self, y: f64, label: &str, ink: Ink) {
        if let Some((x, y)) = self.pixel(self.x.from(), y) {
            self.canvas.text((x + 6.0, y - 9.0), label, Anchor::Start, ink, false);
        }
    }

    /// A label over a value of y, at the right end.
    pub(super) fn over_end(&mut self, y: f64, label: &str, ink: Ink) {
        if let Some((x, y)) = self.pixel(self.x.to(), y) {
            self.canvas.text((x - 6.0, y - 9.0), label, Anchor::End, ink, false);
        }
    }

    /// Says in the middle that there is nothing to show.
    pub(super) fn nothing(&mut self, why: &str) {
        let middle = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        self.canvas.text(middle, why, Anchor::Middle, Ink::Muted, false);
    }

    /// How high a value lies, 0 to 1.
    pub(super) fn height(&self, y: f64) -> f64 {
        self.y.share(y).unwrap_or(0.0)
    }
}
