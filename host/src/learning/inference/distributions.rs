//! Tails of the normal and of Student's t distribution.
//!
//! The normal tail comes from `erfc` (its complement loses no digits far out), Student's from the incomplete beta function
//! by the continued fraction of Didonato & Morris, "Algorithm 708", ACM TOMS 18, 1992 (there BFRAC), which keeps the digits
//! where x is nearly 1.

/// How statistics are distributed where a coefficient is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learning) enum Distribution {
    Normal,
    /// With this number of degrees of freedom.
    Student(f64),
}

impl Distribution {
    /// The chance of a statistic at least as far from 0 as `x`, on either side.
    pub(in crate::learning) fn two_sided(self, x: f64) -> f64 {
        match self {
            _ if x.is_nan() => f64::NAN,
            Distribution::Normal => libm::erfc(x.abs() / std::f64::consts::SQRT_2),
            Distribution::Student(degrees) => student(x * x, degrees),
        }
    }

    /// How far from 0 a statistic lies with a chance of `p` on either side together.
    pub(in crate::learning) fn quantile(self, p: f64) -> f64 {
        // The tail decreases: it is enclosed, and halved until nothing lies between.
        let (mut near, mut far) = (0.0, 1.0);
        while self.two_sided(far) > p && far < 1e300 {
            (near, far) = (far, 2.0 * far);
        }
        loop {
            let middle = 0.5 * (near + far);
            if middle <= near || middle >= far {
                return middle;
            }
            match self.two_sided(middle) > p {
                true => near = middle,
                false => far = middle,
            }
        }
    }
}

/// I(ν/(ν + t²); ν/2, 1/2) of t².
fn student(square: f64, degrees: f64) -> f64 {
    if square.is_infinite() {
        return 0.0;
    }
    let (a, b) = (0.5 * degrees, 0.5);
    let (x, y) = (degrees / (degrees + square), square / (degrees + square));
    // xᵃ with the digits of a small t²/ν kept.
    let power = (-a * (square / degrees).ln_1p()).exp() * y.sqrt();
    let front = power / beta_with_half(a);
    // The sign says on which side of the mean x lies.
    match (a + b) * y - b {
        side if side > 0.0 => front * fraction((a, b), (x, y), side),
        side => 1.0 - front * fraction((b, a), (y, x), -side),
    }
}

/// B(a, 1/2) = Γ(a)·√π / Γ(a + 1/2).
fn beta_with_half(a: f64) -> f64 {
    const ASYMPTOTIC: f64 = 60.0;
    // Γ(a + 1/2)/Γ(a): up by a recurrence, then by its series in 1/a (Abramowitz & Stegun 6.1.47, with five terms).
    let (mut a, mut ratio) = (a, 1.0);
    while a < ASYMPTOTIC {
        ratio *= a / (a + 0.5);
        a += 1.0;
    }
    let i = 1.0 / a;
    let series = 1.0
        + i * (-1.0 / 8.0
            + i * (1.0 / 128.0
                + i * (5.0 / 1024.0
                    + i * (-21.0 / 32768.0
                        + i * (-399.0 / 262_144.0 + i * (869.0 / 4_194_304.0))))));
    std::f64::consts::PI.sqrt() / (ratio * a.sqrt() * series)
}

/// I(x; a, b)·B(a, b) / (xᵃ·yᵇ), with y = 1 − x and λ = a − (a + b)·x ≥ 0.
fn fraction((a, b): (f64, f64), (x, y): (f64, f64), lambda: f64) -> f64 {
    const MOST: u32 = 10_000;
    let (c, c0, c1) = (1.0 + lambda, b / a, 1.0 + 1.0 / a);
    let (mut p, mut s) = (1.0, a + 1.0);
    let (mut numerators, mut denominators) = ((0.0, 1.0), (1.0, c / c1));
    let mut value = c1 / c;
    for n in 1..MOST {
        let n = f64::from(n);
        let t = n / a;
        let w = n * (b - n) * x;
        let e = a / s;
        let alpha = p * (p + c0) * e * e * (w * x);
        let beta = n + w / s + (t + 1.0) / (c1 + t + t) * (c + n * (y + 1.0));
        p = t + 1.0;
        s += 2.0;
        numerators = (numerators.1, alpha * numerators.0 + beta * numerators.1);
        denominators = (
            denominators.1,
            alpha * denominators.0 + beta * denominators.1,
        );
        let next = numerators.1 / denominators.1;
        if (next - value).abs() <= 1e-16 * next {
            return next;
        }
        value = next;
        // Scaled, so that nothing overflows.
        numerators = (numerators.0 / denominators.1, value);
        denominators = (denominators.0 / denominators.1, 1.0);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        let error = (found - expected).abs();
        assert!(error <= 1e-12 * expected.abs(), "{found} for {expected}");
    }

    /// SciPy 1.16: `2 * scipy.stats.norm.sf(x)`, `2 * scipy.stats.t.sf(x, df)`, `scipy.stats.t.ppf(0.975, df)`.
    #[test]
    fn tails_are_scipys() {
        let cases: &str = include_str!("scipy.json");
        let cases: serde_json::Value = serde_json::from_str(cases).expect("JSON");
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        let triples = |name: &str| cases[name].as_array().expect("cases").clone();
        assert!(triples("t").len() > 20);
        for case in triples("normal") {
            close(
                Distribution::Normal.two_sided(number(&case[0])),
                number(&case[1]),
            );
        }
        for case in triples("t") {
            let student = Distribution::Student(number(&case[0]));
            close(student.two_sided(number(&case[1])), number(&case[2]));
        }
        for case in triples("quantile") {
            close(
                Distribution::Student(number(&case[0])).quantile(0.05),
                number(&case[1]),
            );
        }
        close(Distribution::Normal.quantile(0.05), 1.959963984540054);
    }
}
