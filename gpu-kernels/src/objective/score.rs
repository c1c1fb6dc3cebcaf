//! How good predictions are: sums over rows whose linear predictors are known, in one launch.
//!
//! Formula, with μᵢ the mean at predictor tᵢ, bᵢ the target, wᵢ the weight (1 where absent), d the unit deviance and c a
//! given number: for numbers [`NumberSum`] says which sums; for classes Σ w, Σ w·loss, and the confusion matrix, whose
//! cell (i, j) is the weight of rows of class i that are taken for class j. Everything is computed and added in f64,
//! whatever the elements are; cells are whole multiples of a unit, added in integers.
//!
//! Shapes: predictors m × columns, by rows; targets, codes and weights m. Mapping: rows make chunks of [`CHUNK`], a block
//! takes chunks block, block + blocks, …, thread t rows t, t + [`BLOCK`], … of a chunk; the block that ends last adds up
//! the chunks. Shared memory: [`SHARED_BYTES`]. Guarantees: as chunks depend on m alone, and integers add up in any order,
//! the bits are the same on every run and every grid. Source: see [`crate::reduce::whole`].

use super::deviance::MeanCode;
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::math::{Elementary, exp, ln, sigmoid};
use crate::memory::{In, Out};
use crate::table::{Launch, Violation};
use crate::vector::{is_last, scratch};
use crate::verbs::{FULL, lane, load_or, sum_block};

/// The family of scores.
pub struct Scores<T>(core::marker::PhantomData<T>);

/// Threads of a block. Fixed: the order of additions hangs on it.
pub const BLOCK: u32 = 256;
/// Rows of a chunk.
pub const CHUNK: u64 = 2048;
/// Where the sums of threads begin in shared memory: behind an f64 per warp, and a flag.
const SUMS_AT: u32 = BLOCK / WARP * 8 + 8;
/// Shared memory of a block.
pub const SHARED_BYTES: u32 = SUMS_AT + NumberSum::COUNT as u32 * BLOCK * 8;
/// Cells of the confusion matrix of two classes, which threads keep to themselves.
const FEW_CELLS: usize = 4;

/// Which score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScoreVariant {
    /// Of predicted numbers.
    Numbers,
    /// Of predicted classes.
    Classes,
}

/// Places of the sums of [`ScoreVariant::Numbers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberSum {
    /// Σ w.
    Weight,
    /// Σ w·|b − μ|.
    Absolute,
    /// Σ w·(b − μ)².
    Squared,
    /// Σ w·(b − c).
    Centred,
    /// Σ w·(b − c)².
    CentredSquared,
    /// Σ w·d(b, μ).
    Deviance,
    /// Σ w·d(b, c).
    CentredDeviance,
}

impl NumberSum {
    /// How many there are.
    pub const COUNT: usize = 7;
}

/// Places of the sums of [`ScoreVariant::Classes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassSum {
    /// Σ w.
    Weight,
    /// Σ −w·ln P(row, class).
    LogLoss,
}

impl ClassSum {
    /// How many there are.
    pub const COUNT: usize = 2;
}

impl ScoreVariant {
    /// Sums in f64.
    pub const fn sums(&self) -> usize {
        match self {
            ScoreVariant::Numbers => NumberSum::COUNT,
            ScoreVariant::Classes => ClassSum::COUNT,
        }
    }
}

/// How linear predictors become probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Probabilities {
    /// They do not: there is no log-loss.
    None = 0,
    /// eᵗ / Σ eᵗ; with one predictor 1 / (1 + e⁻ᵗ) for class 1.
    Softmax = 1,
    /// s / Σ s with s = 1 / (1 + e⁻ᵗ), each class against the rest; with one predictor as above.
    OneVersusRest = 2,
}

/// Arguments of both entries; an entry ignores what it does not name.
#[repr(C)]
pub struct ScoreArgs<'a, T> {
    /// m.
    pub rows: u64,
    /// Predictors of a row: 1, or one per class.
    pub columns: u64,
    /// Classes.
    pub classes: u64,
    /// t (m × columns).
    pub predictors: In<'a, T>,
    /// b (m elements), of numbers.
    pub targets: In<'a, T>,
    /// The class of each row (m elements, below `classes`), of classes.
    pub codes: In<'a, u32>,
    /// w (m elements), optional: 1.
    pub weights: In<'a, f64>,
    /// Link and deviance, of numbers.
    pub mean: MeanCode,
    /// c, of numbers.
    pub centre: f64,
    /// A number of [`Probabilities`], of classes.
    pub probabilities: u32,
    /// Multiples of the unit of a cell in a weight of 1, of classes.
    pub units: f64,
    /// Sums of chunks: for each sum in turn one element per chunk.
    pub partials: Out<'a, f64>,
    /// Zero before and after.
    pub counter: Out<'a, u32>,
    /// The sums.
    pub sums: Out<'a, f64>,
    /// Cells (classes × classes), of classes; added to.
    pub cells: Out<'a, u64>,
}

