//! What members tell each other besides numbers.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Group, GroupError};

impl Group {
    /// What all members have of something, in the order of their ranks; as JSON on its way.
    ///
    /// ```
    /// use warpfuse::device::group::run_threads;
    /// let names = run_threads(2, |group| group.all_gather_each(&format!("member {}", group.rank())));
    /// assert_eq!(names[0].as_deref(), Ok(&["member 0".to_owned(), "member 1".to_owned()][..]));
    /// ```
    ///
    /// # Errors
    /// See the [module](super); [`GroupError::Engine`] for what JSON cannot say.
    pub fn all_gather_each<V: Serialize + DeserializeOwned>(
        &self,
        own: &V,
    ) -> Result<Vec<V>, GroupError> {
        let failed = |error: serde_json::Error| GroupError::Engine {
            operation: "writing what members tell each other",
            message: error.to_string(),
        };
        let mut line = serde_json::to_vec(own).map_err(failed)?;
        line.push(b'\n');
        let all = self.all_gather(&line)?;
        let lines = all.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).map_err(failed))
            .collect()
    }
}
