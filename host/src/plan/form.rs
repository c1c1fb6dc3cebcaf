//! The forms in which a device stores a sparse X: the closed list, with what is known of each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// In which forms a sparse X is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stored {
    /// Compressed sparse rows alone, as it came.
    #[default]
    Rows,
    /// Panels of rows and of columns besides: see [`gpu_kernels::fused::panels`].
    RowsAndPanels,
    /// Rows with their most frequent columns kept apart besides: see [`gpu_kernels::fused::hot`].
    RowsAndHotColumns,
    /// Rows of the transpose besides: see [`gpu_kernels::fused::balanced`].
    RowsAndTranspose,
    /// Blocks of rows besides, by rows and by columns in slices: see [`crate::cpu::sell`].
    RowsAndSell,
}

/// Whose products read a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// Kernels, on a GPU and on the emulator.
    Gpu,
    /// The bodies of the CPU device.
    Cpu,
}

/// Who makes the further forms of rows that are on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// The host, from its own copy of X or one that comes back.
    #[default]
    Host,
    /// The device where the rows lie, as far as it has kernels for it; the host makes the others.
    Device,
}

/// Nanoseconds of a device to make a form: launches, sorting, and what the host works out between them.
///
/// Milliseconds of an H100, rows there already, the last of four (`system by-form`; those of kddb and url in full `system forms`), and
/// what this says:
///
/// | entries, columns | transpose | panels | hot columns | 16 processors |
/// |---|--:|--:|--:|--:|
/// | 1.5 million, 47,236 | 0.75, 0.86 | 7.1, 7.7 | 10, 18 | 12, 84, 31 |
/// | 7.5 million, 47,236 | 2.2, 2.3 | 11, 11 | 27, 20 | 64, 246, 80 |
/// | 45 million, 47,236 | 11, 11 | 30, 34 | 38, 28 | 391, 790, 353 |
/// | 42 million, 3,231,961 | 8.9, 10 | 88, 86 | 35, 30 | 789, 966, 476 |
/// | 34 million, 29,890,095 | 10, 8.7 | 595, 534 | 59, 55 | 718, 1,530, 1,085 |
/// | 566 million, 29,890,095 | | | 148, 173 | 5,200 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceMaking {
    /// Whatever the form is of.
    pub fixed_ns: f64,
    /// Besides, for each entry.
    pub ns_per_entry: f64,
    /// And for each column.
    pub ns_per_column: f64,
}

/// What is known of a form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FormFacts {
    /// The form.
    pub stored: Stored,
    /// Whose products read it. Both read the rows.
    pub processor: Processor,
    /// How it is printed.
    pub name: &'static str,
    /// Nanoseconds of the host for each entry, all copies made and uploaded, of a form for the CPU those of one of its
    /// processors; 0 for the rows, which are there anyway. 80
    /// million entries took 16 processors beside an H200 2.2 to 4.0 s for panels and 2.6 to 4.1 s for hot columns, when
    /// one thread put the parts of all of them together.
    pub ns_per_entry: f64,
    /// The same of a device, where it has kernels for it.
    pub device: Option<DeviceMaking>,
    /// Whether products read the rows besides; where they do not, the device gets them when something else does.
    pub reads_rows: bool,
}

/// All forms, in the order of [`Stored`].
pub const FORMS: [FormFacts; 5] = [
    FormFacts {
        stored: Stored::Rows,
        processor: Processor::Gpu,
        name: "rows",
        ns_per_entry: 0.0,
        device: None,
        reads_rows: true,
    },
    FormFacts {
        stored: Stored::RowsAndPanels,
        processor: Processor::Gpu,
        name: "rows and panels",
        ns_per_entry: 38.0,
        device: Some(DeviceMaking {
            fixed_ns: 6e6,
            ns_per_entry: 0.6,
            ns_per_column: 17.0,
        }),
        reads_rows: false,
    },
    FormFacts {
        stored: Stored::RowsAndHotColumns,
        processor: Processor::Gpu,
        name: "rows and hot columns",
        ns_per_entry: 42.0,
        device: Some(DeviceMaking {
            // Some thirty launches.
            fixed_ns: 18e6,
            ns_per_entry: 0.22,
            ns_per_column: 1.0,
        }),
        reads_rows: false,
    },
    FormFacts {
        stored: Stored::RowsAndTranspose,
        processor: Processor::Gpu,
        name: "rows and transpose",
        ns_per_entry: 20.0,
        device: Some(DeviceMaking {
            fixed_ns: 5e5,
            ns_per_entry: 0.24,
            ns_per_column: 0.0,
        }),
        reads_rows: true,
    },
    FormFacts {
        stored: Stored::RowsAndSell,
        processor: Processor::Cpu,
        name: "rows and SELL",
        ns_per_entry: 25.0,
        device: None,
        reads_rows: false,
    },
];

impl Stored {
    /// What is known of the form.
    ///
    /// ```
    /// use warpfuse::plan::fused::Stored;
    /// assert_eq!(Stored::RowsAndTranspose.facts().name, "rows and transpose");
    /// ```
    pub const fn facts(self) -> &'static FormFacts {
        &FORMS[self as usize]
    }

    /// Nanoseconds to make the form of this many entries in this many columns.
    ///
    /// ```
    /// use warpfuse::plan::fused::{Maker, Stored};
    /// let ns = |maker| Stored::RowsAndHotColumns.making_ns((1_000_000_000, 1_000_000), maker);
    /// assert!(ns(Maker::Device) < ns(Maker::Host) / 100);
    /// let ns = |maker| Stored::RowsAndSell.making_ns((1_000_000_000, 1_000_000), maker);
    /// assert_eq!(ns(Maker::Device), ns(Maker::Host));
    /// ```
    pub fn making_ns(self, (entries, columns): (u64, u64), maker: Maker) -> u64 {
        let facts = self.facts();
        let on_device = facts.device.filter(|_| maker == Maker::Device);
        let ns = match on_device {
            Some(device) => {
                let of_columns = device.ns_per_column * columns as f64;
                device.fixed_ns + device.ns_per_entry * entries as f64 + of_columns
            }
            None => facts.ns_per_entry * entries as f64,
        };
        ns as u64
    }

    /// Whether this is a form besides the rows, which has to be made.
    pub const fn is_further(self) -> bool {
        !matches!(self, Stored::Rows)
    }

    /// All forms besides the rows that products of a processor read.
    ///
    /// ```
    /// use warpfuse::plan::fused::{Processor, Stored};
    /// assert!(Stored::further(Processor::Gpu).any(|stored| stored == Stored::RowsAndPanels));
    /// ```
    pub fn further(processor: Processor) -> impl Iterator<Item = Stored> {
        let own = FORMS.iter();
        let own =
            own.filter(move |facts| facts.processor == processor && facts.stored.is_further());
        own.map(|facts| facts.stored)
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_its_own_facts() {
        for facts in &FORMS {
            assert_eq!(facts.stored.facts(), facts);
            assert_eq!(facts.stored.is_further(), facts.ns_per_entry > 0.0);
        }
        let of = |processor| Stored::further(processor).count();
        assert_eq!(of(Processor::Gpu) + of(Processor::Cpu), FORMS.len() - 1);
    }
}
