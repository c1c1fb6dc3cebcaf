//! In how few bits the values of hot entries can be stored.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use gpu_kernels::fused::HotValues;
use gpu_kernels::fused::fixed_point::{FixedPoint, column_exponent};
pub(in crate::layout) use gpu_kernels::fused::hot::narrow::{of_bf16, same, to_bf16};
use rayon::prelude::*;

use super::labels::Labels;
use crate::matrix::{CsrArrays, CsrMatrix, Element, Values};
use crate::parallel;

/// Entries that one task looks at.
const CHUNK: usize = 1 << 18;

/// The values of hot entries, brought below 1 by powers of two.
#[derive(Debug, Clone, PartialEq)]
pub enum HotData<T> {
    /// One for each entry.
    Whole(Vec<T>),
    /// The bits of an f32 for each entry.
    Single(Vec<u32>),
    /// Two bfloat16 in a word.
    Half(Vec<u32>),
    /// Those of a row are equal.
    OfRows {
        /// For each position.
        constants: Vec<T>,
        /// They are this many powers of two larger.
        exponent: i32,
    },
    /// All are equal.
    Equal {
        /// To this.
        constant: T,
        /// It is this many powers of two larger.
        exponent: i32,
    },
}

impl<T> HotData<T> {
    /// How they are stored.
    pub fn form(&self) -> ValueForm {
        match self {
            HotData::Whole(_) => ValueForm::Whole,
            HotData::Single(_) => ValueForm::Single,
            HotData::Half(_) => ValueForm::Half,
            HotData::OfRows { .. } => ValueForm::OfRows,
            HotData::Equal { .. } => ValueForm::Equal,
        }
    }
}

/// Bits by which columns may differ whose values are scaled alike: sums have as many to spare.
pub(crate) const ALIKE: u32 = 8;

/// How values are stored, and what columns are scaled by.
pub(super) struct Kept {
    pub(super) form: ValueForm,
    /// The exponent field of each column.
    pub(super) fields: Vec<u32>,
    /// Whether hot columns have infinities or NaN.
    pub(super) has_non_finite: bool,
    rounding: Values,
}

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueForm {
    /// As they are.
    Whole,
    /// As f32, those of an f64 matrix.
    Single,
    /// As bfloat16.
    Half,
    /// One for each row.
    OfRows,
    /// One for all.
    Equal,
}

impl ValueForm {
    /// Whether the values of a row are equal.
    pub fn is_constant(self) -> bool {
        matches!(self, ValueForm::OfRows | ValueForm::Equal)
    }

    /// The form that kernels are compiled for.
    pub fn of_kernels(self) -> HotValues {
        match self {
            ValueForm::Whole => HotValues::Whole,
            ValueForm::Single => HotValues::Single,
            ValueForm::Half => HotValues::Bf16,
            ValueForm::OfRows | ValueForm::Equal => HotValues::Constant,
        }
    }
}

/// How the values of `x` are likely to be stored where `values` says so, from a sample of its rows.
pub(crate) fn expected<T: Element + FixedPoint>(values: Values, x: &CsrArrays<'_, T>) -> ValueForm {
    let (rows, _) = x.shape;
    let step = (rows / SAMPLE).max(1);
    let sample: Vec<&[T]> = (0..rows)
        .step_by(step)
        .map(|row| &x.values[x.row(row)])
        .collect();
    let fits = |narrow: fn(f64) -> f64| {
        let mut values = sample.iter().copied().flatten();
        values.all(|value| {
            let exponent = column_exponent::<T>(value.exponent_field());
            let value = Element::to_f64(value.scaled(-exponent));
            same(narrow(value), value)
        })
    };
    if let Some(form) = constants(sample.len(), |row| sample[row]) {
        form
    } else if values == Values::Bf16 || fits(|value| of_bf16(to_bf16(value))) {
        ValueForm::Half
    } else if T::SIZE == 8 && (values == Values::F32 || fits(|value| f64::from(value as f32))) {
        ValueForm::Single
    } else {
        ValueForm::Whole
    }
}

/// Rows of a sample, about.
const SAMPLE: usize = 1 << 12;

impl Kept {
    /// The shortest form that holds every value of `x` as `rounding` wants it.
    pub(super) fn choose<T: Element + FixedPoint>(
        x: &CsrMatrix<T>,
        labels: &Labels,
        rounding: Values,
    ) -> Self {
        if let Some(value) = common(x.data()) {
            return Kept {
                form: ValueForm::Equal,
                fields: vec![value.exponent_field(); x.cols()],
                has_non_finite: false,
                rounding,
            };
        }
        let (fields, has_non_finite) = fields(x, labels);
        let widest = fields.par_iter().copied().max().unwrap_or(0);
        let mut hot = labels.hot.iter();
        let rows = Rows::of(x);
        let constant = hot
            .all(|column| fields[*column as usize] + ALIKE >= widest)
            .then(|| constants(x.rows(), |row| rows.values(row)))
            .flatten();
        let mut kept = Kept {
            form: constant.unwrap_or(ValueForm::Whole),
            fields: match constant {
                Some(_) => vec![widest; x.cols()],
                None => fields,
            },
            has_non_finite,
            rounding,
        };
        if constant.is_none() {
            kept.form = kept.narrowest(x, labels);
        }
        kept
    }

