//! What members of a group do together, as JSON lines: a thread with a GPU each, or processes that `torchrun` started.
//!
//! ```text
//! scaling bits        [--gpus 1,2] [--kind cuda|cpu]      the same bits of products and fits for each number, and on the CPU
//! scaling sums        [--gpus 2]                          sums of 224 bytes to 1 GiB
//! scaling products    [--gpus 1,2] [--only TEXT,…]        fused products and conjugate gradients, weak and strong
//! scaling fits        [--gpus 1,2] [--only TEXT,…]        whole fits of logistic regression, strong
//! scaling starts      [--gpus 2] [--times 50]             start, fit, end
//! scaling all         [--gpus 1,2]                        all of these
//! ```
//!
//! `--divide N` makes every shape N times smaller; products with `--summation reproducible` repeat bit by bit. Under a launcher each process is a member, and `--gpus` is not needed.

mod bits;
mod fits;
mod members;
mod products;
mod shapes;
mod starts;
mod sums;

use anyhow::{Result, bail};

use members::{Kind, Members};
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

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((what, options)) = words.split_first() else {
        bail!("expected `bits`, `sums`, `products`, `fits`, `starts` or `all`");
    };
    let wanted = wanted(options)?;
    let steps: &[fn(&Wanted, &Members) -> Result<()>] = match what.as_str() {
        "bits" => &[bits::run],
        "sums" => &[sums::run],
        "products" => &[products::run],
        "fits" => &[fits::run],
        "starts" => &[starts::run],
        "all" => &[bits::run, sums::run, products::run, fits::run, starts::run],
        other => bail!("`{other}`: expected `bits`, `sums`, `products`, `fits`, `starts` or `all`"),
    };
    let members = Members::begin(wanted.kind)?;
    for step in steps {
        step(&wanted, &members)?;
    }
    members.end()
}

fn wanted(options: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted {
        sizes: vec![1, 2],
        kind: Kind::Cuda,
        only: Vec::new(),
        divide: 1,
        times: 50,
        summation: Summation::Free,
    };
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
            "--summation" => {
                wanted.summation = match value.as_str() {
                    "free" => Summation::Free,
                    "reproducible" => Summation::Reproducible,
                    _ => bail!("--summation {value}: expected `free` or `reproducible`"),
                }
            }
            "--kind" => {
                wanted.kind = match value.as_str() {
                    "cuda" => Kind::Cuda,
                    "cpu" => Kind::Cpu,
                    _ => bail!("--kind {value}: expected `cuda` or `cpu`"),
                }
            }
            _ => bail!("{name}: expected --gpus, --only, --divide, --times, --summation or --kind"),
        }
    }
    Ok(wanted)
}
