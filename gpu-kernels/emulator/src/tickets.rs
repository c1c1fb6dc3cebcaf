//! Tickets: the one order between blocks of a launch.
//!
//! Drawing one releases what the block did before and acquires what those did who drew from the same
//! counter before. So an access of one block comes before an access of another if the first block drew
//! after its access, the second before its own, and the first drew earlier.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::shadow::Who;

/// A ticket that was drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    /// Who drew it.
    pub who: Who,
    /// Address of the counter.
    counter: u64,
    /// How many were drawn from that counter before.
    number: usize,
}

/// All tickets of a launch: by counter, in the order in which they were drawn.
#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<HashMap<u64, Vec<Who>>>);

impl Tickets {
    /// Draws one.
    pub fn draw(&self, counter: u64, who: Who) -> Draw {
        let mut drawn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_counter = drawn.entry(counter).or_default();
        of_counter.push(who);
        Draw {
            who,
            counter,
            number: of_counter.len() - 1,
        }
    }

    /// Whether `draw` acquires what `earlier` did: its block drew from the same counter after that access and
    /// before `draw`.
    pub fn follows(&self, draw: &Draw, earlier: Who) -> bool {
        let drawn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = drawn
            .get(&draw.counter)
            .map_or(&[][..], |of_counter| &of_counter[..draw.number]);
        before
            .iter()
            .any(|other| other.block() == earlier.block() && earlier.precedes(*other))
    }
}
