//! Entries put where lanes find them.

use gpu_kernels::Out;
use gpu_kernels::forms::hot::{MakingArgs, MakingVariant, StoredAs};
use gpu_kernels::fused::fixed_point::FixedPoint;

use super::super::stored::DeviceValues;
use super::columns::Columns;
use super::kept::Kept;
use super::launch::{WARP, launch_making, no_copy};
use super::rows::Rows;
use crate::device::{Buffer, Device};
use crate::layout::hot::ValueForm;
use crate::ops::blocks::SparseBlock;
use crate::ops::launch::optional;
use crate::ops::{Number, OpError};

/// The arrays of a layout that depend on the entries.
pub(super) struct Copied<T> {
    pub places: Buffer<u32>,
    pub values: DeviceValues<T>,
    pub ranks: Buffer<u32>,
    pub cold_values: Buffer<T>,
    /// The ranks of cold entries by position.
    pub cold_ranks: Buffer<u32>,
    /// None where they are all 1.
    pub cold_entries: Option<Buffer<T>>,
}

/// Elements for a word of places, or of ranks.
struct PerWord {
    whole: usize,
    packed: usize,
    cold: usize,
}

impl PerWord {
    fn of(stored: StoredAs) -> Self {
        let (whole, packed) = match stored {
            StoredAs::Whole => (2, 0),
            StoredAs::Single => (0, 2),
            StoredAs::Bf16 => (0, 1),
            StoredAs::Constant => (0, 0),
        };
        let cold = usize::from(stored != StoredAs::Constant);
        PerWord {
            whole,
            packed,
            cold,
        }
    }
}

impl<T: Number> Copied<T> {
    /// Room for them.
    fn new(device: &Device, (kept, rows): (&Kept, &Rows), constant: T) -> Result<Self, OpError> {
        let (words, ranks) = (rows.hot_steps * WARP, rows.cold_steps * WARP);
        let of = PerWord::of(kept.stored_as());
        let cold = rows.cold_entries as usize;
        let mut values = DeviceValues::none(kept.form);
        match kept.form {
            ValueForm::Whole => values.whole = Some(device.zeros(of.whole * words)?),
            ValueForm::Single | ValueForm::Half => {
                values.packed = Some(device.zeros(of.packed * words)?);
            }
            ValueForm::OfRows => values.constants = Some(device.zeros(rows.positions)?),
            ValueForm::Equal => values.constant = constant,
        }
        if kept.form.is_constant() {
            values.constant_exponent = kept.exponent::<T>();
        }
        let entries = (of.cold > 0).then(|| device.zeros(cold));
        Ok(Copied {
            places: device.zeros(words)?,
            values,
            ranks: device.zeros(ranks)?,
            cold_values: device.zeros(of.cold * ranks)?,
            cold_ranks: device.zeros(cold)?,
            cold_entries: entries.transpose()?,
        })
    }
}

/// The entries of `x`, of which this is the first value.
pub(super) fn copy<T: Number>(
    device: &Device,
    (x, first): (&SparseBlock<'_, T>, T),
    (columns, kept, rows): (&Columns, &Kept, &Rows),
) -> Result<Copied<T>, OpError> {
    let constant = FixedPoint::scaled(first, -kept.exponent::<T>());
    let mut copied = Copied::new(device, (kept, rows), constant)?;
    let values = &mut copied.values;
    let args = MakingArgs {
        rows: x.rows as u32,
        hot_columns: columns.hot.len() as u32,
        field: kept.field,
        rounding: kept.rounding,
        stored: kept.stored_as(),
        slices: rows.slices,
        offsets: x.offsets,
        indices: x.indices,
        values: x.values,
        members: columns.members.input(),
        places: columns.places.input(),
        labels: columns.ranks.input(),
        fields: optional(&kept.fields),
        order: optional(&rows.order),
        steps: rows.steps.input(),
        cold_offsets: rows.cold_offsets.input(),
        to_places: copied.places.output(),
        to_values: written(&mut values.whole),
        to_packed: written(&mut values.packed),
        to_constants: written(&mut values.constants),
        to_ranks: copied.ranks.output(),
        to_cold_values: copied.cold_values.output(),
        cold_ranks: copied.cold_ranks.output(),
        cold_entries: written(&mut copied.cold_entries),
        ..no_copy(x.rows)
    };
    let slices = rows.slices[rows.slices.len() - 1] as usize;
    launch_making(device, (MakingVariant::Copied, slices * WARP), args)?;
    Ok(copied)
}

/// An output that need not be there.
fn written<T: bytemuck::Pod>(buffer: &mut Option<Buffer<T>>) -> Out<'_, T> {
    buffer.as_mut().map_or(Out::none(), Buffer::output)
}
