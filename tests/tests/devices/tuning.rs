//! The autotuner over every launch of small problems: all of them are right, and none is slower than the planner's.

use std::time::Duration;

use anyhow::{Result, ensure};
use gpu_kernels::kernel_sum::KernelFunction;
use warpfuse::device::Device;
use warpfuse::io::synth::{ColumnDistribution, RowLengths, SparseSpec, SparseValues};
use warpfuse::ops::conv1d::Conv1dShape;
use warpfuse::ops::qr::QrShape;
use warpfuse::ops::sparse_conv::{Bf16, ConvElement, ConvShape, I8, Pool};
use warpfuse::plan::qr::{QrPlan, plan};
use warpfuse::tune::{
    Budget, Conv1dSubject, FusedSubject, KernelSumSize, KernelSumSubject, MatmulSubject, Outcome,
    QrSubject, ReduceSubject, SearchKind, Session, SparseConvSubject, Subject, TuneError,
};

use super::suite::{Suite, Test};

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for (rows, cols) in [(7, 5), (16, 16), (40, 33)] {
        suite.add(Test::new(format!("tune/qr-{rows}x{cols}")), move |device| {
            let shape = QrShape { rows, cols };
            match QrSubject::<f32>::new(device, 3, shape) {
                Ok(mut subject) => whole(&mut subject),
                Err(error) => none_on_cpu(device, error),
            }
        });
    }
    suite.add(Test::new("tune/planted"), planted);
    suite.add(
        Test::new("tune/matmul-33x20x17"),
        |device| match MatmulSubject::<f64>::new(device, (33, 20, 17)) {
            Ok(mut subject) => whole(&mut subject),
            Err(error) => none_on_cpu(device, error),
        },
    );
    for len in [1, 20_000] {
        suite.add(Test::new(format!("tune/reduce-{len}")), move |device| {
            match ReduceSubject::<f32>::new(device, len) {
                Ok(mut subject) => some(&mut subject, 20),
                Err(error) => none_on_cpu(device, error),
            }
        });
    }
    for (taps, stride) in [(5, 1), (30, 1), (4, 2)] {
        let shape = Conv1dShape {
            stride,
            ..Conv1dShape::single(9_000, taps)
        };
        let name = format!("tune/conv1d-{taps}-stride{stride}");
        suite.add(
            Test::new(name),
            move |device| match Conv1dSubject::<f32>::new(device, shape) {
                Ok(mut subject) => whole(&mut subject),
                Err(error) => none_on_cpu(device, error),
            },
        );
    }
    for (targets, sources, dims) in [
        (None, 260, 3),
        (None, 150, 5),
        (Some(70), 1_100, 2),
        (Some(20), 1_100, 4),
    ] {
        let size = KernelSumSize {
            targets,
            sources,
            dims,
        };
        let name = format!("tune/kernel-sum-{}-{dims}d", targets.unwrap_or(0));
        suite.add(
            Test::new(name),
            move |device| match KernelSumSubject::<f32>::new(device, KernelFunction::Matern32, size)
            {
                Ok(mut subject) => whole(&mut subject),
                Err(error) => none_on_cpu(device, error),
            },
        );
    }
    suite.add(Test::new("tune/sparse-conv-f32"), layer::<f32>);
    suite.add(Test::new("tune/sparse-conv-f64"), layer::<f64>);
    suite.add(Test::new("tune/sparse-conv-i8"), layer::<I8>);
    suite.add(Test::new("tune/sparse-conv-bf16"), layer::<Bf16>);
    suite.add(Test::new("tune/fused-90x20"), |device| {
        let spec = SparseSpec {
            rows: 90,
            cols: 20,
            row_lengths: RowLengths::Constant(4),
            columns: ColumnDistribution::Uniform,
            values: SparseValues::Normal,
            noise: 0.0,
            seed: 3,
        };
        let features = spec.generate::<f32>()?.dataset.features;
        match FusedSubject::new(device, features) {
            Ok(mut subject) => some(&mut subject, 12),
            Err(error) => none_on_cpu(device, error),
        }
    });
}

/// A small layer by all strategies that suit it.
fn layer<E: ConvElement>(device: &Device) -> Result<()> {
    let shape = ConvShape {
        padding: [1; 2],
        pool: Some(Pool::max(2)),
        ..ConvShape::new(32, [8; 2], 12, [3; 2])
    };
    match SparseConvSubject::<E>::new(device, shape, 0.2) {
        Ok(mut subject) => whole(&mut subject),
        Err(error) => none_on_cpu(device, error),
    }
}

/// Launches that give wrong factors of 130 × 130: panels that are left out, begin elsewhere, or are not applied to the other
/// columns. Most of them would be faster than those that are right.
fn wrong_launches() -> Vec<QrPlan> {
    let shape = QrShape {
        rows: 130,
        cols: 130,
    };
    let QrPlan::Panels(right) = plan(shape, 4) else {
        unreachable!("130 columns are no tiny matrix");
    };
    let mut all = Vec::new();
    for i in 0..right.len() {
        let mut without = right.clone();
        without.remove(i);
        all.push(without);
        let mut twice = right.clone();
        twice.insert(i, right[i]);
        all.push(twice);
        let mut late = right.clone();
        late[i].start += 1;
        all.push(late);
        let mut exchanged = right.clone();
        exchanged.swap(i, (i + 1) % right.len());
        all.push(exchanged);
    }
    all.into_iter().map(QrPlan::Panels).collect()
}

fn planted(device: &Device) -> Result<()> {
    let shape = QrShape {
        rows: 130,
        cols: 130,
    };
    let mut subject = match QrSubject::<f32>::new(device, 1, shape) {
        Ok(subject) => subject,
        Err(error) => return none_on_cpu(device, error),
    };
    let wrong = wrong_launches();
    let count = wrong.len();
    ensure!(count >= 20, "{count} planted");
    for (i, plan) in wrong.into_iter().enumerate() {
        subject = subject.with_launches(format!("planted {i}"), plan);
    }
    for point in 0..subject.points().len() {
        let name = subject.points()[point].name.clone();
        if !name.starts_with("planted") {
            continue;
        }
        let outcome = subject.run(point, f64::INFINITY);
        ensure!(
            !matches!(outcome, Outcome::Timed { .. }),
            "{name}: {outcome:?}"
        );
    }
    Ok(())
}

fn none_on_cpu(device: &Device, error: TuneError) -> Result<()> {
    let is_told = matches!(error, TuneError::NoLaunches { .. });
    ensure!(device.is_cpu() && is_told, "{error}");
    Ok(())
}

fn whole(subject: &mut dyn Subject) -> Result<()> {
    some(subject, usize::MAX)
}

/// This many launches besides the planner's.
fn some(subject: &mut dyn Subject, trials: usize) -> Result<()> {
    let points = subject.points().len();
    let budget = Budget {
        time: Duration::from_secs(600),
        trials,
    };
    let session = Session::new(subject, None)?;
    let tuned = session.run(SearchKind::Guided, 0, budget, |_| {})?;
    ensure!(
        tuned.steps.len() == points.min(trials),
        "{} steps",
        tuned.steps.len()
    );
    for step in &tuned.steps {
        let is_timed = matches!(step.trial.outcome, Outcome::Timed { .. });
        ensure!(is_timed, "{}: {:?}", step.trial.point, step.trial.outcome);
    }
    ensure!(tuned.gain() >= 1.0, "the planner's choice was forgotten");
    Ok(())
}
