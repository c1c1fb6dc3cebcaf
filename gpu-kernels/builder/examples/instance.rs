//! Compiles one instance of a template of the kernel crate and prints its PTX:
//! `cargo run -p gpu-kernels-builder --example instance -- gpu-kernels sm_90 ENTRY ARGUMENTS BODY`.

use gpu_kernels_builder::{Arch, Instance, Instances};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (crate_dir, arch) = (next("gpu-kernels"), next("sm_90"));
    let instance = Instance {
        entry: next("qr_panel_f32_32_96_4"),
        arguments: next("crate::qr::QrArgs<'a, f32>"),
        body: next("crate::qr::panel::panel::<_, f32, 32, 96, 4, 128>"),
    };
    let arch: Arch = arch.parse()?;
    let generated = Instances::new(crate_dir, "target/generated", arch)?.compile(&instance)?;
    println!("{}", generated.ptx);
    Ok(())
}
