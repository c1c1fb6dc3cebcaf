//! `warpfuse synth`: a seed and a shape → a data file.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::args::{
    DenseArgs, DtypeName, LengthLaw, ShapeArgs, SparseArgs, SynthArgs, SynthKind, WriteArgs,
};
use super::exit::Exit;
use super::output;
use super::progress::Ui;
use crate::io::synth::{DenseSpec, RowLengths, SparseSpec, Spec};
use crate::io::{write_cache, write_libsvm, write_matrix_market, write_npy, write_vector};
use crate::matrix::{Dataset, Element};

/// Makes data and writes them.
pub(super) fn run(args: &SynthArgs, ui: &Ui) -> Result<Exit> {
    let (spec, write) = match &args.kind {
        SynthKind::Sparse(args) => (Spec::Sparse(sparse(args)), &args.write),
        SynthKind::Dense(args) => (Spec::Dense(dense(args)), &args.write),
        SynthKind::Shape(args) => (shape(args)?, &args.write),
    };
    let file = Target::of(write, &spec)?;
    match write.dtype {
        DtypeName::F32 => make::<f32>(&spec, &file, ui)?,
        DtypeName::F64 => make::<f64>(&spec, &file, ui)?,
    }
    Ok(Exit::Success)
}

fn sparse(args: &SparseArgs) -> SparseSpec {
    let typical = args.nnz_per_row;
    SparseSpec {
        rows: args.rows,
        cols: args.cols,
        row_lengths: match args.lengths {
            LengthLaw::Constant => RowLengths::Constant(typical),
            LengthLaw::LogNormal { sigma } => RowLengths::LogNormal {
                mean: typical.into(),
                sigma,
            },
            LengthLaw::Giants { length, every } => RowLengths::WithGiants {
                typical,
                giant: length,
                every,
            },
        },
        columns: args.columns.0,
        values: args.values.into(),
        noise: args.random.noise,
        seed: args.random.seed,
    }
}

fn dense(args: &DenseArgs) -> DenseSpec {
    DenseSpec {
        rows: args.rows,
        cols: args.cols,
        noise: args.random.noise,
        seed: args.random.seed,
    }
}

fn shape(args: &ShapeArgs) -> Result<Spec> {
    Ok(args.name.spec(args.scale, args.seed)?)
}

/// A file format with a place for the data.
enum Layout {
    LibSvm,
    MatrixMarket,
    Npy,
    Cache,
}

/// The files to write.
struct Target {
    path: PathBuf,
    layout: Layout,
    /// Where targets go that the format has no place for.
    targets: Option<PathBuf>,
}

impl Target {
    /// Decides before anything is made, which may take long.
    fn of(args: &WriteArgs, spec: &Spec) -> Result<Target> {
        let path = args.output.clone();
        let layout = match (output::extension(&path).as_str(), spec) {
            ("svm" | "libsvm", _) => Layout::LibSvm,
            ("mtx", _) => Layout::MatrixMarket,
            ("npy", Spec::Dense(_)) => Layout::Npy,
            ("wfc", Spec::Sparse(_)) => Layout::Cache,
            ("npy", _) => bail!(
                "{}: an npy file holds dense data; use .svm, .mtx or .wfc",
                path.display()
            ),
            ("wfc", _) => bail!(
                "{}: the cache holds sparse data; use .npy, .svm or .mtx",
                path.display()
            ),
            _ => bail!(
                "{}: expected a name that ends in .svm, .libsvm, .mtx, .npy or .wfc",
                path.display()
            ),
        };
        let apart = matches!(layout, Layout::MatrixMarket | Layout::Npy);
        let targets = match &args.target {
            Some(_) if !apart => bail!(
                "--target is for .mtx and .npy; {} holds the targets",
                path.display()
            ),
            Some(target) => Some(target.clone()),
            None => apart.then(|| path.with_extension("target.npy")),
        };
        for file in [Some(&path), targets.as_ref()].into_iter().flatten() {
            output::check_place(file)?;
        }
        Ok(Target {
            path,
            layout,
            targets,
        })
    }

    fn write<T: Element>(&self, data: &Dataset<T>) -> Result<()> {
        match self.layout {
            Layout::LibSvm => write_libsvm(&self.path, data)?,
            Layout::MatrixMarket => write_matrix_market(&self.path, &data.features)?,
            Layout::Npy => write_npy(&self.path, &data.features)?,
            Layout::Cache => write_cache(&self.path, data)?,
        }
        if let (Some(path), Some(targets)) = (&self.targets, &data.targets) {
            write_vector(path, targets)?;
        }
        Ok(())
    }
}

fn make<T: Element>(spec: &Spec, file: &Target, ui: &Ui) -> Result<()> {
    let data = spec.generate::<T>()?.dataset;
    file.write(&data)?;
    let x = &data.features;
    ui.remark(format_args!(
        "{}: {} samples x {} features, {} entries{}",
        file.path.display(),
        x.rows(),
        x.cols(),
        x.nnz(),
        file.targets.as_deref().map(and_targets).unwrap_or_default()
    ));
    Ok(())
}

fn and_targets(path: &Path) -> String {
    format!("; targets: {}", path.display())
}
