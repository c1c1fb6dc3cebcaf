//! What a weight may be.

use std::fmt::{Debug, Display};

use bytemuck::Pod;
use half::{bf16, f16};

/// A weight: `i8`, `i16`, `f16`, `bf16`, `f32` or `f64`.
pub trait FilterValue:
    Pod + PartialEq + PartialOrd + Default + Debug + Display + Send + Sync
{
    /// The value, exact.
    fn to_f64(self) -> f64;
    /// The nearest value; integers stay in their range.
    fn from_f64(value: f64) -> Self;
    /// The bits of a field of `bits` bits that holds the value, if one can.
    fn field(self, bits: u32) -> Option<u64>;
    /// The value of a field, of which the lowest `bits` bits count.
    fn of_field(field: u64, bits: u32) -> Self;
    /// |value|.
    fn magnitude(self) -> f64 {
        self.to_f64().abs()
    }
}

macro_rules! integer {
    ($($t:ident)*) => { $(
        impl FilterValue for $t {
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn from_f64(value: f64) -> $t {
                value.round() as $t
            }
            fn field(self, bits: u32) -> Option<u64> {
                let unused = 64 - bits.min(64);
                let wide = i64::from(self);
                (wide << unused >> unused == wide).then_some(wide as u64 & (u64::MAX >> unused))
            }
            fn of_field(field: u64, bits: u32) -> $t {
                let unused = 64 - bits.min(64);
                ((field << unused) as i64 >> unused) as $t
            }
        }
    )* };
}

integer!(i8 i16);

macro_rules! short_float {
    ($($t:ident)*) => { $(
        impl FilterValue for $t {
            fn to_f64(self) -> f64 {
                $t::to_f64(self)
            }
            fn from_f64(value: f64) -> $t {
                $t::from_f64(value)
            }
            fn field(self, bits: u32) -> Option<u64> {
                (bits >= 16).then_some(u64::from(self.to_bits()))
            }
            fn of_field(field: u64, _: u32) -> $t {
                $t::from_bits(field as u16)
            }
        }
    )* };
}

short_float!(f16 bf16);

impl FilterValue for f32 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
    fn field(self, bits: u32) -> Option<u64> {
        (bits >= 32).then_some(u64::from(self.to_bits()))
    }
    fn of_field(field: u64, _: u32) -> f32 {
        f32::from_bits(field as u32)
    }
}

/// Packed as f32, where that is exact.
impl FilterValue for f64 {
    fn to_f64(self) -> f64 {
        self
    }
    fn from_f64(value: f64) -> f64 {
        value
    }
    fn field(self, bits: u32) -> Option<u64> {
        let short = self as f32;
        let exact = f64::from(short).to_bits() == self.to_bits();
        exact.then(|| short.field(bits)).flatten()
    }
    fn of_field(field: u64, bits: u32) -> f64 {
        f64::from(f32::of_field(field, bits))
    }
}
