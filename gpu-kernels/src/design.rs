//! Vectors on their way into and out of products with X̃ = [(X − 1·μᵀ)·S, 1], without touching X.
//!
//! With θ = (w̃, b̃) of n + 1 elements and a = (−μ ⊙ S, 1):
//!
//! - *enter*: `y = S ⊙ w̃` (n elements) and the constant `c = a·θ`, so that X̃·θ = X·y + c;
//! - *leave*: from `raw = Xᵀg` and `sums[1] = Σ g`, `out = S ⊙ raw + a·Σ g + λ ⊙ θ`, with λ one number for all
//!   coefficients and one for the intercept; and per block ½·Σ λ·θ² and Σ out².
//!
//! Without an intercept θ has n elements and c is not written. Mapping: thread i takes elements i, i + threads of
//! the grid, …. Sums accumulate in f64; a block writes its own, and a grid of one block writes c itself. Shared
//! memory: one f64 per warp. Results depend on the grid alone.

use crate::cta::{Cache, Cta, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::vector::write_partial;
use crate::verbs::each_of_grid;

/// The family of kernels around products with X̃.
pub struct Designs<T>(core::marker::PhantomData<T>);

/// Arguments of both kernels; an entry ignores what it does not name.
#[repr(C)]
pub struct DesignArgs<'a, T> {
    /// n.
    pub cols: u64,
    /// n + 1 with an intercept, else n.
    pub len: u64,
    /// λ of the coefficients.
    pub l2: T,
    /// λ of the intercept.
    pub intercept_l2: T,
    /// θ.
    pub theta: In<'a, T>,
    /// S, n elements; ones when absent.
    pub scales: In<'a, T>,
    /// a, n + 1 elements; zeros and a last 1 when absent.
    pub centres: In<'a, T>,
    /// Xᵀg, n elements.
    pub raw: In<'a, T>,
    /// Σ v·loss, Σ g, Σ d.
    pub sums: In<'a, f64>,
    /// y of `enter`, n elements; the result of `leave`, as long as θ.
    pub out: Out<'a, T>,
    /// c, one element, written by a grid of one block.
    pub constant: Out<'a, T>,
    /// Partial sums, one per block: of a·θ in `enter`, of ½·λ·θ² in `leave`.
    pub partials: Out<'a, f64>,
    /// Partial sums of out² in `leave`, one per block.
    pub squares: Out<'a, f64>,
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
        (block / WARP) as u64 * 8
    }
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
    let mut sum = 0.0;
    each_of_grid(cta, args.len, |i| {
        let theta: T = cta.load(args.theta, i, Cache::Once);
        sum = centre(cta, args, i).to_f64().fma(theta.to_f64(), sum);
        if (i as u64) < args.cols {
            cta.write(args.out, i, scale(cta, args, i) * theta);
        }
    });
    write_partial(cta, args.partials, sum);
    if cta.blocks() == 1 && cta.thread() == 0 {
        let sum = cta.read(args.partials, 0);
        cta.write(args.constant, 0, T::of_f64(sum));
    }
}

fn leave<C: Cta, T: Real>(cta: &C, args: &DesignArgs<'_, T>) {
    let slope = T::of_f64(cta.load(args.sums, 1, Cache::Keep));
    let (mut ridge, mut squares) = (0.0, 0.0);
    each_of_grid(cta, args.len, |i| {
        let theta: T = cta.load(args.theta, i, Cache::Once);
        let is_coefficient = (i as u64) < args.cols;
        let l2 = if is_coefficient {
            args.l2
        } else {
            args.intercept_l2
        };
        let mut out = centre(cta, args, i) * slope;
        if is_coefficient {
            let raw: T = cta.load(args.raw, i, Cache::Once);
            out = scale(cta, args, i).fma(raw, out);
        }
        let pull = l2 * theta;
        out = out + pull;
        cta.write(args.out, i, out);
        ridge = (0.5 * theta.to_f64()).fma(pull.to_f64(), ridge);
        squares = out.to_f64().fma(out.to_f64(), squares);
    });
    write_partial(cta, args.partials, ridge);
    write_partial(cta, args.squares, squares);
}

fn check<T: Real>(
    variant: &DesignVariant,
    launch: &Launch,
    args: &DesignArgs<'_, T>,
) -> Result<(), Violation> {
    let shared = variant.shared_bytes(launch.block);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_least("length of theta", args.len, args.theta.len())?;
    Violation::at_least("elements of theta", args.cols, args.len)?;
    super::fused::check_optional(&args.scales, "length of scales", args.cols)?;
    super::fused::check_optional(&args.centres, "length of centres", args.len)?;
    let grid = launch.grid as u64;
    Violation::at_least("length of partials", grid, args.partials.len())?;
    match variant {
        DesignVariant::Enter => {
            Violation::at_least("length of out", args.cols, args.out.len())?;
            let own = u64::from(grid == 1);
            Violation::at_least("length of the constant", own, args.constant.len())
        }
        DesignVariant::Leave => {
            Violation::at_least("length of out", args.len, args.out.len())?;
            Violation::at_least("length of raw", args.cols, args.raw.len())?;
            Violation::at_least("length of sums", 2, args.sums.len())?;
            Violation::at_least("length of squares", grid, args.squares.len())
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
            concat!("design_enter_", stringify!($t)), DesignVariant::Enter => enter::<_, $t>;
            concat!("design_leave_", stringify!($t)), DesignVariant::Leave => leave::<_, $t>;
        }
    };
}

design_family!(f32);
design_family!(f64);
