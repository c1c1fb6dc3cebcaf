//! `warpfuse plan --evaluations`: the further forms that a sparse matrix can be stored in, weighed against the number of
//! evaluations that are to come.

use std::fmt;

use anyhow::{Context, Result};
use serde::Serialize;

use super::report::{Listing, indented, number, plain_table, seconds};
use crate::plan::fused::{Planner, Problem, Product, Stored, Weighing};
use crate::plan::limits::DeviceLimits;
use crate::plan::tiles::{TilePasses, TileShape, most_sides};

/// All forms beside the rows as they came.
#[derive(Debug, Serialize)]
pub(super) struct Forms {
    evaluations: u64,
    /// Microseconds of an evaluation over rows; `None` where no further form can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_us: Option<f64>,
    weighed: Vec<Form>,
    chosen: Stored,
    /// For several right-hand sides, beside whatever is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    tiles: Option<Tiles>,
}

/// What [`Preparation::Tiles`](crate::ops::Preparation::Tiles) would make.
#[derive(Debug, Serialize)]
struct Tiles {
    passes: TilePasses,
    sides: u32,
    us: f64,
}

/// A further form.
#[derive(Debug, Serialize)]
struct Form {
    stored: Stored,
    cost_s: f64,
    us: f64,
    /// The fewest evaluations that pay for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pays_from: Option<u64>,
}

impl Forms {
    /// Of `problem`, before this many evaluations of `product`.
    ///
    /// # Errors
    /// When no plan can be made for one of them.
    pub(super) fn of(
        (planner, limits): (&Planner<'_>, &DeviceLimits),
        problem: &Problem,
        product: Product,
        evaluations: u64,
    ) -> Result<Forms> {
        let weighings = planner
            .weighings(problem, product)
            .context("no further form can be weighed")?;
        let best = Weighing::best(weighings.iter().copied(), evaluations);
        Ok(Forms {
            evaluations,
            rows_us: weighings.first().map(|form| form.before_ns as f64 / 1e3),
            chosen: best.map_or(Stored::Rows, |best| best.stored),
            weighed: weighings.iter().map(Form::of).collect(),
            tiles: Tiles::of(problem, limits),
        })
    }
}

impl Tiles {
    /// `None` where there is no room for them.
    fn of(problem: &Problem, limits: &DeviceLimits) -> Option<Tiles> {
        problem.nnz.filter(|nnz| *nnz > 0)?;
        let shape = TileShape::new(problem, limits)?;
        Some(Tiles {
            passes: shape.passes,
            sides: most_sides(problem.dtype),
            us: shape.predicted_us(problem, limits),
        })
    }
}

impl fmt::Display for Tiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tiles { passes, sides, us } = self;
        write!(f, "tiles in {passes}: {us:.1} µs for {sides}")
    }
}

impl Form {
    fn of(weighing: &Weighing) -> Form {
        Form {
            stored: weighing.stored,
            cost_s: weighing.cost_ns as f64 / 1e9,
            us: weighing.after_ns as f64 / 1e3,
            pays_from: weighing.pays_from(),
        }
    }
}

impl fmt::Display for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Listing::new();
        lines.line("evaluations", self.evaluations);
        let Some(rows_us) = self.rows_us else {
            lines.line(
                "stored as",
                "rows: a dense matrix and reproducible sums have no further form",
            );
            return lines.fmt(f);
        };
        let chosen = match self.chosen {
            Stored::Rows => "rows: no further form pays".to_owned(),
            stored => stored.to_string(),
        };
        lines.line("stored as", chosen);
        if let Some(tiles) = &self.tiles {
            lines.line("several sides", tiles);
        }
        let mut table = plain_table();
        table.set_header(["form", "µs", "made in", "pays from"]);
        table.add_row(["rows".into(), number(format_args!("{rows_us:.1}"))]);
        for form in &self.weighed {
            let from = form.pays_from.map(|evaluations| evaluations.to_string());
            table.add_row([
                form.stored.to_string().into(),
                number(format_args!("{:.1}", form.us)),
                number(seconds(form.cost_s)),
                number(from.unwrap_or_else(|| "never".to_owned())),
            ]);
        }
        write!(f, "{lines}{}", indented(&table))
    }
}
