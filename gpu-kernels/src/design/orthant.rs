//! Vectors of `f(θ) + Σ κ·|θ|`: the least subgradient, and steps that stay in one orthant.
//!
//! κ is one number for the first `penalised` coordinates and 0 for the others. With g the gradient of f:
//!
//! - *subgradient*: v, per coordinate the element of least magnitude of the subdifferential; the inverse diagonal of the
//!   coordinates that are free (θ or v is not 0), 0 for the held ones; figures Σ κ·|θ| and ‖v‖²;
//! - *project*: θ' = θ + t·d, with 0 where that would leave the orthant of θ (of −v where θ is 0). Penalised
//!   coordinates at 0 whose d does not descend along v, and all where there is no d, follow −D⁻¹·v. Figure v·(θ' − θ).
//!
//! Mapping: thread i takes elements i, i + threads of the grid, …. Sums accumulate in f64; a block writes its own, and
//! the block that ends last adds those in the order of the blocks, so that results depend on the grid alone. Shared
//! memory: one f64 per warp and a word.
//!
//! Source: G. Andrew, J. Gao, "Scalable training of L1-regularized log-linear models", ICML 2007.

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_block, each_of_grid, sum_block};

/// The family of kernels of l1 penalties.
pub struct Orthants<T>(core::marker::PhantomData<T>);

/// Arguments of both kernels; an entry ignores what it does not name.
#[repr(C)]
pub struct OrthantArgs<'a, T> {
    /// Elements of all vectors.
    pub len: u64,
    /// Coordinates that κ belongs to.
    pub penalised: u64,
    /// κ.
    pub l1: T,
    /// t.
    pub step: T,
    /// θ.
    pub theta: In<'a, T>,
    /// g, of `subgradient`.
    pub gradient: In<'a, T>,
    /// v, of `project`.
    pub subgradient: In<'a, T>,
    /// D⁻¹.
    pub inverse_diagonal: In<'a, T>,
    /// d of `project`, optional.
    pub direction: In<'a, T>,
    /// v of `subgradient`, θ' of `project`.
    pub out: Out<'a, T>,
    /// The inverse diagonal of the free coordinates, of `subgradient`.
    pub free: Out<'a, T>,
    /// Two numbers of `subgradient`: Σ κ·|θ| and ‖v‖²; one of `project`: v·(θ' − θ).
    pub figures: Out<'a, f64>,
    /// Two partial sums per block.
    pub partials: Out<'a, f64>,
    /// Zero before and after.
    pub counter: Out<'a, u32>,
}

impl<T: Copy> Clone for OrthantArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for OrthantArgs<'_, T> {}

/// Which of the two kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrthantVariant {
    /// θ, g → v, free, figures.
    Subgradient,
    /// θ, v, d, t → θ', figure.
    Project,
}

impl OrthantVariant {
    /// Dynamic shared memory that a block of `block` threads needs.
    pub const fn shared_bytes(&self, block: u32) -> u64 {
        (block / WARP) as u64 * 8 + 8
    }
}

/// The element of least magnitude of the subdifferential of f + κ·|x|, g being the derivative of f.
#[inline(always)]
pub fn least<T: Real>(x: T, g: T, l1: T) -> T {
    let up = x > T::ZERO || x == T::ZERO && g < -l1;
    let down = x < T::ZERO || g > l1;
    if up {
        g + l1
    } else if down {
        g - l1
    } else {
        // NaN stays.
        g * T::ZERO
    }
}

/// Where the step t along d leads from x, whose subgradient is v and inverse diagonal `inverse`.
#[inline(always)]
pub fn step_to<T: Real>(x: T, v: T, inverse: T, direction: Option<T>, (l1, t): (T, T)) -> T {
    let descent = -(inverse * v);
    let d = match direction {
        Some(d) if x != T::ZERO || l1 == T::ZERO || d * v < T::ZERO => d,
        _ => descent,
    };
    let to = t.fma(d, x);
    let side = if x == T::ZERO { -v } else { x };
    let leaves = l1 > T::ZERO && to * side <= T::ZERO;
    if leaves { T::ZERO } else { to }
}

#[inline(always)]
fn l1_of<T: Real>(args: &OrthantArgs<'_, T>, i: usize) -> T {
    if (i as u64) < args.penalised {
        args.l1
    } else {
        T::ZERO
    }
}

