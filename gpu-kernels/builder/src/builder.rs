//! The builder: what the caller wants, and the steps from the crate to checked cubins.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::device_crate::DeviceCrate;
use crate::{
    Arch, BuildError, Image, Install, Ptxas, Resources, Surroundings, Toolchain, checks, compile,
    fetch, install, process,
};

/// Whether the PTX is assembled into cubins, which also yields the resource figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assembly {
    /// Not having ptxas is an error.
    Required,
    /// Without ptxas there is PTX only; the driver compiles it when it is loaded.
    WhenPossible,
    /// Only PTX.
    Skipped,
}

/// A kernel that may use local memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemption {
    /// The kernel's name; a `*` at the end stands for any ending.
    pub entry: String,
    /// Why it may.
    pub reason: String,
}

impl Exemption {
    fn covers(&self, entry: &str) -> bool {
        match self.entry.strip_suffix('*') {
            Some(start) => entry.starts_with(start),
            None => self.entry == entry,
        }
    }
}

/// Compiles a crate of kernels; made with [`PtxBuilder::new`], run with [`PtxBuilder::build`].
#[derive(Clone, Debug)]
pub struct PtxBuilder {
    crate_dir: PathBuf,
    archs: Vec<Arch>,
    target_dir: PathBuf,
    tools_dir: Option<PathBuf>,
    install: Install,
    assembly: Assembly,
    expected: Vec<String>,
}

/// What a build made.
#[derive(Clone, Debug)]
pub struct PtxOutput {
    /// The compiler that was used.
    pub toolchain: Toolchain,
    /// The assembler that was used, if any.
    pub ptxas: Option<Ptxas>,
    /// One per architecture, in the order asked for.
    pub images: Vec<Image>,
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
            expected: Vec::new(),
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

    /// Adds names of kernels that the PTX must contain.
    #[must_use]
    pub fn expect_entries<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.expected.extend(names.into_iter().map(Into::into));
        self
    }

    /// Finds the tools, compiles, checks, and assembles.
    ///
    /// # Errors
    /// See [`BuildError`]; each says what to do about it.
    pub fn build(self) -> Result<PtxOutput, BuildError> {
        let toolchain = install::obtain_toolchain(&Surroundings::from_env(), self.install)?;
        let device = DeviceCrate::read(&self.crate_dir, &toolchain)?;
        let ptxas = self.obtain_ptxas()?;
        let target_dir = absolute(&self.target_dir)?;
        let archs = if self.archs.is_empty() {
            &Arch::DEFAULT[..]
        } else {
            &self.archs
        };
        let images = archs
            .iter()
            .map(|&arch| {
                let ptx = compile::compile(&device, &toolchain, arch, &target_dir)?;
                self.check_and_assemble(arch, ptx, ptxas.as_ref())
            })
            .collect::<Result<_, _>>()?;
        Ok(PtxOutput {
            toolchain,
            ptxas,
            images,
        })
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
        check_text(&text, arch, &self.expected)?;
        let mut image = Image {
            arch,
            ptx,
            cubin: None,
            resources: Vec::new(),
        };
        if let Some(ptxas) = ptxas {
            let cubin = image.ptx.with_extension("cubin");
            image.resources = ptxas.assemble(&image.ptx, arch, &cubin)?;
            check_report(&text, &image.resources)?;
            image.cubin = Some(cubin);
        }
        image.save_figures()?;
        Ok(image)
    }
}

fn absolute(folder: &Path) -> Result<PathBuf, BuildError> {
    std::path::absolute(folder).map_err(BuildError::io(folder, "resolved"))
}

fn check_text(ptx: &str, arch: Arch, expected: &[String]) -> Result<(), BuildError> {
    let functions = checks::unresolved_functions(ptx);
    if !functions.is_empty() {
        return Err(BuildError::Unresolved {
            arch,
            functions: functions.into_iter().map(String::from).collect(),
        });
    }
    let missing = checks::missing_entries(ptx, expected);
    if !missing.is_empty() {
        return Err(BuildError::MissingEntries {
            arch,
            found: checks::entries(ptx).len(),
            missing,
        });
    }
    Ok(())
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

impl PtxOutput {
    /// Refuses kernels that keep variables in local memory, unless they are exempted.
    ///
    /// # Errors
    /// [`BuildError::LocalMemory`] with each of them.
    pub fn deny_local_memory(&self, exemptions: &[Exemption]) -> Result<(), BuildError> {
        let exempted = |entry: &str| exemptions.iter().any(|e| e.covers(entry));
        let kernels: Vec<String> = self
            .images
            .iter()
            .flat_map(|image| image.resources.iter().map(|r| (image.arch, r)))
            .filter(|(_, r)| r.uses_local_memory() && !exempted(&r.entry))
            .map(|(arch, r)| r.local_memory(arch))
            .collect();
        if kernels.is_empty() {
            Ok(())
        } else {
            Err(BuildError::LocalMemory { kernels })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    fn output(resources: Vec<Resources>) -> PtxOutput {
        PtxOutput {
            toolchain: Toolchain {
                rustc: "rustc".into(),
                cargo: "cargo".into(),
                sysroot: "/".into(),
                version: "rustc 1.95.0".into(),
                origin: Origin::Path,
            },
            ptxas: None,
            images: vec![Image {
                arch: Arch::Sm90,
                ptx: "k.ptx".into(),
                cubin: None,
                resources,
            }],
        }
    }

    fn spilling(entry: &str) -> Resources {
        Resources {
            entry: entry.into(),
            registers: 255,
            spill_store_bytes: 8,
            ..Resources::default()
        }
    }

    fn exempt(entry: &str) -> Exemption {
        Exemption {
            entry: entry.into(),
            reason: "measured: no slower".into(),
        }
    }

    #[test]
    fn spills_are_refused_unless_exempted_by_name() {
        let output = output(vec![spilling("dense_f64_v32"), spilling("qr_f64")]);
        let message = output
            .deny_local_memory(&[exempt("qr_f64")])
            .expect_err("dense spills")
            .to_string();
        assert!(message.contains("sm_90 dense_f64_v32"), "{message}");
        assert!(!message.contains("qr_f64:"), "{message}");

        let both = [exempt("qr_f64"), exempt("dense_*")];
        assert!(output.deny_local_memory(&both).is_ok());
    }

    #[test]
    fn a_name_without_a_star_covers_itself_only() {
        assert!(exempt("a").covers("a"));
        assert!(!exempt("a").covers("ab"));
        assert!(exempt("a*").covers("ab"));
    }

    #[test]
    fn unresolved_calls_and_missing_entries_are_errors() {
        let extern_call = ".extern .func memcpy\n.visible .entry a()\n{ ret; }";
        let error = check_text(extern_call, Arch::Sm80, &[]).expect_err("unresolved");
        assert!(error.to_string().contains("memcpy"), "{error}");

        let text = ".visible .entry a()\n{ ret; }";
        let expected = ["a".to_owned(), "b".to_owned()];
        let error = check_text(text, Arch::Sm80, &expected).expect_err("b is missing");
        assert!(
            error.to_string().contains("lacks 1 expected ones: b"),
            "{error}"
        );
        assert!(check_text(text, Arch::Sm80, &expected[..1]).is_ok());
    }

    #[test]
    fn an_entry_without_figures_is_an_error() {
        let text = ".visible .entry a()\n{ ret; }";
        assert!(matches!(
            check_report(text, &[]),
            Err(BuildError::Report { .. })
        ));
        assert!(check_report(text, &[spilling("a")]).is_ok());
    }
}
