//! Who looks at the launches of a search, and keeps which of them.

use super::candidate::{Candidate, Strategy};
use super::geometry::Launch;
use super::prediction::Parts;

// A launch on the stack: which kernel, how, how long.
#[derive(Clone, Copy)]
pub(super) struct Weighed<'a> {
    pub(super) kernel: &'a Candidate,
    pub(super) launch: Launch,
    pub(super) parts: Parts,
    pub(super) total_ns: u64,
}

impl Weighed<'_> {
    pub(super) fn rank(&self) -> (u64, u32) {
        (self.total_ns, self.launch.grid)
    }
}

// Who looks at launches, and which of them are worth the arithmetic.
pub(super) trait Judge<'a> {
    // Whether it is every launch, in the order of the kernels.
    fn wants_all(&self) -> bool {
        false
    }
    // Whether a launch of the strategy that takes `least_ns` or more could matter.
    fn wants(&self, strategy: Strategy, least_ns: u64) -> bool;
    fn judge(&mut self, weighed: Weighed<'a>);
}

// The quickest launch of each strategy: as many slots as one product has strategies, and to spare.
#[derive(Default)]
pub(super) struct Quickest<'a>([Option<Weighed<'a>>; 16]);

impl<'a> Quickest<'a> {
    pub(super) fn all(&self) -> impl Iterator<Item = Weighed<'a>> {
        self.0.iter().flatten().copied()
    }
}

impl<'a> Judge<'a> for Quickest<'a> {
    fn wants(&self, strategy: Strategy, least_ns: u64) -> bool {
        let held = self.all().find(|held| held.kernel.strategy == strategy);
        held.is_none_or(|held| least_ns <= held.total_ns)
    }

    fn judge(&mut self, weighed: Weighed<'a>) {
        let strategy = weighed.kernel.strategy;
        let is_its = |held: &&mut Option<Weighed<'a>>| {
            held.is_none_or(|held| held.kernel.strategy == strategy)
        };
        if let Some(slot) = self.0.iter_mut().find(is_its)
            && slot.is_none_or(|held| weighed.rank() < held.rank())
        {
            *slot = Some(weighed);
        }
    }
}

// The quickest launch that takes less than a time.
pub(super) struct Below<'a> {
    pub(super) ns: u64,
    pub(super) held: Option<Weighed<'a>>,
}

impl<'a> Judge<'a> for Below<'a> {
    fn wants(&self, _: Strategy, least_ns: u64) -> bool {
        match &self.held {
            Some(held) => least_ns <= held.total_ns,
            None => least_ns < self.ns,
        }
    }

    fn judge(&mut self, weighed: Weighed<'a>) {
        let is_quicker = match &self.held {
            Some(held) => weighed.rank() < held.rank(),
            None => weighed.total_ns < self.ns,
        };
        if is_quicker {
            self.held = Some(weighed);
        }
    }
}

// Everything.
impl<'a> Judge<'a> for Vec<Weighed<'a>> {
    fn wants_all(&self) -> bool {
        true
    }

    fn wants(&self, _: Strategy, _: u64) -> bool {
        true
    }

    fn judge(&mut self, weighed: Weighed<'a>) {
        self.push(weighed);
    }
}
