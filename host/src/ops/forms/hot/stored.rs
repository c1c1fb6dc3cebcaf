//! The arrays of a [`HotLayout`] on a device.

use gpu_kernels::fused::HotValues;
use gpu_kernels::fused::hot::CLASSES;

use crate::device::{Buffer, Device};
use crate::layout::hot::{HotData, HotLayout, ValueForm};
use crate::ops::{Number, OpError};

/// The arrays of a [`HotLayout`] on a device, but for the panels of cold columns.
pub(super) struct Stored<T> {
    pub steps: Buffer<u64>,
    pub places: Buffer<u32>,
    pub values: DeviceValues<T>,
    pub ranks: Buffer<u32>,
    pub cold_values: Buffer<T>,
    pub order: Option<Buffer<u32>>,
    pub slices: [u32; CLASSES],
    pub columns: Buffer<u32>,
    pub cold_columns: Buffer<u32>,
    pub exponents: Buffer<u32>,
    pub cold_exponents: Buffer<u32>,
    pub non_finite: u32,
    /// Rows in the order of slices, and places without a row.
    pub positions: usize,
}

/// The values of hot entries on a device.
pub(super) struct DeviceValues<T> {
    pub form: ValueForm,
    pub whole: Option<Buffer<T>>,
    pub packed: Option<Buffer<u32>>,
    pub constants: Option<Buffer<T>>,
    pub constant: T,
    pub constant_exponent: i32,
}

impl<T: Number> Stored<T> {
    pub(super) fn upload(device: &Device, layout: &HotLayout<T>) -> Result<Self, OpError> {
        let order = layout.order.as_ref().map(|order| device.upload(order));
        Ok(Stored {
            steps: device.upload(&layout.steps)?,
            places: device.upload(&layout.places)?,
            values: DeviceValues::upload(device, &layout.values)?,
            ranks: device.upload(&layout.ranks)?,
            cold_values: device.upload(&layout.cold_values)?,
            order: order.transpose()?,
            slices: layout.slices,
            columns: device.upload(&layout.columns)?,
            cold_columns: device.upload(&layout.cold_columns)?,
            exponents: device.upload(&layout.exponents)?,
            cold_exponents: device.upload(&layout.cold_exponents)?,
            non_finite: u32::from(layout.has_non_finite),
            positions: layout.cold.rows(),
        })
    }
}

impl<T: Number> DeviceValues<T> {
    /// Of no entries.
    pub(super) fn none(form: ValueForm) -> Self {
        DeviceValues {
            form,
            whole: None,
            packed: None,
            constants: None,
            constant: T::ZERO,
            constant_exponent: 0,
        }
    }

    fn upload(device: &Device, values: &HotData<T>) -> Result<Self, OpError> {
        let mut uploaded = Self::none(values.form());
        match values {
            HotData::Whole(values) => uploaded.whole = Some(device.upload(values)?),
            HotData::Single(bits) | HotData::Half(bits) => {
                uploaded.packed = Some(device.upload(bits)?);
            }
            HotData::OfRows {
                constants,
                exponent,
            } => {
                uploaded.constants = Some(device.upload(constants)?);
                uploaded.constant_exponent = *exponent;
            }
            HotData::Equal { constant, exponent } => {
                uploaded.constant = *constant;
                uploaded.constant_exponent = *exponent;
            }
        }
        Ok(uploaded)
    }

    /// The form that kernels are compiled for.
    pub(super) fn of_kernels(&self) -> HotValues {
        self.form.of_kernels()
    }
}