    fn narrowest<T: Element + FixedPoint>(&self, x: &CsrMatrix<T>, labels: &Labels) -> ValueForm {
        let fits = |narrow: fn(f64) -> f64| {
            let fits = |(column, value): (&u32, &T)| {
                !labels.is_hot(*column) || {
                    let stored = Element::to_f64(self.stored(*column, *value));
                    same(narrow(stored), stored)
                }
            };
            let lost = |number| {
                let columns = parallel::chunk(x.indices(), CHUNK, number);
                let values = parallel::chunk(x.data(), CHUNK, number);
                (!columns.iter().zip(values).all(fits)).then_some(())
            };
            parallel::first(x.indices().len().div_ceil(CHUNK), lost).is_none()
        };
        if self.rounding == Values::Bf16 || fits(|value| of_bf16(to_bf16(value))) {
            ValueForm::Half
        } else if T::SIZE == 8
            && (self.rounding == Values::F32 || fits(|value| f64::from(value as f32)))
        {
            ValueForm::Single
        } else {
            ValueForm::Whole
        }
    }

    /// The power of two that a column's values are larger than they are stored by.
    pub(super) fn exponent<T: FixedPoint>(&self, column: u32) -> i32 {
        column_exponent::<T>(self.fields[column as usize])
    }

    /// A value as it is stored: brought below 1, and rounded where that was wanted.
    pub(super) fn stored<T: Element + FixedPoint>(&self, column: u32, value: T) -> T {
        let scaled = value.scaled(-self.exponent::<T>(column));
        match self.rounding {
            Values::Exact => scaled,
            _ if self.form.is_constant() => scaled,
            Values::F32 => T::from_f64(f64::from(Element::to_f64(scaled) as f32)),
            Values::Bf16 => T::from_f64(of_bf16(to_bf16(Element::to_f64(scaled)))),
        }
    }
}

/// Rows of a matrix, which sprs gives one after the other only.
struct Rows<'a, T> {
    offsets: Cow<'a, [u64]>,
    values: &'a [T],
}

impl<'a, T> Rows<'a, T> {
    fn of(x: &'a CsrMatrix<T>) -> Self {
        Rows {
            offsets: x.proper_indptr(),
            values: x.data(),
        }
    }

    /// The values of a row.
    fn values(&self, row: usize) -> &'a [T] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// The value that all are, where it is finite.
fn common<T: Element + FixedPoint>(values: &[T]) -> Option<T> {
    let first = values.first().copied().filter(|first| first.is_finite())?;
    let bits = first.to_bits();
    let are_equal = |chunk: &[T]| chunk.iter().all(|value| value.to_bits() == bits);
    let are_equal = parallel::all_chunks(values, CHUNK, are_equal);
    are_equal.then_some(first)
}

/// Whether all values are equal and finite, or at least those of every row, of this many rows.
fn constants<'a, T: Element + FixedPoint>(
    count: usize,
    row: impl Fn(usize) -> &'a [T] + Sync,
) -> Option<ValueForm> {
    let first = |number: usize| row(number).first().copied();
    let equals = |first: T| move |value: &T| value.to_bits() == first.to_bits();
    let is_constant = |number: usize| {
        first(number).is_none_or(|first| first.is_finite() && row(number).iter().all(equals(first)))
    };
    let common = (0..count).find_map(first)?;
    if !(0..count).into_par_iter().all(is_constant) {
        return None;
    }
    let is_common = |number: usize| first(number).is_none_or(|first| equals(common)(&first));
    match (0..count).into_par_iter().all(is_common) {
        true => Some(ValueForm::Equal),
        false => Some(ValueForm::OfRows),
    }
}

/// The largest exponent field of each column's finite values, and whether a hot column has others.
fn fields<T: Element + FixedPoint>(x: &CsrMatrix<T>, labels: &Labels) -> (Vec<u32>, bool) {
    let fields: Vec<AtomicU32> = (0..x.cols()).map(|_| AtomicU32::new(0)).collect();
    let has_non_finite = AtomicBool::new(false);
    parallel::for_each(x.indices().len().div_ceil(CHUNK), |number| {
        let indices = parallel::chunk(x.indices(), CHUNK, number);
        let values = parallel::chunk(x.data(), CHUNK, number);
        for (column, value) in indices.iter().zip(values) {
            let field = value.exponent_field();
            if field != T::NON_FINITE {
                let largest = &fields[*column as usize];
                // Columns soon have their largest one, and who only looks does not take the cache line from others.
                if largest.load(Ordering::Relaxed) < field {
                    largest.fetch_max(field, Ordering::Relaxed);
                }
            } else if labels.is_hot(*column) {
                has_non_finite.store(true, Ordering::Relaxed);
            }
        }
    });
    let fields = fields.into_iter().map(AtomicU32::into_inner).collect();
    (fields, has_non_finite.into_inner())
}
