//! Sums of columns from entries by rows: added one by one to sums in T, which go to w once for each block.

use pulp::{Arch, Simd, WithSimd};

use super::order::{INDICES, LANES, Part};
use super::{Sell, elements};
use crate::cpu::scalar::Scalar;

impl<T: Scalar> Sell<'_, T> {
    /// `w += Xᵀ·factors` over the entries by rows of a part, whose columns `w` has. `sums` are zeros, before and after.
    pub(super) fn scatter(
        &self,
        part: &Part,
        (factors, sums): (&[T; INDICES], &mut [T; INDICES]),
        w: &mut [f64],
    ) {
        let width = self.order.width();
        Arch::new().dispatch(Scatter {
            x: *self,
            part,
            factors,
            sums,
        });
        for (w, sum) in w.iter_mut().zip(&mut sums[..width]) {
            *w += std::mem::take(sum).into();
        }
        // What pads lists went there: zeros, or what they are times an infinite factor.
        sums[width] = T::default();
    }
}

/// `sums[indices] += values·factors[owner]` over the lists of a part.
struct Scatter<'a, T> {
    x: Sell<'a, T>,
    part: &'a Part,
    factors: &'a [T; INDICES],
    sums: &'a mut [T; INDICES],
}

impl<T: Scalar> WithSimd for Scatter<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (owners, _) = self.part.owners.as_chunks::<LANES>();
        let mut start = self.part.start;
        for (&len, owners) in self.part.lens.iter().zip(owners) {
            let entries = start..start + LANES * usize::from(len);
            start = entries.end;
            // Whatever nobody's factor is, it meets zeros alone.
            let factors: [T; LANES] = std::array::from_fn(|l| self.factors[usize::from(owners[l])]);
            let (steps, _) = self.x.indices[entries.clone()].as_chunks::<LANES>();
            let (values, _) = self.x.values[entries].as_chunks::<LANES>();
            for (places, values) in steps.iter().zip(values) {
                let products = products(simd, values, &factors);
                add_each(places, &products, self.sums);
            }
        }
    }
}

#[inline(always)]
fn products<T: Scalar, S: Simd>(simd: S, values: &[T; LANES], factors: &[T; LANES]) -> [T; LANES] {
    let zero = T::splat(simd, T::default());
    let mut products = [zero; LANES];
    let pairs = T::vectors::<S>(values).iter().zip(T::vectors::<S>(factors));
    for (product, (value, factor)) in products.iter_mut().zip(pairs) {
        *product = T::mul_add(simd, *value, *factor, zero);
    }
    elements(&products)
}

/// Adds each product to the sum at its place, one after the other: two may have the same.
#[inline(always)]
fn add_each<T: Scalar>(places: &[u16; LANES], products: &[T; LANES], sums: &mut [T; INDICES]) {
    // Four places are read as one number, as where elements are chosen.
    let words: [u64; LANES / 4] = bytemuck::cast(*places);
    for (lane, product) in products.iter().enumerate() {
        let shift = match cfg!(target_endian = "little") {
            true => lane % 4,
            false => 3 - lane % 4,
        };
        let place = (words[lane / 4] >> (16 * shift)) as u16;
        let sum = &mut sums[usize::from(place)];
        // SAFETY: a reference is valid for reads. Volatile: the compiler takes a vector apart by shuffles, of which a core does one
        // at a time.
        let product = unsafe { std::ptr::from_ref(product).read_volatile() };
        *sum = T::add_one(*sum, product);
    }
}
