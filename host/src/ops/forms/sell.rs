//! Blocks of rows by rows and by columns in slices: a form that products of the CPU read.

use crate::cpu::sell::{Made, Order, Sell};
use crate::device::{Buffer, Device};
use crate::matrix::CsrMatrix;
use crate::ops::host::with_csr;
use crate::ops::{Number, OpError};

/// The form, in memory of the device's account.
pub(in crate::ops) struct SellRows<T: Number> {
    order: Order,
    indices: Buffer<u16>,
    values: Buffer<T>,
}

impl<T: Number> SellRows<T> {
    /// Of `x`, on the CPU.
    pub(in crate::ops) fn of(device: &Device, x: &CsrMatrix<T>) -> Result<Self, OpError> {
        let made = with_csr(x, |x| Made::of(x));
        let (entries, values) = (made.order().entries(), made.order().values());
        let (mut indices, mut values) = (device.zeros(entries)?, device.zeros(values)?);
        let places = (
            indices.as_host_slice_mut().expect(ON_HOST),
            values.as_host_slice_mut().expect(ON_HOST),
        );
        let order = made.place(places.0, places.1);
        Ok(SellRows {
            order,
            indices,
            values,
        })
    }

    /// As the CPU's bodies take it.
    pub(in crate::ops) fn view(&self) -> Sell<'_, T> {
        let indices = self.indices.as_host_slice().expect(ON_HOST);
        let values = self.values.as_host_slice().expect(ON_HOST);
        Sell::new(&self.order, indices, values)
    }
}

const ON_HOST: &str = "the form is made on the CPU";
