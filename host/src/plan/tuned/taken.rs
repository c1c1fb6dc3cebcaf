//! From an entry of a table to the launch of a family: nothing where the table has none, or one that does not exist.

use gpu_kernels::matmul::MatmulVariant;

use super::{Launch, Table, class};
use crate::plan::conv1d::{Conv1dPlan, Conv1dShape, most_blocks, plan_with};
use crate::plan::kernel_sum::{self, KernelSumPlan};
use crate::plan::limits::DeviceLimits;
use crate::plan::matmul::{Arithmetic, MatmulPlan, Problem, of_variant};
use crate::plan::problem::Precision;
use crate::plan::qr::{self, QrPlan, for_batch};
use crate::plan::reduce::WholePlan;
use crate::plan::sparse_conv::{ConvPlan, ConvShape, ConvWork, plan_with as plan_of_layer};

impl Table {
    /// The launch of a matrix product, of one of the compiled `variants`; products of tensor cores are chosen by the caller.
    pub fn matmul(
        &self,
        problem: &Problem,
        mut variants: impl Iterator<Item = MatmulVariant>,
    ) -> Option<MatmulPlan> {
        if self.is_empty() || problem.arithmetic != Arithmetic::Fp32 {
            return None;
        }
        let Launch::Matmul { variant } = self.launch(&class::matmul(problem))? else {
            return None;
        };
        let is_own = |known: &MatmulVariant| known.is_plain() && format!("{known:?}") == *variant;
        of_variant(problem, variants.find(is_own)?).ok()
    }

    /// The launches of a batch of column-major matrices without gaps.
    pub fn qr(&self, precision: Precision, batch: &qr::Batch) -> Option<QrPlan> {
        if self.is_empty() {
            return None;
        }
        let qr::Batch { shape, count, .. } = *batch;
        let Launch::Qr { values } = self.launch(&class::qr(precision, count, shape))? else {
            return None;
        };
        let point = qr::point(shape, precision.bytes(), values)?;
        Some(for_batch(point.plan, batch))
    }

    /// The chunks of a sum of `len` elements of the type `name`, of `bytes` bytes each, whose bits may depend on them.
    pub fn reduce(&self, (name, bytes): (&str, u32), len: usize) -> Option<WholePlan> {
        if self.is_empty() {
            return None;
        }
        match self.launch(&class::reduce(name, len))? {
            Launch::Reduce(plan) => Some(*plan).filter(|plan| plan.covers(len as u64, bytes)),
            _ => None,
        }
    }

    /// The launch of a one-dimensional convolution.
    pub fn conv1d(
        &self,
        precision: Precision,
        shape: &Conv1dShape,
        limits: &DeviceLimits,
    ) -> Option<Conv1dPlan> {
        if self.is_empty() {
            return None;
        }
        let Launch::Conv1d(plan) = self.launch(&class::conv1d(precision, shape))? else {
            return None;
        };
        let (bytes, shared) = (precision.bytes(), u64::from(limits.shared_per_block));
        if !plan.strategy.suits(shape, bytes, shared) {
            return None;
        }
        let most = most_blocks(plan.strategy, shape, bytes);
        if plan.grid == 0 || u64::from(plan.grid) > most {
            return None;
        }
        // Blocks go through all tiles, however few they are; only the strips take a tile each.
        let own = plan_with(plan.strategy, shape, bytes, limits);
        let grid = match plan.strategy.needs_all_blocks() {
            true => own.grid,
            false => plan.grid,
        };
        Some(Conv1dPlan { grid, ..own })
    }

    /// The launch of a sum over a kernel, or of its gradient.
    pub fn kernel_sum(
        &self,
        problem: &kernel_sum::Problem,
        limits: &DeviceLimits,
    ) -> Option<KernelSumPlan> {
        if self.is_empty() {
            return None;
        }
        let Launch::KernelSum { values } = self.launch(&class::kernel_sum(problem))? else {
            return None;
        };
        kernel_sum::point(problem, limits, values).map(|point| point.plan)
    }

    /// The strategy of a convolutional layer of the element type `name`.
    pub fn sparse_conv(
        &self,
        name: &str,
        (shape, work): (&ConvShape, &ConvWork),
        limits: &DeviceLimits,
    ) -> Option<ConvPlan> {
        if self.is_empty() {
            return None;
        }
        match self.launch(&class::sparse_conv(name, shape, work))? {
            Launch::SparseConv { strategy } if !strategy.is_of_the_source() => {
                plan_of_layer(*strategy, shape, work, limits)
            }
            _ => None,
        }
    }

