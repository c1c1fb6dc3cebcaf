//! Inputs of layers on a device.

use bytemuck::Zeroable;

use super::element::ConvElement;
use crate::device::{Buffer, Device, DeviceError};

/// Inputs on a device, short numbers several in a word.
pub struct Maps<E: ConvElement> {
    words: Buffer<E::Stored>,
    len: usize,
}

impl<E: ConvElement> Maps<E> {
    /// Copies values to a device.
    ///
    /// # Errors
    /// When the device has too little memory or fails.
    pub fn upload(device: &Device, values: &[E::Value]) -> Result<Maps<E>, DeviceError> {
        let words = device.upload(&words::<E>(values))?;
        Ok(Maps {
            words,
            len: values.len(),
        })
    }

    /// This many zeros on a device.
    ///
    /// # Errors
    /// When the device has too little memory or fails.
    pub fn zeros(device: &Device, len: usize) -> Result<Maps<E>, DeviceError> {
        let words = device.zeros(len.div_ceil(E::PER_WORD as usize))?;
        Ok(Maps { words, len })
    }

    /// Copies other values, as many, to the same memory.
    ///
    /// # Errors
    /// When there are more or fewer, or the device fails.
    pub fn write(&mut self, values: &[E::Value]) -> Result<(), DeviceError> {
        self.words.copy_from_slice(&words::<E>(values))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they lie.
    pub fn device(&self) -> Device {
        self.words.device()
    }

    pub(super) fn words(&self) -> &Buffer<E::Stored> {
        &self.words
    }

    pub(super) fn words_mut(&mut self) -> &mut Buffer<E::Stored> {
        &mut self.words
    }
}

/// Values as words; what is left of the last one is zero.
fn words<E: ConvElement>(values: &[E::Value]) -> Vec<E::Stored> {
    let mut words = vec![E::Stored::zeroed(); values.len().div_ceil(E::PER_WORD as usize)];
    let bytes: &[u8] = bytemuck::cast_slice(values);
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}
