//! All colours of charts and pages, in both themes.
//!
//! A page carries both themes as CSS variables and follows the reader's system. A file has the colours of one theme.

use std::str::FromStr;

/// The colours of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Theme {
    /// Dark on white: for documents and print.
    #[default]
    Light,
    /// Light on dark.
    Dark,
}

/// The meaning of a stroke or a surface. Each ink is a CSS variable of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Ink {
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
    /// The lower end of every heat map's scale; [`Ink::HeatRate`] and [`Ink::HeatTime`] are upper ends.
    HeatLow,
    HeatRate,
    HeatTime,
    /// Text on a heat map's cell.
    OnHeat,
    /// A difference for the better.
    Better,
    Worse,
    /// Background of a latency band, 0 the best, 6 the worst.
    Band(u8),
    /// One of several lines that are compared.
    Series(u8),
}

/// Red, green and blue as `0xRRGGBB`.
pub(crate) type Rgb = u32;

/// A CSS variable with its colour in the light and in the dark theme.
type Colour = (&'static str, Rgb, Rgb);

/// Colours that only the page around the charts uses.
const PAGE: [Colour; 4] = [
    ("--page", 0xf4f5f7, 0x0f1216),
    ("--edge", 0xd8dde3, 0x2d343e),
    ("--warning", 0x955800, 0xf0b04a),
    ("--neutral", 0x4a5563, 0xaab4c0),
];

const NAMED: [(Ink, Colour); 20] = [
    (Ink::Text, ("--text", 0x1b1f24, 0xe6e9ed)),
    (Ink::Muted, ("--muted", 0x57606a, 0x9aa5b1)),
    (Ink::Grid, ("--grid", 0xe4e7eb, 0x2a313a)),
    (Ink::Axis, ("--axis", 0x8b949e, 0x6b7683)),
    (Ink::Curve, ("--curve", 0x1f5fd0, 0x6ea8ff)),
    (Ink::Bound, ("--bound", 0x98a2ad, 0x6f7b88)),
    (Ink::Knee, ("--knee", 0x7a4fd0, 0xb79bff)),
    (Ink::Demand, ("--demand", 0xc8410b, 0xff9254)),
    (Ink::Read, ("--read", 0x1f5fd0, 0x6ea8ff)),
    (Ink::Commit, ("--commit", 0xb4540a, 0xf0a35b)),
    (Ink::Database, ("--database", 0x1f5fd0, 0x6ea8ff)),
    (Ink::Device, ("--device", 0x8a5a9e, 0xcf9fe2)),
    (Ink::Gap, ("--gap", 0xc9ced5, 0x3a424d)),
    (Ink::Surface, ("--surface", 0xffffff, 0x171b21)),
    (Ink::HeatLow, ("--heat-low", 0xeef2f8, 0x222932)),
    (Ink::HeatRate, ("--heat-rate", 0x5c92ea, 0x2a63c4)),
    (Ink::HeatTime, ("--heat-time", 0xee8a55, 0xa8501c)),
    (Ink::OnHeat, ("--on-heat", 0x10151b, 0xf4f6f9)),
    (Ink::Better, ("--good", 0x15743a, 0x5bd08a)),
    (Ink::Worse, ("--bad", 0xb3261e, 0xff8078)),
];

/// Backgrounds of latency bands, from the best to the worst.
const BANDS: [Colour; 7] = [
    ("--band-0", 0xe6f5ea, 0x14261c),
    ("--band-1", 0xeff7e4, 0x1c281a),
    ("--band-2", 0xf6f7dc, 0x262918),
    ("--band-3", 0xfcf2d8, 0x2f2818),
    ("--band-4", 0xfce9d6, 0x342418),
    ("--band-5", 0xfadfd9, 0x361f1b),
    ("--band-6", 0xf6d3d3, 0x391a1d),
];

/// Lines of one chart that differ in their colour.
pub const SERIES_INKS: usize = 8;

const SERIES: [Colour; SERIES_INKS] = [
    ("--series-0", 0x1f5fd0, 0x6ea8ff),
    ("--series-1", 0xc2540a, 0xf0a35b),
    ("--series-2", 0x15743a, 0x5bd08a),
    ("--series-3", 0x7a4fd0, 0xb79bff),
    ("--series-4", 0x0b7a8c, 0x55c6d8),
    ("--series-5", 0xb3246f, 0xf283bd),
    ("--series-6", 0x7d5a10, 0xd3b36c),
    ("--series-7", 0x4a5563, 0xaab4c0),
];

/// The CSS declarations of all colours in a theme: `--text: #1b1f24; --muted: …`.
pub fn css_variables(theme: Theme) -> String {
    let named = NAMED.iter().map(|(_, colour)| colour);
    let all = PAGE.iter().chain(named).chain(&BANDS).chain(&SERIES);
    let declarations = all.map(|colour| format!("{}: {};", colour.0, hex(theme.rgb(colour))));
    declarations.collect::<Vec<String>>().join(" ")
}

/// A colour as CSS and SVG write it.
pub(crate) fn hex(rgb: Rgb) -> String {
    format!("#{rgb:06x}")
}

impl Theme {
    fn rgb(self, (_, light, dark): &Colour) -> Rgb {
        match self {
            Theme::Light => *light,
            Theme::Dark => *dark,
        }
    }
}

impl Ink {
    /// The ink of the band with rank `rank` on a scale of `bands` bands.
    pub fn band(rank: usize, bands: usize) -> Ink {
        let (last, darkest) = (bands.saturating_sub(1).max(1), BANDS.len() - 1);
        Ink::Band((rank * darkest / last).min(darkest) as u8)
    }

    /// The ink of line number `at`; the colours repeat after the last.
    pub fn series(at: usize) -> Ink {
        Ink::Series((at % SERIES_INKS) as u8)
    }

    fn colour(self) -> Colour {
        match self {
            Ink::Band(rank) => BANDS[usize::from(rank) % BANDS.len()],
            Ink::Series(at) => SERIES[usize::from(at) % SERIES_INKS],
            ink => NAMED.iter().find(|(named, _)| *named == ink).map_or(NAMED[0].1, |(_, colour)| *colour),
        }
    }

    /// The CSS variable: `--text`.
    pub fn variable(self) -> &'static str {
        self.colour().0
    }

    /// The colour in a theme.
    pub(crate) fn rgb(self, theme: Theme) -> Rgb {
        theme.rgb(&self.colour())
    }
}

impl FromStr for Theme {
    type Err = String;

    fn from_str(text: &str) -> Result<Theme, String> {
        match text {
            "light" => Ok(Theme::Light),
            "dark" => Ok(Theme::Dark),
            other => Err(format!("'{other}' is not a theme; give light or dark")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_is_declared_and_differs_between_the_themes() {
        let (light, dark) = (css_variables(Theme::Light), css_variables(Theme::Dark));
        assert!(light.contains("--text: #1b1f24;") && dark.contains("--text: #e6e9ed;"));
        let (light, dark) = (light.split_inclusive(';'), dark.split_inclusive(';'));
        assert!(light.zip(dark).all(|(light, dark)| light != dark));
    }

    #[test]
    fn bands_of_any_scale_run_from_the_first_colour_to_the_last() {
        assert_eq!([Ink::band(0, 5), Ink::band(4, 5), Ink::band(9, 5)], [0, 6, 6].map(Ink::Band));
    }
}
