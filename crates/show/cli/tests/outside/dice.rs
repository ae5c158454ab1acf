//! Random numbers of tests that can be repeated: HEADROOM_SOAK_SEED draws the same ones again.

use std::time::Duration;

/// splitmix64.
pub struct Dice(pub u64);

impl Dice {
    /// Of HEADROOM_SOAK_SEED, else of this process.
    pub fn from_environment() -> Dice {
        let seed = number("HEADROOM_SOAK_SEED").unwrap_or_else(|| u64::from(std::process::id()));
        println!("HEADROOM_SOAK_SEED={seed}");
        Dice(seed)
    }

    /// 1 to `most`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        1 + (bits ^ (bits >> 31)) % most
    }

    pub fn sleep_ms(&mut self, most: u64) {
        std::thread::sleep(Duration::from_millis(self.up_to(most)));
    }
}

/// The number in a variable of the environment.
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect(variable))
}
