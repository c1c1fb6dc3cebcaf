//! Panels, and other columns, of which the blocks of a cluster share the rows.

use std::fmt;

use anyhow::{Result, ensure};
use gpu_kernels::qr::QrVariant;
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, Matrices, Qr, QrShape, Side, TriangleForm};
use warpfuse::plan::qr::{
    Lying, Made, Others, QrPlan, for_batch, over_clusters, plan_of, plan_with, rows_shared, spreads,
};
use warpfuse_tests::Subset;
use warpfuse_tests::tolerance::unit_roundoff;

use super::families::Kind;
use super::{Exact, check, judge, layouts};
use crate::suite::{Suite, Test};

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    add_type::<f32>(suite);
    add_type::<f64>(suite);
    for case in SHARED_ROWS {
        suite.add_in_both(
            |dtype| {
                let test = Test::new(format!("qr/spread/shared-rows-{case}/{dtype}"));
                test.within(case.subset())
            },
            move |device| shared_rows::<f32>(device, case),
            move |device| shared_rows::<f64>(device, case),
        );
    }
    suite.add_in_both(
        |dtype| Test::new(format!("qr/spread/shared-rows-apart/{dtype}")),
        shared_apart::<f32>,
        shared_apart::<f64>,
    );
}

fn add_type<T: Number>(suite: &mut Suite) {
    let name = |case: &str| format!("qr/spread/{case}/{}", T::DTYPE);
    for panel in spreads(T::SIZE) {
        // Emulators have the smaller ones of all.
        let within = |most| match panel.cluster() <= most {
            true => Subset::Small,
            false => Subset::Full,
        };
        let case = format!("{}-blocks", panel.cluster());
        suite.add(Test::new(name(&case)).within(within(2)), move |device| {
            by_panel::<T>(device, panel)
        });
        let ragged = Test::new(name(&format!("ragged-{case}"))).within(within(4));
        suite.add(ragged, move |device| ragged_by::<T>(device, panel));
    }
    let test = Test::new(name("planned")).within(Subset::Full);
    suite.add(test, planned::<T>);
}

/// Blocks with and without rows, panels of any width, columns behind the last.
fn by_panel<T: Number>(device: &Device, panel: QrVariant) -> Result<()> {
    if device.is_cpu() || !device.has_clusters() {
        return Ok(());
    }
    let most = panel.most()[0] as usize;
    for (rows, cols, kinds) in [
        (most - 3, 34, &Kind::ALL[..2]),
        (most / 2 + 1, 9, &[Kind::Tiny, Kind::Huge, Kind::Nan][..]),
        (33, 40, of_device(device)),
    ] {
        let shape = QrShape { rows, cols };
        let plan = plan_with(&[panel], shape);
        ensure!(plan.is_some(), "the panel has room for its rows");
        let batch = Batch::column_major(rows, cols, kinds.len());
        let qr = Qr::with_plan(device, batch, TriangleForm::Whole, plan)?;
        judge::<T>(device, qr, kinds)?;
    }
    Ok(())
}

/// All kinds, of which an emulator has those that are special from the first to the last.
fn of_device(device: &Device) -> &'static [Kind] {
    match Subset::of(device) {
        Subset::Small => &Kind::ALL[5..],
        Subset::Full => &Kind::ALL,
    }
}

/// Matrices of different shapes, some of which end before a panel.
fn ragged_by<T: Number>(device: &Device, panel: QrVariant) -> Result<()> {
    if device.is_cpu() || !device.has_clusters() {
        return Ok(());
    }
    let shapes = [(40, 33), (1, 1), (600, 5), (12, 66), (64, 64), (7, 3)];
    let (matrices, a, kinds) = layouts::ragged_of(&shapes);
    let shape = matrices.largest().expect("there are matrices");
    let plan = plan_with(&[panel], shape);
    let mut qr = Qr::with_plan(device, matrices.clone(), TriangleForm::Whole, plan)?;
    qr.factor(&device.upload(&layouts::place(&a, &matrices))?)?;
    check::<T>(&qr, &a, &kinds)
}

/// The planner's panels, and a cluster's blocks for all other columns.
fn sharing<T: Number>(shape: QrShape) -> QrPlan {
    let mut plan = plan_of(shape, T::SIZE, Lying::Otherwise);
    if let QrPlan::Panels(steps) = &mut plan {
        for step in steps {
            if let QrVariant::Update { width, columns } = step.update {
                step.others = Others::Behind(QrVariant::SharedUpdate { width, columns });
            }
        }
    }
    plan
}

/// Matrices of which a cluster's blocks share the rows, and how many kinds of them there are: all columns of T come with panels, or
/// at the end.
#[derive(Debug, Clone, Copy)]
struct SharedRows {
    rows: usize,
    cols: usize,
    kinds: usize,
    made: Made,
}

