//! Segments, rows and columns.

use gpu_kernels::Out;
use gpu_kernels::reduce::{
    Accumulator, Additive, Extreme, PartStatistic, ReduceArgs, ReduceVariant, Reduction, Search,
    Sought, Split, Spread, Squares, Sum, Term, Total,
};

use super::launch::{launch, no_arguments, total};
use super::{Moments, Reducer, Reducible};
use crate::cpu::reduce as cpu;
use crate::device::Buffer;
use crate::device::buffer::RowLayout;
use crate::ops::{OpError, checks};
use crate::plan::reduce::{ColumnPlan, Reading, RowShape, Team, columns, segments};

/// What has a result of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts<'a> {
    /// Every row of a row-major matrix.
    Rows(RowLayout),
    /// Every column of a row-major matrix.
    Columns(RowLayout),
    /// Elements `offsets[s]` to `offsets[s + 1] − 1`, for each s; offsets ascend.
    Segments(&'a [u64]),
}

impl Parts<'_> {
    /// How many results there are.
    pub fn len(&self) -> usize {
        match self {
            Parts::Rows(layout) => layout.rows,
            Parts::Columns(layout) => layout.cols,
            Parts::Segments(offsets) => offsets.len().saturating_sub(1),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fails unless all parts lie within `len` elements.
    fn check(&self, len: usize) -> Result<(), OpError> {
        match self {
            Parts::Rows(layout) | Parts::Columns(layout) => check_layout(layout, len),
            Parts::Segments(offsets) => check_offsets(offsets, len),
        }
    }
}

fn check_layout(layout: &RowLayout, len: usize) -> Result<(), OpError> {
    let RowLayout { rows, cols, pitch } = *layout;
    if rows > 1 && pitch < cols {
        return Err(OpError::Length {
            what: "the pitch of rows",
            expected: cols,
            found: pitch,
        });
    }
    let before = rows.saturating_sub(1).saturating_mul(pitch);
    let needed = if rows == 0 {
        0
    } else {
        before.saturating_add(cols)
    };
    if needed > len {
        return Err(OpError::Length {
            what: "x, for its rows,",
            expected: needed,
            found: len,
        });
    }
    Ok(())
}

fn check_offsets(offsets: &[u64], len: usize) -> Result<(), OpError> {
    if let Some(at) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(OpError::Offsets {
            segment: at,
            start: offsets[at],
            end: offsets[at + 1],
        });
    }
    match offsets.last() {
        Some(&end) if end > len as u64 => Err(OpError::Length {
            what: "x, for its segments,",
            expected: usize::try_from(end).unwrap_or(usize::MAX),
            found: len,
        }),
        _ => Ok(()),
    }
}

/// The value of a count that was added up as 0 and 1.
pub(super) fn count_of<S: Accumulator>(sum: S) -> u64 {
    match S::NAME {
        "f64" => f64::from_bits(sum.to_bits()) as u64,
        _ => sum.to_bits(),
    }
}

/// A statistic, and which term or element of it.
#[derive(Debug, Clone, Copy)]
struct Request {
    statistic: PartStatistic,
    choice: u32,
}

impl Request {
    const fn new(statistic: PartStatistic, choice: u32) -> Request {
        Request { statistic, choice }
    }

    /// How rows are read best, by kernels that there are.
    fn reading(&self) -> Reading {
        match (self.statistic, self.choice) {
            (PartStatistic::Sum, choice) if choice == Term::Value as u32 => Reading::Staged,
            _ => Reading::Direct,
        }
    }
}

