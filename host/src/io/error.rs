//! What can go wrong with a file.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::matrix::{CastError, FileChanged, WidthError};

/// Longest piece of a file that an error quotes, in bytes of the file.
const EXCERPT: usize = 40;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused, or a compressed stream is damaged.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file was cut or written to while it was read.
    #[error(transparent)]
    Changed(#[from] FileChanged),
    /// A text file breaks its format at a known place.
    #[error("{}:{line}:{column}: expected {expected}, found {found}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column in bytes, from 1.
        column: u64,
        /// What would have been right.
        expected: String,
        /// What stands there, shortened, with unprintable bytes escaped.
        found: String,
    },
    /// A binary file breaks its format at a known place.
    #[error("{}: byte {offset}: expected {expected}, found {found}", path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes from 0.
        offset: u64,
        /// What would have been right.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The data do not fit the memory that reading may take.
    #[error(
        "{}: expected data that fit {limit} bytes of memory, found a need for {needed} bytes{}; \
         raise the memory limit or use a machine with more memory",
        path.display(), reason(why)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes needed, at least.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
        /// What needs them, if that is not the data themselves.
        why: Option<String>,
    },
    /// A stored value cannot be represented in the element type requested.
    #[error("{}", path.display())]
    Cast {
        /// The file.
        path: PathBuf,
        /// Which value.
        source: CastError,
    },
    /// A table of text and numbers that cannot become features, or not those of a model.
    #[error("{}:{line}: {problem}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: super::TableProblem,
    },
    /// The features do not have the number of columns requested.
    #[error("{}", path.display())]
    Width {
        /// The file.
        path: PathBuf,
        /// What was requested and what there is.
        source: WidthError,
    },
}

fn reason(why: &Option<String>) -> String {
    why.as_deref()
        .map_or_else(String::new, |why| format!(" ({why})"))
}

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system refused.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The format has no place for such data.
    #[error("expected {expected} for a {format} file, found {found}")]
    Unsupported {
        /// The format requested.
        format: super::Format,
        /// What it can hold.
        expected: &'static str,
        /// What was given.
        found: String,
    },
}

impl ReadError {
    /// Whether the file holds no sample at all.
    pub fn is_of_empty_file(&self) -> bool {
        let nothing = ["at least one sample", "at least one line"];
        match self {
            ReadError::Syntax { expected, .. } => {
                nothing.iter().any(|start| expected.starts_with(start))
            }
            _ => false,
        }
    }

    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Io { path, source }
    }

    pub(super) fn binary(
        path: &Path,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Binary {
            path: path.to_owned(),
            offset,
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// A fault in a text before the place has been put into lines and columns, which costs a pass over
/// the text and is left to the end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fault {
    /// At `offset` bytes from the start of the text, `expected` was not found.
    Syntax {
        offset: usize,
        expected: Cow<'static, str>,
    },
    /// In the line at `offset` bytes a table has a problem.
    Table {
        offset: usize,
        problem: Box<super::TableProblem>,
    },
    /// The data need more memory than allowed.
    Memory {
        needed: u64,
        limit: u64,
        why: Option<String>,
    },
}

impl Fault {
    pub(super) fn at(offset: usize, expected: impl Into<Cow<'static, str>>) -> Self {
        let expected = expected.into();
        Self::Syntax { offset, expected }
    }

    pub(super) fn of_table(offset: usize, problem: super::TableProblem) -> Self {
        let problem = Box::new(problem);
        Self::Table { offset, problem }
    }

    /// The same fault in a text of which this one starts at `start`.
    pub(super) fn shifted(self, start: usize) -> Self {
        match self {
            Self::Syntax { offset, expected } => Self::at(start + offset, expected),
            Self::Table { offset, problem } => Self::Table {
                offset: start + offset,
                problem,
            },
            memory => memory,
        }
    }

    /// The error for users: where `text`, the whole content of `path`, goes wrong.
    pub(super) fn locate(self, path: &Path, text: &[u8]) -> ReadError {
        let path = path.to_owned();
        match self {
            Self::Syntax { offset, expected } => {
                let before = &text[..offset.min(text.len())];
                let line = 1 + memchr::memchr_iter(b'\n', before).count() as u64;
                let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
                ReadError::Syntax {
                    path,
                    line,
                    column: 1 + (before.len() - start) as u64,
                    expected: expected.into_owned(),
                    found: excerpt(&text[before.len()..]),
                }
            }
            Self::Table { offset, problem } => {
                let before = &text[..offset.min(text.len())];
                ReadError::Table {
                    path,
                    line: 1 + memchr::memchr_iter(b'\n', before).count() as u64,
                    problem: *problem,
                }
            }
            Self::Memory { needed, limit, why } => ReadError::TooLarge {
                path,
                needed,
                limit,
                why,
            },
        }
    }
}

/// What stands at the start of `rest`: a word, the end of the line, or the end of the file.
pub(super) fn excerpt(rest: &[u8]) -> String {
    let word = rest.iter().take_while(|b| !b.is_ascii_whitespace());
    let length = word.count();
    match (length, rest.first()) {
        (0, None) => "the end of the file".to_owned(),
        (0, Some(b'\n' | b'\r')) => "the end of the line".to_owned(),
        (0, Some(_)) => "a blank".to_owned(),
        (1..=EXCERPT, _) => format!("`{}`", rest[..length].escape_ascii()),
        _ => format!("`{}…`", rest[..EXCERPT].escape_ascii()),
    }
}