impl SharedRows {
    /// Those with more than a part of a second chunk take emulators long.
    fn subset(&self) -> Subset {
        match self.rows > 140 {
            true => Subset::Full,
            false => Subset::Small,
        }
    }
}

impl fmt::Display for SharedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}-{:?}", self.rows, self.cols, self.made)
    }
}

/// One block with a part of a chunk of 128 rows, and some with a chunk, a part of one, and none.
const SHARED_ROWS: [SharedRows; 6] = [
    SharedRows {
        rows: 33,
        cols: 70,
        kinds: Kind::ALL.len(),
        made: Made::WithPanels,
    },
    SharedRows {
        rows: 33,
        cols: 70,
        kinds: 3,
        made: Made::AtTheEnd,
    },
    SharedRows {
        rows: 140,
        cols: 104,
        kinds: 1,
        made: Made::AtTheEnd,
    },
    SharedRows {
        rows: 140,
        cols: 104,
        kinds: 2,
        made: Made::WithPanels,
    },
    SharedRows {
        rows: 300,
        cols: 104,
        kinds: 2,
        made: Made::WithPanels,
    },
    SharedRows {
        rows: 300,
        cols: 104,
        kinds: 2,
        made: Made::AtTheEnd,
    },
];

fn shared_rows<T: Number>(device: &Device, case: SharedRows) -> Result<()> {
    if device.is_cpu() || !device.has_clusters() {
        return Ok(());
    }
    let shape = QrShape {
        rows: case.rows,
        cols: case.cols,
    };
    let kinds = &Kind::ALL[..case.kinds];
    let matrices = Matrices::from(Batch::column_major(case.rows, case.cols, kinds.len()));
    let plan = Some(sharing::<T>(shape));
    let qr = Qr::with_plan(device, matrices, TriangleForm::Whole, plan)?;
    judge::<T>(device, qr.with_columns_of_t(case.made)?, kinds)
}

/// Q from factors, and Qᵀ times it: the identity.
fn shared_apart<T: Number>(device: &Device) -> Result<()> {
    if device.is_cpu() || !device.has_clusters() {
        return Ok(());
    }
    let rows = match Subset::of(device) {
        Subset::Small => 140,
        Subset::Full => 270,
    };
    let cols = 66;
    let of_a = Batch::column_major(rows, cols, 2);
    let plan = Some(sharing::<T>(of_a.shape()));
    let mut qr = Qr::with_plan(device, of_a, TriangleForm::Panels, plan)?;
    let a: Vec<T> = Kind::Random.draw((rows, 2 * cols), 3);
    qr.factor(&device.upload(&a)?)?;
    let mut q = device.zeros(2 * rows * cols)?;
    qr.explicit_q(&mut q, &of_a)?;
    qr.apply(Side::QTransposed, &mut q, &of_a)?;
    let bound = 100.0 * cols as f64 * 2.0 * unit_roundoff(T::DTYPE);
    for (at, value) in q.to_vec()?.into_iter().enumerate() {
        let (row, col) = (at % rows, at / rows % cols);
        let error = (value.to_f64_exact() - f64::from(row == col)).abs();
        ensure!(error <= bound, "row {row} of column {col} is {error} off");
    }
    Ok(())
}

/// What the planner would take, of matrices whose first panels alone are too tall for a block.
fn planned<T: Number>(device: &Device) -> Result<()> {
    let Some(limits) = device.limits().filter(|_| device.has_clusters()) else {
        return Ok(());
    };
    let (rows, cols, expected) = match T::SIZE {
        4 => (1_060, 96, [4, 4, 1]),
        _ => (560, 96, [2, 2, 1]),
    };
    let kinds = [Kind::Random, Kind::Graded];
    let matrices = Matrices::from(Batch::column_major(rows, cols, kinds.len()));
    let shape = QrShape { rows, cols };
    let plan = over_clusters(plan_of(shape, T::SIZE, Lying::Packed), shape, T::SIZE);
    let QrPlan::Panels(steps) = &plan else {
        anyhow::bail!("{plan:?} has no panels");
    };
    let blocks: Vec<u32> = steps.iter().map(|step| step.panel.cluster()).collect();
    ensure!(blocks == expected, "found {blocks:?}");
    let of = warpfuse::plan::qr::Batch::of(shape, kinds.len(), T::SIZE, limits);
    let plan = Some(rows_shared(for_batch(plan, &of), &of));
    let qr = Qr::with_plan(device, matrices, TriangleForm::Whole, plan)?;
    judge::<T>(device, qr, &kinds)
}
