//! Reading words and numbers off one line.

use super::error::Fault;
use super::scan::is_blank;
use crate::matrix::Element;

/// A place in a line. Faults it returns count from the start of the line.
pub(super) struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    /// Bytes from the start of the line.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// What is left of the line.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.line[self.at..]
    }

    /// The next byte, if any.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// Moves `bytes` ahead, at most to the end of the line.
    #[inline]
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at = self.line.len().min(self.at + bytes);
    }

    /// Moves to the next byte that is not blank and returns it.
    #[inline]
    pub(super) fn next_word(&mut self) -> Option<u8> {
        while let Some(byte) = self.peek() {
            if !is_blank(byte) {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes the word at the cursor: everything up to the next blank.
    pub(super) fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let length = rest.iter().position(|&b| is_blank(b));
        let word = &rest[..length.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Takes `byte` if it is next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Takes a whole number of at most `max`; without digits `None`, the cursor unmoved.
    #[inline]
    pub(super) fn unsigned(&mut self, max: u64) -> Option<Result<u64, TooLarge>> {
        let start = self.at;
        let mut number = 0_u64;
        while let Some(digit) = self
            .peek()
            .map(|b| b.wrapping_sub(b'0'))
            .filter(|d| *d < 10)
        {
            number = number.saturating_mul(10).saturating_add(u64::from(digit));
            self.at += 1;
        }
        if self.at == start {
            return None;
        }
        Some(if number <= max {
            Ok(number)
        } else {
            Err(TooLarge)
        })
    }

    /// Takes a finite decimal number; `what` says what it is for.
    #[inline]
    pub(super) fn finite<T: Element>(&mut self, what: &'static str) -> Result<T, Fault> {
        let start = self.at;
        let Some((value, length)) = T::parse_decimal(self.rest()) else {
            return Err(Fault::at(start, what));
        };
        self.at += length;
        if !value.is_finite() {
            let expected = format!("a finite number that fits {}", T::DTYPE);
            return Err(Fault::at(start, expected));
        }
        Ok(value)
    }
}

/// A whole number beyond what its place allows.
pub(super) struct TooLarge;
