//! Figures and pages as plain values, and the SVG and HTML that show them.
//!
//! A [`Figure`] has two axes and marks: lines, points, steps, bars, cells, bands, error bars, rules. [`Figure::to_svg`]
//! writes it as a file of its own, [`Figure::to_inline_svg`] as a part of a page whose style sheet has [`STYLE`].
//! The text depends on the values alone: no clock, no random number, no font is looked at. Colours follow the reader's
//! colour scheme, can be distinguished without seeing red and green, and have the contrast that WCAG AA requires.
//!
//! Numbers that are not finite are left out; a figure without any says so.
//!
//! ```
//! use warpfuse_figures::{Axis, Figure, Tone};
//! let figure = Figure::new("loss", "Loss by iteration")
//!     .x(Axis::linear("iteration"))
//!     .y(Axis::log("loss"))
//!     .line("training", Tone::First, vec![(0.0, 1.0), (1.0, 0.1), (2.0, 0.02)]);
//! let svg = figure.to_svg();
//! assert!(svg.starts_with("<svg ") && svg == figure.to_svg());
//! ```
//!
//! | file | what |
//! |---|---|
//! | `figure` | figures, axes and marks as values |
//! | `scale` | values to places, and ticks |
//! | `text` | widths of text, numbers as labels |
//! | `layout` | where the parts of a figure go |
//! | `draw` | marks as SVG |
//! | `svg` | elements, attributes, escapes |
//! | `sheet` | several figures in one file |
//! | `style` | colours |
//! | `page` | reports with figures, tables and facts, as HTML |

mod draw;
mod figure;
mod layout;
pub mod page;
mod scale;
mod sheet;
mod style;
mod svg;
mod text;

pub use figure::{Axis, Bar, Cell, Figure, Interval, Kind, Mark, Shape, Tone};
pub use sheet::Sheet;
pub use style::{DARK, LIGHT, Palette, STYLE};
pub use svg::escape;
