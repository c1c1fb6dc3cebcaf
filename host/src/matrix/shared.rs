//! Arrays that are shared instead of copied, whatever owns their memory.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::mapped::MappedFile;

/// An array that nobody changes: of a vector, or inside something else that owns it, such as a mapped file. Clones share
/// the memory, which is freed with the last of them.
///
/// ```
/// use std::sync::Arc;
/// use warpfuse::matrix::SharedSlice;
///
/// let owner = Arc::new(vec![1.0, 2.0, 3.0, 4.0]);
/// let middle = SharedSlice::of_owner(owner, |all| &all[1..3]);
/// assert_eq!(middle[..], [2.0, 3.0]);
/// assert_eq!(SharedSlice::from(vec![2.0, 3.0]), middle);
/// ```
pub struct SharedSlice<T> {
    // Points into what `owner` owns.
    elements: *const [T],
    owner: Owner,
}

/// Who has the memory.
#[derive(Clone)]
enum Owner {
    Any(#[expect(dead_code, reason = "kept alive")] Arc<dyn Any + Send + Sync>),
    File(Arc<MappedFile>),
}

// SAFETY: the value gives out shared references to elements only, and its owner may go to other threads.
unsafe impl<T: Sync> Send for SharedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SharedSlice<T> {}

impl<T> SharedSlice<T> {
    /// The elements that `choose` finds in `owner`, which lives as long as they are needed.
    pub fn of_owner<O: Send + Sync + 'static>(
        owner: Arc<O>,
        choose: impl for<'a> FnOnce(&'a O) -> &'a [T],
    ) -> SharedSlice<T> {
        let elements: *const [T] = choose(&owner);
        let owner = Owner::Any(owner);
        SharedSlice { elements, owner }
    }

    /// The elements that `choose` finds in a mapped file.
    pub(crate) fn of_file(
        file: Arc<MappedFile>,
        choose: impl for<'a> FnOnce(&'a [u8]) -> &'a [T],
    ) -> SharedSlice<T> {
        let elements: *const [T] = choose(&file);
        let owner = Owner::File(file);
        SharedSlice { elements, owner }
    }

    /// Some of the elements, in the same memory.
    ///
    /// ```
    /// use warpfuse::matrix::SharedSlice;
    /// let all = SharedSlice::from(vec![1, 2, 3]);
    /// assert_eq!(all.part(1..3)[..], [2, 3]);
    /// ```
    ///
    /// # Panics
    /// When there are no such elements.
    pub fn part(&self, range: Range<usize>) -> SharedSlice<T> {
        SharedSlice {
            elements: &self[range],
            owner: self.owner.clone(),
        }
    }

    /// The file that the elements lie in, where they do.
    pub(crate) fn file(&self) -> Option<&Arc<MappedFile>> {
        match &self.owner {
            Owner::File(file) => Some(file),
            Owner::Any(_) => None,
        }
    }
}

impl<T> Deref for SharedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the elements were borrowed from the owner for as long as anybody likes who keeps it alive and does not
        // change it. `self` keeps it alive, and nobody gets a mutable reference to what an `Arc` shares.
        unsafe { &*self.elements }
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for SharedSlice<T> {
    fn from(elements: Vec<T>) -> Self {
        SharedSlice::of_owner(Arc::new(elements), Vec::as_slice)
    }
}

impl<T: Send + Sync + 'static> FromIterator<T> for SharedSlice<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Vec::from_iter(elements).into()
    }
}

impl<T> Clone for SharedSlice<T> {
    fn clone(&self) -> Self {
        SharedSlice {
            elements: self.elements,
            owner: self.owner.clone(),
        }
    }
}

impl<T: PartialEq> PartialEq for SharedSlice<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_lives_as_long_as_the_last_share() {
        let owner = Arc::new(vec![1_u32, 2, 3]);
        let first = SharedSlice::of_owner(owner.clone(), |all| &all[1..]);
        let second = first.clone();
        assert_eq!(Arc::strong_count(&owner), 3);
        drop(first);
        assert_eq!(second[..], [2, 3]);
        drop(second);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn shares_go_to_other_threads() {
        let share = SharedSlice::from(vec![1.5, 2.5]);
        let sum = std::thread::spawn(move || share.iter().sum::<f64>()).join();
        assert_eq!(sum.expect("the thread ends"), 4.0);
    }

    #[test]
    fn no_elements_are_a_share_too() {
        assert!(SharedSlice::<u64>::from(Vec::new()).is_empty());
    }
}
