//! Factoring, on the device where the memory for it is.

use super::factors::Qr;
use super::{host, launch};
use crate::device::Buffer;
use crate::ops::{Number, OpError};

impl<T: Number> Qr<T> {
    /// Factors the matrices of `a`, where this was told that they lie. Waits for nothing.
    ///
    /// # Errors
    /// [`OpError::Length`] when `a` is too short, [`OpError::Device`] when it lies elsewhere or the device fails.
    pub fn factor(&mut self, a: &Buffer<T>) -> Result<(), OpError> {
        self.matrices.check("A", a.len())?;
        a.expect_on(&self.device, "factor matrices")?;
        match self.plan.clone() {
            _ if self.matrices.count() == 0 => Ok(()),
            Some(plan) => launch::factor(self, a.input(), &plan),
            None => {
                host::factor(self, a);
                Ok(())
            }
        }
    }
}
