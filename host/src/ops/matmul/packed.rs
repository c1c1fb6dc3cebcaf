//! Operands of a product, packed before it.

use gpu_kernels::matmul::packed::{Operand, packed_words};
use gpu_kernels::matmul::{MatmulArgs, MatmulVariant};
use gpu_kernels::memory::In;

use super::{Kept, entry, launch};
use crate::device::Device;
use crate::ops::{Number, OpError};
use crate::plan::matmul::{Problem, packing};

/// Packs both operands of `args`: the arguments of their product.
///
/// # Errors
/// [`OpError::NoVariant`] for elements that are not packed, and as `matmul`.
pub(super) fn pack<'a, T: Number>(
    device: &Device,
    problem: &Problem,
    [of_a, of_b]: &'a mut [Kept<T>; 2],
    args: MatmulArgs<'a, T>,
) -> Result<MatmulArgs<'a, T>, OpError> {
    entry::<T>(MatmulVariant::SplitF16)?;
    // What is a column of op(B) is a row of its transpose.
    let turned = MatmulArgs {
        m: args.n,
        a_transposed: 1 - args.b_transposed,
        lda: args.ldb,
        a: args.b,
        ..args
    };
    Ok(MatmulArgs {
        a: one(device, (problem, Operand::Left), of_a, args)?,
        b: one(device, (problem, Operand::Right), of_b, turned)?,
        ..args
    })
}

/// Packs the left operand of `args`, as this one of the product.
fn one<'a, T: Number>(
    device: &Device,
    (problem, operand): (&Problem, Operand),
    kept: &'a mut Kept<T>,
    args: MatmulArgs<'a, T>,
) -> Result<In<'a, T>, OpError> {
    let to = kept.at_least(device, packed_words(args.m, args.k) as usize)?;
    for plan in packing(problem, operand)? {
        let step = MatmulArgs {
            parts: plan.parts,
            c: to.output(),
            ..args
        };
        launch(device, plan, step)?;
    }
    Ok(to.input())
}
