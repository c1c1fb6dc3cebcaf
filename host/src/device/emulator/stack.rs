//! Stacks of lanes, kept for reuse.

use std::io;
use std::sync::{Mutex, PoisonError};

use corosensei::stack::DefaultStack;

/// Room for a body with its arrays in registers' stead, compiled without optimisation, and for a panic.
/// Only touched pages cost memory.
const BYTES: usize = 128 * 1024;

/// Stacks that are kept when nobody uses them.
const KEPT: usize = 4096;

static IDLE: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

/// Stacks for the lanes of one block at a time; given back when dropped.
pub(super) struct Stacks(Vec<DefaultStack>);

impl Stacks {
    /// `lanes` stacks, used ones first.
    pub fn take(lanes: usize) -> io::Result<Stacks> {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.len().saturating_sub(lanes);
        let mut stacks = Stacks(idle.split_off(kept));
        drop(idle);
        while stacks.0.len() < lanes {
            stacks.0.push(DefaultStack::new(BYTES)?);
        }
        Ok(stacks)
    }

    pub fn each(&mut self) -> impl Iterator<Item = &mut DefaultStack> {
        self.0.iter_mut()
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        idle.append(&mut self.0);
        let excess = idle.len().min(KEPT);
        let surplus = idle.split_off(excess);
        drop(idle);
        drop(surplus);
    }
}
