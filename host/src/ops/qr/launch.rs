//! The launches of a factorisation.

use gpu_kernels::qr::{
    EVERY, PACKS, QrArgs, QrVariant, Steps, WHOLE_T, merge_tiles, pack_tiles, pairs_blocks,
    rows_blocks, shared_rows_blocks, tensor_tiles, update_tiles, work_elements,
};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::batch::Matrices;
use super::factors::Qr;
use super::streams;
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError, generated};
use crate::plan::qr::{Lying, Made, Others, PanelStep, QrPlan, update_of};

/// The compiled entry of a variant.
pub(super) fn entry<T: Number>(variant: QrVariant) -> Result<&'static Entry<T::Qr>, OpError> {
    let found = T::Qr::entries()
        .iter()
        .find(|entry| entry.variant == variant);
    let found = found.or_else(|| generated::find::<T::Qr>(variant));
    found.ok_or_else(|| OpError::NoVariant {
        what: "QR factorisation",
        wanted: format!("{variant:?} for {}", T::DTYPE),
    })
}

/// Launches `grid` blocks of a variant.
pub(super) fn run<T: Number>(
    device: &Device,
    variant: QrVariant,
    grid: u64,
    args: QrArgs<'_, T>,
) -> Result<(), OpError> {
    if grid == 0 {
        return Ok(());
    }
    let launch = Launch {
        grid: u32::try_from(grid).expect("the count was checked against the grid"),
        block: variant.block(),
        shared_bytes: variant.shared_bytes(args.cols, T::SIZE),
    };
    Ok(device.prepare(entry::<T>(variant)?, launch)?.launch(args)?)
}

/// Blocks of `per_block` threads for matrices of `lanes` lanes.
pub(super) fn blocks_of_lanes(count: u32, lanes: u32, per_block: u32) -> u64 {
    (u64::from(count) * u64::from(lanes)).div_ceil(u64::from(per_block))
}

impl<T: Number> Qr<T> {
    /// Arguments without arrays but the table.
    pub(super) fn shape_args(&self) -> QrArgs<'_, T> {
        QrArgs {
            table: self.table.as_ref().map_or(In::none(), Buffer::input),
            ..self.sizes()
        }
    }

    /// Arguments without arrays. The batch is not empty.
    pub(super) fn sizes<'a>(&self) -> QrArgs<'a, T> {
        let shape = self.matrices.largest().expect("the batch is not empty");
        let a_steps = match &self.matrices {
            Matrices::Same(batch) => batch.steps(),
            Matrices::Each(_) => Steps::default(),
        };
        QrArgs {
            count: self.matrices.count() as u32,
            rows: shape.rows as u32,
            cols: shape.cols as u32,
            a_steps,
            f_steps: Steps {
                row: 1,
                col: shape.rows as u64,
                each: (shape.rows * shape.cols) as u64,
            },
            ..QrArgs::none()
        }
    }
}

/// Factors on a device that launches.
pub(super) fn factor<T: Number>(
    qr: &mut Qr<T>,
    a: In<'_, T>,
    plan: &QrPlan,
) -> Result<(), OpError> {
    if matches!(plan, QrPlan::Panels(_)) {
        qr.status.fill_zero()?;
    }
    let (device, made, streams) = (qr.device.clone(), qr.made, qr.streams);
    let sizes = qr.sizes();
    let mode = match plan {
        QrPlan::Lanes(variant) => packs::<T>(&qr.matrices, *variant),
        QrPlan::Panels(_) => 0,
    };
    let args = QrArgs {
        table: qr.table.as_ref().map_or(In::none(), Buffer::input),
        mode,
        a,
        f: qr.factors.output(),
        first: qr.first.output(),
        t: qr.t.output(),
        work: qr.work.as_mut().map_or(Out::none(), Buffer::output),
        status: qr.status.output(),
        ..sizes
    };
    match plan {
        QrPlan::Lanes(variant) => lanes(&device, *variant, args),
        QrPlan::Panels(steps) => panels(&device, (steps, streams), made, args),
    }
}

/// [`PACKS`] where matrices fill their kernel and follow each other as packs.
pub(super) fn packs<T: Number>(matrices: &Matrices, variant: QrVariant) -> u32 {
    let Matrices::Same(batch) = matrices else {
        return 0;
    };
    let [rows, cols] = variant.most();
    let fills = (batch.rows, batch.cols) == (rows as usize, cols as usize);
    if fills && matrices.lying(T::SIZE) == Lying::Packed {
        PACKS
    } else {
        0
    }
}