fn subgradient<C: Cta, T: Real>(cta: &C, args: &OrthantArgs<'_, T>) {
    let (mut absolute, mut squares) = (0.0, 0.0);
    each_of_grid(cta, args.len, |i| {
        let x: T = cta.load(args.theta, i, Cache::Once);
        let l1 = l1_of(args, i);
        let v = least(x, cta.load(args.gradient, i, Cache::Once), l1);
        cta.write(args.out, i, v);
        let is_free = x != T::ZERO || v != T::ZERO;
        let inverse = cta.load(args.inverse_diagonal, i, Cache::Once);
        cta.write(args.free, i, if is_free { inverse } else { T::ZERO });
        let size = if x < T::ZERO { -x } else { x };
        absolute = l1.to_f64().fma(size.to_f64(), absolute);
        squares = v.to_f64().fma(v.to_f64(), squares);
    });
    total(cta, args, [absolute, squares], 2);
}

fn project<C: Cta, T: Real>(cta: &C, args: &OrthantArgs<'_, T>) {
    let mut slope = 0.0;
    each_of_grid(cta, args.len, |i| {
        let x: T = cta.load(args.theta, i, Cache::Once);
        let v: T = cta.load(args.subgradient, i, Cache::Once);
        let inverse = cta.load(args.inverse_diagonal, i, Cache::Once);
        let direction = if args.direction.is_some() {
            Some(cta.load(args.direction, i, Cache::Once))
        } else {
            None
        };
        let to = step_to(x, v, inverse, direction, (l1_of(args, i), args.step));
        cta.write(args.out, i, to);
        slope = v.to_f64().fma(to.to_f64() - x.to_f64(), slope);
    });
    total(cta, args, [slope, 0.0], 1);
}

/// The first `count` of the sums over the grid, as figures.
#[inline(always)]
fn total<C: Cta, T: Real>(cta: &C, args: &OrthantArgs<'_, T>, sums: [f64; 2], count: usize) {
    let scratch = Shared::<f64>::at(0, cta.threads() / WARP);
    let flag = Shared::<u32>::at(cta.threads() / WARP * 8, 1);
    for (place, sum) in sums.into_iter().enumerate().take(count) {
        let sum = sum_block(cta, sum, scratch);
        if cta.thread() == 0 {
            cta.write(args.partials, cta.block() as usize * 2 + place, sum);
        }
    }
    if cta.thread() == 0 {
        let last = cta.blocks() - 1;
        let ticket = cta.ticket(args.counter, 0, last);
        cta.shared_write(flag, 0, u32::from(ticket == last));
    }
    cta.sync();
    if cta.shared_read(flag, 0) == 0 {
        return;
    }
    for place in 0..count {
        let mut sum = 0.0;
        each_of_block(cta, cta.blocks(), |block| {
            sum += cta.read(args.partials, block * 2 + place);
        });
        let sum = sum_block(cta, sum, scratch);
        if cta.thread() == 0 {
            cta.write(args.figures, place, sum);
        }
    }
}

fn check<T: Real>(
    variant: &OrthantVariant,
    launch: &Launch,
    args: &OrthantArgs<'_, T>,
) -> Result<(), Violation> {
    let shared = variant.shared_bytes(launch.block);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    let inverse = args.inverse_diagonal.len();
    for (what, len) in [
        ("length of theta", args.theta.len()),
        ("length of the inverse diagonal", inverse),
        ("length of out", args.out.len()),
    ] {
        Violation::at_least(what, args.len, len)?;
    }
    Violation::at_least(
        "length of partials",
        2 * launch.grid as u64,
        args.partials.len(),
    )?;
    Violation::at_least("length of the counter", 1, args.counter.len())?;
    match variant {
        OrthantVariant::Subgradient => {
            Violation::at_least("length of the gradient", args.len, args.gradient.len())?;
            Violation::at_least("length of free", args.len, args.free.len())?;
            Violation::at_least("length of figures", 2, args.figures.len())
        }
        OrthantVariant::Project => {
            let subgradient = args.subgradient.len();
            Violation::at_least("length of the subgradient", args.len, subgradient)?;
            crate::fused::check_optional(&args.direction, "length of d", args.len)?;
            Violation::at_least("length of figures", 1, args.figures.len())
        }
    }
}

macro_rules! orthant_family {
    ($t:ident) => {
        crate::kernels! {
            family Orthants<$t>, "design";
            args OrthantArgs<'a, $t>;
            variant OrthantVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("orthant_subgradient_", stringify!($t)), OrthantVariant::Subgradient
                => subgradient::<_, $t>;
            concat!("orthant_project_", stringify!($t)), OrthantVariant::Project => project::<_, $t>;
        }
    };
}

orthant_family!(f32);
orthant_family!(f64);
