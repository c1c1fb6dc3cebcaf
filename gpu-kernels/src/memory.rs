//! Global memory as a kernel argument: a pointer and a length, tied to the buffer it came from.
//!
//! These are plain `repr(C)` values that travel inside an argument struct. They are read and written
//! only through a [`Cta`](crate::Cta), which on the device becomes one `ld.global` or `red.global`, and
//! in the emulator is where bounds, poison and races are checked.

use core::marker::PhantomData;

/// Global memory that a kernel only reads, or nothing (an absent optional argument).
#[repr(C)]
#[derive(Debug)]
pub struct In<'a, T> {
    pointer: *const T,
    len: u64,
    buffer: PhantomData<&'a [T]>,
}

/// Global memory that a kernel writes or adds to.
#[repr(C)]
#[derive(Debug)]
pub struct Out<'a, T> {
    pointer: *mut T,
    len: u64,
    buffer: PhantomData<&'a mut [T]>,
}

// Arguments are copied to every thread of a launch; the type parameter needs no bound for that.
impl<T> Clone for In<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<'_, T> {}
impl<T> Clone for Out<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<'_, T> {}

// SAFETY: an `In` is an address; what is at it is only reached through a Cta.
unsafe impl<T: Sync> Send for In<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for In<'_, T> {}
// SAFETY: an `Out` is an address; what is at it is only reached through a Cta, which orders accesses.
unsafe impl<T: Send> Send for Out<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Out<'_, T> {}

impl<'a, T> In<'a, T> {
    /// Memory of `len` elements at `pointer`, an address of the device that will run the kernel.
    ///
    /// # Safety
    /// For `'a` and until the kernel has ended, `len` elements at `pointer` are allocated on that
    /// device, aligned to 16 bytes (to one element where there is only one), initialised, and written by nobody.
    pub const unsafe fn new(pointer: *const T, len: u64) -> In<'a, T> {
        In {
            pointer,
            len,
            buffer: PhantomData,
        }
    }

    /// An absent optional argument.
    pub const fn none() -> In<'a, T> {
        In {
            pointer: core::ptr::null(),
            len: 0,
            buffer: PhantomData,
        }
    }

    /// Whether the argument is there.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        !self.pointer.is_null()
    }

    /// The address.
    #[inline(always)]
    pub fn pointer(&self) -> *const T {
        self.pointer
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What follows the first `elements` elements, which may be nothing. Whole packs keep packs aligned.
    #[inline(always)]
    pub fn after(&self, elements: u64) -> In<'a, T> {
        In {
            // The address of what does not exist may lie outside: it is not read.
            pointer: self.pointer.wrapping_add(elements as usize),
            len: self.len.saturating_sub(elements),
            buffer: PhantomData,
        }
    }
}

impl<'a, T> Out<'a, T> {
    /// Memory of `len` elements at `pointer`, an address of the device that will run the kernel.
    ///
    /// # Safety
    /// For `'a` and until the kernel has ended, `len` elements at `pointer` are allocated on that
    /// device, aligned to 16 bytes (to one element where there is only one), and reached by nobody but this kernel.
    pub const unsafe fn new(pointer: *mut T, len: u64) -> Out<'a, T> {
        Out {
            pointer,
            len,
            buffer: PhantomData,
        }
    }

    /// An output that the entry does not use.
    pub const fn none() -> Out<'a, T> {
        Out {
            pointer: core::ptr::null_mut(),
            len: 0,
            buffer: PhantomData,
        }
    }

    /// Whether the output is there.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        !self.pointer.is_null()
    }

    /// The address.
    #[inline(always)]
    pub fn pointer(&self) -> *mut T {
        self.pointer
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Out<'_, T> {
    /// What follows the first `elements` elements, which may be nothing. Whole packs keep packs aligned.
    #[inline(always)]
    pub fn after(self, elements: u64) -> Self {
        Out {
            // As of `In`.
            pointer: self.pointer.wrapping_add(elements as usize),
            len: self.len.saturating_sub(elements),
            buffer: PhantomData,
        }
    }
}

impl<'a> Out<'a, u32> {
    /// The same memory as pairs of words; an odd last one is left out.
    #[inline(always)]
    pub fn pairs(self) -> Out<'a, u64> {
        // SAFETY: as many words, aligned to 16 bytes where there are two, of the same life, reached by nobody else: the
        // argument that promised that is given up. Every bit pattern is a word.
        unsafe { Out::new(self.pointer.cast(), self.len / 2) }
    }
}

impl<'a, T: crate::scalar::Word> Out<'a, T> {
    /// The same memory as words of 8 bytes, of which each element of 8 bytes is one; absent for smaller
    /// elements.
    #[inline(always)]
    pub fn words(self) -> Out<'a, u64> {
        if T::SIZE != 8 {
            return Out::none();
        }
        // SAFETY: as many words, of the same size, with the same alignment and life, reached by nobody else: the
        // argument that promised that is given up. Every bit pattern is a word.
        unsafe { Out::new(self.pointer.cast(), self.len) }
    }
}
