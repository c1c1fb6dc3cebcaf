//! What members of a group do together, as JSON lines: a thread with a GPU each, or processes that `torchrun` started.
//!
//! ```text
//! scaling bits        [--gpus 1,2] [--kind cuda|cpu]      the same bits of products and fits for each number, and on the CPU
//! scaling sums        [--gpus 1,2]                        sums of 224 bytes to 1 GiB, by one launch and by the link's library
//! scaling products    [--gpus 1,2] [--only TEXT,…]        fused products, Newton steps, conjugate gradients, weak and strong
//! scaling vectors     [--gpus 1,2,4]                      kddb over panels: vectors replicated and spread, sums beside and after
//! scaling fits        [--gpus 1,2] [--only TEXT,…]        whole fits of logistic regression, weak and strong
//! scaling shapes      [--gpus 1,2] [--only TEXT,…]        both, of data that are made once
//! scaling cv          [--gpus 1,2] [--only TEXT,…]        cross-validations, and whether their scores are those of one
//! scaling starts      [--gpus 2] [--times 50]             start, fit, end
//! scaling criteo      --file PATH --rows N [--cols N] [--per-row N]    a cache of categories, for `warpfuse train`
//! scaling all         [--gpus 1,2]                        all of these but the last
//! ```
//!
//! `--divide N` makes every shape N times smaller; products with `--summation reproducible` repeat bit by bit; what is left after
//! `--seconds N` is not begun. Products are laid out for `--evaluations 500`, or in the form that `--form transpose|panels` names, and
//! timed with each of `--overlap planned,never,2,3`: sums beside products where the model says so, after them, in that many slices;
//! and each of `--vectors planned,replicated,spread`: those of conjugate gradients; one member alone with the first of both. Lines of more than two members have the times that the scaling model makes of one and two. Under a
//! launcher each process is a member, and `--gpus` is not needed.

mod bits;
mod criteo;
mod cv;
mod fits;
mod known;
mod members;
mod products;
mod shapes;
mod shared;
mod starts;
mod sums;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};

use members::{Kind, Members};
use warpfuse::ops::{Overlap, Preparation, Vectors};
use warpfuse::plan::fused::Summation;

/// What is wanted.
pub struct Wanted {
    /// How many members, one number after the other.
    pub sizes: Vec<usize>,
    /// Where.
    pub kind: Kind,
    /// Parts of names of cases; all where there are none.
    pub only: Vec<String>,
    /// How many times smaller shapes are.
    pub divide: usize,
    /// How often.
    pub times: usize,
    /// How products add.
    pub summation: Summation,
    /// How sums overlap with products, one way after the other.
    pub overlaps: Vec<Overlap>,
    /// How vectors of conjugate gradients are kept, one way after the other.
    pub vectors: Vec<Vectors>,
    /// Whether members also have as many rows each.
    pub weak: bool,
    /// In which form X is stored for products.
    pub preparation: Preparation,
    /// Since when.
    pub begun: Instant,
    /// For how long work is begun.
    pub seconds: f64,
    /// Whether products of shapes are timed.
    pub products: bool,
    /// Whether fits are.
    pub fits: bool,
    /// A cache to be written.
    pub file: Option<PathBuf>,
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
    /// Entries of each of its rows.
    pub per_row: usize,
}

impl Wanted {
    /// Whether a case is.
    pub fn takes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    /// Several members at most.
    pub fn most(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(1)
    }
}

/// What there is to do.
const EXPECTED: &str = "expected `bits`, `sums`, `products`, `vectors`, `fits`, `shapes`, `cv`, `starts`, `criteo` or `all`";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((what, options)) = words.split_first() else {
        bail!("{EXPECTED}");
    };
    let mut wanted = wanted(options, what == "vectors")?;
    wanted.products = what != "fits";
    wanted.fits = !matches!(what.as_str(), "products" | "vectors");
    let steps: &[fn(&Wanted, &Members) -> Result<()>] = match what.as_str() {
        "bits" => &[bits::run],
        "sums" => &[sums::run],
        "products" | "vectors" | "fits" | "shapes" => &[shared::run],
        "cv" => &[cv::run],
        "starts" => &[starts::run],
        "criteo" => return criteo::run(&wanted),
        "all" => &[bits::run, sums::run, shared::run, cv::run, starts::run],
        other => bail!("`{other}`: {EXPECTED}"),
    };
    let members = Members::begin(wanted.kind)?;
    for step in steps {
        step(&wanted, &members)?;
    }
    members.end()
}

