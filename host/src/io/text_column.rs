//! One text per line: class labels as CSV files with a single column have them.

use std::path::Path;

use super::error::{Fault, ReadError};
use super::options::MemoryLimit;
use super::{npy, source};
use crate::matrix::Element;

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

/// Reads one number per row from `path`: an npy file as [`read_vector`](super::read_vector) does, or text with a number on
/// each line, which may be compressed; `-` is standard input.
///
/// # Errors
///
/// [`ReadError`] with the place where the file goes wrong: a line that is no number, or none that is finite.
///
/// ```
/// # use warpfuse::io::{read_numbers, write_vector};
/// # let folder = tempfile::tempdir()?;
/// let (text, array) = (folder.path().join("y.txt"), folder.path().join("y.npy"));
/// std::fs::write(&text, "1\n2.5e3\n")?;
/// write_vector(&array, &[1.0_f64, 2500.0])?;
/// assert_eq!(read_numbers::<f64>(&text)?, [1.0, 2500.0]);
/// assert_eq!(read_numbers::<f64>(&array)?, [1.0, 2500.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_numbers<T: Element>(path: impl AsRef<Path>) -> Result<Vec<T>, ReadError> {
    let (path, limit) = (path.as_ref(), MemoryLimit::Available.bytes());
    let content = source::open(path, limit)?;
    content.read(|content| {
        if npy::is_array(path, content) {
            return npy::vector(path, content, limit);
        }
        numbers(content).map_err(|fault| fault.locate(path, content))
    })
}

fn numbers<T: Element>(content: &[u8]) -> Result<Vec<T>, Fault> {
    let mut offset = 0;
    let mut numbers = Vec::new();
    for line in content
        .trim_ascii_end()
        .split_inclusive(|byte| *byte == b'\n')
    {
        let text = line.trim_ascii();
        let number = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<f64>().ok());
        let number = number
            .map(T::from_f64)
            .filter(|number| number.to_f64().is_finite());
        let blanks = match text.is_empty() {
            true => 0,
            false => line.len() - line.trim_ascii_start().len(),
        };
        numbers
            .push(number.ok_or_else(|| Fault::at(offset + blanks, "one finite number per line"))?);
        offset += line.len();
    }
    Ok(numbers)
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
    fn lines_are_numbers() {
        assert_eq!(numbers::<f32>(b" 1\r\n-2.5e1 \n\n"), Ok(vec![1.0, -25.0]));
        let fault = |text: &[u8]| match numbers::<f32>(text) {
            Err(Fault::Syntax { offset, .. }) => Some(offset),
            _ => None,
        };
        for (text, at) in [
            ("1\n 2,5", 3),
            ("1\n\n2", 2),
            ("nan", 0),
            ("0\n1e60", 2),
            ("1 2", 0),
        ] {
            assert_eq!(fault(text.as_bytes()), Some(at), "{text}");
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
