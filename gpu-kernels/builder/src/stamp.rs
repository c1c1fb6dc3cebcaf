//! Remembers how a file was made, so that it is made again when that changes and only then.
//!
//! cargo alone does not suffice: an extra output is one file for all of cargo's fingerprints, so going back
//! to a compiler, or to flags, that cargo has seen before would leave the other's output in place.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::BuildError;

/// Beside `kernels.sm_90.ptx` lies `kernels.sm_90.ptx.recipe`.
pub(crate) struct Stamp {
    path: PathBuf,
    recipe: String,
}

impl Stamp {
    /// The stamp of `product` if made by `recipe`.
    pub(crate) fn new(product: &Path, recipe: String) -> Self {
        let mut name = product.file_name().unwrap_or_default().to_owned();
        name.push(".recipe");
        Stamp {
            path: product.with_file_name(name),
            recipe,
        }
    }

    /// Whether the product was last made by this recipe.
    pub(crate) fn is_current(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|recipe| recipe == self.recipe)
    }

    /// Records that the product was made by this recipe.
    pub(crate) fn save(&self) -> Result<(), BuildError> {
        fs::write(&self.path, &self.recipe).map_err(BuildError::io(&self.path, "written"))
    }
}

/// A short name for a text's content, for recipes.
pub(crate) fn fingerprint(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_recipe_is_not_current() {
        let product = std::env::temp_dir().join(format!("warpfuse-{}.ptx", std::process::id()));
        let first = Stamp::new(&product, "rustc 1.95".into());
        let second = Stamp::new(&product, "rustc 1.96".into());
        first.save().expect("writable");
        let seen = (first.is_current(), second.is_current());
        let _ = fs::remove_file(&first.path);
        assert_eq!(seen, (true, false));
        assert!(!first.is_current());
    }

    #[test]
    fn fingerprints_tell_texts_apart() {
        assert_eq!(fingerprint("a"), fingerprint("a"));
        assert_ne!(fingerprint("a"), fingerprint("b"));
    }
}
