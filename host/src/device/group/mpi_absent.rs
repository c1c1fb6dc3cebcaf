//! MPI where the program was built without it.

use super::GroupError;
use super::alone::Alone;

pub(super) enum Mpi {}

impl Mpi {
    pub(super) fn open() -> Result<Alone, GroupError> {
        Err(GroupError::Library {
            message: "this program was built without the feature mpi".to_owned(),
        })
    }
}
