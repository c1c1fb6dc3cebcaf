//! What gathers, additions and the loads of rows cost on the one path that they share.

use gpu_kernels::describe::{Input, Number};

use super::super::candidate::Candidate;
use super::super::dense_cost::lines_of_row;
use super::super::even::queue_of_block;
use super::super::place::{self, Adds, PlaceCost};
use super::super::rows::queue;
use super::super::sparse_cost::{
    L2_SECTOR, LINE, fits_alone, fits_beside_sums, hits, l1_left, lines_per_entry,
};
use super::{CostModel, FORWARD_STEPS, KernelCost, precision, seconds};
use crate::plan::problem::{Precision, Product};

/// The share of the L1 cache that keeps y while X streams past: with 0.3 the model is within 10 % of
/// the times measured for n = 1,000 to 28,000 and a quarter below that for n = 40,000.
const L1_SHARE_OF_Y: f64 = 0.3;

/// The share of half-used sectors that leave a crowded L1 cache before their other half is requested,
/// times the square of the share of gathers that miss (for X·y alone, that share): fitted.
/// From n = 40,000 on an H200, w in shared memory: 0.81 ms with VS = 4, 0.76 ms with VS = 8, whose loads
/// use whole sectors.
const REFETCHED: f64 = 0.5;

/// The share of entries of frequent columns that rows of a warp add at a time: fitted. On an H200 10,000 columns by Zipf's law with
/// an exponent of 1.1 take f32 223 µs and f64 299 with four lanes a row, even columns 226 and 297; with eight f64 takes 412.
const MET: f64 = 0.05;

/// The same of columns that are few: fitted. 28 columns of f64 take 316 µs, and 100 take 259.
const FEW: f64 = 0.3;

/// What a step of X·y over CSR rows that begins late takes, of a line that L1 looks up, in f32 and f64: fitted. 4,000,000 rows of 20 over
/// 1,000 columns take an H200 197, 185 and 202 µs with two, four and eight lanes in f32, 374, 296 and 259 in f64.
const PIECES: [f64; 2] = [0.93, 7.4];

/// How far gathers from shared memory and fixed-point additions of f64, of several words each, overlap: the exponent of a norm, fitted.
/// 80 million entries of 10,000 columns take 0.299 ms on an H200, their additions alone 0.292; in f32, whose do not overlap,
/// 0.227 and 0.187.
const OVERLAP_OF_F64: f64 = 1.3;

/// Lines that loads of a dense X request of L2, of those that L1 looks up in the same time. X·y takes an H200 1.56 ms for 10,000,000 × 100
/// with eight lanes on a row, which are 66 million requests (f32; 128 columns, 32 million, 1.00), 0.76 ms for 11,000,000 × 28 in f64
/// with eight lanes, 36 million (with sixteen, 22 million, 0.65), and 3.05 for 30,303,030 × 33, 144 million.
const REQUESTS: f64 = 0.052;

/// What additions take beside others of a kernel, of their time alone: to integers and floats in shared memory, private
/// sums, and global memory. Fitted.
const FIXED_F32: f64 = 0.89;
const FIXED_F64: f64 = 1.4;
const FLOAT_F32: f64 = 0.83;
const FLOAT_F64: f64 = 1.33;
const PRIVATE_ADDS: f64 = 0.89;
const GLOBAL_ADDS: f64 = 0.92;

