//! GPU architectures that PTX can be made for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::BuildError;

/// A GPU architecture (compute capability) that kernels are compiled for.
///
/// Written and parsed as NVIDIA's tools do:
///
/// ```
/// use gpu_kernels_builder::Arch;
///
/// assert_eq!("sm_90".parse::<Arch>()?, Arch::Sm90);
/// assert_eq!(Arch::Sm80.to_string(), "sm_80");
/// # Ok::<(), gpu_kernels_builder::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Arch {
    /// A100 (Ampere).
    #[serde(rename = "sm_80")]
    Sm80,
    /// A10, A40, RTX 30 (Ampere).
    #[serde(rename = "sm_86")]
    Sm86,
    /// L4, L40, RTX 40 (Ada).
    #[serde(rename = "sm_89")]
    Sm89,
    /// H100, H200 (Hopper).
    #[serde(rename = "sm_90")]
    Sm90,
    /// B200 (Blackwell).
    #[serde(rename = "sm_100")]
    Sm100,
    /// RTX 50, RTX PRO (Blackwell).
    #[serde(rename = "sm_120")]
    Sm120,
}

impl Arch {
    /// Every architecture known, oldest first.
    pub const ALL: [Arch; 6] = [
        Arch::Sm80,
        Arch::Sm86,
        Arch::Sm89,
        Arch::Sm90,
        Arch::Sm100,
        Arch::Sm120,
    ];

    /// What is compiled when nobody says otherwise.
    ///
    /// PTX for an older architecture also runs on every newer one, so these two cover all.
    pub const DEFAULT: [Arch; 2] = [Arch::Sm80, Arch::Sm90];

    /// The name NVIDIA's tools and LLVM use, such as `sm_90`.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::Sm80 => "sm_80",
            Arch::Sm86 => "sm_86",
            Arch::Sm89 => "sm_89",
            Arch::Sm90 => "sm_90",
            Arch::Sm100 => "sm_100",
            Arch::Sm120 => "sm_120",
        }
    }

    /// The compute capability, major and minor.
    pub const fn compute_capability(self) -> (u32, u32) {
        match self {
            Arch::Sm80 => (8, 0),
            Arch::Sm86 => (8, 6),
            Arch::Sm89 => (8, 9),
            Arch::Sm90 => (9, 0),
            Arch::Sm100 => (10, 0),
            Arch::Sm120 => (12, 0),
        }
    }

    /// The PTX version that LLVM is told to write: 8.6 has vector `red` (8.1) and Blackwell, 8.7 has `sm_120`.
    pub(crate) const fn ptx_feature(self) -> &'static str {
        match self {
            Arch::Sm120 => "+ptx87",
            _ => "+ptx86",
        }
    }

    /// Reads a comma-separated list such as `sm_80,sm_90`; repeated names count once.
    ///
    /// # Errors
    /// [`BuildError::UnknownArch`] for a name that is not in [`Arch::ALL`], or an empty list.
    pub fn parse_list(list: &str) -> Result<Vec<Arch>, BuildError> {
        let mut archs = Vec::new();
        for name in list.split(',') {
            let arch = name.trim().parse()?;
            if !archs.contains(&arch) {
                archs.push(arch);
            }
        }
        Ok(archs)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad`, so that widths in tables are obeyed.
        f.pad(self.name())
    }
}

impl FromStr for Arch {
    type Err = BuildError;

    fn from_str(name: &str) -> Result<Self, BuildError> {
        Arch::ALL
            .into_iter()
            .find(|arch| arch.name() == name)
            .ok_or_else(|| BuildError::UnknownArch { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back() {
        for arch in Arch::ALL {
            assert_eq!(arch.name().parse::<Arch>().ok(), Some(arch));
        }
    }

    #[test]
    fn a_list_keeps_its_order_and_drops_repeats() {
        let archs = Arch::parse_list("sm_90, sm_80,sm_90").expect("known names");
        assert_eq!(archs, [Arch::Sm90, Arch::Sm80]);
    }

    #[test]
    fn unknown_names_are_refused_with_the_choices() {
        for list in ["sm_1", "", "sm_80,", "SM_90"] {
            let message = Arch::parse_list(list)
                .expect_err("not an architecture")
                .to_string();
            assert!(message.contains("sm_80, sm_86"), "{message}");
        }
    }
}
