//! Numbers in fewer bits.

/// The nearest bfloat16, of two the even one: the upper half of an f32.
#[inline(always)]
pub fn to_bf16(value: f64) -> u16 {
    let near = value as f32;
    if near.is_nan() {
        return 0x7fc0;
    }
    let mut bits = near.to_bits();
    // Half way between two only because it was rounded to an f32: a bit to the side that it came from.
    if bits & 0xffff == 0x8000 {
        let (near, value) = ((near as f64).abs(), value.abs());
        bits = bits + (near < value) as u32 - (near > value) as u32;
    }
    let half = 0x7fff + (bits >> 16 & 1);
    (bits.wrapping_add(half) >> 16) as u16
}

/// The value of a bfloat16.
#[inline(always)]
pub fn of_bf16(bits: u16) -> f64 {
    f32::from_bits((bits as u32) << 16) as f64
}

/// The same number, of the same sign, or both NaN.
#[inline(always)]
pub fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloat16_is_rounded_once_and_to_even() {
        for (value, expected) in [
            (1.0, 1.0),
            (-0.75, -0.75),
            (1.0 + 1.0 / 256.0, 1.0),
            (1.0 + 3.0 / 256.0, 1.0 + 1.0 / 64.0),
            (1.0 + 1.0 / 256.0 + 1e-12, 1.0 + 1.0 / 128.0),
            (1.0 + 3.0 / 256.0 - 1e-12, 1.0 + 1.0 / 128.0),
            (f64::INFINITY, f64::INFINITY),
            (1e39, f64::INFINITY),
            (-0.0, -0.0),
        ] {
            assert!(same(of_bf16(to_bf16(value)), expected), "{value}");
        }
        assert!(of_bf16(to_bf16(f64::NAN)).is_nan());
    }
}
