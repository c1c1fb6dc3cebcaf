//! Whether X lies on a device as a whole, and what of the device it may take.

use crate::device::Device;
use crate::plan::streaming::{Beside, Footprint, Residence};

/// Bytes of X below which nobody asks a device without a limit how much is free: asking takes longer than a product.
const SMALL_BYTES: u64 = 64 << 20;

/// Where X is to lie.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Place {
    pub footprint: Footprint,
    pub residence: Residence,
    /// Most bytes of the device that X may take.
    limit: Option<u64>,
    /// What works with it.
    beside: Beside,
    /// The share of the rows that the CPU computes, if X streams.
    host_share: f64,
}

impl Place {
    /// The place of an X of this footprint.
    pub(in crate::ops) fn of(device: &Device, footprint: Footprint, limit: Option<u64>) -> Self {
        let is_small =
            footprint.bytes < SMALL_BYTES && device.memory_options().limit_bytes.is_none();
        let room = if is_small { None } else { device.room() };
        let residence = match limit {
            Some(limit) if footprint.bytes > limit => footprint.packed(limit),
            _ => footprint.residence(room.map(|bytes| bytes as u64)),
        };
        Place {
            footprint,
            residence,
            limit,
            beside: Beside::Products,
            host_share: 0.0,
        }
    }

    /// The same, for vectors of what works with it.
    pub(in crate::ops) fn beside(self, beside: Beside) -> Self {
        Place { beside, ..self }
    }

    /// The same, but that the CPU computes a share of the rows.
    pub(in crate::ops) fn with_host_share(self, host_share: f64) -> Self {
        Place { host_share, ..self }
    }

    /// The share of the rows that the CPU computes.
    pub(in crate::ops) fn host_share(&self) -> f64 {
        self.host_share
    }

    /// The same, but not as a whole: there was to be room for it, and something else took it.
    pub(in crate::ops) fn in_blocks(self, device: &Device) -> Self {
        match self.residence {
            Residence::Whole => Place {
                residence: self
                    .footprint
                    .packed_beside_vectors(device.room().unwrap_or(0) as u64),
                ..self
            },
            _ => self,
        }
    }

    /// Bytes that blocks may take which stay on the device, beside `taken` bytes for those that stream.
    pub(in crate::ops) fn room(&self, device: &Device, taken: u64) -> u64 {
        let room = device.room().map_or(u64::MAX, |bytes| bytes as u64);
        let reserve = match self.residence {
            // All of X fits, and gives way to vectors.
            Residence::Blocks(_) => self.footprint.least_vectors(),
            _ => self.footprint.reserve(room, self.beside),
        };
        let room = room.saturating_sub(reserve);
        let own = self.limit.map(|limit| limit.saturating_sub(taken));
        own.map_or(room, |own| own.min(room))
    }
}
