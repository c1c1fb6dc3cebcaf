//! A group of one.

use std::time::Instant;

use super::GroupError;
use super::communicator::Communicator;

/// The only member of its group.
#[derive(Debug)]
pub(super) struct Alone;

impl Communicator for Alone {
    fn name(&self) -> String {
        "one process".to_owned()
    }

    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn send(&self, _: usize, _: &[u8], _: Instant) -> Result<(), GroupError> {
        unreachable!("there is nobody else")
    }

    fn receive(&self, _: usize, _: &mut [u8], _: Instant) -> Result<(), GroupError> {
        unreachable!("there is nobody else")
    }

    fn all_gather(
        &self,
        own: &[u8],
        _: &[usize],
        all: &mut [u8],
        _: Instant,
    ) -> Result<(), GroupError> {
        all.copy_from_slice(own);
        Ok(())
    }

    fn exchange(
        &self,
        (parts, _): (&[u8], &[usize]),
        (all, _): (&mut [u8], &[usize]),
        _: Instant,
    ) -> Result<(), GroupError> {
        all.copy_from_slice(parts);
        Ok(())
    }
}
