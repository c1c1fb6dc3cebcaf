//! What a caller of the builder can choose.

/// Whether the PTX is assembled into cubins, which also yields the resource figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assembly {
    /// Not having ptxas is an error.
    Required,
    /// Without ptxas there is PTX only; the driver compiles it when it is loaded.
    WhenPossible,
    /// Only PTX.
    Skipped,
}

/// Whether the PTX and cubins say which source line an instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineInfo {
    /// For profilers and compute-sanitizer; doubles the size.
    Kept,
    /// For what is embedded.
    Omitted,
}

/// A kernel that may use local memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemption {
    /// The kernel's name; a `*` at the end stands for any ending.
    pub entry: String,
    /// Why it may.
    pub reason: String,
}

impl Exemption {
    pub(crate) fn covers(&self, entry: &str) -> bool {
        match self.entry.strip_suffix('*') {
            Some(start) => entry.starts_with(start),
            None => self.entry == entry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exempt(entry: &str) -> Exemption {
        Exemption {
            entry: entry.into(),
            reason: "measured: no slower".into(),
        }
    }

    #[test]
    fn a_name_without_a_star_covers_itself_only() {
        assert!(exempt("a").covers("a"));
        assert!(!exempt("a").covers("ab"));
        assert!(exempt("a*").covers("ab"));
    }
}
