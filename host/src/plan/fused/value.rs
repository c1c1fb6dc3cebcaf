//! The plan: a plain value.

use std::borrow::Cow;
use std::fmt;

use gpu_kernels::fused::CLUSTER;
use serde::{Deserialize, Serialize};

use super::candidate::Team;
use super::launch;
use super::prediction::Prediction;
use super::reason::Reason;
use super::strategy::Strategy;
use crate::plan::error::PlanError;
use crate::plan::limits::{DeviceLimits, MAX_GRID};
use crate::plan::occupancy::{Usage, occupancy};
use crate::plan::problem::{Precision, Problem, Product};

/// Which launch model chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// The published one: the most resident warps.
    Published,
    /// The least predicted time.
    #[default]
    Predicted,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Published => "published",
            Self::Predicted => "predicted",
        })
    }
}

/// How to launch which kernel, and why.
///
/// Vector `i` of the grid works on rows `i, i + V, i + 2V, …` or on a contiguous share of [`Plan::c`]
/// rows, as its kernel likes; with `V =` [`Plan::vectors`], `c · V` is at least the number of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The model that chose.
    pub model: Model,
    /// What is computed.
    pub product: Product,
    /// How.
    pub strategy: Strategy,
    /// The entry of the kernel.
    pub kernel: Cow<'static, str>,
    /// The type of the elements.
    pub precision: Precision,
    /// The threads that share a row.
    pub team: Team,
    /// Vector size: threads per row.
    pub vs: u32,
    /// Block size: threads per block.
    pub bs: u32,
    /// Coarsening: rows per vector.
    pub c: u64,
    /// Elements of a row per thread.
    pub tl: u32,
    /// Rows that a vector loads before it uses the first.
    pub rows_in_flight: u32,
    /// Elements per load.
    pub width: u32,
    /// Blocks.
    pub grid: u32,
    /// Tiles of columns that the grid is divided into; block `b` owns tile `b mod column_tiles`.
    pub column_tiles: u32,
    /// Windows of columns that are added to one after the other, each with a walk over X.
    pub windows: u32,
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Blocks of this launch that an SM holds.
    pub blocks_per_sm: u32,
    /// Warps of this launch that an SM holds.
    pub warps_per_sm: u32,
    /// The predicted time, when the predicted model chose.
    pub prediction: Option<Prediction>,
    /// Why, in the order of the decisions.
    pub reasons: Vec<Reason>,
    /// The launch that follows: `Xᵀ·p` of [`Strategy::DenseTwoProducts`].
    pub then: Option<Box<Plan>>,
}

impl Plan {
    /// Vectors of the grid that work on different rows.
    pub fn vectors(&self) -> u64 {
        launch::vectors(self.grid, self.column_tiles, self.bs, self.vs)
    }

    /// The predicted time of all launches, nanoseconds, when the predicted model chose.
    pub fn predicted_ns(&self) -> Option<u64> {
        let own = self.prediction?.total_ns;
        match &self.then {
            None => Some(own),
            Some(next) => Some(own.saturating_add(next.predicted_ns()?)),
        }
    }

    /// What of [`Plan::predicted_ns`] is launching: what launches behind others do not take.
    pub fn predicted_launch_ns(&self) -> Option<u64> {
        let own = self.prediction?.launch_ns;
        match &self.then {
            None => Some(own),
            Some(next) => Some(own.saturating_add(next.predicted_launch_ns()?)),
        }
    }

    /// [`Plan::predicted_ns`] in microseconds.
    pub fn predicted_us(&self) -> Option<f64> {
        self.predicted_ns().map(|ns| ns as f64 / 1e3)
    }

    /// Whether this and `other` launch the same kernels in the same way, whoever chose them and why.
    pub fn is_launch_of(&self, other: &Plan) -> bool {
        let next = match (&self.then, &other.then) {
            (None, None) => true,
            (Some(a), Some(b)) => a.is_launch_of(b),
            _ => false,
        };
        next && self.kernel == other.kernel
            && (self.bs, self.grid, self.shared_bytes) == (other.bs, other.grid, other.shared_bytes)
            && self.windows == other.windows
    }

    /// The entry with its block size and grid, and windows where there are several; both where there are two launches.
    ///
    /// `balanced_walk_f32 bs256 grid528 + even_transposed_frequent_f32 bs896 grid132 windows3`, for example: the name of a plan in
    /// records of benchmarks.
    pub fn launch_line(&self) -> String {
        let mut line = format!("{} bs{} grid{}", self.kernel, self.bs, self.grid);
        if self.windows > 1 {
            line += &format!(" windows{}", self.windows);
        }
        match &self.then {
            None => line,
            Some(next) => format!("{line} + {}", next.launch_line()),
        }
    }

    /// What the command line prints as JSON.
    pub fn summary(&self) -> PlanSummary {
        PlanSummary {
            strategy: self.strategy,
            model: self.model,
            kernel: self.kernel.to_string(),
            vs: self.vs,
            bs: self.bs,
            c: self.c,
            tl: self.tl,
            rows_in_flight: self.rows_in_flight,
            grid: self.grid,
            shared_bytes: self.shared_bytes,
            registers: self.registers,
            warps_per_sm: self.warps_per_sm,
            predicted_us: self.prediction.map(|p| p.total_ns as f64 / 1e3),
            reasons: self.reasons.iter().map(Reason::to_string).collect(),
            then: self.then.as_ref().map(|next| Box::new(next.summary())),
        }
    }

