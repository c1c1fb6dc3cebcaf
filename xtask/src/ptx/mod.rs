//! `build-ptx`: kernels in Rust to checked PTX and cubins, through `gpu-kernels-builder`.

mod alone;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use gpu_kernels_builder::{
    Arch, Assembly, Exemption, Install, LineInfo, PtxBuilder, PtxOutput, Toolchain, Unit,
};
use serde_json::json;

use crate::workspace;

/// Kernels that may use local memory, each with the reason.
const MAY_USE_LOCAL_MEMORY: &[(&str, &str)] = &[
    (
        "balanced_walk_at_once_f32",
        "one register too few for six blocks on an SM of 8.0, none on one of 9.0",
    ),
    ("cg_move_f32", CG_MOVE),
    ("dense_fused_f32_ring_k24_s44", RINGS),
    ("dense_fused_f32_ring_k28_s40", RINGS),
    ("dense_fused_f32_ring_k32_s40", RINGS),
    ("dense_fused_f64_ring_k28_s40", RINGS),
    ("dense_fused_f64_ring_k32_s40", RINGS),
    ("dense_many_fused_f64_vs4_l4_b8_r2", EIGHT_SIDES),
    ("fixed_even_fused_frequent_f32_vs32", FIXED_EVEN),
    ("fixed_even_fused_frequent_f32_vs4", FIXED_EVEN),
    ("fixed_even_fused_frequent_f32_vs8", FIXED_EVEN),
    ("fixed_even_transposed_frequent_f32", FIXED_EVEN),
    ("hot_walk_fused_f32_f64", HOT),
    ("hot_walk_fused_f64", HOT),
    ("qr_dressed_f32_64_8", QR_DRESSED),
    ("qr_gram_f32_rows_dressed", QR_GRAM),
    ("qr_merge_f32", QR_UPDATE),
    ("qr_panel_f64_32_32_16", QR_PANELS),
    ("qr_panel_f64_4_32_16", QR_PANELS),
    ("qr_rows_f64", QR_ROWS),
    ("qr_shared_rows_f64", QR_ROWS),
    ("qr_tensor_f32_16", QR_TENSOR),
    ("qr_tensor_f32_8", QR_TENSOR),
    ("qr_tensor_f64_16", QR_WIDE),
    ("qr_tensor_f64_8", QR_WIDE),
    ("qr_update_f32_16_128", QR_UPDATE),
    ("qr_update_f32_8_256", QR_UPDATE),
    ("softmax_sparse_global_f32_vs32_q4", SOFTMAX),
    ("softmax_sparse_global_f64_vs32_q4", SOFTMAX),
    ("softmax_sparse_shared_f32_vs32_q4", SOFTMAX),
    ("softmax_sparse_shared_f64_vs32_q4", SOFTMAX),
    ("tiles_many_fused_f32_b4", TILES),
];

/// On 9.0, where they are measured, they spill nothing.
const RINGS: &str = "24 packs of y and w and more leave compute capability 8.0 up to 30 words short of 255 registers";
const FIXED_EVEN: &str = "2 to 5 words of a thread on compute capability 8.0, where 896 threads leave 72 registers each; none on 9.0";
const CG_MOVE: &str = "four words on 9.0 and twenty on 8.0, so that two blocks share an SM: 37 instead of 50 µs of an H200 for 3,000,000 elements";
const HOT: &str = "one word on compute capability 8.0, none on 9.0: blocks of 768 threads";

const QR_WIDE: &str = "32 elements of C, 8 sums and 12 factors of products, of two registers each, for each of 128 registers: 45 words that \
    wait from step to step";
const QR_ROWS: &str = "32 sums and 32 elements of factors of two registers each, and another order of half of these for the tensor core: \
    six words of 255 registers";
const QR_TENSOR: &str = "64 elements of C, 32 sums and 24 factors of products for each of 128 registers: what spills are numbers \
    from which the next copies begin, read once for each panel, and reading C again would cost a third more";
const QR_DRESSED: &str = "three words, so that two blocks share an SM as those of panels do: 64 elements of a column for each of \
    128 registers, and where the block's next rows are";
const QR_GRAM: &str = "two words on 9.0 since roots and reciprocals have no branches: R of 10,000,000 x 32 takes 446 µs, 93 % of a \
    plain read, as before (434 to 445)";
const QR_UPDATE: &str =
    "two to seven words on compute capability 8.0, none on 9.0: 64 sums and 24 factors of products";
const QR_PANELS: &str = "one or two words on compute capability 8.0, none on 9.0: blocks of 512 threads, whose columns take \
    64 of 128 registers; fewer warps would not hold the rows";

/// Three numbers of a thread, where one row at a time, which spills none, takes twice as long.
const EIGHT_SIDES: &str = "two rows of eight sides take 255 registers and 12 bytes";
const SOFTMAX: &str = "33 to 128 classes: each thread copies its arguments, some 500 bytes, to local memory once and reads \
    them there; nothing is spilled. That this costs less than reading X twice for every class is assumed, not measured";

const TILES: &str = "three words of the walk over tiles on 9.0, none on 8.0: blocks of fewer threads, which leave more \
    registers, spill more in its neighbours";

