//! The steps on the CPU.

use gpu_kernels::cg::{self, Sums, state};

use super::CgVectors;
use crate::cpu::vector::{axpy, update};
use crate::device::Buffer;
use crate::matrix::Element;
use crate::ops::Number;

/// The same steps on the CPU, element by element as the kernels do them, and in the order of their sums.
impl<T: Number> CgVectors<T> {
    /// What [`CgVariant::Begin`](gpu_kernels::cg::CgVariant::Begin) leaves, from r₀ of all elements.
    pub(super) fn begin_on_host(&mut self, r: &Buffer<T>) {
        let own = self.own();
        host_mut(&mut self.w).fill(T::default());
        host_mut(&mut self.r).copy_from_slice(&host(r)[own.clone()]);
        self.direct_on_host(
            #[inline(always)]
            |_, z| T::default() - z,
        );
        host_mut(&mut self.states[0]).copy_from_slice(&state::START);
        let zero = <T as gpu_kernels::Real>::ZERO;
        let sums = self.sums_of(
            #[inline(always)]
            |i, r, inverse| [zero, zero, r[i], inverse],
        );
        self.write_sums(&sums);
        self.shift_on_host();
    }

    /// What [`CgVariant::Measure`](gpu_kernels::cg::CgVariant::Measure) leaves.
    pub(super) fn measure_on_host(&mut self) {
        let own = self.own();
        let (p, q) = (&host(&self.p)[own.clone()], &host(&self.q)[own]);
        let sums = self.sums_of(
            #[inline(always)]
            |i, r, inverse| [p[i], q[i], r[i], inverse],
        );
        self.write_sums(&sums);
    }

    /// What [`CgVariant::Move`](gpu_kernels::cg::CgVariant::Move) leaves.
    pub(super) fn advance_on_host(&mut self) {
        let mut before = [0.0; state::LEN];
        before.copy_from_slice(host(&self.states[0]));
        let sums = self.sums_on_host();
        let step = cg::step::<T>(&cg::refreshed(&before, &sums), &sums, self.stop.radius);
        if !cg::is_opening(&before) {
            if step.length > 0.0 {
                self.move_on_host(step.length, step.turn);
            }
            self.shift_on_host();
        }
        let after = cg::next_state::<T>(&before, &sums, step, self.stop.tolerance);
        host_mut(&mut self.states[1]).copy_from_slice(&after);
    }

    /// w += a·p; r += a·q; p = −z + b·p.
    fn move_on_host(&mut self, a: f64, b: f64) {
        let [a, b] = [a, b].map(<T as Element>::from_f64);
        let own = self.own();
        let (p, q) = (&host(&self.p)[own.clone()], &host(&self.q)[own.clone()]);
        axpy(a, p, host_mut(&mut self.w));
        axpy(a, q, host_mut(&mut self.r));
        self.direct_on_host(
            #[inline(always)]
            |p, z| b.fma(p, -z),
        );
    }

    /// Each element of p from what it was and z = D⁻¹·r.
    fn direct_on_host(&mut self, of: impl Fn(T, T) -> T + Send + Sync) {
        let own = self.own();
        let (r, p) = (host(&self.r), &mut host_mut(&mut self.p)[own]);
        match self.inverse_diagonal.as_ref().map(host) {
            Some(d) => update(
                p,
                #[inline(always)]
                |i, p| of(p, r[i] * d[i]),
            ),
            None => update(
                p,
                #[inline(always)]
                |i, p| of(p, r[i]),
            ),
        }
    }

    /// [`Sums`] of each piece, of elements of p, q, r and D⁻¹ that `of` puts together from a place, r and D⁻¹ there.
    fn sums_of(&self, of: impl Fn(usize, &[T], T) -> [T; 4] + Sync) -> Vec<[f64; Sums::COUNT]> {
        let (pieces, r) = (self.pieces, host(&self.r));
        match self.inverse_diagonal.as_ref().map(host) {
            Some(d) => pieces.sums(
                r.len(),
                #[inline(always)]
                |i, sums| Sums::add(of(i, r, d[i]), sums),
            ),
            None => {
                let one = <T as gpu_kernels::Real>::ONE;
                pieces.sums(
                    r.len(),
                    #[inline(always)]
                    |i, sums| Sums::add(of(i, r, one), sums),
                )
            }
        }
    }

    /// The sums over all pieces.
    fn sums_on_host(&self) -> Sums {
        let partials = host(&self.sums);
        let of = |k: usize| {
            let partials = &partials[k * self.pieces.count..][..self.pieces.count];
            let [sum] = self.pieces.totals(bytemuck::cast_slice(partials));
            sum
        };
        Sums::of(std::array::from_fn(of))
    }

    /// Writes sums of this member's pieces, and zeros for all others.
    fn write_sums(&mut self, sums: &[[f64; Sums::COUNT]]) {
        let first = self.first_piece();
        let partials = host_mut(&mut self.sums).chunks_exact_mut(self.pieces.count);
        for (k, partials) in partials.enumerate() {
            partials.fill(0.0);
            let pairs = partials[first..].iter_mut().zip(sums);
            pairs.for_each(|(partial, sums)| *partial = sums[k]);
        }
    }

    /// The partial sums of means·p.
    fn shift_on_host(&mut self) {
        let Some(means) = &self.means else {
            return;
        };
        let sums = self.pieces.dots(host(means), &host(&self.p)[self.own()]);
        let first = self.first_piece();
        let shifts = host_mut(&mut self.shifts);
        shifts.fill(0.0);
        let pairs = shifts[first..].iter_mut().zip(&sums);
        pairs.for_each(|(shift, [sum])| *shift = *sum);
    }

    fn first_piece(&self) -> usize {
        self.own().start / self.pieces.elements
    }
}

const ON_HOST: &str = "vectors of a solve on the CPU are host memory";

fn host<T: bytemuck::Pod>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn host_mut<T: bytemuck::Pod>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}