impl Reducer {
    /// Σ x of each part, as [`sum`](Reducer::sum).
    ///
    /// # Errors
    /// [`OpError::Offsets`] when offsets descend, [`OpError::Length`] when parts reach beyond x,
    /// [`OpError::OtherDevice`] when x lies elsewhere, [`OpError::Device`] when the device fails.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::ops::reduce::{Parts, Reducer};
    /// let device = Device::cpu();
    /// let x = device.upload(&[1_i64, 2, 3, 4])?;
    /// let sums = Reducer::new(&device)?.sums(&x, Parts::Segments(&[0, 1, 1, 4]))?;
    /// assert_eq!(sums, [1, 0, 9]);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    pub fn sums<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<T::Sum>, OpError> {
        self.terms(Term::Value, x, parts)
    }

    /// `out[p] = Σ x` of each part, on the device: waits for nothing.
    ///
    /// # Errors
    /// As [`sums`](Reducer::sums); [`OpError::Length`] when `out` has another length.
    pub fn sums_into<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
        parts: Parts<'_>,
        out: &mut Buffer<T::Sum>,
    ) -> Result<(), OpError>
    where
        T::Sum: bytemuck::Pod,
    {
        self.expect_here("x", x)?;
        parts.check(x.len())?;
        checks::same_length("the sums", out, parts.len())?;
        let request = Request::new(PartStatistic::Sum, Term::Value as u32);
        if let Some((out, x)) = out.as_host_slice_mut().zip(x.as_host_slice()) {
            let totals = on_cpu(Additive(Term::Value), x, parts);
            out.iter_mut()
                .zip(totals)
                .for_each(|(out, total)| *out = total.0);
            return Ok(());
        }
        match parts {
            _ if parts.is_empty() => Ok(()),
            Parts::Columns(RowLayout { rows: 0, .. }) => Ok(out.fill_zero()?),
            _ => self.launch_parts(request, x, parts, out.output().words()),
        }
    }

    /// Σ |x| of each part, as [`sums`](Reducer::sums).
    ///
    /// # Errors
    /// As [`sums`](Reducer::sums).
    pub fn norms1<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<T::Sum>, OpError> {
        self.terms(Term::Magnitude, x, parts)
    }

    /// √Σ x² of each part, the squares added in f64.
    ///
    /// # Errors
    /// As [`sums`](Reducer::sums).
    pub fn norms2<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<f64>, OpError> {
        let request = Request::new(PartStatistic::Squares, 0);
        let totals: Vec<Sum<f64>> = self.of_parts(request, Squares, x, parts)?;
        Ok(totals.into_iter().map(|total| total.0.sqrt()).collect())
    }

    /// max |x| of each part; `None` of an empty one.
    ///
    /// # Errors
    /// As [`sums`](Reducer::sums).
    pub fn norms_max<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<Option<T::Magnitude>>, OpError> {
        let found = self.search_parts(Sought::Magnitude, x, parts)?;
        let value = |found: Extreme<T::Rank>| {
            (found.index != u64::MAX).then(|| T::magnitude_of(found.rank))
        };
        Ok(found.into_iter().map(value).collect())
    }

    /// The sought element of each part and its index in the part (its row, in a column); `None` of an empty
    /// one.
    ///
    /// # Errors
    /// As [`sums`](Reducer::sums).
    pub fn extremes<T: Reducible>(
        &mut self,
        sought: Sought,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<Option<(T, usize)>>, OpError> {
        let found = self.search_parts(sought, x, parts)?;
        let values = found.into_iter().map(|found| {
            let value = T::of_rank(found.rank, sought);
            (found.index != u64::MAX).then_some((value, found.index as usize))
        });
        Ok(values.collect())
    }

    /// Count, mean and variance of each part.
    ///
    /// # Errors
    /// As [`sums`](Reducer::sums).
    pub fn moments_of<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<Moments>, OpError> {
        let request = Request::new(PartStatistic::Moments, 0);
        let totals: Vec<gpu_kernels::reduce::Moments> = self.of_parts(request, Spread, x, parts)?;
        Ok(totals.into_iter().map(Moments::from).collect())
    }

    /// How many elements of each part are not zero.
    ///
    /// # Errors
    /// As [`sums`](Reducer::sums).
    pub fn counts<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<u64>, OpError> {
        let sums = self.terms(Term::IsNonzero, x, parts)?;
        Ok(sums.into_iter().map(count_of).collect())
    }

    fn terms<T: Reducible>(
        &mut self,
        term: Term,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<T::Sum>, OpError> {
        let request = Request::new(PartStatistic::Sum, term as u32);
        let totals: Vec<Sum<T::Sum>> = self.of_parts(request, Additive(term), x, parts)?;
        Ok(totals.into_iter().map(|total| total.0).collect())
    }

    fn search_parts<T: Reducible>(
        &mut self,
        sought: Sought,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<Extreme<T::Rank>>, OpError> {
        let request = Request::new(PartStatistic::Search, sought as u32);
        self.of_parts(request, Search(sought), x, parts)
    }

    fn of_parts<T: Reducible, R: Reduction<T>>(
        &mut self,
        request: Request,
        reduction: R,
        x: &Buffer<T>,
        parts: Parts<'_>,
    ) -> Result<Vec<R::Total>, OpError> {
        self.expect_here("x", x)?;
        parts.check(x.len())?;
        if let Parts::Columns(RowLayout { rows: 0, .. }) = parts {
            return Ok(vec![R::Total::NONE; parts.len()]);
        }
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(values) = x.as_host_slice() {
            return Ok(on_cpu(reduction, values, parts));
        }
        // One to three words for each part.
        let words = (parts.len() as u64).saturating_mul(request.statistic.words());
        let words = usize::try_from(words).unwrap_or(usize::MAX);
        let mut out = self.device.zeros::<u64>(words)?;
        self.launch_parts(request, x, parts, out.output())?;
        let words = out.to_vec()?;
        Ok(words.chunks(R::Total::WORDS).map(total).collect())
    }

    fn launch_parts<T: Reducible>(
        &mut self,
        request: Request,
        x: &Buffer<T>,
        parts: Parts<'_>,
        out: Out<'_, u64>,
    ) -> Result<(), OpError> {
        let args = ReduceArgs {
            x: x.input(),
            choice: request.choice,
            out,
            ..no_arguments()
        };
        match parts {
            Parts::Columns(layout) => self.launch_columns(request, layout, args),
            Parts::Rows(layout) => self.launch_rows(request, layout, args),
            Parts::Segments(offsets) => {
                let elements = elements_of(offsets);
                let parts = parts.len() as u64;
                let offsets = self.device.upload(offsets)?;
                let args = ReduceArgs {
                    parts,
                    offsets: offsets.input(),
                    ..args
                };
                self.launch_segments(request, elements, args)
            }
        }
    }

    fn launch_rows<T: Reducible>(
        &self,
        request: Request,
        layout: RowLayout,
        args: ReduceArgs<'_, T>,
    ) -> Result<(), OpError> {
        let shape = row_shape::<T>(layout);
        let limits = self.device.limits();
        let limits = limits.expect("a device that launches has limits");
        let plan = shape.plan(request.reading(), limits);
        let (split, tile) = match plan.reading {
            Reading::Staged => (Split::Stages, plan.team.threads()),
            Reading::Direct => split(plan.team),
        };
        let variant = ReduceVariant::Parts(request.statistic, split);
        let args = ReduceArgs {
            parts: shape.rows,
            cols: shape.cols,
            pitch: shape.pitch,
            tile,
            ..args
        };
        launch(&self.device, variant, plan.grid, args)
    }

    fn launch_segments<T: Reducible>(
        &self,
        request: Request,
        elements: u64,
        args: ReduceArgs<'_, T>,
    ) -> Result<(), OpError> {
        let plan = segments(args.parts, elements);
        let (split, tile) = split(plan.team);
        let variant = ReduceVariant::Parts(request.statistic, split);
        launch(
            &self.device,
            variant,
            plan.grid,
            ReduceArgs { tile, ..args },
        )
    }

    fn launch_columns<T: Reducible>(
        &mut self,
        request: Request,
        layout: RowLayout,
        args: ReduceArgs<'_, T>,
    ) -> Result<(), OpError> {
        let (rows, cols) = (layout.rows as u64, layout.cols as u64);
        let plan = columns(rows, cols);
        let variant = ReduceVariant::Parts(request.statistic, Split::Columns);
        self.reserve(plan.chunks * cols * variant.words(), plan.tiles)?;
        let args = ReduceArgs {
            parts: rows,
            cols,
            pitch: layout.pitch as u64,
            chunks: plan.chunks,
            rows_per_chunk: plan.rows_per_chunk,
            tile: plan.tile,
            partials: self.partials.output(),
            tickets: self.tickets.output(),
            ..args
        };
        launch(&self.device, variant, plan.grid, args)
    }
}

/// Teams that read their segments themselves, and the lanes of one.
fn split(team: Team) -> (Split, u32) {
    match team {
        Team::Lanes(lanes) => (Split::Lanes, lanes),
        Team::Block => (Split::Blocks, 1),
    }
}

fn row_shape<T: Reducible>(layout: RowLayout) -> RowShape {
    RowShape {
        rows: layout.rows as u64,
        cols: layout.cols as u64,
        pitch: layout.pitch as u64,
        bytes: T::SIZE,
    }
}

/// Elements between the first offset and the last.
fn elements_of(offsets: &[u64]) -> u64 {
    match offsets {
        [first, .., last] => last - first,
        _ => 0,
    }
}

fn on_cpu<T: Reducible, R: Reduction<T>>(reduction: R, x: &[T], parts: Parts<'_>) -> Vec<R::Total> {
    match parts {
        Parts::Rows(layout) => {
            let team = row_shape::<T>(layout).team().threads() as usize;
            let RowLayout { rows, cols, pitch } = layout;
            let bounds = |row: usize| row * pitch..row * pitch + cols;
            cpu::segments(reduction, x, rows, bounds, team)
        }
        Parts::Segments(offsets) => {
            let bounds = |s: usize| offsets[s] as usize..offsets[s + 1] as usize;
            let plan = segments(parts.len() as u64, elements_of(offsets));
            cpu::segments(
                reduction,
                x,
                parts.len(),
                bounds,
                plan.team.threads() as usize,
            )
        }
        Parts::Columns(RowLayout { rows, cols, pitch }) => {
            let ColumnPlan {
                tile,
                rows_per_chunk,
                ..
            } = columns(rows as u64, cols as u64);
            let shape = cpu::ColumnShape {
                rows,
                cols,
                pitch,
                tile: tile as usize,
                rows_per_chunk: rows_per_chunk as usize,
            };
            cpu::columns(reduction, x, shape)
        }
    }
}