/// What is wanted unless told otherwise; of `vectors` those of kddb over panels.
fn unless_told(of_vectors: bool) -> Wanted {
    let wanted = Wanted {
        sizes: vec![1, 2],
        kind: Kind::Cuda,
        only: Vec::new(),
        divide: 1,
        times: 50,
        summation: Summation::Free,
        overlaps: vec![Overlap::Planned],
        vectors: vec![Vectors::Planned],
        weak: !of_vectors,
        preparation: Preparation::ForObjectives { evaluations: 500 },
        begun: Instant::now(),
        seconds: f64::INFINITY,
        products: true,
        fits: true,
        file: None,
        rows: 1_000_000,
        cols: 1_000_000,
        per_row: 39,
    };
    match of_vectors {
        false => wanted,
        true => Wanted {
            only: vec!["kddb".to_owned()],
            preparation: Preparation::Panels,
            overlaps: vec![Overlap::Never, Overlap::Planned],
            vectors: vec![Vectors::Replicated, Vectors::Spread, Vectors::Planned],
            ..wanted
        },
    }
}

fn wanted(options: &[String], of_vectors: bool) -> Result<Wanted> {
    let mut wanted = unless_told(of_vectors);
    for pair in options.chunks(2) {
        let [name, value] = pair else {
            bail!("{}: expected a value after it", pair[0]);
        };
        let list = value.split(',').map(str::to_owned);
        match name.as_str() {
            "--gpus" => wanted.sizes = list.map(|n| n.parse()).collect::<Result<_, _>>()?,
            "--only" => wanted.only = list.collect(),
            "--divide" => wanted.divide = value.parse()?,
            "--times" => wanted.times = value.parse()?,
            "--seconds" => wanted.seconds = value.parse()?,
            "--file" => wanted.file = Some(PathBuf::from(value)),
            "--rows" => wanted.rows = value.parse()?,
            "--cols" => wanted.cols = value.parse()?,
            "--per-row" => wanted.per_row = value.parse()?,
            "--summation" => {
                wanted.summation = match value.as_str() {
                    "free" => Summation::Free,
                    "reproducible" => Summation::Reproducible,
                    _ => bail!("--summation {value}: expected `free` or `reproducible`"),
                }
            }
            "--overlap" => {
                wanted.overlaps = list.map(|way| overlap(&way)).collect::<Result<_>>()?
            }
            "--vectors" => wanted.vectors = list.map(|way| vectors(&way)).collect::<Result<_>>()?,
            "--evaluations" => {
                let evaluations = value.parse()?;
                wanted.preparation = Preparation::ForObjectives { evaluations };
            }
            "--form" => {
                wanted.preparation = match value.as_str() {
                    "transpose" => Preparation::Transpose,
                    "panels" => Preparation::Panels,
                    _ => bail!("--form {value}: expected `transpose` or `panels`"),
                }
            }
            "--kind" => {
                wanted.kind = match value.as_str() {
                    "cuda" => Kind::Cuda,
                    "cpu" => Kind::Cpu,
                    _ => bail!("--kind {value}: expected `cuda` or `cpu`"),
                }
            }
            _ => bail!(
                "{name}: expected --gpus, --only, --divide, --times, --seconds, --summation, --overlap, --vectors, --evaluations, --form, --kind, --file, --rows, --cols or --per-row"
            ),
        }
    }
    Ok(wanted)
}

fn vectors(way: &str) -> Result<Vectors> {
    Ok(match way {
        "planned" => Vectors::Planned,
        "replicated" => Vectors::Replicated,
        "spread" => Vectors::Spread,
        _ => bail!("--vectors {way}: expected `planned`, `replicated` or `spread`"),
    })
}

fn overlap(way: &str) -> Result<Overlap> {
    Ok(match way {
        "planned" => Overlap::Planned,
        "never" => Overlap::Never,
        "2" => Overlap::Halves,
        "3" => Overlap::Thirds,
        _ => bail!("--overlap {way}: expected `never`, `planned`, or 2 or 3 slices"),
    })
}
