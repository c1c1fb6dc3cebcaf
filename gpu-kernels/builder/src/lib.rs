#![doc = include_str!("../README.md")]
//!
//! # Example
//!
//! ```no_run
//! use gpu_kernels_builder::{Arch, PtxBuilder};
//!
//! let output = PtxBuilder::new("../gpu-kernels").arch(Arch::Sm90).build()?;
//! println!("{}", output.images[0].folder.display());
//! # Ok::<(), gpu_kernels_builder::BuildError>(())
//! ```
//!
//! # Modules
//!
//! | module | what |
//! |---|---|
//! | `toolchain` | finds a rustc that has its library source, which build-std needs |
//! | `install` | `rustup component add rust-src`, or Debian's packages |
//! | `device_crate` | what cargo knows about the kernel crate |
//! | `instance` | one more instance of a template, for a tuner |
//! | `unit` | kernels that are compiled together |
//! | `compile` | the compiler's runs that make PTX without a linker |
//! | `code` | fingerprints of kernels before they are optimised: what has to be compiled again |
//! | `split` | one PTX text of many kernels, taken apart |
//! | `image` | the kernels of one architecture, brought up to date |
//! | `checks` | reads PTX text: entries, unresolved functions |
//! | `ptxas`, `fetch` | finds the assembler, or fetches its wheel |
//! | `report` | reads the assembler's report into [`Resources`] |
//! | `index` | remembers how each kernel was made |
//! | `folder` | the files that a build leaves behind, and how they are read back |
//!
//! Every kernel is a PTX text and a cubin of its own, so that a program loads, and a driver compiles, what it uses. After a
//! change only the units whose code differs are compiled, and only kernels whose PTX differs are assembled.

mod arch;
mod bounds;
mod builder;
mod checks;
mod code;
mod compile;
mod device_crate;
mod error;
mod fetch;
mod folder;
mod image;
mod index;
mod install;
mod instance;
mod options;
mod output;
mod parallel;
mod process;
mod ptxas;
mod report;
mod split;
mod toolchain;
mod unit;

pub use arch::Arch;
pub use builder::PtxBuilder;
pub use checks::{entries, unresolved_functions};
pub use error::BuildError;
pub use fetch::fetch_wheel;
pub use folder::Image;
pub use install::Install;
pub use instance::{Generated, Instance, Instances};
pub use options::{Assembly, Exemption, LineInfo};
pub use output::PtxOutput;
pub use ptxas::{Ptxas, find as find_ptxas};
pub use report::{Resources, parse as parse_report};
pub use toolchain::{Origin, Rejected, Surroundings, Toolchain, discover};
pub use unit::Unit;
