//! Parsing a text in parallel, by chunks of whole lines.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::error::Fault;
use super::options::{Progress, ReadSoFar};
use crate::parallel;

/// Largest chunk: small enough that progress moves and that threads finish together.
const MAX_CHUNK: usize = 4 << 20;
/// Smallest chunk: large enough that its vectors are worth allocating.
const MIN_CHUNK: usize = 64 << 10;
/// Chunks per thread, so that an uneven one does not keep the others waiting.
const CHUNKS_PER_THREAD: usize = 4;
/// What the vectors of even the leanest solver take per column: four of them in f32.
const BYTES_PER_COLUMN: u64 = 16;

/// Keeps count of bytes parsed, for the progress report, and of memory taken, for the limit.
pub(super) struct Meter<'a> {
    progress: Option<&'a Progress>,
    total: u64,
    done: AtomicU64,
    lines: AtomicU64,
    limit: u64,
    taken: AtomicU64,
}

impl<'a> Meter<'a> {
    /// A meter for `total` bytes of text and `limit` bytes of memory.
    pub(super) fn new(progress: Option<&'a Progress>, total: usize, limit: u64) -> Self {
        Self {
            progress,
            total: total as u64,
            done: AtomicU64::new(0),
            lines: AtomicU64::new(0),
            limit,
            taken: AtomicU64::new(0),
        }
    }

    /// Counts `bytes` of memory as taken.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Fault> {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let (needed, limit) = (taken.saturating_add(bytes), self.limit);
        let why = None;
        if needed > limit {
            return Err(Fault::Memory { needed, limit, why });
        }
        Ok(())
    }

    /// Refuses a number of columns over which no solver could hold its vectors: one stray digit in
    /// an index may ask for billions.
    pub(super) fn check_columns(&self, cols: usize) -> Result<(), Fault> {
        let (needed, limit) = (cols as u64 * BYTES_PER_COLUMN, self.limit);
        if needed > limit {
            let why = Some(format!("vectors over {cols} columns"));
            return Err(Fault::Memory { needed, limit, why });
        }
        Ok(())
    }

    fn parsed(&self, chunk: &[u8]) {
        let Some(progress) = self.progress else {
            return;
        };
        let add = |to: &AtomicU64, count: u64| to.fetch_add(count, Ordering::Relaxed) + count;
        let unfinished = u64::from(chunk.last().is_some_and(|last| *last != b'\n'));
        let lines = memchr::memchr_iter(b'\n', chunk).count() as u64 + unfinished;
        progress.report(ReadSoFar {
            bytes: add(&self.done, chunk.len() as u64),
            total_bytes: self.total,
            lines: add(&self.lines, lines),
        });
    }
}

/// What a parser made of a chunk, and how much memory it takes.
pub(super) trait Parsed: Send {
    /// Bytes held.
    fn bytes(&self) -> u64;
}

/// Parses the lines of `text[body]` by chunks, in parallel; the results come in file order.
///
/// `parse` gets whole lines and the place in `text` where they start. Of several faults the first
/// one in the file is returned, however the threads are scheduled.
pub(super) fn parse_chunks<C: Parsed>(
    text: &[u8],
    body: Range<usize>,
    meter: &Meter<'_>,
    parse: impl Fn(&[u8], usize) -> Result<C, Fault> + Sync,
) -> Result<Vec<C>, Fault> {
    let first_bad = AtomicUsize::new(usize::MAX);
    let results = parallel::map_items(split_lines(text, body), |number, range| {
        if number > first_bad.load(Ordering::Relaxed) {
            return None;
        }
        let result = parse(&text[range.clone()], range.start)
            .and_then(|chunk| meter.take(chunk.bytes()).map(|()| chunk));
        match &result {
            Ok(_) => meter.parsed(&text[range]),
            Err(_) => drop(first_bad.fetch_min(number, Ordering::Relaxed)),
        }
        Some(result)
    });
    results.into_iter().flatten().collect()
}

/// The lines of `text[body]` that reader `number` of `of` parses: those that start in its part of the bytes.
pub(super) fn own_lines(
    text: &[u8],
    body: Range<usize>,
    (number, of): (usize, usize),
) -> Range<usize> {
    let cut = |number: usize| {
        // The product of a length and a number of readers may exceed 64 bits.
        let bytes = body.len() as u128 * number as u128 / of as u128;
        let at = body.start + bytes as usize;
        if at == body.start || at == body.end {
            return at;
        }
        let newline = memchr::memchr(b'\n', &text[at - 1..body.end]);
        newline.map_or(body.end, |newline| at + newline)
    };
    cut(number)..cut(number + 1)
}

/// The lines after `start` that hold the next `samples` samples.
pub(super) fn next_samples(
    text: &[u8],
    start: usize,
    samples: usize,
    is_sample: impl Fn(&[u8]) -> bool,
) -> Range<usize> {
    let ends = lines(&text[start..]).filter(|(_, line)| is_sample(line));
    let last = ends.take(samples).last();
    let end = last.map_or(start, |(at, line)| start + at + line.len() + 1);
    start..end.min(text.len())
}

/// Cuts `text[body]` into ranges that end after a newline (the last one at the end).
fn split_lines(text: &[u8], body: Range<usize>) -> Vec<Range<usize>> {
    let share = body.len() / (CHUNKS_PER_THREAD * rayon::current_num_threads());
    let step = share.clamp(MIN_CHUNK, MAX_CHUNK);
    let (mut ranges, mut start) = (Vec::new(), body.start);
    while start < body.end {
        let wanted = body.end.min(start + step);
        let newline = memchr::memchr(b'\n', &text[wanted..body.end]);
        let end = newline.map_or(body.end, |newline| wanted + newline + 1);
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// The lines of a chunk without their newlines, each with the place where it starts.
pub(super) fn lines(chunk: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = chunk.get(start..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = (start, &rest[..length]);
        start += length + 1;
        Some(line)
    })
}

/// Whether `byte` separates words within a line; a carriage return before the newline does.
#[inline]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}
