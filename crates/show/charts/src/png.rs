//! A chart as PNG: the shapes of its drawing, filled and stroked by tiny-skia.

use crate::chart::Chart;
use crate::drawing::{Drawing, HALO_OPACITY, HALO_PIXELS, Pixel, Shape, TextStyle};
use crate::file::layout;
use crate::font::Fonts;
use crate::palette::{Ink, Theme};
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, PixmapMut, Rect, Stroke, Transform};

/// Why a chart could not be made a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PngError {
    /// The chart has more pixels than are held in memory.
    #[error("the chart would be a picture of {width} x {height} pixels; give fewer runs, or .svg")]
    TooLarge {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// The encoder's error.
    #[error("the chart could not be made a picture: {0}")]
    Encoding(String),
}

/// Pixels of the picture for each pixel of the drawing: sharp on dense screens and in print.
const SCALE: u32 = 2;
/// 400 MB of memory.
const PIXELS_MAX: u64 = 100_000_000;

/// A chart as a PNG, two pixels for each of its [`svg_file`](crate::svg_file), with the settings of its runs as text
/// chunks.
///
/// # Errors
/// [`PngError::TooLarge`] for a chart of very many panels.
pub fn png_file(chart: &Chart, theme: Theme) -> Result<Vec<u8>, PngError> {
    let drawing = layout(chart);
    let (width, height) = (drawing.size.width * SCALE, drawing.size.height * SCALE);
    let too_large = PngError::TooLarge { width, height };
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(too_large);
    }
    let mut pixels = Pixmap::new(width, height).ok_or(too_large)?;
    let fonts = Fonts::embedded();
    let mut raster =
        Raster { pixels: pixels.as_mut(), theme, fonts: &fonts, origin: (0.0, 0.0), inside: false };
    raster.shapes(&drawing.shapes);
    // The ground is opaque: no pixel has to be divided by its alpha.
    let rgb: Vec<u8> =
        pixels.data().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    encode(chart, width, height, &rgb).map_err(|error| PngError::Encoding(error.to_string()))
}

struct Raster<'a> {
    pixels: PixmapMut<'a>,
    theme: Theme,
    fonts: &'a Fonts,
    /// Upper left corner of the drawing that is being drawn.
    origin: Pixel,
    /// Whether this is a drawing inside the chart: rectangles have sharp edges, so that cells that touch show no seams,
    /// and texts a halo.
    inside: bool,
}

impl Raster<'_> {
    fn shapes(&mut self, shapes: &[Shape]) {
        shapes.iter().for_each(|shape| self.shape(shape));
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { points, ink, width } => self.stroke(line(points), *ink, *width, 1.0),
            Shape::Rect { from, to, ink, opacity } => {
                let rect = Rect::from_ltrb(from.0 as f32, from.1 as f32, to.0 as f32, to.1 as f32);
                self.fill(rect.map(PathBuilder::from_rect), *ink, *opacity, !self.inside);
            }
            Shape::Circle { at, radius, ink, stroke } => {
                let circle = PathBuilder::from_circle(at.0 as f32, at.1 as f32, *radius as f32);
                match stroke {
                    Some(width) => self.stroke(circle, *ink, *width, 1.0),
                    None => self.fill(circle, *ink, 1.0, true),
                }
            }
            Shape::Text { at, text, style, ink } => self.text(*at, text, style, *ink),
            Shape::Drawing { at, drawing } => self.inner(*at, drawing),
        }
    }

    fn inner(&mut self, at: Pixel, drawing: &Drawing) {
        let outside = (self.origin, self.inside);
        (self.origin, self.inside) = ((self.origin.0 + at.0, self.origin.1 + at.1), true);
        self.shapes(&drawing.shapes);
        (self.origin, self.inside) = outside;
    }

    fn text(&mut self, at: Pixel, text: &str, style: &TextStyle, ink: Ink) {
        let outline = self.fonts.outline(text, at, style);
        if self.inside && ink != Ink::OnHeat {
            self.stroke(outline.clone(), Ink::Surface, HALO_PIXELS, HALO_OPACITY);
        }
        self.fill(outline, ink, 1.0, true);
    }

    fn fill(&mut self, path: Option<Path>, ink: Ink, opacity: f64, smooth: bool) {
        if let Some(path) = path {
            let (paint, transform) = (self.paint(ink, opacity, smooth), self.transform());
            self.pixels.fill_path(&path, &paint, FillRule::Winding, transform, None);
        }
    }

    fn stroke(&mut self, path: Option<Path>, ink: Ink, width: f64, opacity: f64) {
        if let Some(path) = path {
            let (paint, transform) = (self.paint(ink, opacity, true), self.transform());
            let stroke = Stroke { width: width as f32, ..Stroke::default() };
            self.pixels.stroke_path(&path, &paint, &stroke, transform, None);
        }
    }

    fn paint(&self, ink: Ink, opacity: f64, anti_alias: bool) -> Paint<'static> {
        let [_, red, green, blue] = ink.rgb(self.theme).to_be_bytes();
        let mut color = Color::from_rgba8(red, green, blue, 255);
        color.set_alpha(opacity as f32);
        let mut paint = Paint { anti_alias, ..Paint::default() };
        paint.set_color(color);
        paint
    }

    fn transform(&self) -> Transform {
        let (x, y) = self.origin;
        Transform::from_translate(x as f32, y as f32).post_scale(SCALE as f32, SCALE as f32)
    }
}

fn line(points: &[Pixel]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        if at == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    path.finish()
}

fn encode(chart: &Chart, width: u32, height: u32, rgb: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let settings =
        chart.settings.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
    for (keyword, text) in [
        ("Title", chart.title.clone()),
        ("Software", "Headroom".into()),
        ("Description", chart.notes.join(" ")),
        ("Settings", settings),
    ] {
        // tEXt is Latin-1; other text goes into an iTXt.
        if text.chars().all(|c| u32::from(c) < 256) {
            encoder.add_text_chunk(keyword.into(), text)?;
        } else {
            encoder.add_itxt_chunk(keyword.into(), text)?;
        }
    }
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgb)?;
    writer.finish()?;
    Ok(file)
}
