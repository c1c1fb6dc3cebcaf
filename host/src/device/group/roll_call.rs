//! The beginning of every collective: what each member is about to do, and whether all may go on.
//!
//! Two messages for each member, of which rank 0 gets and answers one each: some microseconds within one machine. For that, a
//! mistake or a failure of one member is an error of all that names it, instead of an endless wait.

use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};

use super::communicator::Communicator;
use super::error::GroupError;

/// What a member is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Operation {
    Barrier,
    Sum,
    Max,
    Broadcast,
    AllGather,
    Carry,
    SumShares,
    GatherShares,
}

const OPERATIONS: [(Operation, &str); 8] = [
    (Operation::Barrier, "a barrier"),
    (Operation::Sum, "a sum"),
    (Operation::Max, "a maximum"),
    (Operation::Broadcast, "a broadcast"),
    (Operation::AllGather, "a gathering"),
    (Operation::Carry, "a pass from rank to rank"),
    (Operation::SumShares, "a sum in shares"),
    (Operation::GatherShares, "a gathering of shares"),
];

impl Operation {
    pub(super) fn name(self) -> &'static str {
        OPERATIONS[self as usize].1
    }

    /// Whether the numbers of all members have to be as many.
    fn is_even(self) -> bool {
        self != Operation::AllGather
    }
}

/// Longest text of a failure that is passed on.
const TEXT: usize = 32 * 7;

/// A text of a message.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Text {
    bytes: [[u8; 32]; 7],
    len: u64,
}

impl Text {
    fn of(text: &str) -> Text {
        let mut all = Text::zeroed();
        let mut len = text.len().min(TEXT);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        all.bytes.as_flattened_mut()[..len].copy_from_slice(&text.as_bytes()[..len]);
        all.len = len as u64;
        all
    }

    fn read(&self) -> String {
        let len = (self.len as usize).min(TEXT);
        String::from_utf8_lossy(&self.bytes.as_flattened()[..len]).into_owned()
    }
}

/// What a member tells rank 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Present {
    /// How many collectives it has begun.
    call: u64,
    /// Its numbers.
    len: u64,
    /// A detail that has to be the same everywhere, such as the rank that a broadcast is of.
    detail: u64,
    /// Bytes of a number.
    size: u32,
    operation: u32,
    failed: u64,
    text: Text,
}

/// What rank 0 answers; the lengths of all follow.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Verdict {
    kind: u32,
    rank: u32,
    expected: Text,
    found: Text,
}

const GO: u32 = 0;
const FAILED: u32 = 1;
const MISSING: u32 = 2;
const DIFFERS: u32 = 3;
const LEFT: u32 = 4;

/// A collective that a member is about to begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) number: u64,
    pub(super) operation: Operation,
    pub(super) len: usize,
    pub(super) size: usize,
    pub(super) detail: u64,
    /// Why this member cannot go on.
    pub(super) failure: Option<&'a str>,
}

impl Call<'_> {
    fn present(&self) -> Present {
        Present {
            call: self.number,
            len: self.len as u64,
            detail: self.detail,
            size: self.size as u32,
            operation: self.operation as u32,
            failed: u64::from(self.failure.is_some()),
            text: Text::of(self.failure.unwrap_or("")),
        }
    }
}

impl Present {
    fn describe(&self) -> String {
        let named = OPERATIONS.get(self.operation as usize);
        let name = named.map_or("an unknown operation", |(_, name)| name);
        format!(
            "{name} of {} elements of {} bytes (its call {})",
            self.len, self.size, self.call
        )
    }

    fn fits(&self, first: &Present) -> bool {
        let even = OPERATIONS
            .get(first.operation as usize)
            .is_some_and(|(operation, _)| operation.is_even());
        let same = |of: &Present| (of.call, of.operation, of.size, of.detail);
        same(self) == same(first) && (!even || self.len == first.len)
    }
}

/// Tells rank 0 what this member is about to do and waits for its answer: the lengths of all members.
pub(super) fn call_roll(
    engine: &dyn Communicator,
    call: &Call<'_>,
    limit: Duration,
) -> Result<Vec<usize>, GroupError> {
    match engine.rank() {
        0 => lead(engine, call, limit),
        _ => follow(engine, call, limit),
    }
}

