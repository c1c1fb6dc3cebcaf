//! The autotuner over every launch of small problems: all of them are right, and none is slower than the planner's.

use std::time::Duration;

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::io::synth::{ColumnDistribution, RowLengths, SparseSpec, SparseValues};
use warpfuse::ops::qr::QrShape;
use warpfuse::tune::{
    Budget, FusedSubject, MatmulSubject, Outcome, QrSubject, SearchKind, Session, Subject,
    TuneError,
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
    suite.add(
        Test::new("tune/matmul-33x20x17"),
        |device| match MatmulSubject::<f64>::new(device, (33, 20, 17)) {
            Ok(mut subject) => whole(&mut subject),
            Err(error) => none_on_cpu(device, error),
        },
    );
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
