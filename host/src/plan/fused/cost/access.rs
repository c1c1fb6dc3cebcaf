//! What gathers, additions and the loads of rows cost on the one path that they share.

use gpu_kernels::describe::{Input, Number};

use super::super::candidate::Candidate;
use super::super::place::{self, Adds, PlaceCost};
use super::super::rows::queue_of;
use super::super::sparse_cost::{
    L2_SECTOR, fits_alone, fits_beside_sums, hits, l1_left, lines_per_entry,
};
use super::{CostModel, KernelCost, precision, seconds};
use crate::plan::problem::{Precision, Product};

/// The share of the L1 cache that keeps y while X streams past: with 0.3 the model is within 10 % of
/// the times measured for n = 1,000 to 28,000 and a quarter below that for n = 40,000.
const L1_SHARE_OF_Y: f64 = 0.3;

/// The share of half-used sectors that leave a crowded L1 cache before their other half is requested,
/// times the square of the share of gathers that miss (for X·y alone, that share): fitted.
/// From n = 40,000 on an H200, w in shared memory: 0.81 ms with VS = 4, 0.76 ms with VS = 8, whose loads
/// use whole sectors.
const REFETCHED: f64 = 0.65;

impl CostModel<'_> {
    pub(super) fn access_of_kernel(&self, kernel: &Candidate, vs: u32) -> f64 {
        if self.problem.is_dense() {
            return 0.0;
        }
        let rates = &self.limits.rates;
        let place = place::of(kernel.sums);
        let walked = self.nnz * place.walks;
        let mut time = seconds(walked * lines_per_entry(self.mean, vs), rates.lines);
        if kernel.input == Input::Shared {
            time += seconds(walked, rates.shared_gather);
        }
        if self.product != Product::Forward {
            let additions = seconds(self.added(place, vs), self.add_rate(place));
            time += additions.max(self.queue(place, vs));
        }
        if self.product == Product::Transposed && matches!(place.adds, Adds::Global(_)) {
            time += seconds(self.bytes / L2_SECTOR, self.gather_miss);
        }
        if self.product == Product::Fused {
            // What registers did not keep is loaded again, index and value, from a cache.
            let kept = self.entries_in_flight(kernel, vs);
            let again = (self.mean - kept).max(0.0) * self.rows;
            time += seconds(2.0 * again, rates.gather_l1);
        }
        time
    }

    // Entries that are added, those that idle lanes would have added included: fixed-point sums in f64 with n = 1,000 take
    // 0.26 ms with VS = 4 on an H200, 0.35 with VS = 8 and 0.70 with VS = 32.
    fn added(&self, place: &PlaceCost, vs: u32) -> f64 {
        let lanes = f64::from(vs.max(1));
        match place.adds {
            Adds::SharedFixed => self.rows * lanes * (self.mean / lanes).ceil(),
            _ => self.nnz,
        }
    }

    // Gathers, and what L1 did not keep for lack of room.
    pub(super) fn access_of_blocks(&self, kernel: &KernelCost<'_>, hits: f64) -> f64 {
        if self.problem.is_dense() {
            return 0.0;
        }
        let misses = 1.0 - hits;
        let crowded = match self.product {
            Product::Forward => misses,
            _ => misses * misses,
        };
        let again = self.nnz * crowded * REFETCHED * kernel.half_sectors;
        let time = seconds(again, self.gather_miss);
        if kernel.shares_y() || self.product == Product::Transposed {
            return time;
        }
        let gathers = seconds(self.nnz * hits, self.limits.rates.gather_l1);
        // The sectors of X take the same way from L2: 4,000,000 rows of 20 with n = 1,000,000 take X·y 0.64 ms on an H200,
        // where gathers by themselves would take 0.50.
        let missed = (self.nnz + self.bytes / L2_SECTOR) * misses;
        time + gathers + seconds(missed, self.gather_miss)
    }

    // Sectors of indices and values per entry that a vector touches more than once.
    pub(super) fn half_sectors(&self, vs: u32) -> f64 {
        const SECTOR: f64 = 32.0;
        let piece = 1.0 / f64::from(vs.max(1));
        let more = |bytes: u32| (piece - f64::from(bytes) / SECTOR).max(0.0);
        more(4) + more(self.problem.dtype.bytes())
    }

    // Additions to one element of w in global memory one after the other.
    fn queue(&self, place: &PlaceCost, vs: u32) -> f64 {
        match place.adds {
            Adds::Global(_) => queue_of(vs) * self.problem.busiest_column(),
            _ => 0.0,
        }
    }

    // Additions, 10⁹ a second.
    fn add_rate(&self, place: &PlaceCost) -> f64 {
        let (rates, dtype) = (&self.limits.rates, self.problem.dtype);
        let of = precision(dtype);
        match (place.adds, dtype) {
            (Adds::SharedFloat, Precision::F32) => rates.shared_add_f32,
            (Adds::SharedFloat, Precision::F64) => rates.shared_add_f64,
            (Adds::SharedFixed, Precision::F32) => rates.shared_fixed_f32,
            (Adds::SharedFixed, Precision::F64) => rates.shared_fixed_f64,
            (Adds::SharedGathers(gathers), _) => rates.shared_gather / gathers[of],
            (Adds::Global(adds), _) => self.scatter / adds[of],
            (
                Adds::Network {
                    per_instruction,
                    share_alone,
                },
                _,
            ) => {
                let alone = match self.product {
                    Product::Transposed => share_alone,
                    _ => 1.0,
                };
                alone * per_instruction[of] * rates.issue
            }
        }
    }

    // Shared memory is taken from the L1 cache: what is left decides how many gathers hit.
    // Kernels with fixed-point sums have a row more on its way, for which y makes room.
    pub(super) fn l1_hits(&self, number: Number, taken: f64) -> f64 {
        let unified_bytes = self.limits.unified_cache_bytes;
        let room = L1_SHARE_OF_Y * (f64::from(unified_bytes) - taken).max(0.0);
        let left = l1_left(unified_bytes, taken);
        let fits = match (self.product, number) {
            (Product::Forward, _) => fits_alone(left, self.vector_bytes),
            (_, Number::Fixed) => 0.0,
            (_, Number::Float) => fits_beside_sums(left, self.vector_bytes.max(1.0)),
        };
        hits(self.problem, room, fits)
    }
}