fn lanes<T: Number>(
    device: &Device,
    variant: QrVariant,
    args: QrArgs<'_, T>,
) -> Result<(), OpError> {
    let grid = blocks_of_lanes(args.count, lanes_of(variant)?, variant.block());
    run(device, variant, grid, args)
}

/// Lanes that have a matrix in a kernel for tiny ones.
pub(super) fn lanes_of(variant: QrVariant) -> Result<u32, OpError> {
    match variant {
        QrVariant::Lanes { lanes, .. }
        | QrVariant::Columns { lanes, .. }
        | QrVariant::Least { lanes, .. }
        | QrVariant::LeastColumns { lanes, .. } => Ok(lanes),
        _ => Err(OpError::NoVariant {
            what: "QR factorisation of tiny matrices",
            wanted: format!("{variant:?}"),
        }),
    }
}

fn panels<T: Number>(
    device: &Device,
    (steps, streams): (&[PanelStep], usize),
    made: Made,
    args: QrArgs<'_, T>,
) -> Result<(), OpError> {
    let waits = kernel_before(steps)?;
    let a = match reads_there(args, (steps, waits)) {
        true => args.a,
        false => {
            pack(device, args)?;
            In::none()
        }
    };
    let work = work_of(steps, made, args.rows.min(args.cols) as usize);
    streams::of_batch(
        device,
        QrArgs { a, ..args },
        (streams, work),
        |device, args| packed_panels(device, (steps, waits), made, args),
    )
}

/// Whether panels, and columns that wait, read each column of A once, from where it lies. `Pack` alone looks at those behind the
/// last panel; rows that lie side by side are read in lines.
pub(super) fn reads_there<T: Number>(
    args: QrArgs<'_, T>,
    (steps, waits): (&[PanelStep], Option<QrVariant>),
) -> bool {
    let in_columns = args.table.is_empty() && args.a_steps.row == 1;
    let once = (waits.is_some() || steps.len() == 1) && !steps[0].is_in_parts();
    in_columns && once && args.cols <= args.rows
}

/// Copies A to where its factors come.
pub(super) fn pack<T: Number>(device: &Device, args: QrArgs<'_, T>) -> Result<(), OpError> {
    let limits = device.limits().expect("a device that launches has limits");
    let tiles = u64::from(args.count) * u64::from(pack_tiles(args.rows, args.cols));
    let most =
        u64::from(limits.sms) * u64::from(limits.max_threads_per_sm / QrVariant::Pack.block());
    run(device, QrVariant::Pack, tiles.min(most), args)
}

/// All panels of matrices that lie where their factors come, or whose panels [read](reads_there) A. Columns behind the last panel
/// lie there always.
pub(super) fn packed_panels<T: Number>(
    device: &Device,
    (steps, waits): (&[PanelStep], Option<QrVariant>),
    made: Made,
    args: QrArgs<'_, T>,
) -> Result<(), OpError> {
    let a = args.a;
    let mode = match made {
        Made::WithPanels => WHOLE_T,
        _ => 0,
    };
    for step in steps {
        let args = QrArgs {
            a: if step.start == 0 { a } else { In::none() },
            start: step.start as u32,
            width: step.width as u32,
            mode,
            ..args
        };
        match step.others {
            Others::Before(kernel) => {
                others_wait(device, kernel, QrArgs { a, ..args })?;
                panel(device, step, args)?;
            }
            Others::Behind(kernel) => {
                panel(device, step, args)?;
                let a = In::none();
                others_follow(device, kernel, QrArgs { a, ..args })?;
            }
        }
    }
    match made {
        Made::AtTheEnd => columns_of_t(device, steps[0].update, args)?,
        Made::InSquares => squares_of_t(device, args, QrVariant::Rows)?,
        Made::InSharedSquares => squares_of_t(device, args, QrVariant::SharedRows)?,
        Made::WithPanels | Made::Nothing => {}
    }
    let end = steps.last().map_or(0, |step| step.start + step.width) as u32;
    match waits {
        Some(kernel) if end < args.cols => {
            let behind = QrArgs {
                a: In::none(),
                start: end,
                width: args.cols - end,
                ..args
            };
            others_wait(device, kernel, behind)
        }
        _ => Ok(()),
    }
}

