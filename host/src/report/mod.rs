//! Report pages: what a run found, as one file that people look at.
//!
//! A [`Report`] is a value: verdicts, sections of facts, tables and [`figures`], and the command that makes it again.
//! [`Report::to_html`] writes it as a self-contained page: no script, no font, no request; light and dark; readable on a
//! phone and on paper; the same bytes for the same value. Each number carries all its digits
//! (`<data value="…">`), the same as `--json` prints, because both come from the same structs.
//!
//! Pages are written by [`figures::page`]. Nothing is computed here. What a page shows comes from [`crate::learning`]
//! ([`Diagnostics`](crate::learning::Diagnostics), [`Inference`](crate::learning::Inference)) and [`crate::matrix`].
//!
//! | file | what |
//! |---|---|
//! | `data`, `target` | rows, columns, entries; what is learnt |
//! | `coefficients` | the largest ones, with their errors |
//! | `course` | convergence, iterations |
//! | `evaluation` | figures; `classification` and `regression` their curves |
//! | `hardware` | time and bytes of each phase beside the limit |
//! | `fit`, `applied`, `path`, `ranking`, `launches`, `rates`, `tuning` | a page each |
//!
//! ```
//! use warpfuse::report::{Fact, Report, Section};
//! let mut report = Report::new("Linear regression", "train linreg data.svm");
//! report.sections.push(Section::new("Data").facts(vec![Fact::count("rows", 442)]));
//! let html = report.to_html();
//! assert!(html.contains("<data value=\"442\">442</data>") && html == report.to_html());
//! ```

//!
//! # How to add something to a page
//!
//! 1. The number goes into a struct that `--json` prints: [`FitDetails`], [`DataFacts`], [`Hardware`], or those of
//!    [`crate::learning`]. `tests/cli/report.rs` fails for a number that a page alone has.
//! 2. The file of its section shows it, as a [`Fact`], a row of a [`Table`], or a [`figures::Figure`].
//! 3. `WARPFUSE_BLESS=1 cargo test -p warpfuse --lib report::` takes new snapshots (`golden/`). Look at them:
//!    `WARPFUSE_SCREENSHOTS=DIR cargo test -p warpfuse --test browser` has Chromium take pictures, and checks overlaps, cut text,
//!    contrast, requests and size at 400, 1,000 and 1,600 pixels in both colour schemes.

mod applied;
mod classification;
mod coefficients;
mod course;
mod data;
mod evaluation;
mod fit;
mod hardware;
mod launches;
mod path;
mod ranking;
mod rates;
mod regression;
mod target;
#[cfg(test)]
mod tests;
mod tuning;

pub use applied::AppliedPage;
pub use coefficients::{Coefficient, Coefficients};
#[cfg(feature = "cli")]
pub(crate) use course::facts as course_facts;
pub use course::{Outcome, advice};
pub use data::{DataFacts, column_name};
pub use fit::{FitDetails, FitPage};
pub use hardware::{Hardware, Solve};
pub use launches::{LaunchGroup, LaunchPage};
pub use page::{Block, Fact, Mood, Report, Section, Table, Unit, Value, Verdict};
pub use path::{CvDetails, CvPage, CvPoint, Second};
pub use ranking::{Listed, SpectralPage};
pub use rates::RatesPage;
pub use target::TargetFacts;
pub use tuning::TuningPage;
pub use warpfuse_figures as figures;
use warpfuse_figures::page::{self, number};
