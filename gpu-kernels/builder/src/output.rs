//! What a build made, and what may be asked of it.

use crate::{BuildError, Exemption, Image, Ptxas, Toolchain};

/// What a build made.
#[derive(Clone, Debug)]
pub struct PtxOutput {
    /// The compiler that was used.
    pub toolchain: Toolchain,
    /// The assembler that was used, if any.
    pub ptxas: Option<Ptxas>,
    /// One per architecture, in the order requested.
    pub images: Vec<Image>,
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
    use crate::{Arch, Origin, Resources};

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
                folder: "k".into(),
                kernels: Vec::new(),
                assembled: true,
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
}
