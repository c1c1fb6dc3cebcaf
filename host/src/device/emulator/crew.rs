//! All warps of a block: turns, barriers, and what to say when nobody can go on.

use std::panic::Location;

use gpu_kernels::cta::WARP;

use super::block::Block;
use super::fault::{Fault, FaultKind, Whereabouts};
use super::options::{LaneOrder, Preemption};
use super::shadow::MAX_EPOCH;
use super::stack::Stacks;
use super::warp::{Body, Waits, Warp};

/// Runs one block to its end.
pub(super) fn run_block(
    block: &Block<'_>,
    stacks: &mut Stacks,
    body: Body<'_>,
) -> Result<(), Box<Fault>> {
    let mut stacks = stacks.each();
    let threads = block.launch.shape.block;
    let warps = (0..threads).step_by(WARP as usize).map(|first| {
        let lanes = (threads - first).min(WARP) as usize;
        Warp::new(block, first, stacks.by_ref().take(lanes), body)
    });
    let mut crew = Crew {
        block,
        warps: warps.collect(),
    };
    loop {
        crew.run_until_all_wait()?;
        if crew.pass_barrier()?.is_none() {
            return Ok(());
        }
    }
}

struct Crew<'b> {
    block: &'b Block<'b>,
    warps: Vec<Warp<'b>>,
}

/// All lanes have passed a barrier.
struct Passed;

impl Crew<'_> {
    /// Gives turns until no lane can go on.
    fn run_until_all_wait(&mut self) -> Result<(), Box<Fault>> {
        let options = self.block.launch.options;
        let start = match options.lanes {
            LaneOrder::InOrder => 0,
            LaneOrder::Permuted => self.block.random() as usize,
        };
        while self.warps.iter().any(Warp::is_ready) {
            for i in 0..self.warps.len() {
                let number = (start.wrapping_add(i)) % self.warps.len();
                let warp = &mut self.warps[number];
                while warp.is_ready() {
                    warp.turn()?;
                    if options.preemption != Preemption::Collectives {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets all lanes pass the barrier they wait at; none when all have ended.
    fn pass_barrier(&mut self) -> Result<Option<Passed>, Box<Fault>> {
        if self
            .states()
            .all(|(_, waits)| matches!(waits, Waits::ForNothing))
        {
            return Ok(None);
        }
        if let Some(fault) = self.why_stuck() {
            return Err(fault);
        }
        let epoch = self.block.epoch.get() + 1;
        self.block.epoch.set(epoch);
        self.warps.iter_mut().for_each(Warp::pass_barrier);
        Ok(Some(Passed))
    }

    fn states(&self) -> impl Iterator<Item = (u32, &Waits)> {
        self.warps.iter().flat_map(Warp::states)
    }

    /// The reason why waiting lanes will never go on; none if all wait at the same barrier.
    ///
    /// Looked for in an order that does not depend on the schedule: shuffles and votes with lanes that
    /// have ended, those with lanes that wait elsewhere, and barriers.
    fn why_stuck(&self) -> Option<Box<Fault>> {
        let ended = |waits: &Whereabouts| *waits == Whereabouts::Ended;
        let found = self
            .absent_members()
            .find(|(.., whereabouts)| ended(whereabouts))
            .or_else(|| self.absent_members().next())
            .map(|(thread, site, members, absent, whereabouts)| {
                let kind = FaultKind::AbsentLane {
                    absent: absent % WARP,
                    whereabouts,
                    members,
                };
                (thread, site, kind)
            })
            .or_else(|| self.divergent_barrier())
            .or_else(|| self.too_many_barriers());
        let (thread, site, kind) = found?;
        Some(Box::new(self.block.fault(thread, site, kind)))
    }

    /// For every lane at a shuffle or vote, the members that do not come: its thread, line and members,
    /// the absent thread, and where that is.
    fn absent_members(
        &self,
    ) -> impl Iterator<Item = (u32, &'static Location<'static>, u32, u32, Whereabouts)> {
        self.states().flat_map(move |(thread, waits)| {
            let own = match waits {
                Waits::AtCollective(own) => Some(*own),
                _ => None,
            };
            let first = thread / WARP * WARP;
            own.into_iter().flat_map(move |own| {
                let named = (0..WARP).filter(move |lane| own.members >> lane & 1 != 0);
                named.filter_map(move |lane| {
                    let whereabouts = match self.state(first + lane) {
                        None => Whereabouts::NoSuchLane,
                        Some(Waits::ForNothing) => Whereabouts::Ended,
                        Some(Waits::AtBarrier(site)) => Whereabouts::Barrier((*site).into()),
                        Some(Waits::AtCollective(other)) if !other.matches(&own) => {
                            Whereabouts::Collective(other.site.into())
                        }
                        Some(_) => return None,
                    };
                    Some((thread, own.site, own.members, first + lane, whereabouts))
                })
            })
        })
    }

    fn state(&self, thread: u32) -> Option<&Waits> {
        let warp = self.warps.get((thread / WARP) as usize)?;
        warp.states()
            .nth((thread % WARP) as usize)
            .map(|(_, waits)| waits)
    }

    fn divergent_barrier(&self) -> Option<(u32, &'static Location<'static>, FaultKind)> {
        let at_barrier = |(thread, waits): (u32, &Waits)| match waits {
            Waits::AtBarrier(site) => Some((thread, *site)),
            _ => None,
        };
        let (thread, site) = self.states().find_map(at_barrier)?;
        let (absent, whereabouts) = self.states().find_map(|(other, waits)| match waits {
            Waits::ForNothing => Some((other, Whereabouts::Ended)),
            Waits::AtBarrier(elsewhere) if *elsewhere != site => {
                Some((other, Whereabouts::Barrier((*elsewhere).into())))
            }
            _ => None,
        })?;
        let kind = FaultKind::DivergentBarrier {
            absent,
            whereabouts,
        };
        Some((thread, site, kind))
    }

    fn too_many_barriers(&self) -> Option<(u32, &'static Location<'static>, FaultKind)> {
        let (epoch, limit) = (self.block.epoch.get(), u64::from(MAX_EPOCH));
        let Some((thread, Waits::AtBarrier(site))) = self.states().next() else {
            return None;
        };
        let kind = FaultKind::Limit {
            what: "number of barriers",
            device: "the emulator".to_owned(),
            limit,
            given: limit + 1,
        };
        (epoch == MAX_EPOCH).then_some((thread, *site, kind))
    }
}
