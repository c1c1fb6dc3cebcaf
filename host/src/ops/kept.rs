//! What is made when it is first requested, and then kept.

use std::sync::Mutex;

use crate::parallel::locked;

/// A few values by key; a linear search, as there are no more than some dozen.
pub(super) struct Kept<K, V>(Mutex<Vec<(K, V)>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Kept(Mutex::new(Vec::new()))
    }
}

impl<K: PartialEq, V: Clone> Kept<K, V> {
    /// The value of `key`, which is made once; what fails is tried again the next time.
    pub(super) fn get<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let mut all = locked(&self.0);
        if let Some((_, value)) = all.iter().find(|(own, _)| *own == key) {
            return Ok(value.clone());
        }
        let value = make()?;
        all.push((key, value.clone()));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_a_failure_is_not_kept() {
        let kept = Kept::default();
        assert_eq!(kept.get(1, || Err("not yet")), Err("not yet"));
        assert_eq!(kept.get(1, || Ok::<_, &str>("one")), Ok("one"));
        assert_eq!(kept.get(1, || Err("asked again")), Ok("one"));
        assert_eq!(kept.get(2, || Ok::<_, &str>("two")), Ok("two"));
    }
}