fn lead(
    engine: &dyn Communicator,
    call: &Call<'_>,
    limit: Duration,
) -> Result<Vec<usize>, GroupError> {
    let until = Instant::now() + limit;
    let mut present = vec![Some(call.present())];
    let mut fault = None;
    for rank in 1..engine.size() {
        let mut own = Present::zeroed();
        let came = engine.receive(rank, bytemuck::bytes_of_mut(&mut own), until);
        present.push(came.is_ok().then_some(own));
        if let Err(error @ (GroupError::Left { .. } | GroupError::Engine { .. })) = came {
            fault = fault.or(Some(error));
        }
    }
    let lengths: Vec<u64> = present.iter().map(|of| of.map_or(0, |of| of.len)).collect();
    let error = judge(&present, fault, (call, limit)).err();
    let verdict = error.as_ref().map_or(Verdict::zeroed(), verdict_of);
    let mut answer = bytemuck::bytes_of(&verdict).to_vec();
    answer.extend_from_slice(bytemuck::cast_slice(&lengths));
    // Whoever does not take the answer finds out by itself.
    let until = Instant::now() + limit;
    for rank in (1..engine.size()).filter(|rank| present[*rank].is_some()) {
        let sent = engine.send(rank, &answer, until);
        if error.is_none() {
            sent?;
        }
    }
    match error {
        Some(error) => Err(error),
        None => Ok(lengths.into_iter().map(|len| len as usize).collect()),
    }
}

/// Whether all are there, none has failed, and all do the same.
fn judge(
    present: &[Option<Present>],
    fault: Option<GroupError>,
    (call, limit): (&Call<'_>, Duration),
) -> Result<(), GroupError> {
    let each = || {
        let there = present.iter().enumerate();
        there.filter_map(|(rank, of)| of.as_ref().map(|of| (rank, of)))
    };
    if let Some((rank, of)) = each().find(|(_, of)| of.failed != 0) {
        let message = of.text.read();
        return Err(GroupError::Failed { rank, message });
    }
    if let Some(fault) = fault {
        return Err(fault);
    }
    let missing: Vec<usize> = (0..present.len())
        .filter(|rank| present[*rank].is_none())
        .collect();
    if !missing.is_empty() {
        return Err(GroupError::Missing {
            ranks: missing,
            operation: call.operation.name(),
            seconds: limit.as_secs(),
        });
    }
    let first = call.present();
    match each().find(|(_, of)| !of.fits(&first)) {
        Some((rank, of)) => Err(GroupError::Differs {
            rank,
            expected: first.describe(),
            found: of.describe(),
        }),
        None => Ok(()),
    }
}

fn verdict_of(error: &GroupError) -> Verdict {
    let (kind, rank, expected, found) = match error {
        GroupError::Failed { rank, message } => (FAILED, *rank, String::new(), message.clone()),
        GroupError::Missing { ranks, .. } => {
            let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
            (MISSING, 0, String::new(), ranks.join(" "))
        }
        GroupError::Differs {
            rank,
            expected,
            found,
        } => (DIFFERS, *rank, expected.clone(), found.clone()),
        GroupError::Left { rank, how } => (LEFT, *rank, String::new(), (*how).to_owned()),
        other => (FAILED, 0, String::new(), other.to_string()),
    };
    Verdict {
        kind,
        rank: rank as u32,
        expected: Text::of(&expected),
        found: Text::of(&found),
    }
}

fn follow(
    engine: &dyn Communicator,
    call: &Call<'_>,
    limit: Duration,
) -> Result<Vec<usize>, GroupError> {
    let until = Instant::now() + limit;
    engine.send(0, bytemuck::bytes_of(&call.present()), until)?;
    let mut verdict = Verdict::zeroed();
    let mut lengths = vec![0_u64; engine.size()];
    let mut answer = vec![0; size_of::<Verdict>() + 8 * engine.size()];
    // Rank 0 may begin to wait as late as this member gives up: its answer names who is missing.
    let came = engine.receive(0, &mut answer, until + limit);
    came.map_err(|error| match error {
        GroupError::Missing { ranks, .. } => GroupError::Missing {
            ranks,
            operation: call.operation.name(),
            seconds: 2 * limit.as_secs(),
        },
        other => other,
    })?;
    let (head, tail) = answer.split_at(size_of::<Verdict>());
    bytemuck::bytes_of_mut(&mut verdict).copy_from_slice(head);
    bytemuck::cast_slice_mut(&mut lengths).copy_from_slice(tail);
    let (rank, found) = (verdict.rank as usize, verdict.found.read());
    Err(match verdict.kind {
        GO => return Ok(lengths.into_iter().map(|len| len as usize).collect()),
        MISSING => GroupError::Missing {
            ranks: found.split(' ').flat_map(str::parse).collect(),
            operation: call.operation.name(),
            seconds: limit.as_secs(),
        },
        DIFFERS => GroupError::Differs {
            rank,
            expected: verdict.expected.read(),
            found,
        },
        LEFT => GroupError::Left {
            rank,
            how: how(&found),
        },
        _ => GroupError::Failed {
            rank,
            message: found,
        },
    })
}

/// By a panic.
pub(super) const PANICKED: &str = "it panicked";
/// By returning.
pub(super) const ENDED: &str = "it ended";

fn how(text: &str) -> &'static str {
    match text {
        PANICKED => PANICKED,
        _ => ENDED,
    }
}
