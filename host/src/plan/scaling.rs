//! What a product takes over several GPUs and machines that share the rows of X.
//!
//! Pure arithmetic: each GPU's product over its rows, from a [plan](super::fused) for this many, and the sum of what they have
//! of w. Sums by halves and rings: within a machine of g GPUs 2·(g − 1)/g of the bytes leave each of them; between M machines
//! 2·(M − 1)/M of what one GPU of each has of the sum, 1/g of it, by a network link of its own. Sums of few bytes are
//! one launch over the memory of the peers, which sends everything to each. Source: Rabenseifner 2004 for the terms;
//! the rates are measured, those of a network are the user's.

mod course;
mod overlap;
mod vectors;

pub use course::Course;
pub use overlap::{Overlap, Slicing, TURNS};
pub use vectors::VectorWork;

use serde::Serialize;

/// What numbers take from one GPU to others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// Microseconds of the smallest sum.
    pub start_us: f64,
    /// 10⁹ bytes a second that leave a GPU, in each direction.
    pub gb_s: f64,
}

impl Link {
    /// Microseconds that bytes take to leave.
    fn takes(&self, bytes: f64) -> f64 {
        // 10⁹ bytes a second are 10³ bytes a microsecond.
        bytes / (1e3 * self.gb_s)
    }
}

/// Sums of up to this many bytes in one launch of ours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OneLaunch {
    /// What it takes.
    pub link: Link,
    /// Bytes at most.
    pub most_bytes: u64,
    /// GPUs at most.
    pub most_gpus: u32,
}

/// GPUs of machines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Machines {
    /// GPUs of each.
    pub gpus: u32,
    /// How many.
    pub nodes: u32,
    /// Between the GPUs of one.
    pub link: Link,
    /// The same for few bytes.
    pub one_launch: OneLaunch,
    /// Between machines, of each GPU.
    pub network: Link,
}

/// Over NVLink of the fourth generation, by NCCL: the line through 64 MiB in 259 µs and 1 GiB in 3.27 ms, which two H100
/// took (`benches/results/h100-x2/scaling.jsonl`).
pub const NVLINK: Link = Link {
    start_us: 58.0,
    gb_s: 334.0,
};

/// In one launch over the peers' memory: 224 bytes in 4.3 to 4.8 µs, 32 KiB in 3.3 and 256 KiB in 4.4, there too; packets are
/// half number.
pub const ONE_LAUNCH: OneLaunch = OneLaunch {
    link: Link {
        start_us: 4.0,
        gb_s: 167.0,
    },
    most_bytes: 256 << 10,
    most_gpus: 8,
};

/// A network port of 400 Gb/s for each GPU: an assumption.
pub const NETWORK: Link = Link {
    start_us: 20.0,
    gb_s: 45.0,
};

/// Vectors of n that several GPUs keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Columns {
    /// n.
    pub cols: u64,
    /// Bytes of an element.
    pub element: u64,
    /// Bytes of what is added up of a column: more than an element where sums are fixed-point numbers.
    pub summed: u64,
    /// 10⁹ bytes a second that a GPU reads and writes.
    pub memory_gb_s: f64,
}

/// What a product takes, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// One GPU, for all rows.
    pub alone_us: f64,
    /// Each of several, for its rows.
    pub product_us: f64,
    /// What of that is `Xᵀ·p` over a form by columns, over which w is complete slice by slice; `None` over rows.
    pub columns_us: Option<f64>,
}

/// A product over several GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shared {
    /// GPUs in all.
    pub gpus: u32,
    /// Microseconds of the kernels of one.
    pub product_us: f64,
    /// Microseconds of the sum.
    pub sum_us: f64,
    /// The sum's part of both.
    pub sum_share: f64,
    /// How many times as fast as one GPU.
    pub speed_up: f64,
    /// Of what this many GPUs could do.
    pub efficiency: f64,
    /// What an iteration of conjugate gradients takes besides.
    pub vectors: VectorWork,
    /// Microseconds of `Xᵀ·p` of one, where that is over a form by columns.
    pub columns_us: Option<f64>,
    /// The slices of columns of which one is added up while the next is computed; `None` where w is computed as a whole.
    pub overlap: Option<Overlap>,
}

