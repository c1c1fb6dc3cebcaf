//! `plan --gpus`: what a product takes over several GPUs and machines.

use anyhow::{Context, Result, ensure};

use super::args::PlanArgs;
use super::report::{Listing, indented, number, plain_table};
use crate::plan::fused::{ColumnUse, Planner, Problem, Product, Stored, Weighing};
use crate::plan::scaling::{self, Columns, Course, Link, Machines, Shared, Times, VectorWork};

/// The GPUs that are to share the rows, if several are wanted.
fn machines(args: &PlanArgs, gpus: Option<usize>) -> Result<Option<Machines>> {
    if gpus.is_none() && args.nodes == 1 {
        ensure!(
            args.one_gpu_us.is_none(),
            "--one-gpu-us does nothing without --gpus N or --nodes M, over which the product is to be shared; leave it out"
        );
        return Ok(None);
    }
    Ok(Some(Machines {
        gpus: u32::try_from(gpus.unwrap_or(1)).context("--gpus")?,
        nodes: args.nodes,
        link: scaling::NVLINK,
        one_launch: scaling::ONE_LAUNCH,
        network: Link {
            start_us: args.network_us,
            gb_s: args.network_gb_s,
        },
    }))
}

/// What one GPU's rows take, in microseconds.
struct Own {
    product_us: f64,
    /// Xᵀ·p of it, over a form by columns.
    columns_us: Option<f64>,
}

impl Own {
    /// In the form that is best for this many evaluations, if any are announced.
    fn of(
        planner: &Planner<'_>,
        problem: &Problem,
        (product, evaluations): (Product, Option<u64>),
    ) -> Result<Own> {
        let best = match evaluations {
            Some(evaluations) => planner.best_form(problem, product, evaluations)?,
            None => None,
        };
        let problem = match &best {
            Some(best) => problem.with_stored(best.stored),
            None => *problem,
        };
        let us = |product| -> Result<f64> {
            let plan = planner.plan(&problem, product);
            let plan = plan.context("no plan can be made")?;
            let ns = plan.predicted_ns().context(
                "--gpus: expected the predicted model, which says what a product takes, found another",
            )?;
            Ok(ns as f64 / 1e3)
        };
        let is_by_columns = |best: Weighing| {
            matches!(
                best.stored,
                Stored::RowsAndPanels | Stored::RowsAndTranspose
            )
        };
        let has_slices = best.is_some_and(is_by_columns) && product != Product::Forward;
        let columns_us = has_slices.then(|| us(Product::Transposed));
        Ok(Own {
            product_us: us(product)?,
            columns_us: columns_us.transpose()?,
        })
    }
}