/// The arguments of `build-ptx`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Architectures, separated by commas.
    #[arg(long, value_name = "LIST", default_value = "sm_80,sm_90")]
    arch: String,
    /// Only the kernels of these families, separated by commas: quick, for a kernel author. They go to a folder
    /// of their own, and the library embeds all families or those that WARPFUSE_FAMILIES names.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["out", "compare_alone"])]
    family: Vec<String>,
    /// Also copy PTX, cubins and resource figures into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Install and fetch nothing; say instead what to do.
    #[arg(long)]
    no_install: bool,
    /// Keep source lines in PTX and cubins, for profilers; doubles their size.
    #[arg(long)]
    line_info: bool,
    /// Compile the kernel crate alone too, for the last architecture: the bytes must be the same.
    #[arg(long)]
    compare_alone: bool,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// Builds, checks and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    let install = if arguments.no_install {
        Install::Forbidden
    } else {
        Install::Allowed
    };
    let lines = if arguments.line_info {
        LineInfo::Kept
    } else {
        LineInfo::Omitted
    };
    let archs = Arch::parse_list(&arguments.arch)?;
    let output = if arguments.family.is_empty() {
        build(&archs, install, lines)?
    } else {
        let families: Vec<&str> = arguments.family.iter().map(String::as_str).collect();
        build_families(&archs, &families, install, lines)?
    };
    if arguments.compare_alone {
        alone::check(&output, lines, units(&[]))?;
        eprintln!("the kernel crate alone gives the same PTX, byte by byte");
    }
    if let Some(folder) = &arguments.out {
        copy(&output, folder)?;
    }
    if arguments.json {
        println!("{:#}", as_json(&output));
    } else {
        print!("{}", table::text(&output));
    }
    Ok(())
}

/// Sees to it that the compiler is there, and the assembler if that is wanted; every cargo command can make the PTX then.
pub fn obtain_tools(install: Install, assembly: Assembly) -> Result<Toolchain> {
    let (toolchain, _) = builder(&Arch::DEFAULT, install, LineInfo::Omitted)
        .assembly(assembly)
        .obtain_tools()
        .context("obtaining the tools for PTX")?;
    Ok(toolchain)
}

/// Compiles, checks and assembles every kernel that the table of variants names.
pub fn build(archs: &[Arch], install: Install, lines: LineInfo) -> Result<PtxOutput> {
    let builder = builder(archs, install, lines)
        .target_dir(workspace::ptx_dir())
        .seed_dir(workspace::ptx_dir().join("some"))
        .units(units(&[]));
    checked(builder)
}

/// The same for some families, beside the PTX of all.
fn build_families(
    archs: &[Arch],
    families: &[&str],
    install: Install,
    lines: LineInfo,
) -> Result<PtxOutput> {
    for family in families {
        if units(&[family]).is_empty() {
            bail!(
                "there is no family `{family}`: the folders and files of gpu-kernels/src name them"
            );
        }
    }
    let builder = builder(archs, install, lines)
        .target_dir(workspace::ptx_dir().join("some"))
        .units(units(families));
    checked(builder)
}

/// The units of some families, or of all.
fn units(families: &[&str]) -> Vec<Unit> {
    let wanted = |family| families.is_empty() || families.contains(&family);
    let kernels = gpu_kernels::families::all().filter(|known| wanted(known.family));
    let pairs: Vec<_> = kernels.map(|known| (known.unit, known.kernel)).collect();
    Unit::collect(pairs)
}

fn builder(archs: &[Arch], install: Install, lines: LineInfo) -> PtxBuilder {
    PtxBuilder::new(workspace::root().join("gpu-kernels"))
        .archs(archs.iter().copied())
        .tools_dir(workspace::tools_dir())
        .core_dir(workspace::ptx_dir().join("core"))
        .install(install)
        .line_info(lines)
        .assembly(Assembly::Required)
}

/// Builds; only exempted kernels may use local memory.
fn checked(builder: PtxBuilder) -> Result<PtxOutput> {
    let output = builder.build().context("building the PTX")?;
    output.deny_local_memory(&exemptions())?;
    Ok(output)
}

/// Compiles the families whose code asks for the architecture (`gpu_at_least`) for the oldest one.
///
/// # Errors
/// As [`build`].
pub fn check_older(install: Install) -> Result<()> {
    const BY_ARCH: [&str; 1] = ["matmul"];
    build_families(&[Arch::Sm80], &BY_ARCH, install, LineInfo::Omitted).map(|_| ())
}

/// Checks that nothing else in the workspace has a part in the PTX: with two families, as what could get in would
/// come through flags or features, which all families share. `build-ptx --compare-alone` takes a minute more for all.
///
/// # Errors
/// When it differs from that of the kernel crate alone.
pub fn compare_alone(install: Install) -> Result<()> {
    const COMPARED: [&str; 2] = ["stream", "vector"];
    let output = build_families(&[Arch::Sm90], &COMPARED, install, LineInfo::Omitted)?;
    alone::check(&output, LineInfo::Omitted, units(&COMPARED))?;
    eprintln!("the kernel crate alone gives the same PTX, byte by byte");
    Ok(())
}

/// One line per architecture, for chores that build the PTX on the way.
pub fn summarise(output: &PtxOutput) {
    for image in &output.images {
        eprintln!("{}: {} kernels", image.arch, image.kernels.len());
    }
}

/// Copies every image into a folder.
pub fn copy(output: &PtxOutput, folder: &Path) -> Result<()> {
    for image in &output.images {
        image.copy_to(folder)?;
    }
    Ok(())
}

fn exemptions() -> Vec<Exemption> {
    MAY_USE_LOCAL_MEMORY
        .iter()
        .map(|&(entry, reason)| Exemption {
            entry: entry.into(),
            reason: reason.into(),
        })
        .collect()
}

fn as_json(output: &PtxOutput) -> serde_json::Value {
    json!({
        "compiler": output.toolchain.version,
        "rustc": output.toolchain.rustc,
        "ptxas": output.ptxas.as_ref().map(|ptxas| &ptxas.path),
        "images": output.images,
    })
}
