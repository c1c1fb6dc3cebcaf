//! Vectors on their way into and out of products with X̃ = [(X − 1·μᵀ)·S, 1], without touching X.
//!
//! θ holds element j of right-hand side c of k at `j·k + c`. With θ_c = (w̃, b̃) of n + 1 elements and a = (−μ ⊙ S, 1):
//!
//! - *enter*: `y = S ⊙ w̃` (n × k elements) and the constants `c = a·θ_c` (k elements), so that X̃·θ = X·y + c;
//! - *leave*: from `raw = Xᵀg` (n × k) and Σ g of each right-hand side in `sums[1..]`,
//!   `out = S ⊙ raw + a·Σ g + λ ⊙ θ`, with λ one number for all coefficients and one for the intercepts; and, as
//!   figures, `sums[0]`, ½·Σ λ·θ² and Σ out².
//!
//! Without an intercept θ has n × k elements, and c is left as it is where nothing is centred. Mapping: thread t takes
//! right-hand side t mod k of rows t / k, … of θ, a few of them at once. Sums accumulate in f64; a block writes its own, and
//! the block that ends last adds those in the order of the blocks, so that results depend on the grid alone. Shared memory:
//! one f64 per thread and a word.

pub mod orthant;

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::vector::is_last;
use crate::verbs::{load_together, sum_block, sum_block_each};

/// The family of kernels around products with X̃.
pub struct Designs<T>(core::marker::PhantomData<T>);

/// Arguments of both kernels; an entry ignores what it does not name.
#[repr(C)]
pub struct DesignArgs<'a, T> {
    /// n.
    pub cols: u64,
    /// n + 1 with an intercept, else n.
    pub len: u64,
    /// k.
    pub classes: u32,
    /// λ of the coefficients.
    pub l2: T,
    /// λ of the intercept.
    pub intercept_l2: T,
    /// θ, len × k elements.
    pub theta: In<'a, T>,
    /// S, n elements; ones when absent.
    pub scales: In<'a, T>,
    /// a, n + 1 elements; zeros and a last 1 when absent.
    pub centres: In<'a, T>,
    /// Xᵀg, n × k elements.
    pub raw: In<'a, T>,
    /// Σ v·loss, and Σ g of each right-hand side.
    pub sums: In<'a, f64>,
    /// y of `enter`, n × k elements; the result of `leave`, as long as θ.
    pub out: Out<'a, T>,
    /// c, k elements, of `enter`.
    pub constants: Out<'a, T>,
    /// Three numbers, of `leave`: Σ v·loss, ½·Σ λ·θ² and Σ out²; optional.
    pub figures: Out<'a, f64>,
    /// Partial sums of each block: k of a·θ in `enter`, one of ½·λ·θ² and one of out² in `leave`.
    pub partials: Out<'a, f64>,
    /// Zero before and after.
    pub counter: Out<'a, u32>,
}

impl<T: Copy> Clone for DesignArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for DesignArgs<'_, T> {}

/// Which of the two kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DesignVariant {
    /// θ → y, c.
    Enter,
    /// Xᵀg, Σ g → gradient.
    Leave,
}

impl DesignVariant {
    /// Dynamic shared memory that a block of `block` threads needs.
    pub const fn shared_bytes(&self, block: u32) -> u64 {
        block as u64 * 8 + 8
    }

    /// Partial sums that each block writes for k right-hand sides.
    pub const fn partials(&self, classes: u32) -> u64 {
        match self {
            DesignVariant::Enter => classes as u64,
            DesignVariant::Leave => 2,
        }
    }
}

/// A thread's share of elements in rows of k: one column of every this many rows.
struct Walk {
    column: u32,
    first: u64,
    step: u64,
}

impl Walk {
    #[inline(always)]
    fn of<C: Cta>(cta: &C, k: u32) -> Self {
        let rows = cta.threads() / k;
        let row = cta.thread() / k;
        Walk {
            column: cta.thread() % k,
            // Threads beyond whole rows have none.
            first: if row < rows {
                cta.block() as u64 * rows as u64 + row as u64
            } else {
                u64::MAX
            },
            step: cta.blocks() as u64 * rows as u64,
        }
    }

