//! What is requested at once, and the round trips to memory for which that has to last.

use gpu_kernels::describe::Number;
use gpu_kernels::fused::Place;

use super::super::launch::Blocks;
use super::super::sparse_cost::{L1_PER_BYTE_ALONE, L1_PER_BYTE_IN_FLIGHT, l1_left};
use super::{CostModel, KernelCost, precision};
use crate::plan::problem::Product;

/// Dependent round trips of a step of `X·y`, and of `Xᵀ·p`, over a dense X, whose rows are walked piece by piece: 763 rows of
/// 38,432 in f64 take 218 µs.
const DENSE_HALF_TRIPS: f64 = 2.0;
/// What is left of the round trips of a step over CSR rows: of `X·y`, with private sums, and with floats in shared memory.
const TRIPS_LEFT: [f64; 3] = [0.9, 0.83, 1.0];

impl CostModel<'_> {
    /// Bytes of X that the resident vectors of one SM have requested at once.
    pub(super) fn bytes_in_flight(&self, kernel: &KernelCost<'_>, blocks: &Blocks) -> f64 {
        let vectors = blocks.bs / blocks.vs.max(1);
        let vectors = f64::from(blocks.occupancy.blocks_per_sm) * f64::from(vectors);
        let share = self.rows / f64::from(self.limits.sms.max(1));
        (vectors * kernel.rows_in_flight).min(share.max(1.0)) * kernel.row_in_flight
    }

    /// As much of what is requested as L1 has room for.
    pub(super) fn within_l1(&self, kernel: &KernelCost<'_>, blocks: &Blocks, taken: f64) -> f64 {
        let in_flight = self.bytes_in_flight(kernel, blocks);
        let each = match self.product {
            _ if self.problem.is_dense() => return in_flight,
            _ if kernel.shares_y() => L1_PER_BYTE_ALONE,
            Product::Transposed => L1_PER_BYTE_ALONE,
            _ => L1_PER_BYTE_IN_FLIGHT,
        };
        in_flight.min(l1_left(self.limits.unified_cache_bytes, taken) / each)
    }

    /// Shared memory of all blocks of an SM.
    pub(super) fn shared_taken(&self, blocks: &Blocks) -> f64 {
        let reserved = f64::from(self.limits.shared_reserved_per_block);
        let block = blocks.shared_bytes as f64 + reserved;
        f64::from(blocks.occupancy.blocks_per_sm) * block
    }

    /// Bytes in flight over those of the knee, for every round trip: to L2 where X stays there, as a block does that has just been
    /// unpacked. 113 such blocks of 3.5 million entries take an H200 6.0 and 7.1 ms a pass (reproducible), where round trips to memory
    /// would be 6.7 and 8.2.
    pub(super) fn fill(&self, kernel: &KernelCost<'_>, in_flight: f64, hits: f64) -> f64 {
        let trips = match self.problem.is_dense() {
            // Rows that fit in a step are requested together.
            true if kernel.row_in_flight >= self.vector_bytes => 1.0,
            true if self.product == Product::Fused => 1.0,
            true => DENSE_HALF_TRIPS,
            false => self.round_trips(kernel, hits),
        };
        in_flight / (self.limits.rates.knee_bytes_per_sm * trips * self.round_trip)
    }

    /// Dependent round trips to memory of a step over CSR rows.
    fn round_trips(&self, kernel: &KernelCost<'_>, hits: f64) -> f64 {
        let (place, of) = (kernel.place, precision(self.problem.dtype));
        let (misses, adds) = match self.product {
            Product::Transposed => (place.round_trips_of_misses[1], place.round_trips_of_adds),
            _ if kernel.shares_y() => (0.0, place.round_trips_of_adds / 2.0),
            _ => (
                place.round_trips_of_misses[0],
                place.round_trips_of_adds / 2.0,
            ),
        };
        let of_step = self.trips_of_step(kernel);
        let trips = of_step * place.round_trips + misses - misses * hits
            + place.round_trips_of_entry[of] * kernel.entries_of_lane;
        (trips + adds) * place.walks
    }

    /// What is left of the round trips of a step where the next one's begin before: fitted.
    fn trips_of_step(&self, kernel: &KernelCost<'_>) -> f64 {
        match (
            self.product,
            kernel.kernel.sums.place,
            kernel.kernel.sums.number,
        ) {
            (Product::Forward, _, _) => TRIPS_LEFT[0],
            (_, Place::Private, _) => TRIPS_LEFT[1],
            (_, Place::Global, _) | (_, _, Number::Fixed) => 1.0,
            _ => TRIPS_LEFT[2],
        }
    }
}
