//! MPI: processes of one machine or of many.
//!
//! The library is opened at run time, and the dozen functions that are needed are declared in [`library`]. The crate `mpi`
//! is not used: it needs libclang and an MPI compiler to build, and ties the program to the one library that it was built
//! with; so one binary starts on machines with Open MPI, with MPICH, and with neither.
//!
//! Only functions that do not block are called, and tested until they are done or the limit has passed: MPI itself waits
//! without end for a process that does not come. A process that dies is noticed by `mpirun`, which ends the others and names
//! it.

mod library;

use std::ffi::c_int;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use super::communicator::Communicator;
use super::error::GroupError;
use super::slices_of;
use crate::parallel::locked;
use library::{Handle, Library, Request};

/// Bytes that one call moves at most: MPI counts with 31 bits.
const MOST_BYTES: usize = 1 << 30;
/// Of all messages from member to member.
const TAG: c_int = 7;
/// What the process ends with where nobody may wait for it.
const ABORTED: c_int = 1;

/// A process.
#[derive(Debug)]
pub(super) struct Mpi {
    library: &'static Library,
    world: Handle,
    rank: usize,
    size: usize,
    /// Whether MPI is this group's to end.
    is_own: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether other members may not get as far as the end.
    abandoned: bool,
}

impl Mpi {
    /// Initialises MPI, unless somebody did, and joins all processes.
    pub(super) fn open() -> Result<Mpi, GroupError> {
        let library = Library::find()?;
        let is_own = library.initialise()?;
        let world = library.duplicate_world()?;
        let (rank, size) = library.rank_and_size(world)?;
        Ok(Mpi {
            library,
            world,
            rank,
            size,
            is_own,
            state: Mutex::default(),
        })
    }

    /// Tests `request` until it is done; the bytes that came.
    fn wait(
        &self,
        mut request: Request,
        peer: usize,
        until: Instant,
    ) -> Result<Vec<u8>, GroupError> {
        let mut tries = 0_u32;
        while !self.library.is_done(&mut request)? {
            tries += 1;
            // A short wait costs no system call, a long one no processor that another member needs.
            if tries > 64 {
                thread::yield_now();
                if Instant::now() >= until {
                    locked(&self.state).abandoned = true;
                    // What is under way may still be written to: the memory is MPI's from now on.
                    std::mem::forget(request);
                    return Err(super::missing(peer));
                }
            }
        }
        Ok(request.into_bytes())
    }
}

/// Where pieces of `lengths` begin, one after the other.
fn starts(lengths: &[usize]) -> Vec<usize> {
    let mut sum = 0;
    let each = lengths.iter().map(|len| {
        sum += len;
        sum - len
    });
    each.collect()
}

/// How much of each piece the round has that begins at `from`, of at most `most` bytes a piece.
fn round(lengths: &[usize], from: usize, most: usize) -> Vec<usize> {
    let each = lengths.iter();
    each.map(|len| len.saturating_sub(from).min(most)).collect()
}

/// What the round has of each piece, one after the other.
fn packed(all: &[u8], lengths: &[usize], from: usize, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let pieces = starts(lengths).into_iter().zip(lengths);
    for ((start, len), count) in pieces.zip(round(lengths, from, most)) {
        let begin = start + from.min(*len);
        bytes.extend_from_slice(&all[begin..begin + count]);
    }
    bytes
}

/// The reverse of [`packed`].
fn unpack(bytes: &[u8], all: &mut [u8], lengths: &[usize], from: usize, most: usize) {
    let mut at = 0;
    let counts = round(lengths, from, most);
    let pieces = slices_of(all, lengths).into_iter().zip(counts);
    for (piece, count) in pieces.filter(|(_, count)| *count > 0) {
        piece[from..from + count].copy_from_slice(&bytes[at..at + count]);
        at += count;
    }
}

impl Communicator for Mpi {
    fn name(&self) -> String {
        format!("{}, {} processes", self.library.name(), self.size)
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, bytes: &[u8], until: Instant) -> Result<(), GroupError> {
        for bytes in bytes.chunks(MOST_BYTES) {
            let request = self.library.send(bytes, to, TAG, self.world)?;
            self.wait(request, to, until)?;
        }
        Ok(())
    }

    fn receive(&self, from: usize, bytes: &mut [u8], until: Instant) -> Result<(), GroupError> {
        for bytes in bytes.chunks_mut(MOST_BYTES) {
            let request = self.library.receive(bytes.len(), from, TAG, self.world)?;
            bytes.copy_from_slice(&self.wait(request, from, until)?);
        }
        Ok(())
    }

    fn all_gather(
        &self,
        own: &[u8],
        lengths: &[usize],
        all: &mut [u8],
        until: Instant,
    ) -> Result<(), GroupError> {
        let most = MOST_BYTES / self.size;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        for from in (0..longest).step_by(most) {
            let counts = round(lengths, from, most);
            let begin = from.min(own.len());
            let own = &own[begin..begin + counts[self.rank]];
            let request = self.library.all_gather(own, &counts, self.world)?;
            let bytes = self.wait(request, self.rank, until)?;
            unpack(&bytes, all, lengths, from, most);
        }
        Ok(())
    }

    fn exchange(
        &self,
        (parts, sent): (&[u8], &[usize]),
        (all, received): (&mut [u8], &[usize]),
        until: Instant,
    ) -> Result<(), GroupError> {
        let most = MOST_BYTES / self.size;
        // As many rounds as the longest piece of all members needs.
        let longest = sent.iter().copied().max().unwrap_or(0);
        for from in (0..longest).step_by(most) {
            let own = packed(parts, sent, from, most);
            let counts = (round(sent, from, most), round(received, from, most));
            let counts = (&counts.0[..], &counts.1[..]);
            let request = self.library.exchange(&own, counts, self.world)?;
            let bytes = self.wait(request, self.rank, until)?;
            unpack(&bytes, all, received, from, most);
        }
        Ok(())
    }

    fn abandon(&self) {
        locked(&self.state).abandoned = true;
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if !self.is_own {
            return;
        }
        if thread::panicking() || locked(&self.state).abandoned {
            // Ends all processes: the others may wait for this one, and the end of MPI waits for all.
            self.library.abort(self.world, ABORTED);
        } else {
            self.library.finalise();
        }
    }
}
