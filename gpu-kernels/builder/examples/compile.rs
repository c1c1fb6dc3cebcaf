//! Compiles a crate of kernels and prints what each kernel takes:
//! `cargo run -p gpu-kernels-builder --example compile -- ../my-kernels sm_90`.

use gpu_kernels_builder::{Arch, BuildError, PtxBuilder};

fn main() -> Result<(), BuildError> {
    let mut arguments = std::env::args().skip(1);
    let crate_dir = arguments.next().unwrap_or_else(|| "gpu-kernels".into());
    let archs = Arch::parse_list(&arguments.next().unwrap_or_else(|| "sm_90".into()))?;
    let output = PtxBuilder::new(crate_dir).archs(archs).build()?;
    for image in &output.images {
        println!("{}: {}", image.arch, image.folder.display());
        for kernel in &image.resources {
            println!("  {kernel:?}");
        }
    }
    Ok(())
}
