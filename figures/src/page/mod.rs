//! Pages: verdicts, sections of facts, tables and figures, as values, and the HTML that shows them.
//!
//! [`Report::to_html`] writes a self-contained file: no script, no font, no request; light and dark; readable on a phone and
//! on paper; the same bytes for the same value. Each number carries all its digits (`<data value="…">`).
//!
//! | file | what |
//! |---|---|
//! | `value` | reports as values |
//! | `html` | the template |
//! | `number` | units, digits |
//! | `words` | options and code in sentences |

mod html;
pub mod number;
mod value;
mod words;

pub use number::Unit;
pub use value::{Block, Fact, Mood, Report, Section, Table, Value, Verdict};
