//! Factorisations on the CPU: matrices spread over its cores.

use gpu_kernels::Real;
use rayon::prelude::*;

use super::batch::{Batch, Matrices};
use super::factors::Qr;
use super::values::Side;
use crate::cpu::qr as cpu;
use crate::device::Buffer;
use crate::ops::Number;
use crate::plan::qr::QrShape;

pub(super) const ON_HOST: &str = "the buffers were found to lie on the CPU";

/// The first `len` elements, which are taken away.
fn take<'a, T>(rest: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (first, after) = std::mem::take(rest).split_at_mut(len);
    *rest = after;
    first
}

pub(super) fn factor<T: Number>(qr: &mut Qr<T>, a: &Buffer<T>) {
    let a = a.as_host_slice().expect(ON_HOST);
    let mut factors = qr.factors.as_host_slice_mut().expect(ON_HOST);
    let mut first = qr.first.as_host_slice_mut().expect(ON_HOST);
    let mut t = qr.t.as_host_slice_mut().expect(ON_HOST);
    let status = qr.status.as_host_slice_mut().expect(ON_HOST);
    let job = |(i, status)| {
        let piece = qr.matrices.piece(i);
        let least = piece.shape().least();
        let job = cpu::Job {
            rows: piece.rows,
            cols: piece.cols,
            packed: take(&mut factors, piece.rows * piece.cols),
            first: take(&mut first, least),
            t: take(&mut t, least * least),
            status,
        };
        (piece, job)
    };
    let jobs: Vec<_> = status.iter_mut().enumerate().map(job).collect();
    jobs.into_par_iter().for_each(|(piece, mut job)| {
        for (col, column) in job.packed.chunks_exact_mut(piece.rows).enumerate() {
            for (row, value) in column.iter_mut().enumerate() {
                *value = a[piece.at(row, col)];
            }
        }
        cpu::factor(&mut job);
    });
}

/// What becomes of a column of C.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Apply(Side),
    Solve,
}

/// Columns of C, matrix by matrix.
pub(super) fn each_column<T: Number>(qr: &Qr<T>, work: Work, c: &mut Buffer<T>, batch: &Batch) {
    let factors = qr.factors.as_host_slice().expect(ON_HOST);
    let first = qr.first.as_host_slice().expect(ON_HOST);
    let t = qr.t.as_host_slice().expect(ON_HOST);
    let c = c.as_host_slice_mut().expect(ON_HOST);
    let columns = |i: usize| -> Vec<Vec<T>> {
        let parts = qr.parts(i);
        let QrShape { rows, cols } = parts.shape;
        let of = cpu::Reflectors {
            rows,
            least: rows.min(cols),
            packed: &factors[parts.factors..][..rows * cols],
            first: &first[parts.first..][..rows.min(cols)],
            t: &t[parts.t..][..rows.min(cols).pow(2)],
        };
        let piece = batch.piece(i);
        let column =
            |col: usize| -> Vec<T> { (0..rows).map(|row| c[piece.at(row, col)]).collect() };
        let mut columns: Vec<Vec<T>> = (0..batch.cols).map(column).collect();
        for column in &mut columns {
            match work {
                Work::Apply(side) => cpu::apply(&of, side == Side::QTransposed, column),
                Work::Solve => cpu::solve(of.packed, rows, cols, column),
            }
        }
        columns
    };
    let all: Vec<Vec<Vec<T>>> = (0..qr.matrices.count())
        .into_par_iter()
        .map(columns)
        .collect();
    for (i, columns) in all.into_iter().enumerate() {
        let piece = batch.piece(i);
        for (col, column) in columns.into_iter().enumerate() {
            for (row, value) in column.into_iter().enumerate() {
                c[piece.at(row, col)] = value;
            }
        }
    }
}

/// The identity in every matrix of C.
pub(super) fn identity<T: Number>(c: &mut Buffer<T>, batch: &Batch, matrices: &Matrices) {
    let c = c.as_host_slice_mut().expect(ON_HOST);
    for i in 0..matrices.count() {
        let piece = batch.piece(i);
        for row in 0..matrices.piece(i).rows {
            for col in 0..batch.cols {
                let one = if row == col {
                    <T as Real>::ONE
                } else {
                    T::ZERO
                };
                c[piece.at(row, col)] = one;
            }
        }
    }
}