/// The GPUs that are to share the rows, if several are wanted, and what the product takes over 1, 2, 4, … of them.
pub(super) fn shared(
    (planner, memory_gb_s): (&Planner<'_>, f64),
    (problem, product): (&Problem, Product),
    args: &PlanArgs,
    gpus: Option<usize>,
) -> Result<Option<(Machines, Vec<Shared>)>> {
    let Some(machines) = machines(args, gpus)? else {
        return Ok(None);
    };
    let of = |gpus: u32| -> Result<Own> {
        let share = |all: u64| all.div_ceil(u64::from(gpus));
        let own = Problem {
            rows: share(problem.rows),
            nnz: problem.nnz.map(share),
            // They count the rows of all.
            row_steps: None,
            columns: problem.columns.map(|columns| ColumnUse {
                busiest: share(columns.busiest),
                hot_entries: share(columns.hot_entries),
                lines: columns.lines.map(share),
                ..columns
            }),
            ..*problem
        };
        Own::of(planner, &own, (product, args.evaluations))
    };
    let element = u64::from(problem.dtype.bytes());
    let fixed = args.reproducible && problem.nnz.is_some();
    let bytes = match product {
        // Every GPU gets the part of each of the others.
        Product::Forward => problem.rows * element / 2,
        // Words of fixed-point sums, and beside them what is infinite or no number.
        _ if fixed => problem.cols * (2 * element + element),
        _ => problem.cols * element,
    };
    let planned = of(1)?.product_us;
    let alone = args.one_gpu_us.unwrap_or(planned);
    let columns = Columns {
        cols: problem.cols,
        element,
        summed: if fixed { 3 * element } else { element },
        memory_gb_s,
    };
    let steps = machines.steps().into_iter();
    // What the planner errs by on one GPU it errs by on the rows of each.
    let course = args.two_gpus_us.map(|two| {
        let sum = two_of(&machines).sum_us(bytes);
        Course::strong(alone, (two - sum).max(0.0))
    });
    let each = steps.map(|step| {
        let own = of(step.all())?;
        let errs = match course {
            Some(course) => course.us(step.all()) / own.product_us,
            None => alone / planned,
        };
        let times = Times {
            alone_us: alone,
            product_us: errs * own.product_us,
            columns_us: own.columns_us.map(|us| errs * us),
        };
        Ok(step.shared(&times, (bytes, &columns)))
    });
    Ok(Some((machines, each.collect::<Result<_>>()?)))
}

/// Two GPUs of one machine.
fn two_of(machines: &Machines) -> Machines {
    Machines {
        gpus: 2,
        nodes: 1,
        ..*machines
    }
}

/// A product over several GPUs, and what was assumed.
pub(super) fn text(machines: &Machines, shared: &[Shared]) -> String {
    let mut table = plain_table();
    table.set_header([
        "GPUs",
        "µs of a product",
        "µs of its sum",
        "of both",
        "times as fast",
        "efficiency",
    ]);
    for step in shared {
        table.add_row([
            number(step.gpus),
            number(format_args!("{:.1}", step.product_us)),
            number(format_args!("{:.1}", step.sum_us)),
            number(format_args!("{:.1} %", 100.0 * step.sum_share)),
            number(format_args!("{:.2}", step.speed_up)),
            number(format_args!("{:.2}", step.efficiency)),
        ]);
    }
    let mut lines = Listing::new();
    let link = &machines.link;
    lines.line(
        "sums within a machine",
        format_args!(
            "{} µs and {} GB/s, as two H100 did by NCCL",
            link.start_us, link.gb_s
        ),
    );
    if let Some(all) = shared.last().filter(|all| all.gpus > 1) {
        lines.line(
            "adding up a slice of columns beside the next",
            overlapping(all),
        );
        lines.line("vectors of n spread over the GPUs", spreading(&all.vectors));
    }
    if machines.nodes > 1 {
        let network = &machines.network;
        lines.line(
            "between machines",
            format_args!(
                "{} µs and {} GB/s for each GPU, an assumption (--network-us, --network-gb-s)",
                network.start_us, network.gb_s
            ),
        );
    }
    format!("{}{lines}", indented(&table))
}

/// What an iteration of conjugate gradients takes besides kernels over X.
fn spreading(vectors: &VectorWork) -> String {
    let verdict = match vectors.spreading_pays() {
        true => "pays",
        false => "does not pay",
    };
    let hidden = match vectors.hidden_us > 0.0 {
        true => format!(
            ", of which {:.1} pass beside the product",
            vectors.hidden_us
        ),
        false => String::new(),
    };
    format!(
        "{verdict}: an iteration of conjugate gradients takes {:.1} µs besides, {:.1} replicated{hidden}",
        vectors.spread_us, vectors.replicated_us
    )
}

/// What of the sum passes beside the product.
fn overlapping(shared: &Shared) -> String {
    match &shared.overlap {
        Some(overlap) => {
            let [first, _] = &overlap.slices;
            format!(
                "pays: with {} columns first {:.1} of {:.1} µs of the sum pass beside kernels, which costs {:.1}",
                first.end - first.start,
                overlap.hidden_us,
                shared.sum_us,
                overlap.cost_us
            )
        }
        None if shared.columns_us.is_some() => "does not pay".to_owned(),
        None => "not of rows, over which no column is complete before the last; panels and the transpose of a sparse X \
                 have slices (--evaluations N)"
            .to_owned(),
    }
}