    /// Calls `each(row, place, loaded)` for the thread's elements of `rows` rows, with what `load(row, place)` gave, for a few of
    /// them at once.
    #[inline(always)]
    fn each<L>(
        &self,
        (k, rows): (u32, u64),
        load: impl Fn(usize, usize) -> L,
        mut each: impl FnMut(usize, usize, L),
    ) {
        let place = |row: usize| row * k as usize + self.column as usize;
        let mut row = self.first;
        while row < rows {
            let held: [_; TOGETHER] =
                load_together(row, self.step, rows, |row| load(row, place(row)));
            for loaded in held {
                if let Some(loaded) = loaded {
                    each(row as usize, place(row as usize), loaded);
                }
                row += self.step;
            }
        }
    }
}

/// Elements that a thread loads at once: as many as it has of vectors that are not long.
const TOGETHER: usize = 4;

/// In thread c below k: the sum of what the threads c, c + k, … of the block hold.
#[inline(always)]
fn sum_columns<C: Cta>(cta: &C, value: f64, k: u32) -> f64 {
    let all = Shared::at(0, cta.threads());
    if k == 1 {
        return sum_block(cta, value, all);
    }
    cta.sync();
    cta.shared_write(all, cta.thread() as usize, value);
    cta.sync();
    let mut sum = 0.0;
    let mut i = cta.thread();
    while cta.thread() < k && i < cta.threads() {
        sum += cta.shared_read(all, i as usize);
        i += k;
    }
    sum
}

/// In thread c below k: the sum over the blocks of their partial sums c of k.
#[inline(always)]
fn total<C: Cta>(cta: &C, partials: Out<'_, f64>, k: u32) -> f64 {
    let rows = cta.threads() / k;
    let mut sum = 0.0;
    let mut block = cta.thread() / k;
    while block < cta.blocks() && cta.thread() / k < rows {
        sum += cta.read(partials, (block * k + cta.thread() % k) as usize);
        block += rows;
    }
    sum_columns(cta, sum, k)
}

/// Element i of a.
#[inline(always)]
fn centre<C: Cta, T: Real>(cta: &C, args: &DesignArgs<'_, T>, i: usize) -> T {
    if args.centres.is_some() {
        cta.load(args.centres, i, Cache::Keep)
    } else if i as u64 == args.cols {
        T::ONE
    } else {
        T::ZERO
    }
}

#[inline(always)]
fn scale<C: Cta, T: Real>(cta: &C, args: &DesignArgs<'_, T>, i: usize) -> T {
    if args.scales.is_some() {
        cta.load(args.scales, i, Cache::Keep)
    } else {
        T::ONE
    }
}

fn enter<C: Cta, T: Real>(cta: &C, args: &DesignArgs<'_, T>) {
    let k = args.classes;
    let mut sum = 0.0;
    let load = |j: usize, i: usize| {
        let is_coefficient = (j as u64) < args.cols;
        let theta: T = cta.load(args.theta, i, Cache::Once);
        let scale = if is_coefficient {
            scale(cta, args, j)
        } else {
            T::ONE
        };
        (theta, centre(cta, args, j), scale)
    };
    let walk = Walk::of(cta, k);
    walk.each((k, args.len), load, |j, i, (theta, centre, scale)| {
        sum = centre.to_f64().fma(theta.to_f64(), sum);
        if (j as u64) < args.cols {
            cta.write(args.out, i, scale * theta);
        } else if !args.centres.is_some() {
            // The only element of a that is not 0: no sum to wait for.
            cta.write(args.constants, walk.column as usize, theta);
        }
    });
    if args.centres.is_some() {
        join_constants(cta, args, sum);
    }
}

/// Adds up what threads have of the constants.
#[inline(always)]
fn join_constants<C: Cta, T: Real>(cta: &C, args: &DesignArgs<'_, T>, sum: f64) {
    let k = args.classes;
    let sum = sum_columns(cta, sum, k);
    if cta.thread() < k {
        let place = (cta.block() * k + cta.thread()) as usize;
        cta.write(args.partials, place, sum);
    }
    if is_last(cta, args.counter, Shared::at(cta.threads() * 8, 1)) {
        let sum = total(cta, args.partials, k);
        if cta.thread() < k {
            cta.write(args.constants, cta.thread() as usize, T::of_f64(sum));
        }
    }
}

