//! What the memory of a device was used for, as commands say it.

use serde::Serialize;

use super::report::bytes;
use crate::device::{Device, Usage};

/// What a device's buffers may hold, what they hold and held, and what crossed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct MemoryFacts {
    /// Most bytes of buffers at once, where there is a limit.
    limit_bytes: Option<usize>,
    #[serde(flatten)]
    usage: Usage,
}

impl MemoryFacts {
    pub(super) fn of(device: &Device) -> MemoryFacts {
        MemoryFacts {
            limit_bytes: device.memory_options().limit_bytes,
            usage: device.usage(),
        }
    }

    /// The peak, and beside it what is not as usual: a limit, blocks that left, memory that was used again,
    /// requests that were refused.
    pub(super) fn line(&self) -> String {
        let usage = &self.usage;
        let limit = self
            .limit_bytes
            .map(|limit| format!("limit {}", size(limit)));
        let evicted = (usage.evictions > 0).then(|| {
            let size = bytes(usage.evicted_bytes);
            format!("{} evictions of {size} in all", usage.evictions)
        });
        let pinned = (usage.pinned_bytes > 0).then(|| {
            let size = size(usage.pinned_bytes);
            format!("{size} of host memory page-locked")
        });
        let reused = (usage.reused > 0).then(|| {
            let percent = 100.0 * usage.reuse_rate();
            let kept = size(usage.kept_bytes);
            format!("{percent:.0} % of buffers in reused memory, {kept} kept")
        });
        let refused = (usage.refused > 0).then(|| format!("{} requests refused", usage.refused));
        let besides: Vec<String> = [limit, evicted, pinned, reused, refused]
            .into_iter()
            .flatten()
            .collect();
        let peak = size(usage.peak_bytes);
        match besides.is_empty() {
            true => peak,
            false => format!("{peak} ({})", besides.join(", ")),
        }
    }
}

fn size(count: usize) -> String {
    bytes(count as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::MemoryOptions;

    #[test]
    fn a_limit_and_evictions_stand_beside_the_peak() {
        let device = Device::cpu();
        let kept = device.upload(&[1.0_f64; 4]).expect("32 bytes");
        let plain = MemoryFacts::of(&device);
        assert_eq!(plain.line(), "32 bytes");
        device.limit_memory(MemoryOptions::limited(1024));
        let mut limited = MemoryFacts::of(&device);
        assert_eq!(limited.line(), "32 bytes (limit 1.0 KiB)");
        limited.usage.evictions = 2;
        limited.usage.evicted_bytes = 2048;
        assert_eq!(
            limited.line(),
            "32 bytes (limit 1.0 KiB, 2 evictions of 2.0 KiB in all)"
        );
        limited.usage.reused = 3;
        limited.usage.allocations = 4;
        limited.usage.kept_bytes = 512;
        let line = limited.line();
        assert!(
            line.ends_with("in all, 75 % of buffers in reused memory, 512 bytes kept)"),
            "{line}"
        );
        let json = serde_json::to_value(limited).expect("plain numbers");
        assert_eq!(json["limit_bytes"], 1024);
        assert_eq!(json["peak_bytes"], 32);
        assert_eq!(
            (&json["kept_bytes"], &json["reused"]),
            (&512.into(), &3.into())
        );
        drop(kept);
    }
}
