//! The page as HTML.

use askama::Template;

use super::number::{exact, shown};
use super::value::{Block, Report, Table, Value};
use super::words::Span;
use crate::STYLE;

/// Letters of a text in a table or a fact: names come from files, and may be as long as those.
const LONGEST: usize = 120;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
    figures: &'a str,
    version: &'a str,
}

impl Report {
    /// The page: one file that needs no other.
    pub fn to_html(&self) -> String {
        let page = Page {
            report: self,
            figures: STYLE,
            version: env!("CARGO_PKG_VERSION"),
        };
        page.render().expect("a template that writes to memory")
    }
}

impl Value {
    /// The digits or letters that are shown.
    fn shown(&self) -> String {
        match self {
            Value::Text(text) if text.chars().count() > LONGEST => {
                text.chars().take(LONGEST - 1).collect::<String>() + "…"
            }
            Value::Text(text) => text.clone(),
            Value::Number(value, unit) => shown(*value, *unit),
        }
    }

    /// All digits of a finite number.
    fn exact(&self) -> Option<String> {
        match self {
            Value::Number(value, _) if value.is_finite() => Some(exact(*value)),
            _ => None,
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Value::Number(..))
    }
}

impl Table {
    /// The head of a column; phones show it beside each value.
    fn head(&self, column: &usize) -> &str {
        self.heads.get(*column).map_or("", String::as_str)
    }

    /// Whether a column has numbers.
    fn is_numeric(&self, column: &usize) -> bool {
        let values = self.rows.iter().filter_map(|row| row.get(*column));
        values.into_iter().any(Value::is_number)
    }
}
