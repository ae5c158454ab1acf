//! Student's t: its distribution by the incomplete beta function (Abramowitz and Stegun 26.5.27, the
//! continued fraction of 26.5.8 evaluated by Lentz's method), its quantiles by Newton's method.

/// Probability that |t| with `degrees` of freedom is above `t`: the two-sided p.
pub fn two_sided(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The t that |t| stays below with probability `confidence`.
pub fn quantile(confidence: f64, degrees: f64) -> f64 {
    let beyond = 1.0 - confidence;
    let mut high = 1.0;
    while two_sided(high, degrees) > beyond && high < 1e9 {
        high *= 2.0;
    }
    let mut low = 0.0;
    let mut t = f64::midpoint(low, high);
    for _ in 0..60 {
        let above = two_sided(t, degrees) - beyond;
        if above > 0.0 {
            low = t;
        } else {
            high = t;
        }
        let step = above / (2.0 * density(t, degrees));
        if step.abs() < 1e-10 * t || high - low < 1e-12 * high {
            break;
        }
        // Newton's step, where it stays within the bracket.
        t = if low < t + step && t + step < high { t + step } else { f64::midpoint(low, high) };
    }
    t
}

/// The quantile of a two-sided 95 % interval with three decimals, as printed tables have it: intervals can be checked
/// by hand.
pub fn t_95(degrees: f64) -> f64 {
    (quantile(0.95, degrees) * 1000.0).round() / 1000.0
}

fn density(t: f64, degrees: f64) -> f64 {
    let front = ln_gamma(f64::midpoint(degrees, 1.0)) - ln_gamma(degrees / 2.0);
    (front - f64::midpoint(degrees, 1.0) * (t * t / degrees).ln_1p()).exp()
        / (degrees * std::f64::consts::PI).sqrt()
}

/// I_x(a, b).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast below the mean; above it the symmetry is used.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

const STEPS_MAX: u32 = 300;

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let floor = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / floor(1.0 - (a + b) * x / (a + 1.0));
    let mut sum = d;
    for step in 1..=STEPS_MAX {
        let m = f64::from(step);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / floor(1.0 + term * d);
            c = floor(1.0 + term / c);
            sum *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    sum
}

/// Stirling's series, after shifting the argument up to where it is exact to 1e-13.
fn ln_gamma(x: f64) -> f64 {
    let (mut shifted, mut product) = (x, 1.0);
    while shifted < 12.0 {
        product *= shifted;
        shifted += 1.0;
    }
    let inverse = 1.0 / (shifted * shifted);
    let series =
        (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / shifted;
    (shifted - 0.5) * shifted.ln() - shifted + 0.5 * std::f64::consts::TAU.ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_95_is_that_of_printed_tables() {
        assert_eq!([1.0, 2.0, 3.0, 4.0, 19.0].map(t_95), [12.706, 4.303, 3.182, 2.776, 2.093]);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (0.95, 1.0, 12.706),
            (0.95, 2.0, 4.303),
            (0.95, 4.0, 2.776),
            (0.95, 10.0, 2.228),
            (0.99, 4.0, 4.604),
            (0.95, 30.0, 2.042),
            (0.95, 1e6, 1.960),
            (0.6, 5.0, 0.920),
        ];
        for (confidence, degrees, t) in table {
            let found = quantile(confidence, degrees);
            assert!((found - t).abs() < 6e-4, "t({confidence}, {degrees}) = {found}, not {t}");
        }
    }

    #[test]
    fn p_and_quantile_are_inverse() {
        for degrees in [1.0, 3.5, 8.0, 200.0] {
            for confidence in [0.5, 0.9, 0.95, 0.999] {
                let p = two_sided(quantile(confidence, degrees), degrees);
                assert!((p - (1.0 - confidence)).abs() < 1e-9, "{degrees} {confidence}: {p}");
            }
        }
        assert_eq!(two_sided(0.0, 4.0), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 4.0), 0.0);
    }
}
