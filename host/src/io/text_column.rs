//! One text per line: class labels as CSV files with a single column have them.

use std::path::Path;

use super::error::{Fault, ReadError};
use super::options::MemoryLimit;
use super::source;

/// Reads one text per line from `path`, which may be compressed; `-` is standard input.
///
/// Blanks around a text are dropped, and so are the quotes of a quoted one (`"a ""b"""` is `a "b"`). The file
/// must be UTF-8 and have no empty lines but at its end.
///
/// # Errors
///
/// [`ReadError`] with the place where the file goes wrong.
///
/// ```
/// # use warpfuse::io::read_text_column;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("labels.txt");
/// std::fs::write(&path, "ham\r\n\"spam, sort of\"\nham\n")?;
/// assert_eq!(read_text_column(&path)?, ["ham", "spam, sort of", "ham"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_text_column(path: impl AsRef<Path>) -> Result<Vec<String>, ReadError> {
    let path = path.as_ref();
    let content = source::open(path, MemoryLimit::Available.bytes())?;
    content.read(|content| parse(content).map_err(|fault| fault.locate(path, content)))
}

fn parse(content: &[u8]) -> Result<Vec<String>, Fault> {
    let text = std::str::from_utf8(content)
        .map_err(|error| Fault::at(error.valid_up_to(), "text in UTF-8"))?;
    let trimmed = text.trim_end();
    let mut column = Vec::new();
    let mut offset = 0;
    for line in trimmed.split_inclusive('\n') {
        column.push(field(line).ok_or_else(|| {
            let expected = "one text per line, in quotes if it holds quotes";
            Fault::at(offset + line.len() - line.trim_start().len(), expected)
        })?);
        offset += line.len();
    }
    Ok(column)
}

/// The text of a line; `None` where there is none, or quotes do not match.
fn field(line: &str) -> Option<String> {
    let line = line.trim();
    let Some(inner) = line.strip_prefix('"') else {
        return (!line.is_empty() && !line.contains('"')).then(|| line.to_owned());
    };
    let inner = inner.strip_suffix('"')?;
    let unquoted = inner.replace("\"\"", "\u{0}");
    (!unquoted.contains('"')).then(|| unquoted.replace('\u{0}', "\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &[u8]) -> Option<usize> {
        match parse(text) {
            Err(Fault::Syntax { offset, .. }) => Some(offset),
            _ => None,
        }
    }

    #[test]
    fn lines_are_texts() {
        assert_eq!(
            parse(b"a\n b c \r\n3\n\n"),
            Ok(["a", "b c", "3"].map(String::from).to_vec())
        );
        assert_eq!(parse(b"\"\"\"x\"\"\""), Ok(vec!["\"x\"".into()]));
        assert_eq!(parse(b""), Ok(Vec::new()));
    }

    #[test]
    fn faults_have_a_place() {
        assert_eq!(fault(b"a\n\nb\n"), Some(3));
        assert_eq!(fault(b"a\n\"b\n"), Some(2));
        assert_eq!(fault(b"a\nb\"c\"\n"), Some(2));
        assert_eq!(fault(b"a\n\xff\n"), Some(2));
    }
}
