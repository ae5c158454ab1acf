use super::{Chart, Theme, svg_file};
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PngError {
    /// The chart has more pixels than are held in memory.
    TooLarge {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// Something that should not be: the SVG is ours. What the renderer or the encoder says.
    Refused(String),
}

/// A pixel of the SVG is so many of the picture, so that it is sharp on dense screens and in print.
const SCALE: f32 = 2.0;
/// 400 MB of memory.
const PIXELS_MAX: u64 = 100_000_000;
/// The picture looks the same on every machine, also on one without fonts. Cut down, see fonts/LICENSE.
const FONTS: [&[u8]; 2] =
    [include_bytes!("../../fonts/DejaVuSans.ttf"), include_bytes!("../../fonts/DejaVuSans-Bold.ttf")];

/// A chart as a PNG, two pixels for each of its [`svg_file`], with the settings of its runs as text chunks.
///
/// # Errors
/// [`PngError::TooLarge`] for a chart of very many panels.
pub fn png_file(chart: &Chart, theme: Theme) -> Result<Vec<u8>, PngError> {
    let refused = |error: &dyn std::fmt::Display| PngError::Refused(error.to_string());
    let tree = usvg::Tree::from_str(&svg_file(chart, theme), &options()).map_err(|error| refused(&error))?;
    let size = tree.size().to_int_size();
    let (width, height) = ((size.width() as f32 * SCALE) as u32, (size.height() as f32 * SCALE) as u32);
    let too_large = PngError::TooLarge { width, height };
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(too_large);
    }
    let mut picture = tiny_skia::Pixmap::new(width, height).ok_or(too_large)?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    // The ground is opaque, so that nothing of it is to be divided by.
    let rgb: Vec<u8> =
        picture.data().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    encode(chart, width, height, &rgb).map_err(|error| refused(&error))
}

fn options() -> usvg::Options<'static> {
    let mut fonts = usvg::fontdb::Database::new();
    FONTS.into_iter().for_each(|font| fonts.load_font_data(font.to_vec()));
    fonts.set_sans_serif_family("DejaVu Sans");
    usvg::Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".into(), ..usvg::Options::default() }
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
        // tEXt is Latin-1; what is not goes into an iTXt.
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

impl std::fmt::Display for PngError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PngError::TooLarge { width, height } => {
                write!(
                    f,
                    "the chart would be a picture of {width} x {height} pixels; give fewer runs, or .svg"
                )
            }
            PngError::Refused(why) => write!(f, "the chart could not be made a picture: {why}"),
        }
    }
}

impl std::error::Error for PngError {}
