//! Some elements of a buffer as a buffer.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use bytemuck::Pod;

use super::{Buffer, Storage};
use crate::device::DeviceError;

/// Elements at whose multiples a window may begin: kernels that take packs of 16 bytes, and rows of X by the warp, read
/// from there as from the beginning.
const ALIGNMENT: usize = 32;

/// Elements of a buffer that somebody keeps meanwhile, to be read.
pub(crate) struct Window<'a, T>(Buffer<T>, PhantomData<&'a Buffer<T>>);

/// Elements of a buffer that somebody keeps meanwhile, to be written.
pub(crate) struct WindowMut<'a, T>(Buffer<T>, PhantomData<&'a mut Buffer<T>>);

impl<T: Pod> Buffer<T> {
    /// The elements `range` where they lie; `None` on the CPU, whose slices need none, and where kernels cannot read from
    /// the first of them on.
    ///
    /// # Panics
    /// When there are no such elements.
    pub(crate) fn window(&self, range: &Range<usize>) -> Option<Window<'_, T>> {
        self.part(range).map(|buffer| Window(buffer, PhantomData))
    }

    /// [`Buffer::window`], to be written.
    ///
    /// # Panics
    /// As [`Buffer::window`].
    pub(crate) fn window_mut(&mut self, range: &Range<usize>) -> Option<WindowMut<'_, T>> {
        self.part(range)
            .map(|buffer| WindowMut(buffer, PhantomData))
    }

    /// A copy of the elements `range`, made on the device itself.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when it does not fit.
    ///
    /// # Panics
    /// As [`Buffer::window`].
    pub(crate) fn copy_of(&self, range: &Range<usize>) -> Result<Buffer<T>, DeviceError> {
        let Some(part) = self.handle(range) else {
            let values = self.as_host_slice().expect("the host's have slices");
            return self.device().upload(&values[range.clone()]);
        };
        let mut copy = self.device().allocate(range.len())?;
        copy.copy_from(&part)?;
        Ok(copy)
    }

    /// Replaces the elements from `start` on by all of `from`, a buffer of the same device.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device fails.
    ///
    /// # Panics
    /// As [`Buffer::window`].
    pub(crate) fn put(&mut self, start: usize, from: &Buffer<T>) -> Result<(), DeviceError> {
        match self.handle(&(start..start + from.len)) {
            Some(mut part) => part.copy_from(from),
            None => self.write(start, from.as_host_slice().expect("the host's have slices")),
        }
    }

    fn part(&self, range: &Range<usize>) -> Option<Buffer<T>> {
        self.handle(range)
            .filter(|_| range.start.is_multiple_of(ALIGNMENT))
    }

    /// A second handle of the elements; whoever gets it answers for the borrow. None on the CPU.
    fn handle(&self, range: &Range<usize>) -> Option<Buffer<T>> {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "a window lies inside its buffer"
        );
        let bytes = range.start * size_of::<T>()..range.end * size_of::<T>();
        let storage = match &self.storage {
            Storage::Cuda(memory) => Storage::Cuda(memory.window(bytes)),
            Storage::Emulator(memory) => Storage::Emulator(memory.window(bytes)),
            Storage::Cpu(_) => return None,
        };
        Some(Buffer {
            storage,
            len: range.len(),
            element: PhantomData,
        })
    }
}

impl<T> Deref for Window<'_, T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.0
    }
}

impl<T> Deref for WindowMut<'_, T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.0
    }
}

impl<T> DerefMut for WindowMut<'_, T> {
    fn deref_mut(&mut self) -> &mut Buffer<T> {
        &mut self.0
    }
}
