//! In how few bits values can be stored.

use gpu_kernels::forms::hot::{
    DIFFER, DIFFER_IN_ROW, FLAGS, MakingArgs, MakingVariant, NOT_BF16, NOT_FINITE, NOT_SINGLE,
    Rounding, StoredAs, WIDEST,
};
use gpu_kernels::fused::fixed_point::{FixedPoint, column_exponent};
use gpu_kernels::fused::hot::fields_per_word;
use gpu_kernels::{In, Out, Word};

use super::columns::Columns;
use super::launch::{Order, WARP, launch_making, no_copy};
use crate::device::{Buffer, Device};
use crate::layout::hot::{ALIKE, ValueForm};
use crate::matrix::Values;
use crate::ops::blocks::SparseBlock;
use crate::ops::{Number, OpError};

/// How values are stored, and what columns are scaled by.
pub(super) struct Kept {
    pub form: ValueForm,
    /// The exponent field of each column; none where all have the same.
    pub fields: Option<Buffer<u32>>,
    /// The one of all columns.
    pub field: u32,
    /// Whether hot columns have infinities or NaN.
    pub has_non_finite: bool,
    pub rounding: Rounding,
}

impl Kept {
    /// The shortest form that holds every value of `x` as `values` wants it.
    pub(super) fn choose<T: Number>(
        device: &Device,
        (x, first, columns): (&SparseBlock<'_, T>, T, &Columns),
        values: Values,
    ) -> Result<Self, OpError> {
        let judge = Judge {
            device,
            x,
            columns,
            first,
        };
        let flags = judge.run(MakingVariant::Judged, (In::none(), Out::none()))?;
        if flags[DIFFER] == 0 && first.exponent_field() != T::NON_FINITE {
            return Ok(Kept {
                form: ValueForm::Equal,
                fields: None,
                field: first.exponent_field(),
                has_non_finite: false,
                rounding: Rounding::Exact,
            });
        }
        let (fields, of_fields) = judge.fields(columns.ranks.len())?;
        let (has_non_finite, widest) = (of_fields[NOT_FINITE] != 0, of_fields[WIDEST]);
        if flags[DIFFER_IN_ROW] == 0 && judge.are_alike(&fields, widest)? {
            return Ok(Kept {
                form: ValueForm::OfRows,
                fields: None,
                field: widest,
                has_non_finite,
                rounding: Rounding::Exact,
            });
        }
        Ok(Kept {
            form: judge.narrowest(&fields, values)?,
            fields: Some(fields),
            field: 0,
            has_non_finite,
            rounding: match values {
                Values::Exact => Rounding::Exact,
                Values::F32 => Rounding::Single,
                Values::Bf16 => Rounding::Bf16,
            },
        })
    }

    /// The fields of some columns, one after the other in as few words as hold them.
    pub(super) fn pack_fields<T: Word>(
        &self,
        order: &Order<'_>,
        columns: &Buffer<u32>,
    ) -> Result<Buffer<u32>, OpError> {
        let width = fields_per_word(T::SIZE) as usize;
        order.pack(columns, (self.fields.as_ref(), self.field), width)
    }

    /// The power of two that constants are larger than they are stored by.
    pub(super) fn exponent<T: FixedPoint>(&self) -> i32 {
        column_exponent::<T>(self.field)
    }

    pub(super) fn stored_as(&self) -> StoredAs {
        match self.form {
            ValueForm::Whole => StoredAs::Whole,
            ValueForm::Single => StoredAs::Single,
            ValueForm::Half => StoredAs::Bf16,
            ValueForm::OfRows | ValueForm::Equal => StoredAs::Constant,
        }
    }
}

/// Looks at values, of which this is the first.
struct Judge<'a, T> {
    device: &'a Device,
    x: &'a SparseBlock<'a, T>,
    columns: &'a Columns,
    first: T,
}

impl<T: Number> Judge<'_, T> {
    /// The flags that a kernel sets.
    fn run(
        &self,
        variant: MakingVariant,
        (fields, largest): (In<'_, u32>, Out<'_, u32>),
    ) -> Result<Vec<u32>, OpError> {
        let mut flags = self.device.zeros(FLAGS)?;
        let (len, threads) = match variant {
            MakingVariant::Judged => (self.x.rows, self.x.rows * WARP),
            _ => (self.x.entries(), self.x.entries()),
        };
        let args = MakingArgs {
            first: self.first,
            offsets: self.x.offsets,
            indices: self.x.indices,
            values: self.x.values,
            members: self.columns.members.input(),
            fields,
            flags: flags.output(),
            largest,
            ..no_copy(len)
        };
        launch_making(self.device, (variant, threads), args)?;
        Ok(flags.to_vec()?)
    }

    /// The largest exponent field of each column, and the flags of what was seen.
    fn fields(&self, cols: usize) -> Result<(Buffer<u32>, Vec<u32>), OpError> {
        let mut fields: Buffer<u32> = self.device.zeros(cols)?;
        let out = (In::none(), fields.output());
        let flags = self.run(MakingVariant::Fields, out)?;
        Ok((fields, flags))
    }

    /// Whether hot columns may be scaled alike.
    fn are_alike(&self, fields: &Buffer<u32>, widest: u32) -> Result<bool, OpError> {
        let order = Order::new(self.device);
        let of_hot = order.pack(&self.columns.hot, (Some(fields), 0), 1)?;
        let of_hot = of_hot.to_vec()?;
        Ok(of_hot.into_iter().all(|field| field + ALIKE >= widest))
    }

    fn narrowest(&self, fields: &Buffer<u32>, values: Values) -> Result<ValueForm, OpError> {
        let fits = match values {
            Values::Bf16 => return Ok(ValueForm::Half),
            _ => self.run(MakingVariant::Fits, (fields.input(), Out::none()))?,
        };
        let is_single = values == Values::F32 || fits[NOT_SINGLE] == 0;
        Ok(match (fits[NOT_BF16] == 0, T::SIZE == 8 && is_single) {
            (true, _) => ValueForm::Half,
            (false, true) => ValueForm::Single,
            (false, false) => ValueForm::Whole,
        })
    }
}
