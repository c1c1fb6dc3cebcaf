//! The GPU with what cases of all families use.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use warpfuse::device::Device;

use crate::ceiling::StreamRead;
use crate::sampling::Sampler;

/// A GPU under measurement.
pub struct Gpu {
    /// The device.
    pub device: Device,
    /// How long cases are sampled.
    pub sampler: Sampler,
    stream: Mutex<Option<StreamRead>>,
}

impl Gpu {
    /// Takes a GPU for measurements.
    pub fn new(device: Device, sampler: Sampler) -> Gpu {
        Gpu { device, sampler, stream: Mutex::new(None) }
    }

    /// What a plain read of about `bytes` bytes reaches now, in 10⁹ bytes a second.
    ///
    /// # Errors
    /// When the device fails.
    pub fn ceiling_gbs(&self, bytes: usize) -> Result<f64> {
        // A panic elsewhere leaves the buffer as it was.
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *stream {
            Some(stream) => stream.gbs(bytes),
            none => none.insert(StreamRead::new(&self.device)?).gbs(bytes),
        }
    }
}
