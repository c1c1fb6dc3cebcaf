#![doc = include_str!("../README.md")]
//!
//! # Example
//!
//! ```no_run
//! use gpu_kernels_builder::{Arch, PtxBuilder};
//!
//! let output = PtxBuilder::new("../gpu-kernels").arch(Arch::Sm90).build()?;
//! println!("{}", output.images[0].ptx.display());
//! # Ok::<(), gpu_kernels_builder::BuildError>(())
//! ```
//!
//! # Modules
//!
//! | module | what |
//! |---|---|
//! | `toolchain` | finds a rustc that has its library source, which build-std needs |
//! | `install` | `rustup component add rust-src`, or Debian's packages |
//! | `device_crate` | what cargo knows about the kernel crate, and the manifest it is compiled through |
//! | `compile` | the one cargo command that makes PTX without a linker |
//! | `checks` | reads PTX text: entries, unresolved functions |
//! | `ptxas`, `fetch` | finds the assembler, or fetches its wheel |
//! | `report` | reads the assembler's report into [`Resources`] |
//! | `stamp` | remembers how a file was made |
//! | `folder` | the files that a build leaves behind, and how they are read back |

mod arch;
mod bounds;
mod builder;
mod checks;
mod compile;
mod device_crate;
mod error;
mod fetch;
mod folder;
mod install;
mod options;
mod output;
mod process;
mod ptxas;
mod report;
mod stamp;
mod toolchain;

pub use arch::Arch;
pub use builder::PtxBuilder;
pub use checks::{entries, unresolved_functions};
pub use error::BuildError;
pub use fetch::fetch_wheel;
pub use folder::Image;
pub use install::Install;
pub use options::{Assembly, Exemption, LineInfo};
pub use output::PtxOutput;
pub use ptxas::{Ptxas, find as find_ptxas};
pub use report::{Resources, parse as parse_report};
pub use toolchain::{Origin, Rejected, Surroundings, Toolchain, discover};
