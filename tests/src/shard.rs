//! A part of the trials, for running them side by side in several processes.

use std::num::ParseIntError;

/// Every `count`-th trial from `index` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

/// A text that names no shard.
#[derive(Debug, thiserror::Error)]
#[error(
    "WARPFUSE_TEST_SHARD: expected INDEX/COUNT with INDEX below COUNT, such as 0/4, found `{0}`"
)]
pub struct NotAShard(String);

impl Shard {
    /// All trials.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// What `WARPFUSE_TEST_SHARD` says, or everything if it is not set.
    ///
    /// # Errors
    /// [`NotAShard`] when it is set to something else, so that a typing error does not drop trials.
    pub fn from_environment() -> Result<Shard, NotAShard> {
        match std::env::var("WARPFUSE_TEST_SHARD") {
            Ok(text) => Shard::parse(&text),
            Err(_) => Ok(Shard::WHOLE),
        }
    }

    fn parse(text: &str) -> Result<Shard, NotAShard> {
        let numbers = |text: &str| -> Option<Result<(usize, usize), ParseIntError>> {
            let (index, count) = text.split_once('/')?;
            Some(index.parse().and_then(|index| Ok((index, count.parse()?))))
        };
        match numbers(text) {
            Some(Ok((index, count))) if index < count => Ok(Shard { index, count }),
            _ => Err(NotAShard(text.to_owned())),
        }
    }

    /// The trials of this part. Neighbours, which take about the same time, go to different parts.
    pub fn select<T>(self, trials: Vec<T>) -> Vec<T> {
        trials
            .into_iter()
            .skip(self.index)
            .step_by(self.count)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_is_in_one_part() {
        let parts = ["0/3", "1/3", "2/3"].map(|text| Shard::parse(text).expect("a shard"));
        let mut all = parts
            .map(|part| part.select((0..10).collect::<Vec<_>>()))
            .concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_typing_error_is_not_everything() {
        for text in ["", "1", "2/2", "a/2", "1/", "-1/2"] {
            assert!(Shard::parse(text).is_err(), "{text}");
        }
    }
}
