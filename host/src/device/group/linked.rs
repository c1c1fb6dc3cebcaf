//! GPUs that have joined: NCCL, and small sums over each other's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Shares;
use super::between_devices::{DeviceCommunicator, Numbers};
use super::error::GroupError;
use super::nccl::Nccl;
use super::windows::Windows;

/// The link of a group of GPUs.
#[derive(Debug)]
pub(super) struct Linked {
    nccl: Nccl,
    windows: Option<Arc<Windows>>,
    /// Whether sums of few bytes are one launch.
    one_launch: AtomicBool,
}

impl Linked {
    pub(super) fn new(nccl: Nccl, windows: Option<Windows>) -> Linked {
        let windows = windows.map(Arc::new);
        if let Some(windows) = windows.clone() {
            nccl.at_the_end(Box::new(move || windows.stop()));
        }
        let one_launch = AtomicBool::new(true);
        Linked {
            nccl,
            windows,
            one_launch,
        }
    }

    /// The memory that small sums go through.
    fn windows(&self) -> Option<&Arc<Windows>> {
        let wanted = self.one_launch.load(Ordering::Relaxed);
        self.windows.as_ref().filter(|_| wanted)
    }
}

impl DeviceCommunicator for Linked {
    fn name(&self) -> String {
        match self.windows() {
            Some(_) => format!("{}, small sums over peers' memory", self.nccl.name()),
            None => self.nccl.name(),
        }
    }

    fn sum(&self, numbers: &[Numbers]) -> Result<(), GroupError> {
        match self.windows().filter(|windows| windows.take(numbers)) {
            Some(windows) if windows.have_numbers(numbers.len()) => {
                self.nccl.beside(|| windows.sum(numbers))
            }
            Some(windows) => {
                self.nccl.beside(|| windows.begin_again())?;
                self.nccl.sum(numbers)
            }
            None => self.nccl.sum(numbers),
        }
    }

    fn sum_beside(&self, numbers: &[Numbers]) -> Result<(), GroupError> {
        // However few: launches of ours are in the device's own stream.
        self.nccl.sum_beside(numbers)
    }

    fn join(&self) -> Result<(), GroupError> {
        self.nccl.join()
    }

    fn sum_shares(&self, numbers: &[Numbers], shares: &Shares) -> Result<(), GroupError> {
        self.nccl.sum_shares(numbers, shares)
    }

    fn gather(&self, address: u64, lengths: &[usize]) -> Result<(), GroupError> {
        self.nccl.gather(address, lengths)
    }

    fn check(&self) -> Result<(), GroupError> {
        self.nccl.check()
    }

    fn set_one_launch(&self, wanted: bool) {
        self.one_launch.store(wanted, Ordering::Relaxed);
    }

    fn set_limit(&self, limit: Duration) {
        self.nccl.set_limit(limit);
    }

    fn end(&self, error: GroupError) {
        self.nccl.end(error);
    }
}