impl<T> Clone for ScoreArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ScoreArgs<'_, T> {}

/// What a row of numbers adds to the sums, in the order of [`NumberSum`]; shared with the CPU.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
pub fn number_terms(
    mean: &MeanCode,
    centre: f64,
    t: f64,
    b: f64,
    w: f64,
) -> [f64; NumberSum::COUNT] {
    if w == 0.0 {
        return [0.0; NumberSum::COUNT];
    }
    let mu = mean.mean(t);
    let (error, apart) = (b - mu, b - centre);
    let magnitude = if error < 0.0 { -error } else { error };
    [
        w,
        w * magnitude,
        w * error * error,
        w * apart,
        w * apart * apart,
        w * mean.deviance(b, mu),
        w * mean.deviance(b, centre),
    ]
}

/// The class of a row's predictors: the first of the greatest; of one predictor, whether it is positive.
#[inline(always)]
fn class_of(columns: u64, predictor: impl Fn(u64) -> f64) -> u64 {
    let mut greatest = predictor(0);
    if columns == 1 {
        return (greatest > 0.0) as u64;
    }
    let mut best = 0;
    for column in 1..columns {
        let t = predictor(column);
        if t > greatest {
            (best, greatest) = (column, t);
        }
    }
    best
}

/// A row's class, and −ln of the probability of `code`, kept [`f64::EPSILON`] away from 0 and 1; shared with the CPU.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
pub fn class_and_loss(
    probabilities: u32,
    columns: u64,
    code: u64,
    predictor: impl Fn(u64) -> f64,
) -> (u64, f64) {
    let class = class_of(columns, &predictor);
    if probabilities == Probabilities::None as u32 {
        return (class, 0.0);
    }
    let one_versus_rest = probabilities == Probabilities::OneVersusRest as u32;
    let p = if columns == 1 {
        let (yes, no, _) = sigmoid(predictor(0));
        if code == 1 { yes } else { no }
    } else {
        let greatest = predictor(class);
        let part = |column: u64| {
            let t = predictor(column);
            if one_versus_rest {
                sigmoid(t).0
            } else {
                exp(t - greatest)
            }
        };
        let mut total = 0.0;
        for column in 0..columns {
            total += part(column);
        }
        part(code) / total
    };
    let (low, high) = (f64::EPSILON, 1.0 - f64::EPSILON);
    let kept = if p < low {
        low
    } else if p > high {
        high
    } else {
        p
    };
    (class, -ln(kept))
}

/// A weight in whole units; shared with the CPU.
#[inline(always)]
pub fn in_units(w: f64, units: f64) -> u64 {
    (w * units + 0.5) as u64
}

/// The sums of all threads, for each sum in turn one per thread.
#[inline(always)]
fn own_sums() -> Shared<f64> {
    Shared::at(SUMS_AT, NumberSum::COUNT as u32 * BLOCK)
}

/// Adds up what `of_row` adds to the sums for each row.
#[inline(always)]
fn gather<C: Cta, T, const N: usize>(
    cta: &C,
    args: &ScoreArgs<'_, T>,
    mut of_row: impl FnMut(&mut [f64; N], usize),
) {
    let (chunks, thread) = (args.rows.div_ceil(CHUNK), cta.thread() as usize);
    let mut chunk = cta.block() as u64;
    while chunk < chunks {
        let mut sums = [0.0; N];
        let end = ((chunk + 1) * CHUNK).min(args.rows);
        let mut row = chunk * CHUNK + cta.thread() as u64;
        while row < end {
            of_row(&mut sums, row as usize);
            row += BLOCK as u64;
        }
        // By way of shared memory: a loop with barriers is not unrolled, and registers have no addresses.
        for (i, sum) in sums.iter().enumerate() {
            cta.shared_write(own_sums(), i * BLOCK as usize + thread, *sum);
        }
        for i in 0..N {
            let own = cta.shared_read(own_sums(), i * BLOCK as usize + thread);
            let sum = sum_block(cta, own, scratch(cta));
            if thread == 0 {
                cta.write(args.partials, i * chunks as usize + chunk as usize, sum);
            }
        }
        chunk += cta.blocks() as u64;
    }
    let flag = Shared::<u32>::at(BLOCK / WARP * 8, 1);
    if is_last(cta, args.counter, flag) {
        for i in 0..N {
            let mut sum = 0.0;
            let mut chunk = cta.thread() as u64;
            while chunk < chunks {
                let of_chunk: f64 = cta.read(args.partials, i * chunks as usize + chunk as usize);
                sum += of_chunk;
                chunk += BLOCK as u64;
            }
            let sum = sum_block(cta, sum, scratch(cta));
            if cta.thread() == 0 {
                cta.write(args.sums, i, sum);
            }
        }
    }
}

