//! Several right-hand sides on the CPU device.

use super::super::host::with_rows;
use super::{ManyTerms, Number, RowWeights};
use crate::cpu::many::{self, ManyInput, RowEntries, Weights};
use crate::device::Buffer;
use crate::matrix::Features;
use crate::plan::fused::Product;

const ON_HOST: &str = "the operation has checked that its buffers lie on the CPU";

fn slice<T: Number>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

/// Computes a product; shapes and devices have been checked.
pub(super) fn run<T: Number>(
    (product, sides): (Product, usize),
    x: &Features<T>,
    input: &Buffer<T>,
    terms: &ManyTerms<'_, T>,
    output: &mut Buffer<T>,
) {
    let terms = many::ManyTerms {
        sides,
        alpha: terms.alpha,
        weights: match terms.weights {
            None => Weights::Absent,
            Some(RowWeights::OfRows(weights)) => Weights::OfRows(slice(weights)),
            Some(RowWeights::OfEntries(weights)) => Weights::OfEntries(slice(weights)),
        },
        shift: terms.shift.map(slice),
        addend: terms.addend.map(|(beta, z)| (beta, slice(z))),
    };
    let (input, output) = (slice(input), output.as_host_slice_mut().expect(ON_HOST));
    with_rows!(x, |x| dispatch(product, &x, input, &terms, output));
}

fn dispatch<T: Number>(
    product: Product,
    x: &impl RowEntries<T>,
    input: &[T],
    terms: &many::ManyTerms<'_, T>,
    output: &mut [T],
) {
    match product {
        Product::Forward => many::forward(x, input, terms, output),
        Product::Fused => many::transpose(x, ManyInput::Product(input), terms, output),
        Product::Transposed => many::transpose(x, ManyInput::Given(input), terms, output),
    }
}
