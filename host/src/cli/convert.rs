//! `warpfuse convert`: a model file in another format.

use anyhow::{Result, bail};

use super::args::{ConvertArgs, ModelFormat};
use super::exit::Exit;
use super::output;
use super::progress::Ui;
use crate::learning::SavedModel;
use crate::learning::liblinear::LiblinearModel;

/// Reads a model and writes it again.
pub(super) fn run(args: &ConvertArgs, ui: &Ui) -> Result<Exit> {
    output::check_place(&args.output)?;
    let model = match SavedModel::load(&args.model)? {
        SavedModel::Linear(model) => model,
        SavedModel::Kernel(_) => bail!(
            "{}: expected a linear model, found kernel ridge regression, which has no other format",
            args.model.display()
        ),
    };
    match args.to {
        ModelFormat::Safetensors => model.save(output::place(&args.output))?,
        ModelFormat::Liblinear => {
            let text = LiblinearModel::of_model(&model)?.to_text()?;
            output::write_file(&args.output, text.as_bytes())?;
            if model.coef().len() > 1 && model.classifier().is_some_and(|m| m.is_probabilistic()) {
                ui.remark("LIBLINEAR predicts the same labels; its probabilities of more than two classes are normalised sigmoids");
            }
        }
    }
    Ok(Exit::Success)
}
