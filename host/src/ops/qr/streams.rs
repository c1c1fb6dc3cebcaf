//! Parts of a batch whose launches run beside each other, each in a stream.

use std::ops::Range;

use gpu_kernels::qr::QrArgs;
use gpu_kernels::{In, Out};

use super::batch::Matrices;
use crate::device::Device;
use crate::ops::{Number, OpError};
use crate::plan::qr as plans;

/// Matrices between two beginnings of parts: any number of elements of that many matrices is a number of whole packs.
const WHOLE: usize = 4;

/// The streams that are worth it.
pub(super) fn planned(device: &Device, matrices: &Matrices, bytes: u32) -> usize {
    match (device.limits(), matrices) {
        (Some(limits), Matrices::Same(batch)) => {
            let batch = plans::Batch::of(batch.shape(), batch.count, bytes, limits);
            plans::streams(&batch)
        }
        _ => 1,
    }
}

/// Calls `work` for a part of a batch of one shape in each of `streams`, with what there is of each array; for the whole of any other. Each
/// matrix has `memory` elements between an update and a merge.
pub(super) fn of_batch<T: Number>(
    device: &Device,
    args: QrArgs<'_, T>,
    (streams, memory): (usize, usize),
    mut work: impl FnMut(&Device, QrArgs<'_, T>) -> Result<(), OpError>,
) -> Result<(), OpError> {
    if streams == 1 || args.table.is_some() || args.last_rows > 0 {
        return work(device, args);
    }
    device.at_once(streams, |part, device| {
        let matrices = matrices(args.count as usize, (part, streams));
        match matrices.is_empty() {
            true => Ok(()),
            false => work(device, of_matrices(args, matrices, memory)),
        }
    })
}

/// The matrices of part `part` of `parts`.
fn matrices(count: usize, (part, parts): (usize, usize)) -> Range<usize> {
    let begin = |part: usize| match part == parts {
        true => count,
        false => count * part / parts / WHOLE * WHOLE,
    };
    begin(part)..begin(part + 1)
}

/// The arguments for some matrices of a batch of one shape.
fn of_matrices<'a, T: Number>(
    args: QrArgs<'a, T>,
    matrices: Range<usize>,
    memory: usize,
) -> QrArgs<'a, T> {
    let least = args.rows.min(args.cols);
    let (first, of_reflectors) = (matrices.start as u64, u64::from(least));
    QrArgs {
        a: if args.a.is_some() {
            args.a.after(first * args.a_steps.each)
        } else {
            In::none()
        },
        f: behind(args.f, first * args.f_steps.each),
        first: behind(args.first, first * of_reflectors),
        t: behind(args.t, first * of_reflectors * of_reflectors),
        work: behind(args.work, first * memory as u64),
        status: behind(args.status, first),
        count: matrices.len() as u32,
        ..args
    }
}

/// What follows the first elements of an array that may be absent.
fn behind<T>(array: Out<'_, T>, elements: u64) -> Out<'_, T> {
    match array.is_some() {
        true => array.after(elements),
        false => array,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_matrix_once_and_begin_with_whole_packs() {
        for (count, parts) in [(3, 4), (300, 2), (640, 4), (999, 4), (1_001, 7)] {
            let all: Vec<_> = (0..parts)
                .map(|part| matrices(count, (part, parts)))
                .collect();
            assert_eq!((all[0].start, all[parts - 1].end), (0, count));
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(all.iter().all(|part| part.start % WHOLE == 0));
        }
    }

    #[test]
    fn absent_arrays_stay_absent() {
        let args = QrArgs::<f32> {
            count: 640,
            rows: 64,
            cols: 64,
            ..QrArgs::none()
        };
        let part = of_matrices(args, 160..320, 1_024);
        assert_eq!(part.count, 160);
        assert!(!(part.a.is_some() || part.f.is_some() || part.work.is_some()));
    }
}
