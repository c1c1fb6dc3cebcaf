//! The costs of kernels over forms of their own as those of kernels and launches.

use gpu_kernels::describe::Walk;

use super::super::candidate::Candidate;
use super::super::launch::{Blocks, ONE_WINDOW};
use super::super::place;
use super::super::prediction::{Parts, share};
use super::super::rows::Uneven;
use super::super::{balanced, even, hot, panels, scanned};
use super::{BEGIN_US, CostModel, KernelCost};

impl CostModel<'_> {
    // Of a kernel over a form of its own: whatever the launch, but for the bytes that it has in flight.
    pub(super) fn of_form<'k>(&self, kernel: &'k Candidate) -> Option<KernelCost<'k>> {
        let (limits, problem, product) = (self.limits, self.problem, self.product);
        let mut windows = ONE_WINDOW;
        let (full, access, issue, longest_row, launch) = match kernel.walk {
            Walk::Chunks => {
                let of = panels::cost(limits, problem, product);
                (of.stream, of.access, of.issue, 0.0, of.launch)
            }
            Walk::Slices => {
                let of = hot::cost(limits, problem, product);
                (of.stream, of.access, of.issue, of.longest_row, of.launch)
            }
            Walk::MergePartitions => {
                let of = balanced::cost(limits, problem, product);
                (of.stream, of.access, of.issue, 0.0, of.launch)
            }
            Walk::ScannedPartitions => {
                let of = scanned::cost(limits, kernel, problem);
                (of.stream, of.access, of.issue, 0.0, of.launch)
            }
            Walk::EvenShares => {
                let of = even::cost(limits, kernel, problem, product);
                windows = of.windows;
                let again = f64::from(windows) - 1.0;
                let bytes = self.bytes + again * problem.matrix_bytes();
                let stream = bytes / (limits.rates.stream_gbs * 1e9);
                (stream, of.access, of.issue, of.longest_row, of.launch)
            }
            Walk::Rows | Walk::ColumnTiles => return None,
        };
        Some(KernelCost {
            kernel,
            windows,
            place: place::of(kernel.sums),
            full,
            access,
            issue,
            longest_row,
            uneven: Uneven::default(),
            row: 0.0,
            launch,
            row_in_flight: 0.0,
            rows_in_flight: 0.0,
            entries_of_lane: 0.0,
            half_sectors: 0.0,
        })
    }

    pub(super) fn parts_of_form(&self, kernel: &KernelCost<'_>, blocks: &Blocks) -> Option<Parts> {
        let (limits, problem, entry) = (self.limits, self.problem, self.entry_bytes());
        // A row that a warp is left with comes on top.
        let (mut access, mut uneven_rows, mut rows_in_turn) = (kernel.access, 0.0, 0.0);
        let mut apart = 0.0;
        let (in_flight, trips, flush) = match kernel.kernel.walk {
            Walk::Chunks => {
                let in_flight = panels::bytes_in_flight(blocks, entry);
                let fill = in_flight / (limits.rates.knee_bytes_per_sm * panels::ROUND_TRIPS);
                let (share, queue_left) = (share(fill), panels::queue_left(problem, blocks.bs));
                let cost = panels::cost(limits, problem, self.product);
                access += cost.queue * queue_left;
                apart = panels::apart(limits, problem, self.product, share, queue_left);
                (in_flight, panels::ROUND_TRIPS, cost.flush)
            }
            Walk::Slices => {
                rows_in_turn = hot::in_turn(limits, problem, self.product, blocks);
                uneven_rows = kernel.longest_row;
                let ends = hot::cost(limits, problem, self.product).ends;
                let in_flight = hot::bytes_in_flight(blocks, problem, entry);
                (in_flight, hot::ROUND_TRIPS, ends)
            }
            Walk::MergePartitions => {
                let in_flight = balanced::bytes_in_flight(blocks, entry);
                (in_flight, balanced::ROUND_TRIPS, 0.0)
            }
            Walk::ScannedPartitions => {
                let in_flight = scanned::bytes_in_flight(limits, blocks, entry);
                (in_flight, scanned::ROUND_TRIPS, 0.0)
            }
            Walk::EvenShares => {
                uneven_rows = kernel.longest_row;
                let flush = even::flush(limits, kernel.kernel, problem);
                apart = even::apart([kernel.full, kernel.access, kernel.issue]);
                let in_flight = even::bytes_in_flight(blocks, entry);
                (in_flight, even::ROUND_TRIPS, flush)
            }
            Walk::Rows | Walk::ColumnTiles => return None,
        };
        Some(Parts {
            full: kernel.full,
            fill: in_flight / (limits.rates.knee_bytes_per_sm * trips),
            access,
            issue: kernel.issue,
            longest_row: 0.0,
            uneven_rows,
            rows_in_turn,
            apart,
            flush,
            launch: kernel.launch + 1e-6 * BEGIN_US,
            in_flight,
        })
    }
}
