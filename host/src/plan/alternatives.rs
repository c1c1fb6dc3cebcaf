//! Where passes over X could be computed, with what each place would take: the CPU, a GPU that has X, a GPU through which X
//! streams, and both, each with a share of the rows.
//!
//! Pure arithmetic: what opening, placing and reading cost, from rates ([`super::work`], [`HostRates`]) and from what a
//! plan predicts for one pass. What streams takes as long as what crosses the link, or as its kernels where these take
//! longer, because both run at once. Page-locked blocks cross without the CPU, which may compute meanwhile, as fast as the
//! link leaves it memory; other blocks are made by all threads, so that the CPU does one after the other.

mod in_blocks;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

use in_blocks::InBlocks;

use super::fused::Planner;
use super::rates::HostRates;
use super::streaming::{Footprint, PAGEABLE_GBS, Packed, RENTED_BYTES, Streamed};
use super::work::Work;
use super::{PlanError, Problem, Product, StoredValues};

/// Shares of rows that are compared: multiples of 1/128.
const SHARES: u32 = 128;
/// Seconds of a pass that both share which are not X's nor its vectors': each waits for the other.
const TOGETHER: f64 = 2e-4;
/// Seconds from the end of a pass's kernels until the host knows of it and has begun the next one: on an H100 a product with a
/// small X takes 19 µs from host to host, of which its kernel takes 4.
const ROUND_TRIP: f64 = 1e-5;
/// Both have to be faster than either by this much before rows are shared: what the model may be off.
const WORTH_SHARING: f64 = 0.9;

/// A place for passes over X.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FitPlace {
    /// The CPU.
    Cpu,
    /// A GPU that has all of X.
    Resident,
    /// A GPU that has a part of X; the rest crosses the link in every pass.
    Streaming,
    /// The same, but that the CPU computes some of the rows.
    Hybrid,
}

/// What is known of a fit, or of other passes over X.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// X as it came.
    pub footprint: Footprint,
    /// Entries of a sparse X.
    pub entries: Option<u64>,
    /// X as it crosses the link.
    pub packed: Packed,
    /// How often X is going to be read.
    pub reads: u64,
    /// Seconds of the kernels of one pass over an X that is on the GPU.
    pub kernel_seconds: f64,
    /// Seconds to make the further form that these kernels read, 0 without one.
    pub form_seconds: f64,
    /// Seconds of the kernels of one pass over an X in blocks, which are unpacked.
    pub block_seconds: f64,
    /// Bytes of the GPU that X may take.
    pub room: u64,
    /// Whether the GPU's driver has been started, and X is in the host's memory.
    pub is_open: bool,
    /// What the host does.
    pub host: HostRates,
}

/// What is done with X, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Passes {
    /// [`Fit::reads`].
    pub reads: u64,
    /// [`Fit::room`].
    pub room: u64,
    /// How the values of a block cross the link.
    pub values: StoredValues,
    /// [`Fit::is_open`].
    pub is_open: bool,
    /// [`Fit::host`].
    pub host: HostRates,
}

/// A place and what a fit there would take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Alternative {
    /// Where.
    pub place: FitPlace,
    /// Predicted seconds, the start of a GPU included.
    pub seconds: f64,
    /// Of these, those of one pass.
    pub pass_seconds: f64,
    /// Bytes that cross the link in all.
    pub sent_bytes: u64,
    /// The share of the rows that the CPU computes.
    pub host_share: f64,
    /// Whether X fits.
    pub fits: bool,
}

/// Bytes of memory that a known device has, by its name; those of a usual card, where it is none.
pub fn usual_memory(name: &str) -> u64 {
    let gigabytes = match name {
        name if name.contains("H200") => 141,
        name if name.contains("H100") || name.contains("A100") => 80,
        name if name.to_lowercase().contains("titan") => 6,
        _ => 24,
    };
    gigabytes * 1_000_000_000
}

