//! The builder: what the caller wants, and the steps from the crate to checked cubins.

use std::env;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use crate::device_crate::DeviceCrate;
use crate::image::Request;
use crate::parallel::in_parallel;
use crate::{
    Arch, Assembly, BuildError, Install, LineInfo, PtxOutput, Ptxas, Surroundings, Toolchain, Unit,
    fetch, install, process,
};

/// Compiles a crate of kernels; made with [`PtxBuilder::new`], run with [`PtxBuilder::build`].
#[derive(Clone, Debug)]
pub struct PtxBuilder {
    crate_dir: PathBuf,
    archs: Vec<Arch>,
    target_dir: PathBuf,
    tools_dir: Option<PathBuf>,
    core_dir: Option<PathBuf>,
    seed_dir: Option<PathBuf>,
    install: Install,
    assembly: Assembly,
    lines: LineInfo,
    units: Vec<Unit>,
}

impl PtxBuilder {
    /// Prepares to compile the crate in `crate_dir`, for [`Arch::DEFAULT`] if no architecture is added.
    ///
    /// In a build script everything is written below `OUT_DIR`, elsewhere below `target/ptx`, unless
    /// [`target_dir`](Self::target_dir) says where. Nothing is installed, and cubins are made where ptxas
    /// is at hand.
    pub fn new(crate_dir: impl Into<PathBuf>) -> Self {
        let target_dir = env::var_os("OUT_DIR")
            .map_or_else(|| "target".into(), PathBuf::from)
            .join("ptx");
        PtxBuilder {
            crate_dir: crate_dir.into(),
            archs: Vec::new(),
            target_dir,
            tools_dir: None,
            core_dir: None,
            seed_dir: None,
            install: Install::Forbidden,
            assembly: Assembly::WhenPossible,
            lines: LineInfo::Omitted,
            units: Vec::new(),
        }
    }

    /// Adds an architecture.
    #[must_use]
    pub fn arch(mut self, arch: Arch) -> Self {
        if !self.archs.contains(&arch) {
            self.archs.push(arch);
        }
        self
    }

    /// Adds several architectures.
    #[must_use]
    pub fn archs(self, archs: impl IntoIterator<Item = Arch>) -> Self {
        archs.into_iter().fold(self, PtxBuilder::arch)
    }

    /// Where to compile, and where the results lie.
    #[must_use]
    pub fn target_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.target_dir = folder.into();
        self
    }

    /// Where a fetched ptxas lies; `cuda-tools` beside the target folder by default.
    #[must_use]
    pub fn tools_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tools_dir = Some(folder.into());
        self
    }

    /// Where Rust's own library is compiled for the GPU, once for all folders of kernels; `core` in the target folder by default.
    #[must_use]
    pub fn core_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.core_dir = Some(folder.into());
        self
    }

    /// Another target folder, such as that of fewer units: where nothing was compiled yet, what is compiled there is taken over.
    #[must_use]
    pub fn seed_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.seed_dir = Some(folder.into());
        self
    }

    /// Whether missing tools may be installed or fetched.
    #[must_use]
    pub fn install(mut self, install: Install) -> Self {
        self.install = install;
        self
    }

    /// Whether cubins are made.
    #[must_use]
    pub fn assembly(mut self, assembly: Assembly) -> Self {
        self.assembly = assembly;
        self
    }

    /// Whether instructions can be traced to source lines.
    #[must_use]
    pub fn line_info(mut self, lines: LineInfo) -> Self {
        self.lines = lines;
        self
    }

    /// Adds units: the kernels that the crate must have, and which of them are compiled together. Under
    /// `--cfg warpfuse_units` the crate has to compile the units whose conditions are given too. Without units the whole crate is
    /// compiled after every change of a kernel.
    #[must_use]
    pub fn units(mut self, units: impl IntoIterator<Item = Unit>) -> Self {
        self.units.extend(units);
        self
    }

    /// Finds the tools, compiles, checks, and assembles.
    ///
    /// # Errors
    /// See [`BuildError`]; each says what to do about it.
    pub fn build(self) -> Result<PtxOutput, BuildError> {
        let (toolchain, ptxas) = self.obtain_tools()?;
        let device = DeviceCrate::read(&self.crate_dir, &toolchain)?;
        let target_dir = absolute(&self.target_dir)?;
        let archs = if self.archs.is_empty() {
            &Arch::DEFAULT[..]
        } else {
            &self.archs
        };
        let core_dir = self.core_dir.clone();
        let core_dir = absolute(&core_dir.unwrap_or_else(|| target_dir.join("core")))?;
        let workers = available_parallelism().map_or(1, NonZero::get);
        let make = |&arch: &Arch| {
            let request = Request {
                device: &device,
                toolchain: &toolchain,
                ptxas: ptxas.as_ref(),
                arch,
                lines: self.lines,
                units: &self.units,
                target_dir: &target_dir,
                core_dir: &core_dir,
                seed_dir: self.seed_dir.as_deref(),
                workers: workers.div_ceil(archs.len()),
            };
            request.image()
        };
        Ok(PtxOutput {
            images: in_parallel(archs, workers, make)?,
            toolchain,
            ptxas,
        })
    }

    /// Finds the tools, or installs them if that is allowed, and builds nothing.
    ///
    /// # Errors
    /// See [`BuildError`]; each says what to do about it.
    pub fn obtain_tools(&self) -> Result<(Toolchain, Option<Ptxas>), BuildError> {
        let toolchain = install::obtain_toolchain(&Surroundings::from_env(), self.install)?;
        Ok((toolchain, self.obtain_ptxas()?))
    }

    fn obtain_ptxas(&self) -> Result<Option<Ptxas>, BuildError> {
        let default = || self.target_dir.with_file_name("cuda-tools");
        let tools_dir = self.tools_dir.clone().unwrap_or_else(default);
        match (
            self.assembly,
            fetch::obtain_ptxas(&tools_dir, self.fetching()),
        ) {
            (Assembly::Skipped, _) => Ok(None),
            (Assembly::WhenPossible, Err(reason)) => {
                process::say(&format!("no cubins: {reason}"));
                Ok(None)
            }
            (_, outcome) => outcome.map(Some),
        }
    }

    /// What nobody needs is not fetched.
    fn fetching(&self) -> Install {
        match self.assembly {
            Assembly::Skipped => Install::Forbidden,
            _ => self.install,
        }
    }
}

fn absolute(folder: &Path) -> Result<PathBuf, BuildError> {
    std::path::absolute(folder).map_err(BuildError::io(folder, "resolved"))
}
