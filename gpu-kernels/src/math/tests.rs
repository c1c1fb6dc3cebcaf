//! Against values computed with 400 bits, in units of the last place.

#[rustfmt::skip]
mod truth;

use super::*;
use truth::*;

/// The distance of `computed` from `high + low`, in units of the last place of a number type with this many bits of
/// mantissa and so small a normal number.
fn ulps(computed: f64, high: f64, low: f64, bits: i32, smallest: f64) -> f64 {
    if high == computed {
        return low.abs() / unit(high, bits, smallest);
    }
    ((computed - high) - low).abs() / unit(high, bits, smallest)
}

fn unit(x: f64, bits: i32, smallest: f64) -> f64 {
    let exponent = (x.abs().max(smallest).to_bits() >> 52) as i32 - 1023;
    f64::from_bits(((exponent - bits + 1 + 1023) as u64).max(1) << 52).max(f64::from_bits(1))
}

const F32: (i32, f64) = (24, f32::MIN_POSITIVE as f64);
const F64: (i32, f64) = (53, f64::MIN_POSITIVE * 4_503_599_627_370_496.0);

/// Tries both types: f32 at the arguments that it has, as far as the value is in its range.
fn check(
    name: &str,
    table: &[(f64, f64, f64)],
    [single, double]: [f64; 2],
    f: impl Fn(f32) -> f32,
    g: impl Fn(f64) -> f64,
) {
    for &(x, high, low) in table {
        if high.abs() > f64::MIN_POSITIVE {
            let error = ulps(g(x), high, low, F64.0, F64.1);
            assert!(
                error <= double,
                "{name}({x:e}) of f64 is {:e}, not {high:e}: {error} ulp",
                g(x)
            );
        }
        let in_range = high == 0.0 || (1e-37..3e38).contains(&high.abs());
        if f64::from(x as f32) == x && in_range {
            let value = f64::from(f(x as f32));
            let error = ulps(value, high, low, F32.0, F32.1);
            assert!(
                error <= single,
                "{name}({x:e}) of f32 is {value:e}, not {high:e}: {error} ulp"
            );
        }
    }
}

#[test]
fn exponentials_and_logarithms() {
    check("exp", EXP, [1.0, 1.0], exp, exp);
    check("exp_m1", EXP_M1, [2.0, 2.0], exp_m1, exp_m1);
    check("ln", LN, [1.0, 1.0], ln, ln);
    check("ln_1p", LN_1P, [1.0, 1.0], ln_1p, ln_1p);
    check("softplus", SOFTPLUS, [2.0, 2.0], softplus, softplus);
    check(
        "sigmoid",
        SIGMOID,
        [2.0, 2.0],
        |t| sigmoid(t).0,
        |t| sigmoid(t).0,
    );
}

#[test]
fn the_normal_distribution() {
    check("erfcx", ERFCX, [3.0, 3.0], erfcx, erfcx);
    check(
        "cdf",
        CDF,
        [8.0, 8.0],
        |t| Normal::at(t).tails[0],
        |t| Normal::at(t).tails[0],
    );
    check(
        "ln cdf",
        LN_CDF,
        [8.0, 8.0],
        |t| Normal::at(t).ln_tails[0],
        |t| Normal::at(t).ln_tails[0],
    );
    check(
        "ratio",
        MILLS,
        [8.0, 8.0],
        |t| Normal::at(t).ratios[0],
        |t| Normal::at(t).ratios[0],
    );
    let (left, right) = (Normal::at(-1.25), Normal::at(1.25));
    assert_eq!(left.tails, [right.tails[1], right.tails[0]]);
}

#[test]
fn powers() {
    for &(x, a, high, low) in POW {
        let bound = 2.0 + 2.0 * (high.ln()).abs();
        let error = ulps(pow(x, a), high, low, F64.0, F64.1);
        assert!(
            error <= bound,
            "{x}^{a} of f64: {error} ulp, allowed {bound}"
        );
        if f64::from(x as f32) == x && f64::from(a as f32) == a {
            let error = ulps(pow(x as f32, a as f32).into(), high, low, F32.0, F32.1);
            assert!(
                error <= bound,
                "{x}^{a} of f32: {error} ulp, allowed {bound}"
            );
        }
    }
}

fn ends<T: Elementary + core::fmt::Debug>() {
    let (zero, one, inf) = (T::ZERO, T::ONE, T::INFINITY);
    assert_eq!(
        [exp(inf), exp(-inf), exp(zero), exp_m1(-inf), exp_m1(inf)],
        [inf, zero, one, -one, inf]
    );
    assert_eq!(
        [ln(zero), ln(inf), ln(one), ln_1p(-one), ln_1p(inf)],
        [-inf, inf, zero, -inf, inf]
    );
    assert_eq!(
        [
            softplus(-inf),
            softplus(inf),
            sigmoid(inf).0,
            sigmoid(-inf).0
        ],
        [zero, inf, one, zero]
    );
    assert_eq!(
        [
            erfcx(inf),
            Normal::at(-inf).tails[0],
            Normal::at(inf).tails[0]
        ],
        [zero, zero, one]
    );
    let is_nan = |x: T| x.to_f64().is_nan();
    assert!([ln(-one), ln_1p(-T::TWO)].into_iter().all(is_nan));
    for f in [
        exp,
        exp_m1,
        ln,
        ln_1p,
        softplus,
        erfcx,
        |t| Normal::at(t).tails[0],
        |t| sigmoid(t).0,
    ] {
        assert!(is_nan(f(T::NAN)));
    }
}

#[test]
fn infinities_zeros_and_nan() {
    ends::<f32>();
    ends::<f64>();
}

/// Every function of f32 is within its bound of the function of f64 all over its range.
#[test]
fn single_precision_everywhere() {
    let near = |name: &str, x: f32, value: f32, truth: f64, bound: f64| {
        if (1e-37..3e38).contains(&truth.abs()) {
            let error = ulps(value.into(), truth, 0.0, F32.0, F32.1);
            assert!(error <= bound, "{name}({x:e}): {error} ulp");
        }
    };
    for i in 0..40_000 {
        let x = (i - 20_000) as f32 * 0.005;
        near("exp", x, exp(x), exp(f64::from(x)), 1.0);
        near("exp_m1", x, exp_m1(x), exp_m1(f64::from(x)), 2.0);
        near("ln", x.abs(), ln(x.abs()), ln(f64::from(x.abs())), 1.0);
        near(
            "ln_1p",
            x * 0.009,
            ln_1p(x * 0.009),
            ln_1p(f64::from(x * 0.009)),
            1.0,
        );
        near(
            "erfcx",
            x.abs(),
            erfcx(x.abs()),
            erfcx(f64::from(x.abs())),
            3.0,
        );
        let (t, wide) = (Normal::at(x * 0.1), Normal::at(f64::from(x * 0.1)));
        near("cdf", x * 0.1, t.tails[0], wide.tails[0], 8.0);
        near("ln cdf", x * 0.1, t.ln_tails[0], wide.ln_tails[0], 8.0);
        near("ratio", x * 0.1, t.ratios[0], wide.ratios[0], 8.0);
    }
}
