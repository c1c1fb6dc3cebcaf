//! What the link between host and device carries.

use std::ops::Range;
use std::time::Instant;

use super::feed::{Feed, Source};
use super::{Device, DeviceError};

/// Bytes of a copy.
const BLOCK: usize = 64 << 20;
/// Copies under way at once.
const BLOCKS: usize = 2;

/// Rates of copies to a device, 10⁹ bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct LinkProbe {
    /// From page-locked memory.
    pub pinned_gbs: f64,
    /// From ordinary memory, by way of page-locked blocks that all threads fill.
    pub staged_gbs: f64,
    /// Page-locking.
    pub pinning_gbs: f64,
}

impl Device {
    /// Measures what the link carries, by copies of 64 MiB that come to `bytes` bytes each way of copying.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// let probe = Device::cpu().probe_link(1 << 20)?;
    /// assert!(probe.pinned_gbs > 0.0 && probe.staged_gbs > 0.0);
    /// # Ok::<(), warpfuse::device::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] where two such copies do not fit, [`DeviceError::Driver`] when the driver fails.
    pub fn probe_link(&self, bytes: usize) -> Result<LinkProbe, DeviceError> {
        let block = bytes.clamp(4, BLOCK) / 4 * 4;
        let count = bytes.div_ceil(block);
        let values = vec![1_u8; block];
        let copy = |range: Range<usize>, to: &mut [u8]| to.copy_from_slice(&values[range]);
        let begun = Instant::now();
        let pinned = self.pinned(block, &copy)?;
        let pinning_gbs = rate(block, begun);
        let mut feed = Feed::new(self, block / 4, BLOCKS)?;
        let mut cross = |source: Source<'_>, count: usize| {
            let begun = Instant::now();
            for _ in 0..count {
                let sent = feed.send(block / 4, source)?;
                feed.read(sent, |_| Ok::<(), DeviceError>(()))?;
            }
            self.synchronize()?;
            Ok::<f64, DeviceError>(rate(count * block, begun))
        };
        // The first copies make the page-locked blocks of the ring, and wake the link.
        cross(Source::Made(&copy), 1)?;
        cross(Source::Pinned(&pinned), 1)?;
        Ok(LinkProbe {
            pinned_gbs: cross(Source::Pinned(&pinned), count)?,
            staged_gbs: cross(Source::Made(&copy), count)?,
            pinning_gbs,
        })
    }
}

fn rate(bytes: usize, begun: Instant) -> f64 {
    bytes as f64 / begun.elapsed().as_secs_f64().max(1e-9) / 1e9
}
