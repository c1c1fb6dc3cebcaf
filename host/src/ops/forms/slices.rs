//! w in slices of columns, each of which is added up over the members of a group while the next is computed.
//!
//! Over a form by columns w is complete slice by slice. A form whose copy of X by columns was made in slices launches them one by
//! one ([`Site::in_slices`]), and each one's sum begins as soon as it is there. All members have the same slices and begin the
//! same sums in the same order, whatever forms they have: one that computes w as a whole adds it up in slices afterwards.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::site::Site;
use crate::device::Buffer;
use crate::device::group::Group;
use crate::ops::{Number, OpError};

/// The slices on which members have agreed.
pub(in crate::ops) struct Slices {
    group: Group,
    /// In the order in which they are computed.
    columns: Vec<Range<usize>>,
    /// Microseconds of a sum that this is expected to save.
    saves_us: f64,
    /// Whether whoever computes w is to add it up, and has not yet.
    is_wanted: AtomicBool,
}

impl Slices {
    pub(in crate::ops) fn new(group: &Group, columns: Vec<Range<usize>>) -> Slices {
        Slices {
            group: group.clone(),
            columns,
            saves_us: 0.0,
            is_wanted: AtomicBool::new(false),
        }
    }

    /// Slices that are expected to save this many microseconds of a sum.
    pub(in crate::ops) fn saving(self, saves_us: f64) -> Slices {
        Slices { saves_us, ..self }
    }

    pub(in crate::ops) fn saves_us(&self) -> f64 {
        self.saves_us
    }

    pub(in crate::ops) fn columns(&self) -> &[Range<usize>] {
        &self.columns
    }

    /// Has `compute` compute this member's part of w, of n elements, and adds up those of all.
    pub(in crate::ops) fn add_up<T: Number>(
        &self,
        w: &mut Buffer<T>,
        compute: impl FnOnce(&mut Buffer<T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.is_wanted.store(true, Ordering::Relaxed);
        let computed = compute(w);
        let is_left = self.takes();
        computed?;
        match is_left {
            true => self.each(w, |_, _| Ok(())),
            false => Ok(()),
        }
    }

    /// Whether a sum is wanted, which the caller sees to then.
    fn takes(&self) -> bool {
        self.is_wanted.swap(false, Ordering::Relaxed)
    }

    /// Has `compute` compute each slice, and adds it up meanwhile.
    fn each<T: Number>(
        &self,
        w: &mut Buffer<T>,
        mut compute: impl FnMut(usize, &mut Buffer<T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.group.beside(|beside| {
            for (number, columns) in self.columns.iter().enumerate() {
                compute(number, w)?;
                let slice = w.window_mut(columns);
                let mut slice = slice.expect("slices begin where windows may");
                beside.sum(&mut *slice)?;
            }
            Ok(())
        })
    }
}

impl<T: Number> Site<T> {
    /// The columns of each slice in which copies of X by columns are made: all in one, unless members have agreed on others.
    pub(in crate::ops) fn slices(&self) -> Vec<Range<usize>> {
        match &self.slices {
            Some(slices) => slices.columns().to_vec(),
            None => std::iter::once(0..self.cols).collect(),
        }
    }

    /// Has `compute` compute the slices of w, of which a form has as many as it was made in; each is added up over the members
    /// of the group where that is wanted.
    pub(in crate::ops) fn in_slices(
        &self,
        w: &mut Buffer<T>,
        count: usize,
        mut compute: impl FnMut(usize, &mut Buffer<T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        match &self.slices {
            Some(slices) if slices.columns.len() == count && slices.takes() => {
                slices.each(w, compute)
            }
            _ => (0..count).try_for_each(|number| compute(number, w)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::group::run_threads;
    use crate::device::{Device, EmulatorOptions};

    /// What w has when the second slice is computed, and at the end.
    fn seen(is_form: bool) -> Vec<[Vec<f64>; 2]> {
        let found = run_threads(2, |group| {
            let device = Device::small_emulator(EmulatorOptions::default()).in_group(&group)?;
            let mut site = Site::<f64>::new(&device, (1, 64), 1);
            site.slices = Some(Slices::new(&group, vec![32..64, 0..32]));
            let (mut w, mut before) = (device.upload(&vec![1.0; 64])?, Vec::new());
            let slices = site.slices.as_ref().expect("it was given them");
            slices.add_up(&mut w, |w| match is_form {
                false => Ok(()),
                true => site.in_slices(w, 2, |number, w| {
                    if number == 1 {
                        before = w.to_vec()?;
                    }
                    Ok(())
                }),
            })?;
            // Nobody wants another sum.
            site.in_slices(&mut w, 2, |_, _| Ok(()))?;
            Ok::<_, OpError>([before, w.to_vec()?])
        });
        let found = found.into_iter().map(|found| found.expect("a sum"));
        found.collect()
    }

    #[test]
    fn a_slice_is_added_up_before_the_next_is_computed() {
        for [before, after] in seen(true) {
            assert_eq!(before[..32], [1.0; 32]);
            assert_eq!(before[32..], [2.0; 32]);
            assert_eq!(after, [2.0; 64]);
        }
    }

    #[test]
    fn what_no_form_added_up_is_added_up_afterwards() {
        for [_, after] in seen(false) {
            assert_eq!(after, [2.0; 64]);
        }
    }

    #[test]
    fn a_product_that_fails_is_not_added_up() {
        let device = Device::small_emulator(EmulatorOptions::default());
        let slices = Slices::new(&Group::alone(), vec![0..32, 32..64]);
        let mut w = device.zeros::<f64>(64).expect("w");
        let limit = OpError::TooLarge {
            what: "rows",
            limit: 1,
            found: 2,
        };
        let failed = slices.add_up(&mut w, |_| Err(limit.clone()));
        assert_eq!(failed, Err(limit));
        assert!(!slices.takes());
    }
}
