//! What a product takes over several GPUs and machines that share the rows of X.
//!
//! Pure arithmetic: each GPU's product over its rows, from a [plan](super::fused) for this many, and the sum of what they have
//! of w. Sums by halves and rings: within a machine of g GPUs 2·(g − 1)/g of the bytes leave each of them; between M machines
//! 2·(M − 1)/M of what one GPU of each has of the sum, 1/g of it, by a network link of its own. Sums of few bytes are
//! one launch over the memory of the peers, which sends everything to each. Source: Rabenseifner 2004 for the terms;
//! the rates are measured, those of a network are the user's.

use serde::Serialize;

/// What numbers take from one GPU to others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// Microseconds of the smallest sum.
    pub start_us: f64,
    /// 10⁹ bytes a second that leave a GPU, in each direction.
    pub gb_s: f64,
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

/// In one launch over the peers' memory: 224 bytes in 10.1 µs and 256 KiB in 14.8, there too.
pub const ONE_LAUNCH: OneLaunch = OneLaunch {
    link: Link {
        start_us: 10.0,
        gb_s: 55.0,
    },
    most_bytes: 256 << 10,
    most_gpus: 8,
};

/// A network port of 400 Gb/s for each GPU: an assumption.
pub const NETWORK: Link = Link {
    start_us: 20.0,
    gb_s: 45.0,
};

/// A product over several GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shared {
    /// GPUs in all.
    pub gpus: u32,
    /// Microseconds of the kernels of one.
    pub product_us: f64,
    /// Microseconds of the sum.
    pub sum_us: f64,
    /// How many times as fast as one GPU.
    pub speed_up: f64,
    /// Of what this many GPUs could do.
    pub efficiency: f64,
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
    /// assert!(two.sum_us(1 << 10) < 11.0);
    /// assert!((two.sum_us(1 << 30) / 3_270.0 - 1.0).abs() < 0.02);
    /// assert_eq!(Machines { gpus: 1, ..two }.sum_us(1 << 30), 0.0);
    /// ```
    pub fn sum_us(&self, bytes: u64) -> f64 {
        let (gpus, nodes) = (f64::from(self.gpus), f64::from(self.nodes));
        let bytes_f = bytes as f64;
        // 10⁹ bytes a second are 10³ bytes a microsecond.
        let takes = |link: &Link, bytes: f64| bytes / (1e3 * link.gb_s);
        let within = match self.gpus {
            0 | 1 => 0.0,
            _ => self.link.start_us + takes(&self.link, 2.0 * (gpus - 1.0) / gpus * bytes_f),
        };
        let one = &self.one_launch;
        let fits = bytes <= one.most_bytes && self.gpus <= one.most_gpus && self.nodes == 1;
        if fits && self.gpus > 1 {
            let sent = (gpus - 1.0) * bytes_f;
            return within.min(one.link.start_us + takes(&one.link, sent));
        }
        let between = match self.nodes {
            0 | 1 => 0.0,
            _ => {
                let sent = 2.0 * (nodes - 1.0) / nodes * bytes_f / gpus.max(1.0);
                self.network.start_us * nodes.log2().ceil() + takes(&self.network, sent)
            }
        };
        within + between
    }

    /// A product that takes one GPU `alone_us`, and each of these `product_us` for its rows, with a sum of this many bytes.
    pub fn shared(&self, (alone_us, product_us): (f64, f64), bytes: u64) -> Shared {
        let sum_us = self.sum_us(bytes);
        let speed_up = alone_us / (product_us + sum_us);
        Shared {
            gpus: self.all(),
            product_us,
            sum_us,
            speed_up,
            efficiency: speed_up / f64::from(self.all().max(1)),
        }
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

    #[test]
    fn the_efficiency_is_one_without_a_sum() {
        let shared = machines(4, 1).shared((400.0, 100.0), 0);
        let expected = 100.0 / (100.0 + shared.sum_us);
        assert!((shared.efficiency - expected).abs() < 1e-12);
        assert_eq!(
            machines(1, 1).shared((400.0, 400.0), 1 << 30).efficiency,
            1.0
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
