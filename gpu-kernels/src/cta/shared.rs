//! Arrays in shared memory.

use crate::scalar::Word;

/// An array in the block's dynamic shared memory: a place, not a pointer.
#[derive(Debug)]
pub struct Shared<T> {
    byte: u32,
    len: u32,
    element: core::marker::PhantomData<T>,
}

impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

impl<T: Word> Shared<T> {
    /// The array of `len` elements that starts `byte` bytes into the block's dynamic shared memory.
    #[inline(always)]
    pub fn at(byte: u32, len: u32) -> Shared<T> {
        Shared {
            byte,
            len,
            element: core::marker::PhantomData,
        }
    }

    /// First byte.
    #[inline(always)]
    pub fn byte(&self) -> u32 {
        self.byte
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The byte after the last. Beyond 2³² bytes, the emulator says who asked.
    #[inline(always)]
    #[track_caller]
    pub fn end(&self) -> u32 {
        if cfg!(target_arch = "nvptx64") {
            return self.byte + self.len * T::SIZE;
        }
        // Checked in every profile: the compiler's own checks follow the profile of whoever instantiates this.
        let bytes = self.len.checked_mul(T::SIZE);
        bytes
            .and_then(|bytes| self.byte.checked_add(bytes))
            .expect("attempt to address the bytes of a shared array with overflow")
    }
}
