//! Where a solve stands, as named lists of numbers.

use std::collections::BTreeMap;

use safetensors::tensor::Dtype as TensorType;

use super::fault;
use crate::device::Buffer;
use crate::learning::Evaluation;
use crate::matrix::Dtype;
use crate::ops::{Number, OpError};

/// Where a solve stands, or how it ended: all that it needs to go on as if it had never stopped.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::learning) struct Record {
    pub(super) lists: BTreeMap<String, List>,
}

/// Numbers of one type, as they lie in memory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct List {
    pub(super) kind: TensorType,
    pub(super) bytes: Vec<u8>,
}

impl List {
    /// Bytes of a number.
    pub(super) fn width(kind: TensorType) -> Option<usize> {
        match kind {
            TensorType::U8 => Some(1),
            TensorType::F32 => Some(4),
            TensorType::F64 => Some(8),
            _ => None,
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / List::width(self.kind).unwrap_or(1)
    }
}

/// Numbers of bytes that may lie anywhere.
fn collected<V: bytemuck::Pod>(bytes: &[u8]) -> Vec<V> {
    let mut numbers = vec![V::zeroed(); bytes.len() / size_of::<V>()];
    let len = size_of_val(&numbers[..]);
    bytemuck::cast_slice_mut(&mut numbers).copy_from_slice(&bytes[..len]);
    numbers
}

fn kind<T: Number>() -> TensorType {
    match T::DTYPE {
        Dtype::F32 => TensorType::F32,
        Dtype::F64 => TensorType::F64,
    }
}

impl Record {
    fn put(&mut self, name: &str, kind: TensorType, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.lists.insert(name.to_owned(), List { kind, bytes });
    }

    /// Adds scalars under a name.
    pub(in crate::learning) fn numbers(&mut self, name: &str, numbers: &[f64]) {
        self.put(name, TensorType::F64, bytemuck::cast_slice(numbers));
    }

    /// Adds text under a name.
    pub(in crate::learning) fn text(&mut self, name: &str, text: &str) {
        self.put(name, TensorType::U8, text.as_bytes());
    }

    /// Adds a value as JSON under a name.
    pub(in crate::learning) fn json(&mut self, name: &str, value: &impl serde::Serialize) {
        let text = serde_json::to_string(value).unwrap_or_default();
        self.text(name, &text);
    }

    /// Adds a vector that lies on a device. Waits.
    pub(in crate::learning) fn vector<T: Number>(
        &mut self,
        name: &str,
        vector: &Buffer<T>,
    ) -> Result<(), OpError> {
        self.put(name, kind::<T>(), bytemuck::cast_slice(&vector.to_vec()?));
        Ok(())
    }

    /// Whether something has this name.
    pub(in crate::learning) fn has(&self, name: &str) -> bool {
        self.lists.contains_key(name)
    }

    fn list(&self, name: &str, kind: TensorType) -> Result<&[u8], OpError> {
        match self.lists.get(name) {
            Some(list) if list.kind == kind => Ok(&list.bytes),
            Some(list) => Err(fault::damaged(format!(
                "expected `{name}` of type {kind:?}, found {:?}",
                list.kind
            ))),
            None => Err(fault::damaged(format!(
                "expected numbers `{name}`, found none"
            ))),
        }
    }

    /// The scalars of this name, however many there are.
    pub(in crate::learning) fn list_of(&self, name: &str) -> Result<Vec<f64>, OpError> {
        let bytes = self.list(name, TensorType::F64)?;
        Ok(collected(bytes))
    }

    /// The N scalars of this name.
    pub(in crate::learning) fn array<const N: usize>(
        &self,
        name: &str,
    ) -> Result<[f64; N], OpError> {
        let numbers = self.list_of(name)?;
        let found = numbers.len();
        let array = <[f64; N]>::try_from(numbers);
        array.map_err(|_| fault::damaged(format!("expected {N} numbers `{name}`, found {found}")))
    }

    /// The text of this name.
    pub(in crate::learning) fn text_of(&self, name: &str) -> Result<&str, OpError> {
        let bytes = self.list(name, TensorType::U8)?;
        std::str::from_utf8(bytes)
            .map_err(|_| fault::damaged(format!("expected `{name}` as UTF-8")))
    }

    /// The value of this name.
    pub(in crate::learning) fn json_of<V: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<V, OpError> {
        let value = serde_json::from_str(self.text_of(name)?);
        value.map_err(|error| fault::damaged(format!("`{name}`: {error}")))
    }

    /// The figures of this name, as a list.
    pub(in crate::learning) fn evaluation(&self, name: &str) -> Result<Evaluation, OpError> {
        let found = Evaluation::of_numbers(&self.list_of(name)?);
        found.ok_or_else(|| fault::damaged(format!("expected figures `{name}`")))
    }

    /// Puts the vector of this name back where it was.
    pub(in crate::learning) fn restore<T: Number>(
        &self,
        name: &str,
        to: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let values: Vec<T> = collected(self.list(name, kind::<T>())?);
        if values.len() != to.len() {
            let (expected, found) = (to.len(), values.len());
            return Err(fault::damaged(format!(
                "expected {expected} numbers `{name}`, found {found}"
            )));
        }
        Ok(to.copy_from_slice(&values)?)
    }
}
