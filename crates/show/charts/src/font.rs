//! Text as glyph outlines from the embedded fonts, so that a picture looks the same on every machine.

use crate::drawing::{Anchor, Baseline, Pixel, TextStyle};
use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

// Cut down to the letters that charts need, see fonts/LICENSE.
const REGULAR: &[u8] = include_bytes!("../fonts/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../fonts/DejaVuSans-Bold.ttf");

/// Where a font does not say how high an x is.
const X_HEIGHT_EM: f64 = 0.55;

pub(crate) struct Fonts {
    /// `None` cannot be: a test reads both. Text would be missing.
    regular: Option<Face<'static>>,
    bold: Option<Face<'static>>,
}

impl Fonts {
    pub(crate) fn embedded() -> Fonts {
        Fonts { regular: Face::parse(REGULAR, 0).ok(), bold: Face::parse(BOLD, 0).ok() }
    }

    /// The outlines of a text; `None` where it has none.
    pub(crate) fn outline(&self, text: &str, at: Pixel, style: &TextStyle) -> Option<Path> {
        let face = if style.bold { &self.bold } else { &self.regular }.as_ref()?;
        let scale = style.pixels / f64::from(face.units_per_em());
        let glyphs: Vec<(GlyphId, f64)> = text
            .chars()
            .map(|c| {
                let glyph = face.glyph_index(c).unwrap_or(GlyphId(0));
                (glyph, f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * scale)
            })
            .collect();
        let width: f64 = glyphs.iter().map(|(_, advance)| advance).sum();
        let x = match style.anchor {
            Anchor::Start => at.0,
            Anchor::Middle => at.0 - width / 2.0,
            Anchor::End => at.0 - width,
        };
        let y = match style.baseline {
            Baseline::Letters => at.1,
            Baseline::Middle => {
                let height =
                    face.x_height().map_or(X_HEIGHT_EM * style.pixels, |units| f64::from(units) * scale);
                at.1 + height / 2.0
            }
        };
        let mut outline = Outline { path: PathBuilder::new(), x: x as f32, y: y as f32, scale: scale as f32 };
        for (glyph, advance) in glyphs {
            face.outline_glyph(glyph, &mut outline);
            outline.x += advance as f32;
        }
        outline.path.finish()
    }
}

/// From a font's units, upwards, to pixels, downwards.
struct Outline {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Outline {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(anchor: Anchor, bold: bool) -> TextStyle {
        TextStyle { anchor, baseline: Baseline::Letters, pixels: 12.0, bold }
    }

    #[test]
    fn both_fonts_have_what_charts_write() {
        let fonts = Fonts::embedded();
        for face in [&fonts.regular, &fonts.bold] {
            let face = face.as_ref().unwrap();
            let missing: String =
                "09azAZ,.:;()/%±–’“”…µ×≤≥".chars().filter(|c| face.glyph_index(*c).is_none()).collect();
            assert_eq!(missing, "");
        }
    }

    #[test]
    fn a_text_stands_where_its_anchor_says() {
        let fonts = Fonts::embedded();
        let bounds = |anchor| {
            let path = fonts.outline("100 us", (50.0, 20.0), &style(anchor, false)).unwrap();
            (path.bounds().left(), path.bounds().right())
        };
        let (start, end) = (bounds(Anchor::Start), bounds(Anchor::End));
        assert!((50.0..52.0).contains(&start.0) && (48.0..50.0).contains(&end.1), "{start:?} {end:?}");
        // As wide as a browser shows it in DejaVu Sans of 12 px, without the space beside its first and last letter.
        assert!((38.0..40.0).contains(&(start.1 - start.0)), "{start:?}");
        assert_eq!(fonts.outline("", (0.0, 0.0), &style(Anchor::Start, true)), None);
    }
}