fn leave<C: Cta, T: Real>(cta: &C, args: &DesignArgs<'_, T>) {
    let k = args.classes;
    let walk = Walk::of(cta, k);
    let slope = T::of_f64(cta.load(args.sums, 1 + walk.column as usize, Cache::Keep));
    let mut sums = [0.0; 2];
    let load = |j: usize, i: usize| {
        let theta: T = cta.load(args.theta, i, Cache::Once);
        let (raw, scale) = match (j as u64) < args.cols {
            true => (cta.load(args.raw, i, Cache::Once), scale(cta, args, j)),
            false => (T::ZERO, T::ONE),
        };
        (theta, centre(cta, args, j), raw, scale)
    };
    walk.each((k, args.len), load, |j, i, (theta, centre, raw, scale)| {
        let is_coefficient = (j as u64) < args.cols;
        let (mut out, mut l2) = (centre * slope, args.intercept_l2);
        if is_coefficient {
            (out, l2) = (scale.fma(raw, out), args.l2);
        }
        let pull = l2 * theta;
        out = out + pull;
        cta.write(args.out, i, out);
        let (half, out) = (0.5 * theta.to_f64(), out.to_f64());
        sums = [half.fma(pull.to_f64(), sums[0]), out.fma(out, sums[1])];
    });
    if args.figures.is_some() {
        join_figures(cta, args, sums);
    }
}

/// Adds up what threads have of the figures.
#[inline(always)]
fn join_figures<C: Cta, T: Real>(cta: &C, args: &DesignArgs<'_, T>, sums: [f64; 2]) {
    let sums = sum_block_each(cta, sums, Shared::at(0, cta.threads()));
    if cta.thread() == 0 {
        for (place, sum) in sums.into_iter().enumerate() {
            cta.write(args.partials, cta.block() as usize * 2 + place, sum);
        }
    }
    if is_last(cta, args.counter, Shared::at(cta.threads() * 8, 1)) {
        let sum = total(cta, args.partials, 2);
        if cta.thread() < 2 {
            cta.write(args.figures, 1 + cta.thread() as usize, sum);
        }
        if cta.thread() == 0 {
            cta.write(args.figures, 0, cta.load(args.sums, 0, Cache::Keep));
        }
    }
}

fn check<T: Real>(
    variant: &DesignVariant,
    launch: &Launch,
    args: &DesignArgs<'_, T>,
) -> Result<(), Violation> {
    let k = args.classes as u64;
    let (all, elements) = (args.len.saturating_mul(k), args.cols.saturating_mul(k));
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least(
        "shared bytes",
        variant.shared_bytes(launch.block),
        launch.shared_bytes as u64,
    )?;
    Violation::at_least("right-hand sides", 1, k)?;
    Violation::at_most("right-hand sides", launch.block as u64, k)?;
    Violation::at_least("length of theta", all, args.theta.len())?;
    Violation::at_least("elements of theta", args.cols, args.len)?;
    super::fused::check_optional(&args.scales, "length of scales", args.cols)?;
    super::fused::check_optional(&args.centres, "length of centres", args.len)?;
    let partials = launch.grid as u64 * variant.partials(args.classes);
    Violation::at_least("length of partials", partials, args.partials.len())?;
    Violation::at_least("length of the counter", 1, args.counter.len())?;
    match variant {
        DesignVariant::Enter => {
            Violation::at_least("length of out", elements, args.out.len())?;
            Violation::at_least("length of the constants", k, args.constants.len())
        }
        DesignVariant::Leave => {
            Violation::at_least("length of out", all, args.out.len())?;
            Violation::at_least("length of raw", elements, args.raw.len())?;
            Violation::at_least("length of sums", 1 + k, args.sums.len())?;
            let figures = if args.figures.is_some() { 3 } else { 0 };
            Violation::at_least("length of figures", figures, args.figures.len())
        }
    }
}

macro_rules! design_family {
    ($t:ident) => {
        crate::kernels! {
            family Designs<$t>, "design";
            args DesignArgs<'a, $t>;
            variant DesignVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("design_enter_", stringify!($t)), DesignVariant::Enter => enter::<_, $t>;
            concat!("design_leave_", stringify!($t)), DesignVariant::Leave => leave::<_, $t>;
        }
    };
}

design_family!(f32);
design_family!(f64);
