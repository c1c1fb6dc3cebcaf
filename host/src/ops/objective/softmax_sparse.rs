//! Softmax objectives over sparse rows: their kernels, and gradients by additions to W or from the rows of Xᵀ.
//!
//! A kernel over rows of X adds to k elements of W for each entry, and additions to a frequent column of W in global memory
//! wait for each other. Over the rows of Xᵀ a column is added up in registers; what it costs is a second launch, S (m × k) in
//! memory and the transpose, which a matrix has after [`Preparation::Transpose`](crate::ops::Preparation::Transpose). Without
//! it the device makes one where that [pays](saved_by_columns), once a matrix has been multiplied [`PRODUCTS`] times, as a
//! solver does.

use std::sync::{Arc, Mutex};

use gpu_kernels::cta::WARP;
use gpu_kernels::fused::{Place, SparseArgs};
use gpu_kernels::objective::{SoftmaxColumnsArgs, SparseSoftmaxVariant};
use gpu_kernels::{Family, In, Out};

use super::launches::{ByColumns, Gradient, SoftmaxStep};
use crate::device::{Buffer, Prepared};
use crate::ops::catalog::registers_on;
use crate::ops::forms::Rows;
use crate::ops::forms::by_device::transpose_of;
use crate::ops::forms::transpose::Transpose;
use crate::ops::{Matrix, Number, OpError};
use crate::plan::fused::Maker;
use crate::plan::objective::{SoftmaxKernel, saved_by_columns, softmax as plan};

/// Products before a transpose is made for them: as many as making it takes at most.
const PRODUCTS: u32 = 4;
/// Microseconds of a product that pay for it.
const LEAST_SAVED_US: f64 = 20.0;
/// Entries of a team, at least.
const ENTRIES_OF_TEAM: u64 = 64;

impl<T: Number> Matrix<T> {
    /// W in shared memory where a copy per block costs fewer atomics than the entries do.
    pub(super) fn prepare_sparse_softmax(&self, k: u32) -> Result<SoftmaxStep<T>, OpError> {
        let rows = self.sparse_softmax(k, &[Place::Shared, Place::Global])?;
        let Some(rows) = rows else {
            return Ok(SoftmaxStep::Absent);
        };
        let gradient = match rows.entry().variant.place {
            Place::Global => Gradient::Rows(0),
            _ => Gradient::RowsForGood,
        };
        Ok(SoftmaxStep::Sparse {
            rows,
            gradient: Mutex::new(gradient),
        })
    }

    /// The kernel that keeps sums in the first of the places where that pays and there is one.
    fn sparse_softmax(
        &self,
        k: u32,
        wanted: &[Place],
    ) -> Result<Option<Prepared<T::SparseSoftmax>>, OpError> {
        let elements = self.cols() as u64 * u64::from(k);
        let entries = T::SparseSoftmax::entries().iter();
        let fitting = entries.filter(|entry| entry.variant.classes() >= k);
        let least = fitting.clone().map(|entry| entry.variant.classes()).min();
        let of_size = fitting.filter(|entry| Some(entry.variant.classes()) == least);
        let at = |place: &Place| of_size.clone().find(|entry| entry.variant.place == *place);
        for entry in wanted.iter().filter_map(at) {
            let SparseSoftmaxVariant { place, vs, .. } = entry.variant;
            let kernel = SoftmaxKernel {
                registers: registers_on(self.device(), entry.name),
                shared_bytes: entry
                    .variant
                    .shared_bytes(0, elements, T::PRECISION.bytes()),
                rows_per_warp: WARP / vs,
            };
            let limits = self.device().limits().expect("a GPU has limits");
            let Some(plan) = plan(self.rows() as u64, kernel, limits) else {
                continue;
            };
            let nonzeros = self.problem().nnz.unwrap_or(0);
            if place == Place::Shared && nonzeros < u64::from(plan.grid) * self.cols() as u64 {
                continue;
            }
            return Ok(Some(self.prepare_planned(entry, plan)?));
        }
        Ok(None)
    }
}

