//! Fits of some rows while the next ones cross the link.
//!
//! Rows lie in blocks, two of which a device has: all threads make one, which crosses meanwhile, and a launch makes its fits while
//! the next one is made. So all fits take as long as their rows cross, and those of the last block longer.

use std::ops::Range;

use super::given::{at_least, check_columns, check_size};
use super::host;
use super::launch::{self, Launches};
use super::made::{Image, MadeRows};
use super::values::{FitRules, Minima, SmallFit};
use crate::device::feed::{Feed, Source};
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError, checks};
use crate::plan::fits::{Crossing, cut};
use crate::plan::streaming::SLOTS;

/// Bytes of all rows below which nobody asks a device without a limit how much is free.
const SMALL_BYTES: u64 = 64 << 20;

/// [`minimise_each`](super::minimise_each) of rows that are made on their way to the device, with the same bits. A fit's
/// targets, weights and offsets are those of its rows: places of its own of targets and weights are not looked at.
///
/// # Errors
/// As there.
///
/// # Panics
/// When fits are not in the order of their rows, or share some.
pub(crate) fn minimise_made<T: Number>(
    device: &Device,
    made: &MadeRows<'_, T>,
    rules: &FitRules<'_>,
    fits: &[SmallFit],
    start: &[f64],
) -> Result<Minima, OpError> {
    check(made, rules, fits, start)?;
    let block = crossing(device, made, fits)?.block_bytes();
    minimise_in(device, (made, block), rules, fits, start)
}

/// [`minimise_made`] in blocks of this many bytes.
pub(super) fn minimise_in<T: Number>(
    device: &Device,
    (made, block): (&MadeRows<'_, T>, u64),
    rules: &FitRules<'_>,
    fits: &[SmallFit],
    start: &[f64],
) -> Result<Minima, OpError> {
    if fits.is_empty() {
        return Minima::new(made.cols + 1, Vec::new(), []);
    }
    let blocks = blocks(made, fits, block);
    let own: Vec<SmallFit> = blocks.iter().flat_map(|block| block.own(fits)).collect();
    let mut machine = Machine::new(device, made.cols, rules, (&own, start))?;
    let most = blocks.iter().map(|block| block.image.words()).max();
    let mut feed = Feed::new(device, most.unwrap_or(0), SLOTS.min(blocks.len()))?;
    for block in &blocks {
        let fill = |bytes: Range<usize>, to: &mut [u8]| block.image.fill(bytes, to);
        let sent = feed.send(block.image.words(), Source::Made(&fill))?;
        feed.read(sent, |words| machine.make(block, words))?;
    }
    machine.minima(made.cols)
}

/// Fits whose rows cross together.
struct Block<'a, 'm, T> {
    fits: Range<usize>,
    image: Image<'a, 'm, T>,
}

/// Blocks of this many bytes.
fn blocks<'a, 'm, T: Number>(
    made: &'a MadeRows<'m, T>,
    fits: &[SmallFit],
    bytes: u64,
) -> Vec<Block<'a, 'm, T>> {
    let mut bounds: Vec<usize> = fits.iter().map(|fit| fit.row).collect();
    bounds.push(made.rows);
    let cuts = cut(&bounds, bytes / made.row_bytes());
    let block = |ends: &[usize]| Block {
        fits: ends[0]..ends[1],
        image: Image::new(made, bounds[ends[0]]..bounds[ends[1]]),
    };
    cuts.windows(2).map(block).collect()
}

impl<T: Number> Block<'_, '_, T> {
    /// Its fits, whose places count from its first row.
    fn own(&self, fits: &[SmallFit]) -> Vec<SmallFit> {
        let first = self.image.first_row();
        let own = fits[self.fits.clone()].iter();
        own.map(|fit| {
            let row = fit.row - first;
            SmallFit {
                row,
                target: row,
                weight: row,
                ..*fit
            }
        })
        .collect()
    }
}

/// What makes the fits of a block.
enum Machine<'a, T: Number> {
    Cores(Cores<'a>),
    Launches(Box<Launches<'a, T>>),
}

/// The CPU's, and what became of the fits so far.
struct Cores<'a> {
    rules: &'a FitRules<'a>,
    fits: &'a [SmallFit],
    theta: Vec<f64>,
    ends: Vec<(u32, [f64; 3])>,
}

impl<'a, T: Number> Machine<'a, T> {
    fn new(
        device: &Device,
        cols: usize,
        rules: &'a FitRules<'a>,
        (fits, start): (&'a [SmallFit], &[f64]),
    ) -> Result<Self, OpError> {
        if device.limits().is_none() {
            return Ok(Machine::Cores(Cores {
                rules,
                fits,
                theta: start.to_vec(),
                ends: Vec::with_capacity(fits.len()),
            }));
        }
        let shape = launch::shape::<T>((cols, cols), fits);
        let launches = Launches::new(device, (shape, rules), fits, start)?;
        Ok(Machine::Launches(Box::new(launches)))
    }

    fn make(&mut self, block: &Block<'_, '_, T>, words: &Buffer<u32>) -> Result<(), OpError> {
        match self {
            Machine::Cores(cores) => {
                let words = words.as_host_slice().expect("the CPU's");
                let arrays = block.image.slices(words);
                cores.make(&block.fits, &arrays);
                Ok(())
            }
            Machine::Launches(launches) => {
                launches.launch(block.fits.clone(), block.image.inputs(words))
            }
        }
    }

    /// Of columns.
    fn minima(self, cols: usize) -> Result<Minima, OpError> {
        match self {
            Machine::Cores(cores) => Minima::new(cols + 1, cores.theta, cores.ends),
            Machine::Launches(launches) => launches.minima(),
        }
    }
}

impl Cores<'_> {
    fn make<T: Number>(&mut self, fits: &Range<usize>, arrays: &host::Arrays<'_, T>) {
        let order = arrays.cols + 1;
        let theta = &mut self.theta[fits.start * order..fits.end * order];
        let ends = host::minimise(arrays, self.rules, &self.fits[fits.clone()], theta);
        self.ends.extend(ends);
    }
}

/// How these fits cross to a device.
fn crossing<T: Number>(
    device: &Device,
    made: &MadeRows<'_, T>,
    fits: &[SmallFit],
) -> Result<Crossing, OpError> {
    let bytes = made.rows as u64 * made.row_bytes();
    let at_once = match device.limits() {
        None => rayon::current_num_threads() as u64,
        Some(limits) => {
            let shape = launch::shape::<T>((made.cols, made.cols), fits);
            launch::planned(device, &shape)?.at_once(limits)
        }
    };
    // Asking takes as long as many small fits.
    let asks = bytes > SMALL_BYTES || device.memory_options().limit_bytes.is_some();
    Ok(Crossing {
        bytes,
        fits: fits.len() as u64,
        at_once,
        room: device.room().filter(|_| asks).map(|room| room as u64),
    })
}

fn check<T: Number>(
    made: &MadeRows<'_, T>,
    rules: &FitRules<'_>,
    fits: &[SmallFit],
    start: &[f64],
) -> Result<(), OpError> {
    check_columns(made.cols, rules)?;
    let mut next = 0;
    for fit in fits {
        check_size(fit)?;
        assert!(next <= fit.row, "fits in the order of their rows");
        next = fit.row + fit.rows;
    }
    at_least("rows of X", next, made.rows)?;
    let all = fits.len() * (made.cols + 1);
    checks::length("the start of all fits", all, start.len())
}
