//! Who holds a device's memory, for errors.

use std::fmt;

/// Who holds a device's memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holding {
    /// Bytes that buffers hold.
    pub live_bytes: usize,
    /// Bytes that they may hold, where there is a limit.
    pub limit_bytes: Option<usize>,
    /// The sizes with most bytes in all, the most first.
    pub largest: Vec<Holder>,
}

/// Buffers of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Bytes of each.
    pub bytes: usize,
    /// How many there are.
    pub count: usize,
}

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit_bytes {
            Some(limit) => write!(f, "{} of at most {limit} bytes are held", self.live_bytes)?,
            None => write!(f, "buffers hold {} bytes", self.live_bytes)?,
        }
        for (number, Holder { bytes, count }) in self.largest.iter().enumerate() {
            let between = match number {
                0 => ", by ",
                _ if number + 1 == self.largest.len() => " and ",
                _ => ", ",
            };
            write!(f, "{between}{count} of {bytes} bytes")?;
        }
        Ok(())
    }
}