impl Fit {
    /// Passes over the X of a problem, each about as much work as a fused product, planned for a GPU.
    ///
    /// # Errors
    /// [`PlanError`] where no launch fits.
    pub fn of(planner: &Planner<'_>, problem: &Problem, passes: Passes) -> Result<Fit, PlanError> {
        let problem = &problem.as_stored();
        let footprint = Footprint::of(problem);
        let Passes {
            reads,
            room,
            values,
            is_open,
            host,
        } = passes;
        let seconds = |problem: &Problem| {
            let plan = planner.plan(problem, Product::Fused)?;
            Ok::<f64, PlanError>(plan.predicted_ns().unwrap_or(0) as f64 / 1e9)
        };
        let packed = Packed::of(problem, values);
        let blocks = footprint.bytes.div_ceil(footprint.block_bytes(room)).max(1);
        let in_blocks = InBlocks {
            planner,
            problem,
            values,
            blocks,
        };
        let form = match problem.nnz {
            Some(_) => planner.best_form(problem, Product::Fused, reads)?,
            None => None,
        };
        Ok(Fit {
            footprint,
            entries: problem.nnz,
            packed,
            reads,
            kernel_seconds: match &form {
                Some(form) => form.after_ns as f64 / 1e9,
                None => seconds(problem)?,
            },
            form_seconds: form.map_or(0.0, |form| form.cost_ns as f64 / 1e9),
            block_seconds: in_blocks.seconds()?,
            room,
            is_open,
            host,
        })
    }

    /// All places, the fastest first; one where X does not fit comes last.
    ///
    /// ```
    /// use warpfuse::plan::alternatives::{Fit, FitPlace};
    /// use warpfuse::plan::rates::HostRates;
    /// use warpfuse::plan::streaming::{Footprint, Packed};
    /// let footprint = Footprint { bytes: 8 << 30, rows: 50_000_000, cols: 50_000, element: 4 };
    /// let fit = Fit {
    ///     footprint, entries: Some(1 << 30), packed: Packed { bytes: 2 << 30, unpacked_bytes: 8 << 30 }, reads: 300, kernel_seconds: 0.003,
    ///     form_seconds: 0.0, block_seconds: 0.004, room: 80 << 30, is_open: false, host: HostRates::of_threads(16),
    /// };
    /// assert_eq!(fit.alternatives()[0].place, FitPlace::Resident);
    /// // With 16 cores the CPU would take a share of the rows.
    /// let small_card = Fit { room: 1 << 30, reads: 10, host: HostRates::of_threads(2), ..fit };
    /// assert_eq!(small_card.alternatives()[0].place, FitPlace::Streaming);
    /// assert!(!small_card.alternatives()[3].fits);
    /// ```
    pub fn alternatives(&self) -> [Alternative; 4] {
        let mut all = [
            self.on_cpu(),
            self.resident(),
            self.streaming(),
            self.hybrid(),
        ];
        all.sort_by(|a, b| {
            let by_time = a.seconds.total_cmp(&b.seconds);
            b.fits.cmp(&a.fits).then(by_time)
        });
        all
    }

    /// The share of the rows that the CPU is to compute of an X that streams: 0 unless that is worth it.
    ///
    /// ```
    /// use warpfuse::plan::alternatives::Fit;
    /// use warpfuse::plan::rates::HostRates;
    /// use warpfuse::plan::streaming::{Footprint, Packed};
    /// let footprint = Footprint { bytes: 8 << 30, rows: 4 << 20, cols: 512, element: 4 };
    /// let dense = Fit {
    ///     footprint, entries: None, packed: Packed { bytes: 8 << 30, unpacked_bytes: 0 }, reads: 20, kernel_seconds: 0.002, form_seconds: 0.0, block_seconds: 0.002,
    ///     room: 6 << 30, is_open: true, host: HostRates::of_threads(16),
    /// };
    /// // What the GPU has no room for is read faster by the CPU than it would cross the link.
    /// assert!((0.25..0.3).contains(&dense.host_share()));
    /// assert_eq!(Fit { room: 80 << 30, ..dense }.host_share(), 0.0);
    /// ```
    pub fn host_share(&self) -> f64 {
        let (alone, both) = (self.streaming(), self.hybrid());
        match both.seconds < WORTH_SHARING * alone.seconds {
            true => both.host_share,
            false => 0.0,
        }
    }

    /// Predicted seconds on the CPU.
    pub fn on_cpu(&self) -> Alternative {
        let pass_seconds = self.host.pass_seconds(&self.footprint, self.entries);
        Alternative {
            place: FitPlace::Cpu,
            seconds: self.reads as f64 * pass_seconds,
            pass_seconds,
            sent_bytes: 0,
            host_share: 1.0,
            fits: true,
        }
    }

    /// Predicted seconds on a GPU that has X.
    pub fn resident(&self) -> Alternative {
        let pass_seconds = self.kernel_seconds + ROUND_TRIP;
        Alternative {
            place: FitPlace::Resident,
            seconds: self.opening()
                + self.host.placing_seconds
                + self.crossing_once(self.footprint.bytes)
                + self.form_seconds
                + self.reads as f64 * pass_seconds,
            pass_seconds,
            sent_bytes: self.footprint.bytes,
            host_share: 0.0,
            fits: self.footprint.bytes + self.footprint.least_vectors() <= self.room,
        }
    }