fn numbers<C: Cta, T: Elementary>(cta: &C, args: &ScoreArgs<'_, T>) {
    gather(cta, args, |sums: &mut [f64; NumberSum::COUNT], row| {
        let t: T = cta.load(args.predictors, row, Cache::Once);
        let b: T = cta.load(args.targets, row, Cache::Once);
        let w = load_or(cta, args.weights, row, 1.0);
        let terms = number_terms(&args.mean, args.centre, t.to_f64(), b.to_f64(), w);
        *sums = core::array::from_fn(|i| sums[i] + terms[i]);
    });
}

fn classes<C: Cta, T: Elementary>(cta: &C, args: &ScoreArgs<'_, T>) {
    let mut few = [0_u64; FEW_CELLS];
    gather(cta, args, |sums: &mut [f64; ClassSum::COUNT], row| {
        let w = load_or(cta, args.weights, row, 1.0);
        let code = cta.load(args.codes, row, Cache::Once) as u64;
        let predictor = |column: u64| {
            let place = row * args.columns as usize + column as usize;
            let t: T = cta.load(args.predictors, place, Cache::Keep);
            t.to_f64()
        };
        let (class, loss) = class_and_loss(args.probabilities, args.columns, code, predictor);
        if w == 0.0 {
            return;
        }
        sums[ClassSum::Weight as usize] += w;
        sums[ClassSum::LogLoss as usize] += w * loss;
        let (cell, units) = (
            (code * args.classes + class) as usize,
            in_units(w, args.units),
        );
        if args.classes > 2 {
            cta.add_wrapping(args.cells, cell, units);
            return;
        }
        for (i, own) in few.iter_mut().enumerate() {
            *own += if i == cell { units } else { 0 };
        }
    });
    if args.classes > 2 {
        return;
    }
    for (i, own) in few.iter().enumerate() {
        let sum = sum_of_warp(cta, *own);
        if lane(cta) == 0 {
            cta.add_wrapping(args.cells, i, sum);
        }
    }
}

/// The sum over the warp, modulo 2⁶⁴, in lane 0.
#[inline(always)]
fn sum_of_warp<C: Cta>(cta: &C, mut value: u64) -> u64 {
    let mut distance = WARP / 2;
    while distance > 0 {
        let other: u64 = cta.shuffle(value, Shuffle::Xor(distance), WARP, FULL);
        value = value.wrapping_add(other);
        distance /= 2;
    }
    value
}

fn check<T: Elementary>(
    variant: &ScoreVariant,
    launch: &Launch,
    args: &ScoreArgs<'_, T>,
) -> Result<(), Violation> {
    use crate::fused::check_optional;
    Violation::equal("block", BLOCK as u64, launch.block as u64)?;
    Violation::at_least(
        "shared bytes",
        SHARED_BYTES as u64,
        launch.shared_bytes as u64,
    )?;
    let chunks = args.rows.div_ceil(CHUNK);
    let partials = chunks.saturating_mul(variant.sums() as u64);
    Violation::at_least("length of partials", partials, args.partials.len())?;
    Violation::at_least("length of the counter", 1, args.counter.len())?;
    Violation::at_least("length of sums", variant.sums() as u64, args.sums.len())?;
    check_optional(&args.weights, "length of weights", args.rows)?;
    let predictors = args.rows.saturating_mul(args.columns);
    Violation::at_least("length of predictors", predictors, args.predictors.len())?;
    Violation::at_least("predictors of a row", 1, args.columns)?;
    match variant {
        ScoreVariant::Numbers => {
            Violation::equal("predictors of a row", 1, args.columns)?;
            Violation::at_least("length of targets", args.rows, args.targets.len())
        }
        ScoreVariant::Classes => {
            // That codes are below `classes` is for the caller to know.
            let columns = if args.classes == 2 { 1 } else { args.classes };
            Violation::equal("predictors of a row", columns, args.columns)?;
            Violation::at_least("length of codes", args.rows, args.codes.len())?;
            Violation::at_least("classes", 2, args.classes)?;
            let cells = args.classes.saturating_mul(args.classes);
            Violation::at_least("length of cells", cells, args.cells.len())
        }
    }
}

macro_rules! scores {
    ($t:ident) => {
        crate::kernels! {
            family Scores<$t>, "objective";
            args ScoreArgs<'a, $t>;
            variant ScoreVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("score_numbers_", stringify!($t)), ScoreVariant::Numbers => numbers::<_, $t>;
            concat!("score_classes_", stringify!($t)), ScoreVariant::Classes => classes::<_, $t>;
        }
    };
}

scores!(f32);
scores!(f64);
