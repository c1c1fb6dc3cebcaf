//! Instances of templates, compiled where a compiler is at hand.

use std::path::Path;

use gpu_kernels::Family;
use gpu_kernels_builder::{Arch, Instance, Instances};

use super::{Refusal, TuneError};
use crate::device::Device;
use crate::ops::generated;
use crate::plan::template::Template;

/// Compiles instances of the templates of `gpu-kernels`, and loads them on a device.
#[derive(Debug)]
pub struct Generator {
    instances: Instances,
    /// Compiled files go with the generator.
    _folder: tempfile::TempDir,
}

impl Generator {
    /// A generator from the source of the kernel crate, for a device that launches.
    ///
    /// # Errors
    /// [`TuneError::NoLaunches`] on the CPU; [`TuneError::Generator`] where no Rust compiler with its library source is at hand, or
    /// `source` has no such crate.
    pub fn new(source: &Path, device: &Device) -> Result<Generator, TuneError> {
        let Some(limits) = device.limits() else {
            return Err(TuneError::NoLaunches {
                device: device.to_string(),
            });
        };
        let capability = limits.compute_capability;
        let newest =
            |arch: &&Arch| arch.compute_capability() <= (capability.major, capability.minor);
        let arch = Arch::ALL
            .iter()
            .rfind(newest)
            .copied()
            .unwrap_or(Arch::Sm80);
        let folder = tempfile::tempdir().map_err(|error| TuneError::Folder(error.to_string()))?;
        Ok(Generator {
            instances: Instances::new(source, folder.path(), arch)?,
            _folder: folder,
        })
    }

    /// Compiles an instance, and loads it for launches of its variant.
    ///
    /// # Errors
    /// [`Refusal::Failed`] where the compiler refuses it, it keeps variables in local memory (which an assembler says), or the
    /// device does not load it: the log remembers that.
    pub(super) fn make<F: Family>(
        &self,
        device: &Device,
        variant: F::Variant,
        template: &Template,
    ) -> Result<(), Refusal> {
        device.expect_ptx()?;
        let Template {
            entry,
            arguments,
            body,
        } = template.clone();
        let compiled = self.instances.compile(&Instance {
            entry,
            arguments,
            body,
        })?;
        let entry = generated::add::<F>(&template.entry, variant);
        let local_bytes = device.load_ptx(entry.name, compiled.ptx)?;
        match local_bytes {
            0 => Ok(()),
            bytes => Err(Refusal::Failed(format!(
                "a thread keeps {bytes} bytes in local memory"
            ))),
        }
    }
}
