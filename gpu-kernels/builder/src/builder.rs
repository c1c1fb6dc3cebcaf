//! The builder: what the caller wants, and the steps from the crate to checked cubins.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::device_crate::DeviceCrate;
use crate::stamp::{self, Stamp};
use crate::{
    Arch, Assembly, BuildError, Image, Install, LineInfo, PtxOutput, Ptxas, Resources,
    Surroundings, Toolchain, checks, compile, fetch, install, process,
};

/// Compiles a crate of kernels; made with [`PtxBuilder::new`], run with [`PtxBuilder::build`].
#[derive(Clone, Debug)]
pub struct PtxBuilder {
    crate_dir: PathBuf,
    archs: Vec<Arch>,
    target_dir: PathBuf,
    tools_dir: Option<PathBuf>,
    install: Install,
    assembly: Assembly,
    lines: LineInfo,
    expected: Vec<String>,
    cfgs: Vec<String>,
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
            install: Install::Forbidden,
            assembly: Assembly::WhenPossible,
            lines: LineInfo::Omitted,
            expected: Vec::new(),
            cfgs: Vec::new(),
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

    /// Adds names of kernels that the PTX must contain.
    #[must_use]
    pub fn expect_entries<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.expected.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds conditions of the crate's `cfg` attributes, such as `part` or `part = "sums"`.
    #[must_use]
    pub fn cfgs<N: Into<String>>(mut self, conditions: impl IntoIterator<Item = N>) -> Self {
        self.cfgs.extend(conditions.into_iter().map(Into::into));
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
        let manifest = device.write_manifest(&target_dir.join("manifest"), self.lines)?;
        let make = |arch| {
            process::say(&format!("building {} for {arch}", device.name));
            let ptx = compile::Job {
                device: &device,
                toolchain: &toolchain,
                arch,
                manifest: &manifest,
                folder: &target_dir,
                cfgs: &self.cfgs,
            };
            let ptx = ptx.compile()?;
            self.check_and_assemble(arch, ptx, ptxas.as_ref())
        };
        Ok(PtxOutput {
            images: for_each_at_once(archs, make)?,
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

    fn check_and_assemble(
        &self,
        arch: Arch,
        ptx: PathBuf,
        ptxas: Option<&Ptxas>,
    ) -> Result<Image, BuildError> {
        let text = fs::read_to_string(&ptx).map_err(BuildError::io(&ptx, "read"))?;
        checks::check(&text, arch, &self.expected)?;
        let Some(ptxas) = ptxas else {
            return Ok(Image {
                arch,
                ptx,
                cubin: None,
                resources: Vec::new(),
            });
        };
        let image = assembled(ptxas, arch, ptx, &text)?;
        check_report(&text, &image.resources)?;
        Ok(image)
    }
}

/// The image with its cubin; assembled again only if the PTX or the assembler changed.
fn assembled(ptxas: &Ptxas, arch: Arch, ptx: PathBuf, text: &str) -> Result<Image, BuildError> {
    let cubin = ptx.with_extension("cubin");
    let recipe = format!("{ptxas:?} {}", stamp::fingerprint(text));
    let stamp = Stamp::new(&cubin, recipe);
    if cubin.is_file() && stamp.is_current() {
        return Image::read(ptx.parent().unwrap_or(Path::new(".")), arch);
    }
    let image = Image {
        arch,
        resources: ptxas.assemble(&ptx, arch, &cubin)?,
        ptx,
        cubin: Some(cubin),
    };
    image.save_figures()?;
    stamp.save()?;
    Ok(image)
}

/// Works on all architectures at once, one thread each: rustc and ptxas use one core for one crate.
fn for_each_at_once(
    archs: &[Arch],
    make: impl Fn(Arch) -> Result<Image, BuildError> + Sync,
) -> Result<Vec<Image>, BuildError> {
    let make = &make;
    std::thread::scope(|scope| {
        let running: Vec<_> = archs
            .iter()
            .map(|&arch| scope.spawn(move || make(arch)))
            .collect();
        running
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

fn absolute(folder: &Path) -> Result<PathBuf, BuildError> {
    std::path::absolute(folder).map_err(BuildError::io(folder, "resolved"))
}

/// Every kernel of the PTX must have its figures, or a change of ptxas's wording would hide spills.
fn check_report(ptx: &str, resources: &[Resources]) -> Result<(), BuildError> {
    let entries: Vec<String> = checks::entries(ptx)
        .into_iter()
        .filter(|entry| !resources.iter().any(|r| r.entry == *entry))
        .map(String::from)
        .collect();
    if entries.is_empty() {
        Ok(())
    } else {
        Err(BuildError::Report { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_figures_is_an_error() {
        let text = ".visible .entry a()\n{ ret; }";
        assert!(matches!(
            check_report(text, &[]),
            Err(BuildError::Report { .. })
        ));
        assert!(
            check_report(
                text,
                &[Resources {
                    entry: "a".into(),
                    ..Resources::default()
                }]
            )
            .is_ok()
        );
    }
}
