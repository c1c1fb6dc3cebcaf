//! Addresses of accesses: found, or found wrong.

use gpu_kernels::cta::Shared;
use gpu_kernels::{In, Out, Word as Element};

use super::block::Block;
use super::fault::{Action, FaultKind, Place};
use super::heap::{Allocation, Slot, Table, WORD};

/// What an access is made to.
pub(super) trait Target {
    /// Its name for people.
    fn place(&self, block: &Block<'_>) -> Place;
}

/// One access to an argument in global memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct GlobalTarget {
    /// First byte of the argument.
    pub address: u64,
    /// Elements of the argument.
    len: u64,
    /// First element of the access.
    index: u64,
    /// Bytes of an element.
    size: u32,
    /// Elements of the access.
    count: u32,
    /// Their type.
    element: &'static str,
}

impl GlobalTarget {
    #[inline(always)]
    pub fn input<T: Element>(from: In<'_, T>, i: usize, count: u32) -> GlobalTarget {
        GlobalTarget {
            address: from.pointer().addr() as u64,
            len: from.len(),
            index: i as u64,
            size: T::SIZE,
            count,
            element: T::NAME,
        }
    }

    #[inline(always)]
    pub fn output<T: Element>(to: Out<'_, T>, i: usize) -> GlobalTarget {
        GlobalTarget {
            address: to.pointer().addr() as u64,
            len: to.len(),
            index: i as u64,
            size: T::SIZE,
            count: 1,
            element: T::NAME,
        }
    }

    pub fn bytes(&self) -> u32 {
        self.size * self.count
    }

    pub fn words(&self) -> usize {
        self.bytes() as usize / WORD
    }

    /// First byte of the access; it is in bounds.
    pub fn byte(&self) -> u64 {
        self.address + self.index * u64::from(self.size)
    }

    /// The allocation and the byte in it, if the access is in bounds, aligned, and of living memory.
    #[inline(always)]
    pub fn locate<'t>(
        &self,
        table: &'t Table,
        action: Action,
    ) -> Result<(&'t Allocation, usize), FaultKind> {
        let is_inside = self.len.checked_sub(u64::from(self.count));
        if is_inside.is_none_or(|last| self.index > last) {
            return Err(self.out_of_bounds(table, action, self.len));
        }
        let Some((Slot::Alive(allocation), start)) = table.find(self.address) else {
            return Err(self.not_alive(table, action));
        };
        let Some(byte) = self.byte_in(allocation, start) else {
            let len = (allocation.bytes - start) / u64::from(self.size);
            return Err(self.out_of_bounds(table, action, len));
        };
        // One, two or four words.
        let excess = byte & u64::from(self.bytes() - 1);
        if excess != 0 {
            return Err(FaultKind::Misaligned {
                action,
                place: self.place_in(table),
                required: self.bytes(),
                excess: excess as u32,
            });
        }
        Ok((allocation, byte as usize))
    }

    #[inline(always)]
    fn byte_in(&self, allocation: &Allocation, start: u64) -> Option<u64> {
        let byte = self
            .index
            .checked_mul(u64::from(self.size))?
            .checked_add(start)?;
        let end = byte.checked_add(u64::from(self.bytes()))?;
        (end <= allocation.bytes).then_some(byte)
    }

    #[cold]
    fn out_of_bounds(&self, table: &Table, action: Action, len: u64) -> FaultKind {
        out_of_bounds(action, self.place_in(table), self.index, len)
    }

    #[cold]
    fn not_alive(&self, table: &Table, action: Action) -> FaultKind {
        match table.find(self.address) {
            Some((Slot::Freed(_), _)) => FaultKind::UseAfterFree {
                action,
                place: self.place_in(table),
            },
            _ => FaultKind::Stray {
                action,
                address: self.address,
            },
        }
    }

    fn place_in(&self, table: &Table) -> Place {
        let (buffer, start) = match table.find(self.address) {
            Some((Slot::Alive(allocation), start)) => (allocation.name.clone(), start),
            Some((Slot::Freed(name), start)) => (name.clone(), start),
            None if self.address == 0 => ("absent argument".to_owned(), 0),
            None => (format!("{:#x}", self.address), 0),
        };
        Place::Global {
            buffer,
            index: self.index,
            offset: start / u64::from(self.size),
            element: self.element,
        }
    }
}

impl Target for GlobalTarget {
    fn place(&self, block: &Block<'_>) -> Place {
        self.place_in(block.launch.table)
    }
}

/// One access to an array in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedTarget {
    byte: u32,
    len: u32,
    index: u64,
    size: u32,
    element: &'static str,
}

impl SharedTarget {
    #[inline(always)]
    pub fn new<T: Element>(array: Shared<T>, i: usize) -> SharedTarget {
        SharedTarget {
            byte: array.byte(),
            len: array.len(),
            index: i as u64,
            size: T::SIZE,
            element: T::NAME,
        }
    }

    pub fn bytes(&self) -> u32 {
        self.size
    }

    pub fn words(&self) -> usize {
        self.size as usize / WORD
    }

    /// First byte of the access; it is in bounds.
    pub fn byte(&self) -> u64 {
        u64::from(self.byte) + self.index * u64::from(self.size)
    }

    /// The byte of the block's dynamic shared memory, if the access is in bounds and aligned.
    #[inline(always)]
    pub fn locate(&self, shared_bytes: u32, action: Action) -> Result<usize, FaultKind> {
        if self.index >= u64::from(self.len) {
            return Err(out_of_bounds(
                action,
                self.named(),
                self.index,
                u64::from(self.len),
            ));
        }
        let byte = self.byte();
        if byte + u64::from(self.size) > u64::from(shared_bytes) {
            let len = shared_bytes.saturating_sub(self.byte) / self.size;
            return Err(out_of_bounds(
                action,
                self.named(),
                self.index,
                u64::from(len),
            ));
        }
        // One word or two.
        let excess = byte & u64::from(self.size - 1);
        if excess != 0 {
            return Err(FaultKind::Misaligned {
                action,
                place: self.named(),
                required: self.size,
                excess: excess as u32,
            });
        }
        Ok(byte as usize)
    }

    fn named(&self) -> Place {
        Place::Shared {
            byte: self.byte,
            index: self.index,
            element: self.element,
        }
    }
}

impl Target for SharedTarget {
    fn place(&self, _: &Block<'_>) -> Place {
        self.named()
    }
}

/// An index beyond the end; one that can only have come from wrapped arithmetic is named so, which also
/// finds in a build without overflow checks what one with them would have.
#[cold]
fn out_of_bounds(action: Action, place: Place, index: u64, len: u64) -> FaultKind {
    const SLACK: u64 = 1 << 16;
    let below_zero_32 = (1 << 32) - SLACK..1 << 32;
    let signed = if index >> 63 == 1 {
        index as i64
    } else if below_zero_32.contains(&index) && len < below_zero_32.start {
        i64::from(index as u32 as i32)
    } else {
        return FaultKind::OutOfBounds { action, place, len };
    };
    FaultKind::Overflow {
        message: format!("{action} of {place}, an index that wrapped below zero (to {signed})"),
    }
}
