//! Several right-hand sides on the CPU device.

use super::super::host::{HostRows, with_rows};
use super::super::share::{part, part_mut, part_of};
use super::{ManyTerms, Number, OpError, RowWeights};
use crate::cpu::many::{self, ManyInput, RowEntries, Weights};
use crate::device::Buffer;
use crate::plan::fused::Product;

const ON_HOST: &str = "the operation has checked that its buffers lie on the CPU";

fn slice<T: Number>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

/// Computes a product; shapes and devices have been checked.
pub(super) fn run<T: Number>(
    (product, sides): (Product, usize),
    x: &HostRows<T>,
    input: &Buffer<T>,
    terms: &ManyTerms<'_, T>,
    output: &mut Buffer<T>,
) -> Result<(), OpError> {
    let share = x.share.as_ref();
    let addend = terms.addend.map(|(beta, z)| (beta, slice(z)));
    let (is_forward, is_shared) = (product == Product::Forward, share.is_some());
    let terms = many::ManyTerms {
        sides,
        alpha: terms.alpha,
        weights: match terms.weights {
            None => Weights::Absent,
            Some(RowWeights::OfRows(weights)) => Weights::OfRows(part_of(share, weights, 1)),
            Some(RowWeights::OfEntries(weights)) => {
                Weights::OfEntries(part_of(share, weights, sides))
            }
        },
        shift: terms.shift.map(slice),
        addend: match addend {
            Some((beta, z)) if is_forward => Some((beta, part(share, z, sides))),
            // Once all members' sums are added.
            Some(_) if is_shared => None,
            other => other,
        },
    };
    let output = output.as_host_slice_mut().expect(ON_HOST);
    let own = match product {
        Product::Transposed => part_of(share, input, sides),
        _ => slice(input),
    };
    let to = match is_forward {
        true => part_mut(share, output, sides),
        false => &mut *output,
    };
    with_rows!(&*x.features, |x| dispatch(product, &x, own, &terms, to));
    match share {
        Some(share) if is_forward => share.gather(output, sides),
        Some(share) => share.sum(output, addend),
        None => Ok(()),
    }
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
