//! One more instance of a template: a kernel that no table of the crate has.
//!
//! The crate is copied, its file of generated instances is replaced by the wanted one, and that one kernel is compiled: seconds,
//! where all kernels take minutes. What the compiler needs of Rust's own library is compiled once for all instances.

use std::fs;
use std::path::{Path, PathBuf};

use crate::device_crate::DeviceCrate;
use crate::{
    Arch, Assembly, BuildError, Image, PtxBuilder, Resources, Surroundings, Toolchain, Unit,
    discover,
};

/// The condition under which the crate compiles its generated instances, and the file that has them.
const UNIT: &str = "Generated";
const FILE: &str = "generated.rs";

/// A kernel by its template and parameters, as Rust.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance {
    /// The name of the entry, unlike any of the crate's: letters, digits and `_`.
    pub entry: String,
    /// The type of its arguments, with the lifetime `'a`, such as `crate::qr::QrArgs<'a, f32>`.
    pub arguments: String,
    /// The body with its parameters, such as `crate::qr::panel::panel::<_, f32, 32, 96, 4, 128>`.
    pub body: String,
}

/// A kernel that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Its PTX.
    pub ptx: String,
    /// Registers and memory, where an assembler was at hand.
    pub resources: Option<Resources>,
}

/// Compiles instances of the templates of a crate, for one architecture.
///
/// ```no_run
/// use gpu_kernels_builder::{Arch, Instance, Instances};
///
/// let instances = Instances::new("gpu-kernels", "target/generated", Arch::Sm90)?;
/// let generated = instances.compile(&Instance {
///     entry: "qr_panel_f32_32_96_4".into(),
///     arguments: "crate::qr::QrArgs<'a, f32>".into(),
///     body: "crate::qr::panel::panel::<_, f32, 32, 96, 4, 128>".into(),
/// })?;
/// assert!(generated.ptx.contains("qr_panel_f32_32_96_4"));
/// # Ok::<(), gpu_kernels_builder::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Instances {
    device: DeviceCrate,
    folder: PathBuf,
    arch: Arch,
    assembly: Assembly,
}

impl Instances {
    /// Instances of the crate in `crate_dir`, which has a file for them (`src/generated.rs`), compiled in `folder`.
    ///
    /// # Errors
    /// [`BuildError::NoToolchain`] where no compiler with its library source is at hand, [`BuildError::Crate`] where there is no
    /// such crate.
    pub fn new(
        crate_dir: impl AsRef<Path>,
        folder: impl Into<PathBuf>,
        arch: Arch,
    ) -> Result<Instances, BuildError> {
        let toolchain: Toolchain = discover(&Surroundings::from_env())?;
        Ok(Instances {
            device: DeviceCrate::read(crate_dir.as_ref(), &toolchain)?,
            folder: folder.into(),
            arch,
            assembly: Assembly::WhenPossible,
        })
    }

    /// The same with or without an assembler, who says which instances spill.
    #[must_use]
    pub fn assembly(self, assembly: Assembly) -> Instances {
        Instances { assembly, ..self }
    }

    /// Compiles one.
    ///
    /// # Errors
    /// [`BuildError::Compile`] with the compiler's words, as for parameters that the template refuses;
    /// [`BuildError::LocalMemory`] where variables do not fit in registers, [`BuildError::Io`].
    pub fn compile(&self, instance: &Instance) -> Result<Generated, BuildError> {
        let copy = self.folder.join("crate");
        self.copy_to(&copy)?;
        update(&copy.join("src").join(FILE), source(instance).as_bytes())?;
        let unit = Unit {
            name: UNIT.to_owned(),
            kernels: vec![instance.entry.clone()],
        };
        let output = PtxBuilder::new(&copy)
            .arch(self.arch)
            .units([unit])
            .target_dir(self.folder.join("ptx"))
            .core_dir(self.folder.join("core"))
            .assembly(self.assembly)
            .build()?;
        output.deny_local_memory(&[])?;
        let image = &output.images[0];
        let file = image.ptx(&instance.entry);
        Ok(Generated {
            ptx: fs::read_to_string(&file).map_err(BuildError::io(&file, "read"))?,
            resources: resources(image, &instance.entry),
        })
    }

    /// The crate's source and page, with a manifest that belongs to no workspace.
    fn copy_to(&self, copy: &Path) -> Result<(), BuildError> {
        let DeviceCrate {
            folder,
            name,
            version,
            edition,
            lib_path,
            ..
        } = &self.device;
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"{edition}\"\n\n[workspace]\n"
        );
        update(&copy.join("Cargo.toml"), manifest.as_bytes())?;
        let page = folder.join("README.md");
        if page.exists() {
            copy_file(&page, &copy.join("README.md"))?;
        }
        let source = lib_path.parent().unwrap_or(folder);
        copy_folder(source, &copy.join("src"))
    }
}

fn resources(image: &Image, entry: &str) -> Option<Resources> {
    let mut all = image.resources.iter();
    all.find(|one| one.entry == entry).cloned()
}

/// The file of generated instances with this one.
fn source(instance: &Instance) -> String {
    let Instance {
        entry,
        arguments,
        body,
    } = instance;
    format!("crate::table::instances! {{\n    \"{entry}\", {arguments} => {body};\n}}\n")
}

/// Files that are gone stay in the copy: nothing names them there.
fn copy_folder(from: &Path, to: &Path) -> Result<(), BuildError> {
    for entry in fs::read_dir(from).map_err(BuildError::io(from, "read"))? {
        let path = entry.map_err(BuildError::io(from, "read"))?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        match path.is_dir() {
            true => copy_folder(&path, &to.join(name))?,
            // The wanted one is written there.
            false if name == FILE => {}
            false => copy_file(&path, &to.join(name))?,
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<(), BuildError> {
    update(to, &fs::read(from).map_err(BuildError::io(from, "read"))?)
}

/// Writes what is new, so that only what has changed is compiled.
fn update(file: &Path, content: &[u8]) -> Result<(), BuildError> {
    if fs::read(file).is_ok_and(|present| present == content) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(BuildError::io(folder, "created"))?;
    }
    fs::write(file, content).map_err(BuildError::io(file, "written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_a_row() {
        let instance = Instance {
            entry: "k_1".into(),
            arguments: "crate::Args<'a>".into(),
            body: "crate::k::<_, 1>".into(),
        };
        let expected =
            "crate::table::instances! {\n    \"k_1\", crate::Args<'a> => crate::k::<_, 1>;\n}\n";
        assert_eq!(source(&instance), expected);
    }
}
