//! What a device's account says.

use serde::Serialize;

/// Bytes that buffers of a device hold, and that crossed between them and the host.
///
/// Padding is held but does not cross; memory that the driver takes for itself is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// Bytes held now.
    pub live_bytes: usize,
    /// Bytes of freed memory that are kept for the next buffers, beside those held.
    pub kept_bytes: usize,
    /// Most bytes ever held at once.
    pub peak_bytes: usize,
    /// Bytes copied from the host so far.
    pub sent_bytes: u64,
    /// Bytes copied to the host so far.
    pub received_bytes: u64,
    /// Buffers made so far.
    pub allocations: u64,
    /// Those of them that got memory which was kept.
    pub reused: u64,
    /// Buffers that there was no memory for.
    pub refused: u64,
    /// Blocks of X that left the device because something else needed the memory.
    pub evictions: u64,
    /// Their bytes.
    pub evicted_bytes: u64,
    /// Bytes of host memory that are page-locked for what streams to the device.
    pub pinned_bytes: usize,
    /// Bytes of memory that others lent ([`Device::borrow`](super::Device::borrow)): held by nobody here, and never
    /// freed.
    pub lent_bytes: usize,
}

impl Usage {
    /// The part of buffers that got memory which was kept, from 0 to 1.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// let device = Device::cpu();
    /// for _ in 0..4 {
    ///     device.zeros::<f32>(1_000)?;
    /// }
    /// assert_eq!(device.usage().reuse_rate(), 0.75);
    /// # Ok::<(), warpfuse::device::DeviceError>(())
    /// ```
    pub fn reuse_rate(&self) -> f64 {
        self.reused as f64 / self.allocations.max(1) as f64
    }
}