impl CostModel<'_> {
    pub(super) fn access_of_kernel(&self, kernel: &Candidate, vs: u32) -> f64 {
        if self.problem.is_dense() {
            return self.requests(kernel, vs);
        }
        let rates = &self.limits.rates;
        let place = place::of(kernel.sums);
        let walked = self.nnz * place.walks;
        let mut time = seconds(walked * lines_per_entry(self.mean, vs), rates.lines);
        let gathers = match kernel.input {
            Input::Shared => seconds(walked, rates.shared_gather),
            _ => 0.0,
        };
        if self.product != Product::Forward {
            let met = self.met(place, vs);
            let additions = seconds(met * self.added(place, vs), self.add_rate(place));
            time += self.together(place, gathers, additions.max(self.queue(place, vs)));
        } else {
            let lines = PIECES[precision(self.problem.dtype)] * self.pieces_late(vs);
            time += gathers + seconds(lines, rates.lines);
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

    // Pieces of rows, one for each step of a vector, that are requested when those before them have come.
    fn pieces_late(&self, vs: u32) -> f64 {
        (self.nnz / f64::from(vs.max(1)) - FORWARD_STEPS * self.rows).max(0.0)
    }

    // What X·y over dense rows of more than a line requests of L2: a line for every load that touches it.
    fn requests(&self, kernel: &Candidate, vs: u32) -> f64 {
        if self.product != Product::Forward || self.vector_bytes <= LINE {
            return 0.0;
        }
        let element = u64::from(self.problem.dtype.bytes());
        let load = u64::from(vs.max(1)) * u64::from(kernel.width.max(1)) * element;
        let rows_of_load = u64::from(self.limits.warp_size / vs.max(1));
        let lines = lines_of_row(
            self.problem.pitch.saturating_mul(element),
            load,
            rows_of_load,
        );
        seconds(self.rows * lines, REQUESTS * self.limits.rates.lines)
    }

    // Gathers from shared memory beside additions.
    fn together(&self, place: &PlaceCost, gathers: f64, additions: f64) -> f64 {
        match (place.adds, self.problem.dtype) {
            (Adds::SharedFixed, Precision::F64) => {
                let powers = [gathers, additions].map(|part| part.powf(OVERLAP_OF_F64));
                (powers[0] + powers[1]).powf(1.0 / OVERLAP_OF_F64)
            }
            _ => gathers + additions,
        }
    }

    // How much longer additions to shared memory take as rows of a warp add to one sum at a time: those that begin with the
    // same columns.
    fn met(&self, place: &PlaceCost, vs: u32) -> f64 {
        let is_shared = matches!(place.adds, Adds::SharedFloat | Adds::SharedFixed);
        if !is_shared {
            return 1.0;
        }
        let lanes = f64::from(self.limits.warp_size);
        let few = FEW * (lanes - 1.0) / self.problem.cols.max(1) as f64;
        let Some(columns) = self.problem.columns else {
            return 1.0 + few;
        };
        let others = (32.0 / f64::from(vs.max(1)) - 1.0).max(0.0);
        let share = columns.lines[2] as f64 / self.nnz.max(1.0);
        let in_row = (columns.busiest as f64 / self.rows.max(1.0)).min(1.0);
        1.0 + few + MET * others * share * in_row
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
            Adds::Global(adds) => adds[precision(self.problem.dtype)] * queue(self.problem, vs),
            Adds::SharedFloat => queue_of_block(self.limits, self.problem),
            _ => 0.0,
        }
    }

    // Additions, 10⁹ a second.
    fn add_rate(&self, place: &PlaceCost) -> f64 {
        let (rates, dtype) = (&self.limits.rates, self.problem.dtype);
        let of = precision(dtype);
        match (place.adds, dtype) {
            (Adds::SharedFloat, Precision::F32) => rates.shared_add_f32 / FLOAT_F32,
            (Adds::SharedFloat, Precision::F64) => rates.shared_add_f64 / FLOAT_F64,
            (Adds::SharedFixed, Precision::F32) => rates.shared_fixed_f32 / FIXED_F32,
            (Adds::SharedFixed, Precision::F64) => rates.shared_fixed_f64 / FIXED_F64,
            (Adds::SharedGathers(gathers), _) => rates.shared_gather / gathers[of] / PRIVATE_ADDS,
            (Adds::Global(adds), _) => self.scatter / adds[of] / GLOBAL_ADDS,
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
