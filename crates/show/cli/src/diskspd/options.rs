use std::path::PathBuf;
use terminal::Failure;

/// Options of ours whose value is the next argument, where it is not glued on with `=`.
pub const VALUED: [&str; 4] = ["--history", "--destroy-data", "--format", "--target"];

/// Our own options beside diskspd's flags.
#[derive(Default)]
pub struct Options {
    pub ignore_unsupported: bool,
    pub json: bool,
    pub history: Option<PathBuf>,
    pub destroy_data: Vec<PathBuf>,
    pub text_form: TextForm,
    /// Where targets of Windows are placed.
    pub target: Option<String>,
}

/// A form of diskspd's text report.
#[derive(Clone, Copy, Default)]
pub enum TextForm {
    /// That of 2.2.
    #[default]
    Current,
    /// That of 2.0.17, of 2016.
    Of2016,
}

impl Options {
    /// Reads them, wherever they stood among diskspd's.
    pub fn read(ours: &[String]) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut ours = ours.iter();
        while let Some(argument) = ours.next() {
            let (option, glued) = match argument.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (argument.as_str(), None),
            };
            // The parser has seen to it that a value that stands apart is there.
            let mut value = || glued.or_else(|| ours.next().map(String::as_str)).unwrap_or_default();
            match option {
                "--ignore-unsupported" if glued.is_none() => options.ignore_unsupported = true,
                "--json" if glued.is_none() => options.json = true,
                "--history" => options.history = Some(value().into()),
                "--destroy-data" => options.destroy_data.push(value().into()),
                "--target" => options.target = Some(value().into()),
                "--format" => options.text_form = text_form(value())?,
                _ => {
                    let remedy =
                        "-? lists flags and options; -- stands before a target that begins with a dash";
                    return Err(Failure::usage(format!("{argument}: no such option")).with_remedy(remedy));
                }
            }
        }
        Ok(options)
    }
}

fn text_form(version: &str) -> Result<TextForm, Failure> {
    match version {
        "2.2" => Ok(TextForm::Current),
        "2.0.17" => Ok(TextForm::Of2016),
        other => Err(Failure::usage(format_args!("--format {other}: no form of that version"))
            .with_remedy("2.2, or 2.0.17; -Rxml for XML, --json for our own")),
    }
}
