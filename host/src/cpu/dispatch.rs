//! Closures, compiled for the vectors of the processor at hand.

use pulp::{Arch, Simd, WithSimd};

/// Runs `f`, which has to be `#[inline(always)]`, with the widest instructions that the processor has.
///
/// pulp takes closures too, but by value: one that borrows what it writes to is then called through a function of its own,
/// compiled without those instructions, where each fused multiply-add is a call of a library.
#[inline]
pub fn dispatch<R>(f: impl FnMut() -> R) -> R {
    Arch::new().dispatch(ByReference(f))
}

struct ByReference<F>(F);

impl<R, F: FnMut() -> R> WithSimd for ByReference<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Clears the upper halves of the vector registers, which products of matrices (`faer`'s kernels for wide vectors) leave as they
/// are: while there is something in them, every scalar instruction on an Intel processor waits for the one before it that
/// wrote to its register. Source: Intel, "Optimization Reference Manual", section on mixing AVX with SSE code.
#[inline]
pub(crate) fn clear_upper() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX, and no value is kept in an upper half between two statements of Rust.
        unsafe { zero_upper() }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
fn zero_upper() {
    std::arch::x86_64::_mm256_zeroupper();
}

#[cfg(test)]
mod tests {
    use super::dispatch;

    #[test]
    fn what_is_borrowed_is_written() {
        let (mut sums, numbers) = ([0.0_f64; 4], [1.5_f64, -2.0, 0.25, 8.0]);
        let count = dispatch(
            #[inline(always)]
            || {
                for (sum, number) in sums.iter_mut().zip(&numbers) {
                    *sum = number.mul_add(2.0, *sum);
                }
                numbers.len()
            },
        );
        assert_eq!((count, sums), (4, [3.0, -4.0, 0.5, 16.0]));
    }
}
