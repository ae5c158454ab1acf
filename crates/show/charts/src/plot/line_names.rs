//! Names at the ends of lines, in their colours: a reader need not go to the legend and back.

use super::{Margins, Plot};
use crate::drawing::{Anchor, Pixel, Size, text_pixels};
use crate::legend::{Key, Mark};
use crate::palette::Ink;

/// More names than this are a list: they stand in the legend.
const NAMES_MAX: usize = 12;
/// At most this share of a drawing's width is theirs.
const SHARE_MAX: f64 = 0.35;
/// From the right end of the axes.
const GAP_PIXELS: f64 = 10.0;
/// Between the middles of two names.
const APART_PIXELS: f64 = 16.0;
/// A name that stands further from the end of its line than this is joined to it.
const FAR_PIXELS: f64 = 5.0;

impl Margins {
    /// These margins with room for these names at the right; `None` where there is one line, where they do not fit, and on
    /// narrow screens, which have the legend.
    pub(crate) fn with_names<'n>(&self, size: Size, names: impl Iterator<Item = &'n str>) -> Option<Margins> {
        let widths: Vec<f64> = names.map(text_pixels).collect();
        let right = widths.iter().copied().fold(0.0, f64::max) + GAP_PIXELS + 4.0;
        let height = f64::from(size.height) - self.top - self.bottom;
        let most = NAMES_MAX.min((height / APART_PIXELS) as usize);
        let fits = size.width > Size::NARROW.width
            && (2..=most).contains(&widths.len())
            && right <= SHARE_MAX * f64::from(size.width);
        fits.then(|| Margins { right: right.max(self.right), ..*self })
    }
}

/// Whether a legend says nothing that names at the lines of a drawing of that size do not say.
pub(crate) fn replace_legend(legend: &[Key], margins: &Margins, size: Size) -> bool {
    let is_line = |(mark, _, _): &Key| matches!(mark, Mark::Line | Mark::Dashed | Mark::Dotted);
    let names = legend.iter().map(|(_, _, name)| name.as_str());
    legend.iter().all(is_line) && margins.with_names(size, names).is_some()
}

impl Plot<'_> {
    /// Writes names beside the axes, each at the height at which its line ends; below them, muted, those of lines without a
    /// value. The margins are those with names.
    pub(crate) fn name_lines<'n>(
        &mut self,
        lines: impl Iterator<Item = (&'n [(f64, Option<f64>)], Ink, &'n str)>,
    ) {
        let end =
            |values: &[(f64, Option<f64>)]| values.iter().rev().find_map(|(x, y)| self.pixel(*x, (*y)?));
        let mut named: Vec<(Option<Pixel>, Ink, &str)> =
            lines.map(|(values, ink, name)| (end(values), ink, name)).collect();
        let height = |end: &Option<Pixel>| end.map_or(self.bottom, |(_, y)| y);
        named.sort_by(|(a, ..), (b, ..)| a.is_none().cmp(&b.is_none()).then(height(a).total_cmp(&height(b))));
        let heights: Vec<f64> = named.iter().map(|(end, _, _)| height(end)).collect();
        let begin = self.right + GAP_PIXELS;
        for ((end, ink, name), y) in named.into_iter().zip(spread(&heights, self.top, self.bottom)) {
            // A thin solid line, which no figure has.
            if let Some((x, from)) = end
                && (begin - x > GAP_PIXELS + FAR_PIXELS || (y - from).abs() > FAR_PIXELS)
            {
                self.canvas.line(&[(x + 4.0, from), (begin - 3.0, y)], Ink::Axis, 0.7);
            }
            self.canvas.text((begin, y), name, Anchor::Start, end.map_or(Ink::Muted, |_| ink), false);
        }
    }
}

/// Rising heights, moved as little as possible (least squares) so that they are `APART_PIXELS` apart, between `from` and `to`.
fn spread(heights: &[f64], from: f64, to: f64) -> Vec<f64> {
    // Without the distances that they must have, heights need only not fall: groups that would, share their mean.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for (at, height) in heights.iter().enumerate() {
        let mut group = (height - at as f64 * APART_PIXELS, 1);
        while let Some((sum, count)) = groups.last().copied()
            && sum / count as f64 > group.0 / group.1 as f64
        {
            groups.pop();
            group = (group.0 + sum, group.1 + count);
        }
        groups.push(group);
    }
    let last = (to - heights.len().saturating_sub(1) as f64 * APART_PIXELS).max(from);
    let means = groups.into_iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    means.enumerate().map(|(at, mean)| mean.clamp(from, last) + at as f64 * APART_PIXELS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::drawing::Drawing;
    use crate::plot::Values;

    #[test]
    fn heights_that_are_far_apart_stay() {
        assert_eq!(spread(&[30.0, 60.0, 100.0], 0.0, 200.0), [30.0, 60.0, 100.0]);
        assert_eq!(spread(&[], 0.0, 200.0), [0.0; 0]);
    }

    #[test]
    fn heights_that_meet_make_way_to_both_sides_and_stay_within_the_axes() {
        assert_eq!(spread(&[50.0, 50.0, 50.0], 0.0, 200.0), [34.0, 50.0, 66.0]);
        assert_eq!(spread(&[0.0, 1.0], 0.0, 200.0), [0.0, 16.0]);
        assert_eq!(spread(&[199.0, 200.0], 0.0, 200.0), [184.0, 200.0]);
        assert_eq!(spread(&[10.0, 12.0, 100.0], 0.0, 200.0), [3.0, 19.0, 100.0]);
    }

    #[test]
    fn a_line_without_a_value_has_its_name_too() {
        let drawing = Drawing::new(Size::HALF, "two lines", |canvas| {
            let (x, y) =
                (Axis::from_zero([0.0, 9.0].into_iter(), 5), Axis::from_zero([0.0, 9.0].into_iter(), 5));
            let margins = Margins::CURVE.with_names(Size::HALF, ["known", "unknown"].into_iter()).unwrap();
            let mut plot = Plot::new(canvas, Size::HALF, &margins, x, y);
            let lines: [(Values, &str); 2] =
                [(vec![(1.0, None)], "unknown"), (vec![(1.0, Some(5.0))], "known")];
            plot.name_lines(lines.iter().map(|(values, name)| (&values[..], Ink::Read, *name)));
        });
        let svg = drawing.to_svg();
        assert!(svg.contains(">known<") && svg.contains(">unknown<"), "{svg}");
    }

    #[test]
    fn long_names_and_many_names_stand_in_the_legend() {
        let margins = |names: &[&str]| Margins::CURVE.with_names(Size::HALF, names.iter().copied());
        assert!(margins(&["before", "after"]).is_some());
        assert!(margins(&["alone"]).is_none());
        assert!(margins(&["before", "a name of more than a third of the panel"]).is_none());
        assert!(margins(&["name"; NAMES_MAX + 1]).is_none());
        assert!(Margins::CURVE.with_names(Size::NARROW, ["before", "after"].into_iter()).is_none());
        let legend = [(Mark::Line, Ink::Read, "before".into()), (Mark::Dot, Ink::Read, "a sample".into())];
        assert!(!replace_legend(&legend, &Margins::CURVE, Size::HALF), "a dot has no name at a line");
    }
}