    /// Predicted seconds on a GPU through which X streams.
    pub fn streaming(&self) -> Alternative {
        self.shared(FitPlace::Streaming, 0.0)
    }

    /// Predicted seconds on both, with the best share of the CPU.
    pub fn hybrid(&self) -> Alternative {
        let shares = (1..SHARES).map(|part| f64::from(part) / f64::from(SHARES));
        let all = shares.map(|share| self.shared(FitPlace::Hybrid, share));
        all.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
            .expect("there are shares")
    }

    /// What a fit takes of which the CPU computes this share of the rows, and the GPU the others.
    fn shared(&self, place: FitPlace, share: f64) -> Alternative {
        let streamed = self.streamed(share);
        let crossing = streamed.crossing_bytes() as f64;
        let reads = self.reads as f64;
        let is_pinned = self.reads >= self.host.link.pins_from(streamed.block_bytes);
        let pass_seconds = self.shared_pass(share, &streamed, is_pinned);
        let pinning = match is_pinned {
            true => crossing / (self.host.link.pinning_gbs * 1e9),
            false => 0.0,
        };
        let once = self.crossing_once(streamed.resident_bytes) + pinning;
        Alternative {
            place,
            seconds: self.opening() + self.host.placing_seconds + once + reads * pass_seconds,
            pass_seconds,
            sent_bytes: streamed.resident_bytes + self.reads * streamed.crossing_bytes(),
            host_share: share,
            fits: true,
        }
    }

    /// One pass of which the CPU computes a share.
    fn shared_pass(&self, share: f64, streamed: &Streamed, is_pinned: bool) -> f64 {
        let kernels = (1.0 - share) * self.block_seconds;
        let cpu = self
            .host
            .share_seconds(&self.footprint, self.entries, share);
        let crossing = streamed.crossing_bytes() as f64;
        let crosses = match is_pinned {
            true => streamed.crossing_seconds(self.host.link.pinned_gbs),
            false => {
                let blocks = crossing / streamed.block_bytes.max(1) as f64;
                self.host.link.made_seconds(crossing, blocks.ceil())
            }
        };
        let alone = kernels.max(crosses);
        if share == 0.0 {
            return alone;
        }
        let on_host = match is_pinned {
            // Both read the host's memory.
            true => {
                let bytes = share * self.footprint.bytes as f64 + crossing;
                cpu.max(bytes / (self.host.dense_gbs * 1e9))
            }
            false => cpu + crosses,
        };
        TOGETHER + self.vectors_cross() + alone.max(on_host)
    }

    /// What of the GPU's rows stays there, where the CPU has a share.
    pub fn streamed(&self, share: f64) -> Streamed {
        Streamed::of(&self.footprint, self.packed, (self.room, share))
    }

    /// Seconds until X is on the GPU, where it is to stay.
    fn crossing_once(&self, bytes: u64) -> f64 {
        let gbs = match bytes <= RENTED_BYTES {
            true => PAGEABLE_GBS.min(self.host.link.staged_gbs),
            false => self.host.link.staged_gbs,
        };
        bytes as f64 / (gbs * 1e9)
    }

    /// Seconds in which vectors cross for a share of the CPU, y and what it adds up, of an element for every column. Each
    /// waits for the copy before.
    fn vectors_cross(&self) -> f64 {
        let bytes = 2 * self.footprint.cols * self.footprint.element;
        bytes as f64 / (PAGEABLE_GBS * 1e9)
    }

    fn opening(&self) -> f64 {
        match self.is_open {
            true => 0.0,
            false => Work { bytes: 0, reads: 0 }.seconds(1).gpu,
        }
    }
}

impl fmt::Display for FitPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FitPlace::Cpu => "CPU",
            FitPlace::Resident => "GPU with all of X",
            FitPlace::Streaming => "GPU, X streams",
            FitPlace::Hybrid => "GPU and CPU",
        })
    }
}

/// A time in the unit that suits it.
pub(crate) fn readable(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Alternative {
            place,
            seconds,
            pass_seconds,
            sent_bytes,
            host_share,
            fits,
        } = self;
        if !fits {
            return write!(f, "{place}: X does not fit");
        }
        write!(
            f,
            "{place}: {}, {} a pass, {:.2} GB cross the link",
            readable(*seconds),
            readable(*pass_seconds),
            *sent_bytes as f64 / 1e9
        )?;
        match place {
            FitPlace::Hybrid => write!(f, ", {:.0} % of the rows on the CPU", 100.0 * host_share),
            _ => Ok(()),
        }
    }
}
