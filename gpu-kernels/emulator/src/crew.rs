//! All warps of a block, and all blocks of a cluster: turns, barriers, and what to say when nobody can go on.

use std::panic::Location;

use gpu_kernels::cta::WARP;

use super::block::{Block, Scope, Waits};
use super::cluster::Cluster;
use super::collective::Collective;
use super::fault::{Fault, FaultKind, Whereabouts};
use super::options::{LaneOrder, Preemption};
use super::shadow::MAX_EPOCH;
use super::stack::{Room, Stacks};
use super::warp::{Body, Gathered, Warp};

/// Runs the blocks of a cluster to their end.
pub(super) fn run_cluster(
    cluster: &Cluster<'_>,
    blocks: &[Block<'_>],
    stacks: &mut Stacks,
    body: Body<'_>,
) -> Result<(), Box<Fault>> {
    let mut rooms = stacks.lend();
    let crews = blocks.iter();
    let mut crews: Vec<_> = crews
        .map(|block| Crew::new(block, &mut rooms, body))
        .collect();
    loop {
        let start = crews[0].start();
        for i in 0..crews.len() {
            let crew = start.wrapping_add(i) % crews.len();
            crews[crew].run_until_all_wait()?;
        }
        if pass_barriers(cluster, &mut crews)?.is_none() {
            return cluster.end();
        }
    }
}

/// All lanes have passed a barrier.
struct Passed;

/// Lets all blocks pass the barriers that they wait at, each its own, or all together the cluster's; none when all have
/// ended.
fn pass_barriers(
    cluster: &Cluster<'_>,
    crews: &mut [Crew<'_>],
) -> Result<Option<Passed>, Box<Fault>> {
    let mut passed = None;
    for crew in &mut *crews {
        if let Gathered::AtBarrier(site, Scope::Block) = crew.place()? {
            crew.pass_barrier(site)?;
            passed = Some(Passed);
        }
    }
    if passed.is_some() {
        return Ok(passed);
    }
    let place = crews[0].place()?;
    if let Some(elsewhere) = find_elsewhere(place, crews)? {
        return Err(elsewhere);
    }
    let Gathered::AtBarrier(site, _) = place else {
        return Ok(None);
    };
    for crew in &mut *crews {
        crew.pass_barrier(site)?;
    }
    let epochs = crews.iter().map(|crew| crew.block);
    cluster.pass_barrier(epochs.map(|block| (block.number, block.epoch.get())));
    Ok(Some(Passed))
}

/// What to say when not all blocks are in one place and none goes on.
fn find_elsewhere(place: Gathered, crews: &[Crew<'_>]) -> Result<Option<Box<Fault>>, Box<Fault>> {
    for crew in crews {
        let other = crew.place()?;
        let (waiting, site, absent, is_at) = match (place, other) {
            (a, b) if a.is(b) => continue,
            (Gathered::AtBarrier(site, _), other) => (crews[0].block, site, crew.block, other),
            (ended, Gathered::AtBarrier(site, _)) => (crew.block, site, crews[0].block, ended),
            _ => continue,
        };
        let whereabouts = match is_at {
            Gathered::AtBarrier(site, _) => Whereabouts::Barrier(site.into()),
            _ => Whereabouts::Ended,
        };
        let absent = absent.number;
        let kind = FaultKind::DivergentCluster {
            absent,
            whereabouts,
        };
        return Ok(Some(Box::new(waiting.fault(0, site, kind))));
    }
    Ok(None)
}

/// The warps of a block.
struct Crew<'b> {
    block: &'b Block<'b>,
    warps: Vec<Warp<'b>>,
}

impl<'b> Crew<'b> {
    fn new(
        block: &'b Block<'b>,
        rooms: &mut impl Iterator<Item = Room<'b>>,
        body: Body<'b>,
    ) -> Crew<'b> {
        let threads = block.launch.shape.block;
        let warps = (0..threads).step_by(WARP as usize).map(|first| {
            let lanes = (threads - first).min(WARP) as usize;
            Warp::new(block, first, rooms.by_ref().take(lanes), body)
        });
        Crew {
            block,
            warps: warps.collect(),
        }
    }

    /// Who has the first turn.
    fn start(&self) -> usize {
        match self.block.launch.options.lanes {
            LaneOrder::InOrder => 0,
            LaneOrder::Permuted => self.block.random() as usize,
        }
    }

    /// Gives turns until no lane can go on.
    fn run_until_all_wait(&mut self) -> Result<(), Box<Fault>> {
        let options = self.block.launch.options;
        let start = self.start();
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

    /// Lets all lanes pass the barrier they wait at.
    fn pass_barrier(&mut self, site: &Location<'_>) -> Result<(), Box<Fault>> {
        self.count_barrier(site)?;
        self.warps.iter_mut().for_each(Warp::pass_barrier);
        Ok(())
    }

    /// Where all lanes are, none of which can go on.
    fn place(&self) -> Result<Gathered, Box<Fault>> {
        match self.gathered() {
            Gathered::Nowhere => Err(self.why_stuck()),
            place => Ok(place),
        }
    }

    fn gathered(&self) -> Gathered {
        let mut places = self.warps.iter().map(Warp::gathered);
        let first = places.next().unwrap_or(Gathered::AtEnd);
        if places.all(|place| place.is(first)) {
            first
        } else {
            Gathered::Nowhere
        }
    }

    fn count_barrier(&self, site: &Location<'_>) -> Result<(), Box<Fault>> {
        let epoch = self.block.epoch.get();
        if epoch < MAX_EPOCH {
            self.block.begin_epoch(epoch + 1);
            return Ok(());
        }
        let kind = FaultKind::Limit {
            what: "number of barriers",
            device: "the emulator".to_owned(),
            limit: u64::from(MAX_EPOCH),
            given: u64::from(MAX_EPOCH) + 1,
        };
        Err(Box::new(self.block.fault(0, site, kind)))
    }

    fn states(&self) -> impl Iterator<Item = (u32, Waits)> {
        (0..).zip(self.block.slots.iter().map(|slot| slot.waits.get()))
    }

    /// The reason why waiting lanes will never go on.
    ///
    /// Looked for in an order that does not depend on the schedule: shuffles and votes with lanes that
    /// have ended, those with lanes that wait elsewhere, and barriers.
    fn why_stuck(&self) -> Box<Fault> {
        let (thread, site, kind) = self
            .absent_members()
            .find(|absent| absent.whereabouts == Whereabouts::Ended)
            .or_else(|| self.absent_members().next())
            .map(Absence::accuse)
            .or_else(|| self.divergent_barrier())
            .expect("lanes that wait, but not all at one barrier, wait for somebody");
        Box::new(self.block.fault(thread, site, kind))
    }

    /// The lanes that others wait for at a shuffle or vote, and that do not come.
    fn absent_members(&self) -> impl Iterator<Item = Absence> {
        let at_meeting = |(thread, waits): (u32, Waits)| match waits {
            Waits::AtMeeting(own) => Some((thread, own)),
            _ => None,
        };
        self.states()
            .filter_map(at_meeting)
            .flat_map(move |(thread, own)| {
                let named = (0..WARP).filter(move |lane| own.members >> lane & 1 != 0);
                named.filter_map(move |lane| {
                    Some(Absence {
                        thread,
                        own,
                        lane,
                        whereabouts: self.whereabouts(thread / WARP * WARP + lane, &own)?,
                    })
                })
            })
    }

    /// Where a thread is that should take part in `meeting`; none if it does.
    fn whereabouts(&self, thread: u32, meeting: &Collective) -> Option<Whereabouts> {
        match self.state(thread) {
            None => Some(Whereabouts::NoSuchLane),
            Some(Waits::ForNothing) => Some(Whereabouts::Ended),
            Some(Waits::AtBarrier(site, _)) => Some(Whereabouts::Barrier(site.into())),
            Some(Waits::AtMeeting(other)) if !other.matches(meeting) => {
                Some(Whereabouts::Collective(other.site.into()))
            }
            Some(_) => None,
        }
    }

    fn state(&self, thread: u32) -> Option<Waits> {
        let slot = self.block.slots.get(thread as usize)?;
        Some(slot.waits.get())
    }

    fn divergent_barrier(&self) -> Option<(u32, &'static Location<'static>, FaultKind)> {
        let at_barrier = |(thread, waits): (u32, Waits)| match waits {
            Waits::AtBarrier(site, _) => Some((thread, site)),
            _ => None,
        };
        let (thread, site) = self.states().find_map(at_barrier)?;
        let (absent, whereabouts) = self.states().find_map(|(other, waits)| match waits {
            Waits::ForNothing => Some((other, Whereabouts::Ended)),
            Waits::AtBarrier(elsewhere, _) if !std::ptr::eq(elsewhere, site) => {
                Some((other, Whereabouts::Barrier(elsewhere.into())))
            }
            _ => None,
        })?;
        let kind = FaultKind::DivergentBarrier {
            absent,
            whereabouts,
        };
        Some((thread, site, kind))
    }
}

/// A lane that another waits for in vain.
struct Absence {
    /// Who waits.
    thread: u32,
    /// For what.
    own: Collective,
    /// The lane that does not come.
    lane: u32,
    whereabouts: Whereabouts,
}

impl Absence {
    fn accuse(self) -> (u32, &'static Location<'static>, FaultKind) {
        let kind = FaultKind::AbsentLane {
            absent: self.lane,
            whereabouts: self.whereabouts,
            members: self.own.members,
        };
        (self.thread, self.own.site, kind)
    }
}