impl Machines {
    /// GPUs in all.
    pub fn all(&self) -> u32 {
        self.gpus.saturating_mul(self.nodes)
    }

    /// Microseconds of a sum of this many bytes.
    ///
    /// ```
    /// use warpfuse::plan::scaling::{Machines, NETWORK, NVLINK, ONE_LAUNCH};
    /// let two = Machines { gpus: 2, nodes: 1, link: NVLINK, one_launch: ONE_LAUNCH, network: NETWORK };
    /// assert!(two.sum_us(1 << 10) < 5.0);
    /// assert!((two.sum_us(1 << 30) / 3_270.0 - 1.0).abs() < 0.02);
    /// assert_eq!(Machines { gpus: 1, ..two }.sum_us(1 << 30), 0.0);
    /// ```
    pub fn sum_us(&self, bytes: u64) -> f64 {
        let many = self.sum_us_of_many(bytes);
        let one = &self.one_launch;
        let fits = bytes <= one.most_bytes && self.gpus <= one.most_gpus && self.nodes == 1;
        if !fits || self.gpus < 2 {
            return many;
        }
        let sent = f64::from(self.gpus - 1) * bytes as f64;
        many.min(one.link.start_us + one.link.takes(sent))
    }

    /// Of many bytes, whatever they are.
    fn sum_us_of_many(&self, bytes: u64) -> f64 {
        let (gpus, nodes) = (f64::from(self.gpus), f64::from(self.nodes));
        let bytes_f = bytes as f64;
        let within = match self.gpus {
            0 | 1 => 0.0,
            _ => self.link.start_us + self.link.takes(2.0 * (gpus - 1.0) / gpus * bytes_f),
        };
        let between = match self.nodes {
            0 | 1 => 0.0,
            _ => {
                let sent = 2.0 * (nodes - 1.0) / nodes * bytes_f / gpus.max(1.0);
                self.network.start_us * nodes.log2().ceil() + self.network.takes(sent)
            }
        };
        within + between
    }

    /// A product with a sum of this many bytes, and vectors of these columns, over all of which entries are spread evenly.
    pub fn shared(&self, times: &Times, (bytes, columns): (u64, &Columns)) -> Shared {
        let (product_us, sum_us) = (times.product_us, self.sum_us(bytes));
        let overlap = times.columns_us.and_then(|columns_us| {
            self.overlap(&Slicing {
                columns_us,
                columns,
                entries: &[1; 64],
            })
        });
        let saved_us = overlap.as_ref().map_or(0.0, Overlap::saves_us);
        let speed_up = times.alone_us / (product_us + sum_us - saved_us);
        Shared {
            gpus: self.all(),
            product_us,
            sum_us,
            sum_share: sum_us / (product_us + sum_us),
            speed_up,
            efficiency: speed_up / f64::from(self.all().max(1)),
            vectors: self.vector_work(columns).beside(saved_us),
            columns_us: times.columns_us,
            overlap,
        }
    }

    /// Whether a sum takes less time where every GPU gets its share of the columns, and gives the others the elements that it
    /// makes of them: so it is where elements are smaller than what is added up, and many.
    pub fn sums_pay_in_shares(&self, of: &Columns) -> bool {
        self.in_shares_us(of) < self.sum_us(of.cols * of.summed)
    }

    /// Microseconds of a sum of all columns: in shares where that takes less.
    ///
    /// ```
    /// use warpfuse::plan::scaling::{Columns, Machines, NETWORK, NVLINK, ONE_LAUNCH};
    /// let four = Machines { gpus: 4, nodes: 1, link: NVLINK, one_launch: ONE_LAUNCH, network: NETWORK };
    /// let fixed = Columns { cols: 30_000_000, element: 4, summed: 12, memory_gb_s: 3_000.0 };
    /// assert!(four.sum_of_columns_us(&fixed) < four.sum_us(12 * 30_000_000));
    /// ```
    pub fn sum_of_columns_us(&self, of: &Columns) -> f64 {
        self.sum_us(of.cols * of.summed).min(self.in_shares_us(of))
    }

