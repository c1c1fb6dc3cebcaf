//! Threads of one process as the members of a group.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use super::communicator::Communicator;
use super::error::GroupError;
use super::roll_call::{ENDED, PANICKED};
use super::{Group, slices_of};
use crate::parallel::locked;

/// Has `work` run by `size` threads that are members of one group, each with its share of the processor's threads. Returns
/// what each returned, in the order of the ranks.
///
/// A member's group is for as long as its `work` runs. One that returns or panics while the others wait for it ends their
/// wait with [`GroupError::Left`].
///
/// # Panics
/// When `size` is 0; and as `work` does, once all members have ended.
pub fn run_threads<R: Send>(size: usize, work: impl Fn(Group) -> R + Sync) -> Vec<R> {
    assert!(size > 0, "a group has one member at least");
    let members = members(size);
    let own = (rayon::current_num_threads() / size).max(1);
    let run = |group: Group| {
        // A pool of its own: a member that waits for another one must not occupy a thread that the other one needs.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(own).build();
        match pool {
            Ok(pool) => pool.install(|| work(group)),
            Err(_) => work(group),
        }
    };
    thread::scope(|scope| {
        let run = &run;
        let begun: Vec<_> = members
            .into_iter()
            .map(|group| scope.spawn(move || run(group)))
            .collect();
        let ended: Vec<_> = begun.into_iter().map(|member| member.join()).collect();
        let each = ended.into_iter();
        each.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The members of a group of threads, for those who run the threads themselves.
pub(super) fn members(size: usize) -> Vec<Group> {
    let room = Arc::new(Room {
        state: Mutex::new(State {
            mail: (0..size * size).map(|_| VecDeque::new()).collect(),
            left: vec![None; size],
            failed: None,
        }),
        changed: Condvar::new(),
        size,
    });
    let member = |rank| Thread {
        room: room.clone(),
        rank,
    };
    (0..size)
        .map(|rank| Group::over(Box::new(member(rank))))
        .collect()
}

/// Where messages lie.
#[derive(Debug)]
struct Room {
    state: Mutex<State>,
    changed: Condvar,
    size: usize,
}

#[derive(Debug)]
struct State {
    /// Messages from each member to each, number from·size + to.
    mail: Vec<VecDeque<Vec<u8>>>,
    /// How members left that did.
    left: Vec<Option<&'static str>>,
    /// Who said first that it cannot go on, and why.
    failed: Option<(usize, String)>,
}

/// A member.
#[derive(Debug)]
struct Thread {
    room: Arc<Room>,
    rank: usize,
}

impl Drop for Thread {
    fn drop(&mut self) {
        let how = if thread::panicking() { PANICKED } else { ENDED };
        locked(&self.room.state).left[self.rank] = Some(how);
        self.room.changed.notify_all();
    }
}

impl Thread {
    fn put(&self, to: usize, bytes: &[u8]) {
        let place = self.rank * self.room.size + to;
        locked(&self.room.state).mail[place].push_back(bytes.to_vec());
        self.room.changed.notify_all();
    }

    fn take(&self, from: usize, until: Instant) -> Result<Vec<u8>, GroupError> {
        let place = from * self.room.size + self.rank;
        let mut state = locked(&self.room.state);
        loop {
            if let Some(bytes) = state.mail[place].pop_front() {
                return Ok(bytes);
            }
            if let Some((rank, message)) = state.failed.clone() {
                return Err(GroupError::Failed { rank, message });
            }
            if let Some(how) = state.left[from] {
                return Err(GroupError::Left { rank: from, how });
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(super::missing(from));
            }
            let waited = self.room.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

impl Communicator for Thread {
    fn name(&self) -> String {
        format!("{} threads", self.room.size)
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.room.size
    }

    fn send(&self, to: usize, bytes: &[u8], _: Instant) -> Result<(), GroupError> {
        self.put(to, bytes);
        Ok(())
    }

    fn receive(&self, from: usize, bytes: &mut [u8], until: Instant) -> Result<(), GroupError> {
        bytes.copy_from_slice(&self.take(from, until)?);
        Ok(())
    }

    fn all_gather(
        &self,
        own: &[u8],
        lengths: &[usize],
        all: &mut [u8],
        until: Instant,
    ) -> Result<(), GroupError> {
        for to in 0..self.room.size {
            self.put(to, own);
        }
        let places = slices_of(all, lengths).into_iter().enumerate();
        for (from, place) in places {
            place.copy_from_slice(&self.take(from, until)?);
        }
        Ok(())
    }

    fn exchange(
        &self,
        (parts, sent): (&[u8], &[usize]),
        (all, received): (&mut [u8], &[usize]),
        until: Instant,
    ) -> Result<(), GroupError> {
        let mut start = 0;
        for (to, len) in sent.iter().enumerate() {
            self.put(to, &parts[start..start + len]);
            start += len;
        }
        let places = slices_of(all, received).into_iter().enumerate();
        for (from, place) in places {
            place.copy_from_slice(&self.take(from, until)?);
        }
        Ok(())
    }

    fn departed(&self) -> Option<GroupError> {
        let state = locked(&self.room.state);
        if let Some((rank, message)) = state.failed.clone() {
            return Some(GroupError::Failed { rank, message });
        }
        let mut left = state.left.iter().enumerate();
        left.find_map(|(rank, how)| how.map(|how| GroupError::Left { rank, how }))
    }

    fn report(&self, message: &str) {
        let mut state = locked(&self.room.state);
        state.failed.get_or_insert((self.rank, message.to_owned()));
        self.room.changed.notify_all();
    }
}
