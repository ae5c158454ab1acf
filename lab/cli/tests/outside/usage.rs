//! Wrong arguments: the exit code, and the lines that say what to do.

use programs::{Finished, Headroom};

#[test]
fn a_refused_argument_is_named_with_what_it_takes() {
    let ours = Headroom::new();
    let refused = |arguments: &[&str], code, pieces: &[&str]| {
        Finished::from_output(&ours.run(arguments)).refused(code, pieces);
    };
    // No seed finds nothing wrong.
    refused(&["lab", "crash", "--seeds", "0"], 2, &["--seeds", "not in 1.."]);
    refused(&["lab", "recover", "--log", "18446744073709551615"], 2, &["--log", "is more than 4 TiB"]);
    refused(&["log", "info", "/no/where"], 3, &["no page store", "try: name the directory of"]);
}
