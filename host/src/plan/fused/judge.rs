//! Who looks at the launches of a search, and keeps which of them.

use super::candidate::Candidate;
use super::launch::Launch;
use super::prediction::Parts;
use super::reason::Reason;
use super::strategy::Strategy;

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
    fn wants(&mut self, strategy: Strategy, least_ns: u64) -> bool;
    fn judge(&mut self, weighed: Weighed<'a>);
}

// As many strategies as one product has, and to spare.
const STRATEGIES: usize = 16;

// What is known of a strategy's launches.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) strategy: Strategy,
    // Of those that were weighed.
    pub(super) fastest: Option<Weighed<'a>>,
    // What those that were left take at least.
    pub(super) left_ns: Option<u64>,
}

impl Known<'_> {
    // What to tell of it where another is chosen.
    pub(super) fn reason(&self) -> Option<Reason> {
        let Self { strategy, .. } = *self;
        let fastest = self.fastest.as_ref();
        let fastest = fastest.filter(|w| self.left_ns.is_none_or(|ns| w.total_ns <= ns));
        let runner_up = fastest.map(|w| Reason::RunnerUp {
            strategy,
            ns: w.total_ns,
            bound: w.parts.prediction().bound,
        });
        runner_up.or_else(|| self.left_ns.map(|ns| Reason::RuledOut { strategy, ns }))
    }
}

// The fastest launch, and what is known of other strategies. Launches that cannot be the fastest of all are not weighed
// for the sake of telling of them.
pub(super) struct Fastest<'a> {
    known: [Option<Known<'a>>; STRATEGIES],
    least_ns: u64,
}

impl Default for Fastest<'_> {
    fn default() -> Self {
        Self {
            known: [None; STRATEGIES],
            least_ns: u64::MAX,
        }
    }
}

impl<'a> Fastest<'a> {
    // The fastest launch.
    pub(super) fn chosen(&self) -> Option<Weighed<'a>> {
        self.all()
            .filter_map(|known| known.fastest)
            .min_by_key(Weighed::rank)
    }

    // What is known, strategy by strategy.
    pub(super) fn all(&self) -> impl Iterator<Item = &Known<'a>> {
        self.known.iter().flatten()
    }

    fn of(&mut self, strategy: Strategy) -> Option<&mut Known<'a>> {
        let mut slots = self.known.iter_mut();
        let its = slots.find(|slot| slot.is_none_or(|known| known.strategy == strategy))?;
        Some(its.get_or_insert(Known {
            strategy,
            fastest: None,
            left_ns: None,
        }))
    }
}

impl<'a> Judge<'a> for Fastest<'a> {
    fn wants(&mut self, strategy: Strategy, least_ns: u64) -> bool {
        let wants = least_ns <= self.least_ns;
        if !wants && let Some(known) = self.of(strategy) {
            known.left_ns = known.left_ns.into_iter().chain([least_ns]).min();
        }
        wants
    }

    fn judge(&mut self, weighed: Weighed<'a>) {
        self.least_ns = self.least_ns.min(weighed.total_ns);
        if let Some(known) = self.of(weighed.kernel.strategy)
            && known
                .fastest
                .is_none_or(|held| weighed.rank() < held.rank())
        {
            known.fastest = Some(weighed);
        }
    }
}

// The fastest launch that takes less than a time.
pub(super) struct Below<'a> {
    pub(super) ns: u64,
    pub(super) held: Option<Weighed<'a>>,
}

impl<'a> Judge<'a> for Below<'a> {
    fn wants(&mut self, _: Strategy, least_ns: u64) -> bool {
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

    fn wants(&mut self, _: Strategy, _: u64) -> bool {
        true
    }

    fn judge(&mut self, weighed: Weighed<'a>) {
        self.push(weighed);
    }
}
