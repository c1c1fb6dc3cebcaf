//! The GPU with what cases of all families use.

use std::cell::{OnceCell, RefCell};

use anyhow::Result;
use warpfuse::device::Device;

use crate::ceiling::StreamRead;
use crate::peers::Libraries;
use crate::sampling::Sampler;

/// A GPU under measurement.
pub struct Gpu {
    /// The device.
    pub device: Device,
    /// How long cases are sampled.
    pub sampler: Sampler,
    stream: RefCell<Option<StreamRead>>,
    libraries: OnceCell<Libraries>,
}

impl Gpu {
    /// Takes a GPU for measurements.
    pub fn new(device: Device, sampler: Sampler) -> Gpu {
        Gpu {
            device,
            sampler,
            stream: RefCell::default(),
            libraries: OnceCell::new(),
        }
    }

    /// What a plain read of about `bytes` bytes reaches now, in 10⁹ bytes a second.
    ///
    /// # Errors
    /// When the device fails.
    pub fn ceiling_gbs(&self, bytes: usize) -> Result<f64> {
        match &mut *self.stream.borrow_mut() {
            Some(stream) => stream.gbs(bytes),
            none => none.insert(StreamRead::new(&self.device)?).gbs(bytes),
        }
    }

    /// Other libraries, looked for when they are first requested.
    pub fn libraries(&self) -> &Libraries {
        self.libraries.get_or_init(|| Libraries::open(&self.device))
    }
}
