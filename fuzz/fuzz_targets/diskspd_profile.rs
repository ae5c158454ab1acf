#![no_main]
//! A profile that passes the rules can be written and read again, and becomes a plan or is refused.

use diskspd::rules::{self, Origin};
use diskspd::{plan, profile_xml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(read) = profile_xml::read(text, &[]) else { return };
    if rules::check(&read.profile, Origin::Xml).is_err() {
        return;
    }
    let again = profile_xml::read(&profile_xml::write(&read.profile), &[]);
    assert_eq!(again.map(|again| again.profile), Ok(read.profile.clone()), "written and read again");
    let _ = plan::to_plan(&read.profile);
});
