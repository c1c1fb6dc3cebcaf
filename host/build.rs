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
//! | `WARPFUSE_PTX_ONLY` | if set, make no machine code: a driver compiles each kernel when it is first used |
//! | `WARPFUSE_SMALL` | if set, pack the kernels as small as they go: a sixth less, for half a minute of a processor |
//! | `WARPFUSE_RUSTC`, `WARPFUSE_CARGO` | the compiler to use |
//! | `WARPFUSE_PTXAS` | the assembler to use |

#[path = "build/pack.rs"]
mod pack;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpu_kernels_builder::{Arch, Assembly, BuildError, Image, LineInfo, PtxBuilder, Unit};

/// Variables of ours, and those under which a toolkit is found.
const VARIABLES: [&str; 12] = [
    "WARPFUSE_FAMILIES",
    "WARPFUSE_LINE_INFO",
    "WARPFUSE_PTX_ONLY",
    "WARPFUSE_SMALL",
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
    match kernels(&out).and_then(|kernels| embed(kernels, &out)) {
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
    println!("cargo::rerun-if-changed=build/pack.rs");
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
            image.require(gpu_kernels::families::all().map(|known| known.kernel))?;
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
    let assembly = match env::var_os("WARPFUSE_PTX_ONLY") {
        Some(_) => Assembly::Skipped,
        None => Assembly::WhenPossible,
    };
    let builder = PtxBuilder::new(kernel_crate())
        .archs(archs)
        .assembly(assembly)
        .tools_dir(tools)
        .core_dir(target.join("ptx").join("core"))
        .line_info(lines);
    Ok(selected(builder, &target.join("ptx")).build()?.images)
}

/// All families, or those that are requested, in a folder of their own: the others' PTX stays as it is. All begin with what
/// some have, which is what `cargo xtask quickstart` leaves.
fn selected(builder: PtxBuilder, folder: &Path) -> PtxBuilder {
    match env::var("WARPFUSE_FAMILIES") {
        Ok(list) => {
            let families: Vec<&str> = list.split(',').map(str::trim).collect();
            let builder = builder.target_dir(folder.join("some"));
            builder.units(units(|family| families.contains(&family)))
        }
        Err(_) => builder
            .target_dir(folder)
            .seed_dir(folder.join("some"))
            .units(units(|_| true)),
    }
}

/// The units of the families that are wanted.
fn units(wanted: impl Fn(&str) -> bool) -> Vec<Unit> {
    let kernels = gpu_kernels::families::all().filter(|known| wanted(known.family));
    let pairs: Vec<_> = kernels.map(|known| (known.unit, known.kernel)).collect();
    Unit::collect(pairs)
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

/// Packs the images beside the generated file.
fn embed(kernels: Kernels, out: &Path) -> Result<(), BuildError> {
    let text = match kernels {
        Kernels::Missing(why) => generated(0, "", Some(&why)),
        Kernels::Images(mut images) => {
            images.sort_by_key(|image| image.arch);
            let mut rows = String::new();
            for (at, image) in images.iter().enumerate() {
                // PTX serves devices newer than all machine code, and so does that of the newest architecture.
                let with_ptx = at + 1 == images.len() || !image.assembled;
                write_image(&mut rows, image, with_ptx, out)?;
            }
            generated(images.len(), &rows, None)
        }
    };
    write(&out.join("embedded.rs"), text.as_bytes())
}

fn write(path: &Path, content: &[u8]) -> Result<(), BuildError> {
    fs::write(path, content).map_err(|source| BuildError::Io {
        path: path.to_owned(),
        action: "written",
        source,
    })
}

/// An array, not a reference to one: images keep what they unpacked last.
fn generated(count: usize, images: &str, missing: Option<&str>) -> String {
    format!(
        "pub static IMAGES: [Image; {count}] = [\n{images}];\n\n\
         pub static MISSING: Option<&str> = {missing:?};\n"
    )
}

/// One row of the table of images; kernels are sorted by name, for the library searches by halves.
fn write_image(
    text: &mut String,
    image: &Image,
    with_ptx: bool,
    out: &Path,
) -> Result<(), BuildError> {
    let effort = match env::var_os("WARPFUSE_SMALL") {
        Some(_) => pack::Effort::Most,
        None => pack::Effort::Usual,
    };
    let packed = |form| pack::archive(image, form, effort, out);
    let ptx = with_ptx.then(|| packed("ptx")).transpose()?;
    let cubin = image.assembled.then(|| packed("cubin")).transpose()?;
    let _ = writeln!(
        text,
        "    Image {{ arch: {:?}, capability: {:?}, ptx: {}, cubin: {}, kernels: &[",
        image.arch.name(),
        image.arch.compute_capability(),
        row_of(ptx.as_ref()),
        row_of(cubin.as_ref()),
    );
    for (at, entry) in image.kernels.iter().enumerate() {
        let takes = image.resources.get(at);
        let takes = takes.map(|takes| (takes.registers, takes.shared_bytes));
        let part = |archive: Option<&pack::Archive>| archive.map_or((0, 0, 0), |a| a.parts[at]);
        let (ptx, cubin) = (part(ptx.as_ref()), part(cubin.as_ref()));
        let _ = writeln!(
            text,
            "        Kernel {{ entry: {entry:?}, takes: {takes:?}, ptx: Part{ptx:?}, cubin: Part{cubin:?} }},"
        );
    }
    text.push_str("    ] },\n");
    Ok(())
}

fn row_of(archive: Option<&pack::Archive>) -> String {
    let Some(archive) = archive else {
        return "None".into();
    };
    let groups = archive.groups.iter().map(|group| format!("Group{group:?}"));
    let groups = groups.collect::<Vec<_>>().join(", ");
    format!(
        "Some(Archive::new(include_bytes!({:?}), &[{groups}]))",
        archive.content
    )
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
