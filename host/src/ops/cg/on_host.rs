//! The steps on the CPU.

use gpu_kernels::cg::{self, CgVariant, state};

use super::{CgVectors, PQ, RR, RZ, SHIFT};
use crate::cpu;
use crate::cpu::grid::Pieces;
use crate::device::Buffer;
use crate::matrix::Element;
use crate::ops::Number;

/// The same steps on the CPU, element by element as the kernels do them, and in the order of their sums.
impl<T: Number> CgVectors<T> {
    /// What [`CgVariant::Begin`] leaves, from r₀ of all elements.
    pub(super) fn begin_on_host(&mut self, r: &Buffer<T>) {
        let own = self.own();
        host_mut(&mut self.r).copy_from_slice(&host(r)[own]);
        for vector in [&mut self.w, &mut self.p] {
            host_mut(vector).fill(T::default());
        }
        host_mut(&mut self.states[0]).copy_from_slice(&state::START);
        self.write([PQ], &[]);
        self.square_on_host();
    }

    pub(super) fn run_on_host(&mut self, variant: CgVariant) {
        match variant {
            CgVariant::Curvature => {
                let own = self.own();
                let sums = self
                    .pieces
                    .dots(&host(&self.p)[own.clone()], &host(&self.q)[own]);
                self.write([PQ], &sums);
            }
            CgVariant::Step => self.step_on_host(),
            _ => self.direct_on_host(),
        }
    }

    /// The state before, and the sums p·q, r·z and ‖r‖².
    fn scalars(&self) -> ([f64; state::LEN], [f64; 3]) {
        let mut before = [0.0; state::LEN];
        before.copy_from_slice(host(&self.states[0]));
        let total = |which: usize| {
            let sums: &[[f64; 1]] = bytemuck::cast_slice(host(&self.partials[which]));
            self.pieces.totals(sums)[0]
        };
        (before, [PQ, RZ, RR].map(total))
    }

    /// Writes sums of this member's pieces, and zeros for all others.
    fn write<const K: usize>(&mut self, which: [usize; K], sums: &[[f64; K]]) {
        let first = self.own().start / self.pieces.elements;
        for (place, which) in which.into_iter().enumerate() {
            let partials = host_mut(&mut self.partials[which]);
            partials.fill(0.0);
            let pairs = partials[first..].iter_mut().zip(sums);
            pairs.for_each(|(partial, sums)| *partial = sums[place]);
        }
    }

    fn step_on_host(&mut self) {
        let (before, [pq, ..]) = self.scalars();
        let length = cg::stride(&before, pq, self.stop.radius).length;
        if length > 0.0 {
            let (a, own) = (<T as Element>::from_f64(length), self.own());
            cpu::vector::axpy(a, &host(&self.p)[own.clone()], host_mut(&mut self.w));
            cpu::vector::axpy(a, &host(&self.q)[own], host_mut(&mut self.r));
        }
        self.square_on_host();
    }

    /// The sums r·z and ‖r‖².
    fn square_on_host(&mut self) {
        let sums = squares(
            self.pieces,
            host(&self.r),
            self.inverse_diagonal.as_ref().map(host),
        );
        self.write([RZ, RR], &sums);
    }

    fn direct_on_host(&mut self) {
        let (before, [pq, rz, rr]) = self.scalars();
        let is_first = before[state::ITERATIONS] < 0.0;
        let stride = cg::stride(&before, pq, self.stop.radius);
        if is_first || stride.length > 0.0 {
            let b = if is_first {
                0.0
            } else {
                rz / before[state::RZ]
            };
            self.redirect(<T as Element>::from_f64(b));
        }
        if let Some(means) = &self.means {
            let sums = self.pieces.dots(host(means), &host(&self.p)[self.own()]);
            self.write([SHIFT], &sums);
        }
        let after = cg::next_state(&before, [rz, rr, pq], stride, self.stop.tolerance);
        host_mut(&mut self.states[1]).copy_from_slice(&after);
    }

    fn redirect(&mut self, b: T) {
        let own = self.own();
        let (r, p) = (host(&self.r), &mut host_mut(&mut self.p)[own]);
        match self.inverse_diagonal.as_ref().map(host) {
            Some(d) => cpu::vector::update(
                p,
                #[inline(always)]
                |i, p| b.fma(p, -(r[i] * d[i])),
            ),
            None => cpu::vector::update(
                p,
                #[inline(always)]
                |i, p| b.fma(p, -r[i]),
            ),
        }
    }
}

const ON_HOST: &str = "vectors of a solve on the CPU are host memory";

fn host<T: bytemuck::Pod>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn host_mut<T: bytemuck::Pod>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}

/// r·D⁻¹r, and ‖r‖² without the coordinates that are held, of each piece.
fn squares<T: Number>(pieces: Pieces, r: &[T], inverse_diagonal: Option<&[T]>) -> Vec<[f64; 2]> {
    let Some(d) = inverse_diagonal else {
        let squares = pieces.dots(r, r).into_iter();
        return squares.map(|[square]| [square; 2]).collect();
    };
    pieces.sums(r.len(), |i, [rz, rr]: &mut [f64; 2]| {
        let z = r[i] * d[i];
        let r = Element::to_f64(r[i]);
        *rz = r.mul_add(Element::to_f64(z), *rz);
        let counted = if z == T::default() { 0.0 } else { r };
        *rr = counted.mul_add(counted, *rr);
    })
}
