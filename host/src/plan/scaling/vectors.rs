//! Whether members keep the vectors of conjugate gradients all of them, or a share each.
//!
//! Both send as much: a sum is that of shares and what is gathered of them. But a share of the work is done once, by its owner,
//! and scalar products need small sums besides. A sum of shares does not pass beside the product that it is of: what
//! [overlapping](super::Overlap) saves is lost.

use serde::Serialize;

use super::{Columns, Machines};

/// Elements of a column that an iteration of conjugate gradients reads and writes besides its product: w, r and p anew from p, q
/// and r, and three scalar products.
const VECTOR_ELEMENTS: f64 = 12.0;

/// Bytes of the small sums of an iteration: those of pieces, 2,112 of them where vectors are long, of p·q, and of r·z and ‖r‖².
const SMALL_SUMS: [u64; 2] = [8 * 2_112, 2 * 8 * 2_112];

/// What an iteration of conjugate gradients takes besides its kernels over X, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VectorWork {
    /// Every GPU has all columns: a sum, and the work on vectors.
    pub replicated_us: f64,
    /// What of that sum passes beside the product.
    pub hidden_us: f64,
    /// Each has its share of them: parts of the sum go to their owners, work is done there, and y comes back from all.
    pub spread_us: f64,
}

impl VectorWork {
    /// With a sum of all columns of which so much passes beside the product.
    pub fn beside(self, hidden_us: f64) -> VectorWork {
        VectorWork { hidden_us, ..self }
    }

    /// Whether vectors should be spread.
    ///
    /// ```
    /// use warpfuse::plan::scaling::VectorWork;
    /// let work = VectorWork { replicated_us: 1_040.0, hidden_us: 0.0, spread_us: 770.0 };
    /// assert!(work.spreading_pays() && !work.beside(300.0).spreading_pays());
    /// ```
    pub fn spreading_pays(&self) -> bool {
        self.spread_us < self.replicated_us - self.hidden_us
    }
}

impl Machines {
    /// Work on vectors of n, by all GPUs alike and shared out.
    ///
    /// ```
    /// use warpfuse::plan::scaling::{Columns, Machines, NETWORK, NVLINK, ONE_LAUNCH};
    /// let eight = Machines { gpus: 8, nodes: 1, link: NVLINK, one_launch: ONE_LAUNCH, network: NETWORK };
    /// let of = |cols| eight.vector_work(&Columns { cols, element: 4, summed: 12, memory_gb_s: 3_000.0 });
    /// assert!(!of(1_000_000).spreading_pays());
    /// assert!(of(30_000_000).spreading_pays());
    /// ```
    pub fn vector_work(&self, of: &Columns) -> VectorWork {
        let all = f64::from(self.all().max(1));
        let work = VECTOR_ELEMENTS * of.cols as f64 * of.element as f64 / (1e3 * of.memory_gb_s);
        VectorWork {
            replicated_us: self.sum_of_columns_us(of) + work,
            hidden_us: 0.0,
            spread_us: self.in_shares_us(of) + work / all + self.small_sums_us(),
        }
    }

    fn small_sums_us(&self) -> f64 {
        SMALL_SUMS.iter().map(|bytes| self.sum_us(*bytes)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NETWORK, NVLINK, ONE_LAUNCH};
    use super::*;

    fn work(gpus: u32, cols: u64, summed: u64) -> VectorWork {
        let machines = Machines {
            gpus,
            nodes: 1,
            link: NVLINK,
            one_launch: ONE_LAUNCH,
            network: NETWORK,
        };
        machines.vector_work(&Columns {
            cols,
            element: 4,
            summed,
            memory_gb_s: 3_000.0,
        })
    }

    #[test]
    fn vectors_are_spread_where_they_are_long() {
        for summed in [4, 12] {
            for gpus in [2, 4, 8] {
                let pays = |power: &u32| work(gpus, 1 << power, summed).spreading_pays();
                let first = (10..34).find(pays).expect("it pays in the end");
                assert!(first > 20, "{gpus} GPUs: from 2^{first} columns on");
                assert!((first..34).all(|power| pays(&power)), "{gpus}");
            }
        }
        let one = work(1, 1 << 30, 4);
        assert_eq!(one.replicated_us, one.spread_us);
    }

    /// That is all that spreading changes: nothing less is sent.
    #[test]
    fn a_share_of_the_work_is_saved_and_starts_are_added() {
        let (gpus, cols) = (4, 29_890_095_u64);
        let found = work(gpus, cols, 4);
        let all_us = VECTOR_ELEMENTS * cols as f64 * 4.0 / 3e6;
        let saved_us = found.replicated_us - found.spread_us;
        let starts_us = all_us * (1.0 - 1.0 / f64::from(gpus)) - saved_us;
        assert!((50.0..90.0).contains(&starts_us), "{starts_us}");
        assert!(!found.beside(saved_us + 1.0).spreading_pays());
    }
}
