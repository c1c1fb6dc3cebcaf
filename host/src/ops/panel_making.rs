//! Panels made on a device, by themselves: what is made and what each step takes, for tests and benches.
//! [`Matrix::prepare`](super::Matrix::prepare) is what makes them for products.

use std::time::Instant;

use gpu_kernels::In;
use gpu_kernels::fused::sparse::MAX_NONZEROS;

pub use super::forms::panels::Step;
use super::forms::panels::{DevicePanels, Ranked};
use super::launch::optional;
use super::{Number, OpError};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::panels::{ByFrequency, PanelLayout, PanelSize};
use crate::matrix::CsrMatrix;
use crate::plan::fused::MOST_OF_PANELS;

/// The rows of a sparse X on a device, and how often columns are in them: what panels are made of.
pub struct PanelSource<T> {
    device: Device,
    offsets: Buffer<u32>,
    columns: Buffer<u32>,
    values: Option<Buffer<T>>,
    by_frequency: ByFrequency,
    /// None where columns are in order.
    ranks: Option<Buffer<u32>>,
    order: Buffer<u32>,
}

/// What hears that a step has been launched.
type Done<'a> = &'a mut dyn FnMut(Step) -> Result<(), OpError>;

/// A product over panels.
pub struct PanelProduct<'a, T: Number> {
    kernel: Prepared<T::Panels>,
    panels: &'a DevicePanels<T>,
}

impl<T: Number> PanelProduct<'_, T> {
    /// Adds to `outputs`, from as many `inputs` as the panels have.
    ///
    /// # Errors
    /// [`OpError::Device`] for shorter vectors, or when the launch fails.
    pub fn add(&self, inputs: &Buffer<T>, outputs: &mut Buffer<T>) -> Result<(), OpError> {
        Ok(self
            .kernel
            .launch(self.panels.args(inputs, outputs.output()))?)
    }
}

/// Panels that have been made.
pub struct MadePanels<T> {
    panels: DevicePanels<T>,
    /// Wall-clock seconds of each step, the device waited for.
    pub seconds: Vec<(Step, f64)>,
}

impl<T: Number> PanelSource<T> {
    /// Uploads `x`, of fewer than 2³² entries.
    ///
    /// # Errors
    /// [`OpError::TooLarge`] for more entries, [`OpError::Device`] when the device has too little memory.
    pub fn new(device: &Device, x: &CsrMatrix<T>) -> Result<Self, OpError> {
        let values = device.upload(x.data())?;
        Ok(PanelSource {
            values: Some(values),
            ..Self::of_ones(device, x)?
        })
    }

    /// [`PanelSource::new`] of a matrix whose entries are all 1: values are not looked at.
    ///
    /// # Errors
    /// As [`PanelSource::new`].
    pub fn of_ones(device: &Device, x: &CsrMatrix<T>) -> Result<Self, OpError> {
        let (limit, found) = (MAX_NONZEROS as u64, x.nnz() as u64);
        if found > limit {
            let what = "entries";
            return Err(OpError::TooLarge { what, limit, found });
        }
        let offsets = x.indptr();
        let offsets: Vec<u32> = offsets.raw_storage().iter().map(|at| *at as u32).collect();
        let by_frequency = ByFrequency::of(x);
        let ranks = by_frequency.ranks();
        Ok(PanelSource {
            device: device.clone(),
            offsets: device.upload(&offsets)?,
            columns: device.upload(x.indices())?,
            values: None,
            ranks: ranks.map(|ranks| device.upload(&ranks)).transpose()?,
            order: device.upload(&by_frequency.order)?,
            by_frequency,
        })
    }

    /// Makes panels of columns.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory.
    pub fn make(&self, size: PanelSize) -> Result<MadePanels<T>, OpError> {
        let order = self.order.try_clone()?;
        let entries = Ranked {
            rank_of: optional(&self.ranks),
            ..self.entries()
        };
        let of_ranks = (&self.by_frequency.counts[..], order);
        self.timed(|done| DevicePanels::in_steps(&self.device, &entries, of_ranks, (size, done)))
    }

    /// Makes panels of rows.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory.
    pub fn make_rows(&self, size: PanelSize) -> Result<MadePanels<T>, OpError> {
        let entries = (&self.entries(), self.by_frequency.order.len());
        self.timed(|done| DevicePanels::of_rows(&self.device, entries, (size, done)))
    }

    fn entries(&self) -> Ranked<'_, T> {
        Ranked {
            offsets: self.offsets.input(),
            ranks: self.columns.input(),
            rank_of: In::none(),
            values: optional(&self.values),
        }
    }

    fn timed(
        &self,
        make: impl FnOnce(Done<'_>) -> Result<DevicePanels<T>, OpError>,
    ) -> Result<MadePanels<T>, OpError> {
        let mut seconds = Vec::new();
        self.device.synchronize()?;
        let mut start = Instant::now();
        let panels = make(&mut |step: Step| {
            self.device.synchronize()?;
            seconds.push((step, start.elapsed().as_secs_f64()));
            start = Instant::now();
            Ok(())
        })?;
        Ok(MadePanels { panels, seconds })
    }
}

impl<T: Number> MadePanels<T> {
    /// Panels that the host has made.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory.
    pub fn upload(device: &Device, layout: &PanelLayout<T>) -> Result<Self, OpError> {
        Ok(MadePanels {
            panels: DevicePanels::upload(device, layout)?,
            seconds: Vec::new(),
        })
    }

    /// What adds the product over them to a vector of outputs: `Xᵀ·p` over panels of columns, `X·y` over those of rows.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little shared memory for the widest panel.
    pub fn product(&self, device: &Device) -> Result<PanelProduct<'_, T>, OpError> {
        Ok(PanelProduct {
            kernel: self.panels.prepare(device, MOST_OF_PANELS)?,
            panels: &self.panels,
        })
    }

    /// A copy on the host.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn fetch(&self) -> Result<PanelLayout<T>, OpError> {
        self.panels.fetch()
    }
}