    fn launch(&self, class: &str) -> Option<&Launch> {
        self.get(class).map(|measured| &measured.launch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::conv1d::Conv1dStrategy;
    use crate::plan::qr::QrShape;
    use crate::plan::reduce::{Order, points, whole_fixed};
    use crate::plan::sparse_conv::ConvStrategy;
    use crate::plan::tuned::Measured;
    use gpu_kernels::kernel_sum::KernelFunction;

    fn h200() -> DeviceLimits {
        DeviceLimits::known("h200").expect("a listed device")
    }

    fn table(class: String, launch: Launch) -> Table {
        let measured = Measured {
            launch,
            ns: 1,
            planned_ns: 2,
        };
        [(class, measured)].into_iter().collect()
    }

    #[test]
    fn products_take_a_compiled_variant_alone() {
        let problem = Problem {
            m: 300,
            n: 200,
            k: 100,
            precision: Precision::F32,
            arithmetic: Arithmetic::Fp32,
        };
        let compiled = [MatmulVariant::Blocked { each: 8 }, MatmulVariant::Combine];
        let of = |variant: &str| {
            let variant = variant.to_owned();
            table(class::matmul(&problem), Launch::Matmul { variant })
                .matmul(&problem, compiled.into_iter())
        };
        let taken = of("Blocked { each: 8 }").expect("compiled");
        assert_eq!(taken.variant, compiled[0]);
        assert_eq!(of("Blocked { each: 9 }"), None);
        assert_eq!(of("Combine"), None, "it multiplies nothing");
        let elsewhere = table("matmul f32 1x2x3".into(), Launch::Qr { values: vec![] });
        assert_eq!(elsewhere.matmul(&problem, compiled.into_iter()), None);
    }

    #[test]
    fn batches_take_possible_points_alone() {
        let shape = QrShape { rows: 64, cols: 64 };
        let batch = qr::Batch::of(shape, 1_000, 4, &h200());
        let of = |values: &[i64]| {
            let values = values.to_vec();
            table(
                class::qr(Precision::F32, 1_000, shape),
                Launch::Qr { values },
            )
            .qr(Precision::F32, &batch)
        };
        for point in qr::points(shape, 4) {
            assert_eq!(of(&point.values), Some(for_batch(point.plan, &batch)));
        }
        assert_eq!(of(&[0, 32, 1, 32, 4, 0]), None, "64 rows are not tiny");
        for absurd in [
            [1, 0, 1, 32, 4, 0],
            [1, 32, 1, 32, 4, 7],
            [i64::MAX; 6],
            [i64::MIN; 6],
        ] {
            assert_eq!(of(&absurd), None, "{absurd:?}");
        }
        assert_eq!(of(&[1, 32]), None, "parameters are missing");
    }

    #[test]
    fn sums_take_chunks_that_cover_all_elements() {
        let (len, limits) = (1_000_000, h200());
        let of =
            |plan| table(class::reduce("f32", len), Launch::Reduce(plan)).reduce(("f32", 4), len);
        for plan in points(len as u64, 4, &limits) {
            assert_eq!(of(plan), Some(plan));
        }
        let fixed = whole_fixed(len as u64, 4);
        let short = WholePlan {
            chunks: fixed.chunks - 1,
            ..fixed
        };
        assert_eq!(of(short), None);
        let idle = WholePlan { grid: 0, ..fixed };
        assert_eq!(of(idle), None);
        let none = WholePlan {
            chunks: 0,
            order: Order::Interleaved,
            ..fixed
        };
        assert_eq!(of(none), None);
    }

    #[test]
    fn kernel_sums_take_possible_points_alone() {
        let problem = kernel_sum::Problem {
            function: KernelFunction::Cauchy,
            work: kernel_sum::Work::SymmetricSum,
            targets: 50_000,
            sources: 50_000,
            dims: 2,
            vectors: 1,
            precision: Precision::F64,
            extent: kernel_sum::Extent::Any,
        };
        let limits = h200();
        let of = |values: &[i64]| {
            let values = values.to_vec();
            table(class::kernel_sum(&problem), Launch::KernelSum { values })
                .kernel_sum(&problem, &limits)
        };
        for point in kernel_sum::points(&problem, &limits) {
            assert_eq!(of(&point.values), Some(point.plan));
        }
        assert_eq!(of(&[0, 256, 1]), None, "f64 has smaller blocks");
        assert_eq!(of(&[]), None);
        for absurd in [
            [7, 256, 1],
            [-1, 128, 1],
            [0, 0, 1],
            [0, -32, 1],
            [0, 8, 1],
            [i64::MAX; 3],
        ] {
            assert_eq!(of(&absurd), None, "{absurd:?}");
        }
    }

    #[test]
    fn layers_take_strategies_that_suit() {
        let (shape, limits) = (ConvShape::new(8, [14; 2], 16, [3; 2]), h200());
        let work = ConvWork {
            nnz: 500,
            longest: 40,
            integers: false,
            pieces: None,
            bytes: 8,
            sum_bytes: 8,
            finite: true,
            zeros: 0,
            steps: None,
        };
        let of = |strategy| {
            let class = class::sparse_conv("f64", &shape, &work);
            table(class, Launch::SparseConv { strategy })
                .sparse_conv("f64", (&shape, &work), &limits)
                .map(|plan| plan.strategy)
        };
        assert_eq!(of(ConvStrategy::Lowered), Some(ConvStrategy::Lowered));
        assert_eq!(of(ConvStrategy::Staged), None, "not for 64-bit floats");
        assert_eq!(of(ConvStrategy::Tensor), None);
        assert_eq!(of(ConvStrategy::Coo), None, "for comparison alone");
    }

    #[test]
    fn convolutions_take_strategies_that_suit() {
        let (shape, limits) = (Conv1dShape::single(1 << 16, 33), h200());
        let of = |plan| {
            table(class::conv1d(Precision::F32, &shape), Launch::Conv1d(plan)).conv1d(
                Precision::F32,
                &shape,
                &limits,
            )
        };
        for plan in crate::plan::conv1d::points(&shape, 4, &limits) {
            assert_eq!(of(plan), Some(plan));
            for grid in [0, u32::MAX] {
                assert_eq!(of(Conv1dPlan { grid, ..plan }), None, "{grid} blocks");
            }
        }
        let strided = Conv1dShape { stride: 2, ..shape };
        let plan = Conv1dPlan {
            strategy: Conv1dStrategy::Window8,
            grid: 1,
            shared_bytes: 0,
        };
        let class = class::conv1d(Precision::F32, &strided);
        let table = table(class, Launch::Conv1d(plan));
        assert_eq!(table.conv1d(Precision::F32, &strided, &limits), None);
    }
}