    /// Checks a plan that was read back or changed by hand against a problem and a device.
    ///
    /// # Errors
    /// [`PlanError::BlockSize`], [`PlanError::Grid`], [`PlanError::DoesNotFit`], or
    /// [`PlanError::Invalid`] naming the first field that cannot be.
    pub fn validate(&self, problem: &Problem, limits: &DeviceLimits) -> Result<(), PlanError> {
        limits.validate()?;
        problem.validate()?;
        check_block_size(self.bs, limits.max_threads_per_block, limits)?;
        if self.grid == 0 || self.grid > MAX_GRID {
            return Err(PlanError::Grid {
                grid: self.grid,
                max: MAX_GRID,
            });
        }
        self.check_shape(problem)?;
        let usage = Usage {
            block_size: self.bs,
            registers: self.registers,
            shared_bytes: u64::from(self.shared_bytes),
        };
        let held = occupancy(limits, usage);
        if held.blocks_per_sm == 0 {
            return Err(PlanError::DoesNotFit {
                kernel: self.kernel.to_string(),
                bs: self.bs,
                registers: self.registers,
                shared_bytes: u64::from(self.shared_bytes),
                device: limits.name.clone(),
                limiter: held.limiter,
            });
        }
        self.then
            .as_ref()
            .map_or(Ok(()), |next| next.validate(problem, limits))
    }

    fn check_shape(&self, problem: &Problem) -> Result<(), PlanError> {
        let invalid = |field, expected: String, found: String| {
            Err(PlanError::Invalid {
                strategy: self.strategy,
                field,
                expected,
                found,
            })
        };
        if self.precision != problem.dtype {
            return invalid(
                "precision",
                problem.dtype.to_string(),
                self.precision.to_string(),
            );
        }
        if self.vs == 0 || self.vs != self.team.size(self.bs) || !self.bs.is_multiple_of(self.vs) {
            return invalid(
                "vs",
                format!("a divisor of bs = {} that matches the team", self.bs),
                self.vs.to_string(),
            );
        }
        if self.column_tiles == 0 || !self.grid.is_multiple_of(self.column_tiles) {
            let expected = format!("a divisor of grid = {}", self.grid);
            return invalid("column_tiles", expected, self.column_tiles.to_string());
        }
        if self.windows == 0 {
            return invalid("windows", "at least 1".into(), self.windows.to_string());
        }
        if u128::from(self.c) * u128::from(self.vectors()) < u128::from(problem.rows) {
            let expected = format!("at least {}", problem.rows.div_ceil(self.vectors().max(1)));
            return invalid("c", expected, self.c.to_string());
        }
        if self.strategy.needs_clusters() && !self.grid.is_multiple_of(CLUSTER) {
            let expected = format!("a multiple of {CLUSTER}, the blocks of a cluster");
            return invalid("grid", expected, self.grid.to_string());
        }
        let held = u64::from(self.vs) * u64::from(self.tl);
        let covered = held.saturating_mul(u64::from(self.column_tiles));
        match self.strategy {
            strategy if strategy.holds_row() && covered < problem.cols => {
                let tiles = u64::from(self.column_tiles);
                let expected = format!("vs x tl of at least {}", problem.cols.div_ceil(tiles));
                invalid("tl", expected, format!("{} x {}", self.vs, self.tl))
            }
            strategy if strategy.has_column_tiles() && covered < problem.cols => {
                let expected = format!("tiles of {held} columns for {}", problem.cols);
                invalid("column_tiles", expected, self.column_tiles.to_string())
            }
            _ => Ok(()),
        }
    }
}

/// Checks that a block size is a multiple of a warp and no more than `max`.
pub(super) fn check_block_size(bs: u32, max: u32, limits: &DeviceLimits) -> Result<(), PlanError> {
    let warp_size = limits.warp_size.max(1);
    if bs == 0 || bs > max || !bs.is_multiple_of(warp_size) {
        return Err(PlanError::BlockSize { bs, warp_size, max });
    }
    Ok(())
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: &dyn fmt::Display| writeln!(f, "{name:<20} {value}");
        line("strategy", &self.strategy)?;
        line("product", &self.product)?;
        line("kernel", &self.kernel)?;
        line("model", &self.model)?;
        line("vector size VS", &self.vs)?;
        line("block size BS", &self.bs)?;
        line("rows per vector C", &self.c)?;
        line("per thread TL", &self.tl)?;
        line("rows in flight", &self.rows_in_flight)?;
        line("elements per load", &self.width)?;
        line("grid", &self.grid)?;
        line("blocks per SM", &self.blocks_per_sm)?;
        line("warps per SM", &self.warps_per_sm)?;
        line(
            "shared memory",
            &format_args!("{} bytes", self.shared_bytes),
        )?;
        line("registers", &self.registers)?;
        if let Some(prediction) = &self.prediction {
            let us = prediction.total_ns as f64 / 1e3;
            line(
                "predicted",
                &format_args!("{us:.1} µs, bound by {}", prediction.bound),
            )?;
        }
        self.reasons
            .iter()
            .try_for_each(|reason| line("because", reason))?;
        match &self.then {
            Some(next) => write!(f, "then\n{next}"),
            None => Ok(()),
        }
    }
}

/// A plan as the command line prints it: the figures by name, the reasons as sentences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanSummary {
    /// How the product is computed.
    pub strategy: Strategy,
    /// The model that chose.
    pub model: Model,
    /// The entry of the kernel.
    pub kernel: String,
    /// Vector size.
    pub vs: u32,
    /// Block size.
    pub bs: u32,
    /// Rows per vector.
    pub c: u64,
    /// Elements of a row per thread.
    pub tl: u32,
    /// Rows that a vector loads before it uses the first.
    pub rows_in_flight: u32,
    /// Blocks.
    pub grid: u32,
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Warps that an SM holds.
    pub warps_per_sm: u32,
    /// The predicted time, when the predicted model chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_us: Option<f64>,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
    /// The launch that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<Box<PlanSummary>>,
}
