//! Compiles the kernels and embeds them: writes `embedded.rs` into `OUT_DIR` for `src/device/embedded.rs`.
//!
//! Nothing is installed or fetched from here. Variables that it hears:
//!
//! | variable | meaning |
//! |---|---|
//! | `WARPFUSE_ARCH` | architectures, separated by commas (default `sm_80,sm_90`) |
//! | `WARPFUSE_FAMILIES` | families, separated by commas: compile only their kernels, for a kernel author's quick turn |
//! | `WARPFUSE_PTX_DIR` | a folder made by `cargo xtask build-ptx --out`: embed that, compile nothing |
//! | `WARPFUSE_LINE_INFO` | if set, keep source lines for profilers and compute-sanitizer |
//! | `WARPFUSE_RUSTC`, `WARPFUSE_CARGO` | the compiler to use |
//! | `WARPFUSE_PTXAS` | the assembler to use |

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use gpu_kernels_builder::{Arch, BuildError, Image, LineInfo, PtxBuilder};

/// Variables of ours, and those under which a toolkit is found.
const VARIABLES: [&str; 10] = [
    "WARPFUSE_FAMILIES",
    "WARPFUSE_LINE_INFO",
    "WARPFUSE_ARCH",
    "WARPFUSE_PTX_DIR",
    "WARPFUSE_RUSTC",
    "WARPFUSE_CARGO",
    "WARPFUSE_PTXAS",
    "CUDA_PATH",
    "CUDA_HOME",
    "DOCS_RS",
];

/// What there is to embed, or why there is nothing.
enum Kernels {
    Images(Vec<Image>),
    Missing(String),
}

fn main() -> ExitCode {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    watch();
    match kernels(&out).and_then(|kernels| embed(&kernels, &out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={}", one_line(&described(&error)));
            ExitCode::FAILURE
        }
    }
}

/// cargo runs this again when one of these changes, and only then.
fn watch() {
    for variable in VARIABLES {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    for part in ["src", "Cargo.toml"] {
        println!(
            "cargo::rerun-if-changed={}",
            kernel_crate().join(part).display()
        );
    }
}

fn kernels(out: &Path) -> Result<Kernels, BuildError> {
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return Ok(Kernels::Missing("the feature `cuda` is off".into()));
    }
    if env::var_os("DOCS_RS").is_some() {
        return Ok(Kernels::Missing(
            "documentation builds have no kernels".into(),
        ));
    }
    if let Some(folder) = env::var_os("WARPFUSE_PTX_DIR").map(PathBuf::from) {
        println!("cargo::rerun-if-changed={}", folder.display());
        let images = Image::read_folder(&folder)?;
        for image in &images {
            image.require(gpu_kernels::families::all_names())?;
        }
        return Ok(Kernels::Images(images));
    }
    match compile(out) {
        Ok(images) => Ok(Kernels::Images(images)),
        // In our own workspace a broken kernel is our fault; elsewhere the CPU can still be used.
        Err(error) if in_workspace() && !matches!(error, BuildError::NoToolchain { .. }) => {
            Err(error)
        }
        Err(error) => {
            watch_for_source();
            let why = described(&error);
            println!(
                "cargo::warning=no CUDA kernels are embedded: {}",
                one_line(&why)
            );
            Ok(Kernels::Missing(why))
        }
    }
}

fn compile(out: &Path) -> Result<Vec<Image>, BuildError> {
    let archs = match env::var("WARPFUSE_ARCH") {
        Ok(list) => Arch::parse_list(&list)?,
        Err(_) => Arch::DEFAULT.to_vec(),
    };
    let target = target_dir(out);
    let tools = target.join("cuda-tools");
    if in_workspace() {
        // It has to exist to be watched; `cargo xtask build-ptx` fetches ptxas into it.
        fs::create_dir_all(&tools).ok();
        println!("cargo::rerun-if-changed={}", tools.display());
    }
    let lines = match env::var_os("WARPFUSE_LINE_INFO") {
        Some(_) => LineInfo::Kept,
        None => LineInfo::Omitted,
    };
    let builder = PtxBuilder::new(kernel_crate())
        .archs(archs)
        .tools_dir(tools)
        .line_info(lines);
    Ok(selected(builder, &target.join("ptx")).build()?.images)
}