    /// Microseconds of both.
    fn in_shares_us(&self, of: &Columns) -> f64 {
        // Half of a sum's way each: to the owners, and from them.
        let half = |bytes: u64| match self.all() {
            0 | 1 => 0.0,
            _ => {
                let starts = self.sum_us_of_many(0);
                starts + (self.sum_us_of_many(of.cols * bytes) - starts) / 2.0
            }
        };
        half(of.summed) + half(of.element)
    }

    /// The same with fewer GPUs: 1, 2, 4, … of a machine, then 2, 4, … machines, and all.
    ///
    /// ```
    /// use warpfuse::plan::scaling::{Machines, NETWORK, NVLINK, ONE_LAUNCH};
    /// let all = Machines { gpus: 6, nodes: 3, link: NVLINK, one_launch: ONE_LAUNCH, network: NETWORK };
    /// let steps: Vec<u32> = all.steps().iter().map(Machines::all).collect();
    /// assert_eq!(steps, [1, 2, 4, 6, 12, 18]);
    /// ```
    pub fn steps(&self) -> Vec<Machines> {
        let doubling = |most: u32| {
            let powers = (0..32).map(|power| 1_u32 << power);
            let below = powers.take_while(move |number| *number < most);
            below.chain([most])
        };
        let of_one = doubling(self.gpus).map(|gpus| Machines {
            gpus,
            nodes: 1,
            ..*self
        });
        let of_more = doubling(self.nodes)
            .skip(1)
            .map(|nodes| Machines { nodes, ..*self });
        of_one.chain(of_more).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(gpus: u32, nodes: u32) -> Machines {
        Machines {
            gpus,
            nodes,
            link: NVLINK,
            one_launch: ONE_LAUNCH,
            network: NETWORK,
        }
    }

    #[test]
    fn sums_take_longer_with_more_bytes_and_with_more_machines() {
        for gpus in [2, 4, 8] {
            for nodes in [1, 2, 16, 128] {
                let mut last = 0.0;
                for bytes in (8..32).map(|power| 1_u64 << power) {
                    let us = machines(gpus, nodes).sum_us(bytes);
                    assert!(us >= last, "{gpus} GPUs, {nodes} machines, {bytes} bytes");
                    last = us;
                    assert!(machines(gpus, nodes + 1).sum_us(bytes) > us || nodes == 1);
                }
            }
        }
    }

    fn columns(cols: u64) -> Columns {
        Columns {
            cols,
            element: 4,
            summed: 4,
            memory_gb_s: 3_000.0,
        }
    }

    #[test]
    fn the_efficiency_is_one_without_a_sum() {
        let times = |alone_us, product_us| Times {
            alone_us,
            product_us,
            columns_us: None,
        };
        let shared = machines(4, 1).shared(&times(400.0, 100.0), (0, &columns(28)));
        let expected = 100.0 / (100.0 + shared.sum_us);
        assert!((shared.efficiency - expected).abs() < 1e-12);
        let one = machines(1, 1).shared(&times(400.0, 400.0), (1 << 30, &columns(28)));
        assert_eq!((one.efficiency, one.sum_share), (1.0, 0.0));
    }

    #[test]
    fn sums_are_hidden_where_they_take_longest() {
        let sum_us = |columns_us: Option<f64>| {
            let times = Times {
                alone_us: 2e4,
                product_us: 1e4,
                columns_us,
            };
            let shared = machines(2, 1).shared(&times, (4 << 25, &columns(1 << 25)));
            (2e4 / shared.speed_up - 1e4, shared.overlap)
        };
        let (as_a_whole, (hidden, overlap)) = (sum_us(None).0, sum_us(Some(6e3)));
        assert!(hidden < 0.6 * as_a_whole, "{hidden} of {as_a_whole}");
        assert!(
            overlap.is_some_and(|overlap| (as_a_whole - hidden - overlap.saves_us()).abs() < 1e-6)
        );
    }

    #[test]
    fn one_machine_has_no_network() {
        let slow = Link {
            start_us: 1e6,
            gb_s: 1e-3,
        };
        let bytes = 100 << 20;
        let one = machines(8, 1);
        assert_eq!(
            Machines {
                network: slow,
                ..one
            }
            .sum_us(bytes),
            one.sum_us(bytes)
        );
    }
}
