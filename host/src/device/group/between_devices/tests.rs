//! Sums that go on beside work, on a link that notes what it has to do.

use std::sync::{Arc, Mutex};

use super::*;
use crate::device::{Device, EmulatorOptions};
use crate::parallel::locked;

/// A link that notes what it has to do.
#[derive(Debug, Clone, Default)]
struct Noted(Arc<Mutex<Vec<String>>>);

impl Noted {
    fn note(&self, what: String) -> Result<(), GroupError> {
        locked(&self.0).push(what);
        Ok(())
    }
}

impl DeviceCommunicator for Noted {
    fn name(&self) -> String {
        "notes".to_owned()
    }

    fn sum(&self, numbers: &[Numbers]) -> Result<(), GroupError> {
        self.note(format!("add up {}", numbers[0].len))
    }

    fn sum_beside(&self, numbers: &[Numbers]) -> Result<(), GroupError> {
        self.note(format!("add up {} beside", numbers[0].len))
    }

    fn join(&self) -> Result<(), GroupError> {
        self.note("join".to_owned())
    }

    fn sum_shares(&self, _: &[Numbers], shares: &Shares) -> Result<(), GroupError> {
        self.note(format!("add up {} in shares", shares.columns()))
    }

    fn gather(&self, _: u64, _: &[usize]) -> Result<(), GroupError> {
        self.note("gather".to_owned())
    }

    fn check(&self) -> Result<(), GroupError> {
        Ok(())
    }

    fn set_limit(&self, _: Duration) {}

    fn end(&self, _: GroupError) {}
}

/// What a link has to do for work on buffers of 3 and of no numbers.
fn noted(
    work: impl FnOnce(&mut Beside<'_>, [&mut Buffer<f64>; 2]) -> Result<(), DeviceError>,
) -> (Result<(), DeviceError>, Vec<String>) {
    let (link, group) = (Noted::default(), Group::alone());
    let set = group.0.link.set(Some(Box::new(link.clone())));
    assert!(set.is_ok(), "it has no other");
    let device = Device::emulator(EmulatorOptions::default());
    let buffer = |len| device.zeros(len).expect("a buffer");
    let [mut some, mut none] = [3, 0].map(buffer);
    let done = group.beside(|beside| work(beside, [&mut some, &mut none]));
    let notes = locked(&link.0).clone();
    (done, notes)
}

#[test]
fn sums_beside_have_ended_before_what_comes_afterwards() {
    let (done, notes) = noted(|beside, [some, none]| {
        beside.sum(some)?;
        beside.sum(none)?;
        beside.sum(some)
    });
    assert_eq!(done, Ok(()));
    assert_eq!(notes, ["add up 3 beside", "add up 3 beside", "join"]);
}

#[test]
fn sums_beside_work_that_fails_are_waited_for() {
    let gone = GroupError::Failed {
        rank: 1,
        message: "no more memory".to_owned(),
    };
    let (done, notes) = noted(|beside, [some, _]| {
        beside.sum(some)?;
        Err(gone.clone().into())
    });
    assert_eq!(done, Err(gone.into()));
    assert_eq!(notes, ["add up 3 beside", "join"]);
}

#[test]
fn nothing_is_waited_for_where_nothing_was_begun() {
    let (done, notes) = noted(|beside, [_, none]| beside.sum(none));
    assert_eq!((done, notes), (Ok(()), Vec::new()));
}