/// All families, or those that are asked for, in a folder of their own: the others' PTX stays as it is.
fn selected(builder: PtxBuilder, folder: &Path) -> PtxBuilder {
    let Ok(families) = env::var("WARPFUSE_FAMILIES") else {
        return builder
            .target_dir(folder)
            .expect_entries(gpu_kernels::families::all_names());
    };
    let families: Vec<&str> = families.split(',').map(str::trim).collect();
    let conditions: Vec<_> = families
        .iter()
        .map(|name| format!("warpfuse_family={name:?}"))
        .collect();
    builder
        .target_dir(folder.join("some"))
        .cfgs(["warpfuse_some_families".to_owned()])
        .cfgs(conditions)
        .expect_entries(gpu_kernels::families::names_of(&families))
}

fn kernel_crate() -> &'static Path {
    Path::new(gpu_kernels::MANIFEST_DIR)
}

/// The outermost target folder around `OUT_DIR`, so that all profiles share what is compiled for the GPU.
fn target_dir(out: &Path) -> PathBuf {
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    out.ancestors()
        .filter(is_target)
        .last()
        .unwrap_or(out)
        .to_owned()
}

fn in_workspace() -> bool {
    Path::new("../xtask").is_dir()
}

/// Has this run again once the compiler's library source is installed.
fn watch_for_source() {
    let rustc = PathBuf::from(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = std::process::Command::new(rustc)
        .args(["--print", "sysroot"])
        .output();
    if let Ok(output) = sysroot {
        let sysroot = String::from_utf8_lossy(&output.stdout);
        println!("cargo::rerun-if-changed={}/lib/rustlib", sysroot.trim());
    }
}

/// Packs the images beside the generated file: several programs of a workspace embed them, and machine
/// code of many similar kernels shrinks to a fifth.
fn embed(kernels: &Kernels, out: &Path) -> Result<(), BuildError> {
    let text = match kernels {
        Kernels::Missing(why) => generated(&[], Some(why)),
        Kernels::Images(images) => {
            for image in images {
                for file in [Some(&image.ptx), image.cubin.as_ref()]
                    .into_iter()
                    .flatten()
                {
                    pack(file, out)?;
                }
            }
            generated(images, None)
        }
    };
    write(&out.join("embedded.rs"), text.as_bytes())
}

fn pack(file: &Path, out: &Path) -> Result<(), BuildError> {
    let failed = |action| {
        let path = file.to_owned();
        move |source| BuildError::Io {
            path,
            action,
            source,
        }
    };
    let content = fs::read(file).map_err(failed("read"))?;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let packed = encoder
        .write_all(&content)
        .and_then(|()| encoder.finish())
        .map_err(failed("packed"))?;
    write(&out.join(packed_name(file)), &packed)
}

fn packed_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}.deflate")
}

fn write(path: &Path, content: &[u8]) -> Result<(), BuildError> {
    fs::write(path, content).map_err(|source| BuildError::Io {
        path: path.to_owned(),
        action: "written",
        source,
    })
}

fn generated(images: &[Image], missing: Option<&str>) -> String {
    let mut text = format!("pub static IMAGES: [Image; {}] = [\n", images.len());
    for image in images {
        write_image(&mut text, image);
    }
    text.push_str("];\n\npub static RESOURCES: &[Resource] = &[\n");
    write_resources(&mut text, images);
    text.push_str("];\n\n");
    let _ = writeln!(text, "pub static MISSING: Option<&str> = {missing:?};");
    text
}

fn write_image(text: &mut String, image: &Image) {
    let packed = |file: &Path| format!("Packed::new(include_bytes!({:?}))", packed_name(file));
    let cubin = match &image.cubin {
        Some(file) => format!("Some({})", packed(file)),
        None => "None".into(),
    };
    let _ = writeln!(
        text,
        "    Image {{ arch: \"{}\", capability: {:?}, ptx: {}, cubin: {cubin} }},",
        image.arch,
        image.arch.compute_capability(),
        packed(&image.ptx),
    );
}

/// Sorted by architecture and entry as text: the library searches by halves.
fn write_resources(text: &mut String, images: &[Image]) {
    let mut rows: Vec<_> = images
        .iter()
        .flat_map(|image| image.resources.iter().map(|r| (image.arch.name(), r)))
        .collect();
    rows.sort_by_key(|(arch, resources)| (*arch, resources.entry.clone()));
    for (arch, resources) in rows {
        let _ = writeln!(
            text,
            "    Resource {{ arch: {arch:?}, entry: {:?}, registers: {}, shared_bytes: {} }},",
            resources.entry, resources.registers, resources.shared_bytes,
        );
    }
}

/// An error with its causes.
fn described(error: &BuildError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// cargo reads instructions line by line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