/// A panel's own columns, part by part.
fn panel<T: Number>(device: &Device, step: &PanelStep, args: QrArgs<'_, T>) -> Result<(), OpError> {
    let (since, until) = (args.start, args.start + args.width);
    let part = step.part();
    let end = until.min(args.rows).min(args.cols);
    for start in (since..end).step_by(part) {
        let width = part as u32;
        let args = QrArgs {
            start,
            width,
            ..args
        };
        let blocks = u64::from(step.panel.cluster());
        run(device, step.panel, u64::from(args.count) * blocks, args)?;
        if step.is_in_parts() {
            let within = QrArgs {
                since,
                until,
                mode: WHOLE_T,
                ..args
            };
            others_follow(device, update_of(width), within)?;
        }
    }
    Ok(())
}

/// Elements of memory for each matrix of `least` reflectors, between an update and a merge.
pub(super) fn work_of(steps: &[PanelStep], made: Made, least: usize) -> usize {
    let in_turn = made == Made::WithPanels || steps.iter().any(PanelStep::is_in_parts);
    let each = |is_wanted: bool, is_every| match is_wanted {
        true => work_elements(least, is_every),
        false => 0,
    };
    each(in_turn, false).max(each(made.is_every(), true))
}

/// The kernel of plans whose columns wait for the panels before them.
pub(super) fn kernel_before(steps: &[PanelStep]) -> Result<Option<QrVariant>, OpError> {
    let before = |step: &PanelStep| match step.others {
        Others::Before(kernel) => Some(kernel),
        Others::Behind(_) => None,
    };
    let first = steps.first().and_then(before);
    if steps.iter().any(|step| before(step) != first) {
        return Err(OpError::NoVariant {
            what: "QR factorisation",
            wanted: "columns that all wait for the panels before them, or none that does".into(),
        });
    }
    Ok(first)
}

/// Applies all reflectors before `start` to the `width` columns from there on.
fn others_wait<T: Number>(
    device: &Device,
    kernel: QrVariant,
    args: QrArgs<'_, T>,
) -> Result<(), OpError> {
    if args.start == 0 {
        return Ok(());
    }
    let args = QrArgs {
        mode: 0,
        since: 0,
        until: args.start,
        ..args
    };
    run(
        device,
        kernel,
        u64::from(args.count) * u64::from(tensor_tiles(&args)),
        args,
    )
}

/// Applies the panel's reflectors to all columns behind it, and to those before it where T is made meanwhile.
fn others_follow<T: Number>(
    device: &Device,
    kernel: QrVariant,
    args: QrArgs<'_, T>,
) -> Result<(), OpError> {
    let count = u64::from(args.count);
    if let QrVariant::Update { width, columns } | QrVariant::SharedUpdate { width, columns } =
        kernel
    {
        let tiles = update_tiles(&args, width, columns).map(u64::from);
        let blocks = count * (tiles[0] + tiles[1]) * u64::from(kernel.cluster());
        run(device, kernel, blocks, args)?;
        return match args.mode & WHOLE_T {
            0 => Ok(()),
            _ => merge(device, args),
        };
    }
    let end = args.start + args.width;
    let behind = QrArgs {
        start: end,
        width: args.cols.saturating_sub(end),
        since: args.start,
        until: end,
        mode: 0,
        ..args
    };
    let tiles = u64::from(tensor_tiles(&behind));
    run(device, kernel, count * tiles, behind)
}

/// The columns of T above those of all panels.
fn columns_of_t<T: Number>(
    device: &Device,
    update: QrVariant,
    args: QrArgs<'_, T>,
) -> Result<(), OpError> {
    let QrVariant::Update { width, columns } = update else {
        return Ok(());
    };
    let args = QrArgs {
        a: In::none(),
        start: 0,
        width,
        mode: WHOLE_T | EVERY,
        ..args
    };
    let [_, tiles] = update_tiles(&args, width, columns).map(u64::from);
    run(device, update, u64::from(args.count) * tiles, args)?;
    if tiles > 0 {
        merge(device, args)
    } else {
        Ok(())
    }
}

/// The same in squares of 32 × 32, the second step by the kernel `rows`.
fn squares_of_t<T: Number>(
    device: &Device,
    args: QrArgs<'_, T>,
    rows: QrVariant,
) -> Result<(), OpError> {
    let args = QrArgs {
        a: In::none(),
        mode: WHOLE_T | EVERY,
        ..args
    };
    run(device, QrVariant::Pairs, pairs_blocks(&args), args)?;
    let blocks = match rows {
        QrVariant::SharedRows => shared_rows_blocks(&args),
        _ => rows_blocks(&args),
    };
    run(device, rows, blocks, args)
}

fn merge<T: Number>(device: &Device, args: QrArgs<'_, T>) -> Result<(), OpError> {
    let tiles = u64::from(merge_tiles(&args));
    run(
        device,
        QrVariant::Merge,
        u64::from(args.count) * tiles,
        args,
    )
}
