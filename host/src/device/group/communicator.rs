//! What an engine has to do: move bytes between members.

use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Instant;

use super::GroupError;

/// The mechanism below a [`Group`](super::Group): bytes from member to member, and a limit on every wait.
///
/// Bytes between two members arrive in the order in which they were sent. No member calls two functions at once. The checks
/// that all members mean the same are the group's.
pub trait Communicator: Send + Sync + UnwindSafe + RefUnwindSafe + Debug {
    /// The engine's name, for people.
    fn name(&self) -> String;

    /// This member's number, below [`Communicator::size`].
    fn rank(&self) -> usize;

    /// How many members there are.
    fn size(&self) -> usize;

    /// Sends `bytes` to member `to`; returns when they may be reused.
    ///
    /// # Errors
    /// [`GroupError::Missing`] when `until` has passed, [`GroupError::Left`] and [`GroupError::Engine`].
    fn send(&self, to: usize, bytes: &[u8], until: Instant) -> Result<(), GroupError>;

    /// Waits for exactly as many bytes from member `from`.
    ///
    /// # Errors
    /// As [`Communicator::send`].
    fn receive(&self, from: usize, bytes: &mut [u8], until: Instant) -> Result<(), GroupError>;

    /// The bytes of all members one after the other, to every member. `lengths` are those of each member, the same everywhere.
    ///
    /// # Errors
    /// As [`Communicator::send`].
    fn all_gather(
        &self,
        own: &[u8],
        lengths: &[usize],
        all: &mut [u8],
        until: Instant,
    ) -> Result<(), GroupError>;

    /// Sends to each member a piece of its own, and receives one of each: pieces lie one after the other, and the lengths of
    /// those for and from each member come with them. The longest piece of all members is among those that each sends.
    ///
    /// # Errors
    /// As [`Communicator::send`].
    fn exchange(
        &self,
        sent: (&[u8], &[usize]),
        received: (&mut [u8], &[usize]),
        until: Instant,
    ) -> Result<(), GroupError>;

    /// A member that is known to have failed or left, without waiting for it.
    fn departed(&self) -> Option<GroupError> {
        None
    }

    /// Lets the others know, without waiting for them, why this member cannot go on; where they cannot be told, they find
    /// out.
    fn report(&self, _: &str) {}

    /// Lets the others go without this member, after an error: none of them may wait for it.
    fn abandon(&self) {}
}