impl<T: Number> Gradient<T> {
    /// Before a product of `x` with k columns: goes over to the rows of Xᵀ where that is faster, and they are there or pay.
    pub(super) fn advance(&mut self, x: &Matrix<T>, k: usize) -> Result<(), OpError> {
        let Gradient::Rows(products) = self else {
            return Ok(());
        };
        let saved_us = saved_by_columns(x.problem(), k as u64);
        let transpose = match &x.forms.transpose {
            _ if saved_us.is_none() => None,
            Some(made) => Some(made.clone()),
            None if *products < PRODUCTS => {
                *products += 1;
                return Ok(());
            }
            None if saved_us < Some(LEAST_SAVED_US) => None,
            None => made_for(x, k)?,
        };
        *self = match transpose {
            Some(transpose) => ByColumns::of(x, k, transpose)?
                .map_or(Gradient::RowsForGood, |new| {
                    Gradient::Columns(Box::new(new))
                }),
            None => Gradient::RowsForGood,
        };
        Ok(())
    }

    /// The kernel over the rows, `own` where it adds to W itself, and where it leaves S.
    pub(super) fn of_rows<'a>(
        &'a mut self,
        own: &'a Prepared<T::SparseSoftmax>,
    ) -> (&'a Prepared<T::SparseSoftmax>, Out<'a, T>) {
        match self {
            Gradient::Columns(new) => (&new.rows, new.slopes.output()),
            _ => (own, Out::none()),
        }
    }

    /// After it: adds Xᵀ·S to `w`, unless it has, or the solve has ended.
    pub(super) fn add_up(
        &self,
        (m, k): (usize, usize),
        solve: In<'_, f64>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let Gradient::Columns(new) = self else {
            return Ok(());
        };
        let rows = new.transpose.whole().expect("looked at when it was made");
        let transpose = SparseArgs {
            input: new.slopes.input(),
            output: w.output(),
            solve,
            ..rows.arrays(m)
        };
        Ok(new.columns.launch(SoftmaxColumnsArgs {
            transpose,
            classes: k as u32,
        })?)
    }
}

/// A transpose for products with k columns, where the device can make it and has room.
fn made_for<T: Number>(x: &Matrix<T>, k: usize) -> Result<Option<Arc<Transpose<T>>>, OpError> {
    let Rows::Sparse(rows) = &x.forms.rows else {
        return Ok(None);
    };
    if rows.stream() || x.maker() != Maker::Device {
        return Ok(None);
    }
    match transpose_of(rows, &x.site) {
        Ok(made) => {
            tracing::info!(
                classes = k,
                "the rows of the transpose are stored for softmax objectives"
            );
            Ok(made.map(Arc::new))
        }
        Err(error) if error.is_out_of_memory() => {
            tracing::info!(%error, "the transpose does not fit: the rows have to do");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl<T: Number> ByColumns<T> {
    /// `None` where X lies in several pieces, there are no kernels for as many classes, or no room.
    fn of(x: &Matrix<T>, k: usize, transpose: Arc<Transpose<T>>) -> Result<Option<Self>, OpError> {
        let Rows::Sparse(stored) = &x.forms.rows else {
            return Ok(None);
        };
        // They stay there: a look alone would let them cross the link once more.
        stored.place()?;
        let is_one_part = stored.on_device(|parts| Ok(parts.len() == 1))?;
        if is_one_part != Some(true) || transpose.whole().is_none() {
            return Ok(None);
        }
        let slopes = match x.device().zeros(x.rows() * k) {
            Err(error) if OpError::from(error.clone()).is_out_of_memory() => return Ok(None),
            slopes => slopes?,
        };
        let (rows, columns) = (
            x.sparse_softmax(k as u32, &[Place::Global])?,
            columns_kernel(x, k as u32)?,
        );
        Ok(rows.zip(columns).map(|(rows, columns)| ByColumns {
            rows,
            columns,
            transpose,
            slopes,
        }))
    }
}

fn columns_kernel<T: Number>(
    x: &Matrix<T>,
    k: u32,
) -> Result<Option<Prepared<T::SoftmaxColumns>>, OpError> {
    let entries = T::SoftmaxColumns::entries().iter();
    let fitting = entries.filter(|entry| entry.variant.classes() >= k);
    let Some(entry) = fitting.min_by_key(|entry| entry.variant.classes()) else {
        return Ok(None);
    };
    let kernel = SoftmaxKernel {
        registers: registers_on(x.device(), entry.name),
        shared_bytes: 0,
        rows_per_warp: WARP / entry.variant.vs,
    };
    let limits = x.device().limits().expect("a GPU has limits");
    let stretches = x.problem().nnz.unwrap_or(0).div_ceil(ENTRIES_OF_TEAM);
    let plan = plan(stretches, kernel, limits);
    plan.map(|plan| x.prepare_planned(entry, plan)).transpose()
}
