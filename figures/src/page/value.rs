//! Reports as plain values.

use super::number::Unit;
use crate::Figure;

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The head.
    pub title: String,
    /// What the page is about, in one line.
    pub subtitle: String,
    /// What to know first.
    pub verdicts: Vec<Verdict>,
    /// The rest.
    pub sections: Vec<Section>,
    /// The command that makes the page again.
    pub command: String,
}

/// Something to know first.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether it is good.
    pub mood: Mood,
    /// In one line.
    pub title: String,
    /// What it means, and what to do.
    pub text: String,
}

/// Whether something is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// As it should be.
    Good,
    /// Worth a look.
    Look,
    /// Not as it should be.
    Bad,
    /// Neither.
    Plain,
}

impl Mood {
    /// Its class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Mood::Good => "good",
            Mood::Look => "look",
            Mood::Bad => "bad",
            Mood::Plain => "plain",
        }
    }

    /// A sign for those who see no colour.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Mood::Good => "✓",
            Mood::Look => "!",
            Mood::Bad => "✗",
            Mood::Plain => "·",
        }
    }
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its head.
    pub title: String,
    /// What it shows, one after the other.
    pub blocks: Vec<Block>,
}

/// Something that a section shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Names and values.
    Facts(Vec<Fact>),
    /// Rows and columns.
    Table(Table),
    /// Figures beside each other.
    Figures(Vec<Figure>),
    /// A paragraph.
    Note(String),
    /// Lines that belong together.
    List(Vec<String>),
}

/// A name and a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// A text or a number.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number, of which the page shows some digits and keeps all.
    Number(f64, Unit),
}

/// Rows and columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What it is.
    pub caption: String,
    /// Heads of the columns.
    pub heads: Vec<String>,
    /// A value for each column.
    pub rows: Vec<Vec<Value>>,
}

impl Report {
    /// A page without sections.
    pub fn new(title: impl Into<String>, command: impl Into<String>) -> Report {
        Report {
            title: title.into(),
            subtitle: String::new(),
            verdicts: Vec::new(),
            sections: Vec::new(),
            command: command.into(),
        }
    }

    /// All figures, in their order. Their names differ, so that each can be a file.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.flat_map(|block| match block {
            Block::Figures(figures) => figures.as_slice(),
            _ => &[],
        })
    }

    /// Says something first.
    pub fn verdict(&mut self, mood: Mood, title: impl Into<String>, text: impl Into<String>) {
        self.verdicts.push(Verdict {
            mood,
            title: title.into(),
            text: text.into(),
        });
    }
}

impl Section {
    /// A section that shows nothing yet.
    pub fn new(title: impl Into<String>) -> Section {
        Section {
            title: title.into(),
            blocks: Vec::new(),
        }
    }

    /// With facts.
    #[must_use]
    pub fn facts(mut self, facts: Vec<Fact>) -> Section {
        self.blocks.push(Block::Facts(facts));
        self
    }

    /// With a table; without rows it is left out.
    #[must_use]
    pub fn table(mut self, table: Table) -> Section {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
        self
    }

    /// With figures; without any there is no block.
    #[must_use]
    pub fn figures(mut self, figures: Vec<Figure>) -> Section {
        if !figures.is_empty() {
            self.blocks.push(Block::Figures(figures));
        }
        self
    }

    /// With a paragraph.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Section {
        self.blocks.push(Block::Note(text.into()));
        self
    }

    /// With a list; without lines it is left out.
    #[must_use]
    pub fn list(mut self, lines: Vec<String>) -> Section {
        if !lines.is_empty() {
            self.blocks.push(Block::List(lines));
        }
        self
    }
}

impl Fact {
    /// A text.
    pub fn text(name: impl Into<String>, value: impl Into<String>) -> Fact {
        Fact {
            name: name.into(),
            value: Value::Text(value.into()),
        }
    }

    /// A number.
    pub fn number(name: impl Into<String>, value: f64, unit: Unit) -> Fact {
        Fact {
            name: name.into(),
            value: Value::Number(value, unit),
        }
    }

    /// How many.
    pub fn count(name: impl Into<String>, value: u64) -> Fact {
        Fact::number(name, value as f64, Unit::Count)
    }
}

impl Table {
    /// A table without rows.
    pub fn new<H: Into<String>>(
        caption: impl Into<String>,
        heads: impl IntoIterator<Item = H>,
    ) -> Table {
        Table {
            caption: caption.into(),
            heads: heads.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}
