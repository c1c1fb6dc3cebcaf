//! Checkpoints: where a fit stands, in a file from which it goes on.
//!
//! | file | what |
//! |---|---|
//! | [`record`] | where a solve stands, as named lists |
//! | [`session`] | what solvers call: they begin, save when that is due, and end |
//! | [`identity`] | which fit a file belongs to |
//! | [`file`] | the format |
//! | [`fault`] | what is wrong with one |

mod error;
mod fault;
mod file;
mod identity;
mod record;
pub(super) mod session;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::CheckpointError;
pub(super) use identity::Identity;
pub(super) use record::Record;
use session::Session;

use crate::device::group::Group;
use crate::ops::OpError;
use file::Content;

/// Where a fit writes how far it has got, and how often.
///
/// A fit that finds the file goes on from there; one that does not begins at its start. Where sums are reproducible
/// ([`Summation::Reproducible`](crate::plan::fused::Summation::Reproducible), and on the CPU), its model has the same bits as
/// that of a fit that was never interrupted, whatever number of processes or devices does the rest.
///
/// Members of a group go on together: the first one writes and reads. The file stays when the fit has ended, until the
/// model is safe and it is [removed](Checkpoint::remove).
///
/// ```
/// use std::time::Duration;
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Checkpoint, FitOptions, Ridge};
/// use warpfuse::matrix::Features;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ridge.checkpoint");
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
/// let checkpoint = Checkpoint::new(&path).every(Duration::from_secs(300));
/// let options = FitOptions { checkpoint: Some(&checkpoint), ..FitOptions::default() };
/// let model = Ridge::params().alpha(2.0).fit_with(&Device::cpu(), x, &[0.0, 2.0, 4.0], options)?;
/// // … save the model, then:
/// checkpoint.remove()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    path: PathBuf,
    every: Duration,
}

/// How often unless told otherwise.
const EVERY: Duration = Duration::from_secs(60);

impl Checkpoint {
    /// In the file at `path`, every 60 seconds.
    pub fn new(path: impl AsRef<Path>) -> Checkpoint {
        Checkpoint {
            path: path.as_ref().to_owned(),
            every: EVERY,
        }
    }

    /// Sets how much time passes between two files; 0 for one after each iteration.
    pub fn every(self, every: Duration) -> Checkpoint {
        Checkpoint { every, ..self }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, if there is one.
    ///
    /// # Errors
    /// [`CheckpointError::Io`] when the file system refuses.
    pub fn remove(&self) -> Result<(), CheckpointError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(file::refused("remove", &self.path, &error))
            }
            _ => Ok(()),
        }
    }

    /// What the file has of the fit of this identity: nothing where there is none.
    fn load(&self, identity: &Identity) -> Result<Option<Vec<u8>>, CheckpointError> {
        crate::whole::check_place(&self.path)
            .map_err(|error| file::refused("write", &self.path, &error))?;
        let Some(bytes) = file::read(&self.path)? else {
            return Ok(None);
        };
        let content = file::of_bytes(&self.path, &bytes)?;
        match identity.difference(&content.identity) {
            None => Ok(Some(bytes)),
            Some(differs) => Err(CheckpointError::Foreign {
                path: self.path.clone(),
                what: differs.what,
                expected: differs.expected,
                found: differs.found,
            }),
        }
    }

    /// [`Checkpoint::load`] by the first member of a group, for all.
    fn load_for<E: From<CheckpointError> + From<OpError>>(
        &self,
        identity: &Identity,
        group: Option<&Group>,
    ) -> Result<Option<Vec<u8>>, E> {
        let Some(group) = group else {
            return Ok(self.load(identity)?);
        };
        let own = match group.is_first() {
            true => self.load(identity),
            false => Ok(None),
        };
        let own = match group.agree(own) {
            Ok(own) => own,
            Err(Ok(error)) => return Err(error.into()),
            Err(Err(error)) => return Err(OpError::from(error).into()),
        };
        let failed = |error| E::from(OpError::from(error));
        let mut about = [0, 0];
        if let Some(bytes) = &own {
            about = [1, bytes.len() as u64];
        }
        group.broadcast(0, &mut about).map_err(failed)?;
        let [is_there, len] = about;
        if is_there == 0 {
            return Ok(None);
        }
        let mut bytes = own.unwrap_or_else(|| vec![0; len as usize]);
        group.broadcast(0, &mut bytes).map_err(failed)?;
        Ok(Some(bytes))
    }
}

/// Does `work`, a fit of this identity by the members of `group`, if it is of one, with a checkpoint.
///
/// # Errors
/// Those of `work`, and [`CheckpointError`].
pub(super) fn during<R, E: From<CheckpointError> + From<OpError>>(
    (checkpoint, group): (&Checkpoint, Option<&Group>),
    identity: Identity,
    work: impl FnOnce() -> Result<R, E>,
) -> Result<R, E> {
    let mut content = Content {
        identity,
        ..Content::default()
    };
    if let Some(bytes) = checkpoint.load_for::<E>(&content.identity, group)? {
        content.solves = file::of_bytes(&checkpoint.path, &bytes)?.solves;
        tracing::debug!("{} is read", checkpoint.path.display());
    }
    let place = (checkpoint.path.clone(), checkpoint.every);
    let session = Session::new(place, group.is_none_or(Group::is_first), content);
    fault::take();
    let (result, session) = session::scope(Some(session), work);
    let damaged = fault::take().map(|reason| CheckpointError::Damaged {
        path: checkpoint.path.clone(),
        reason,
    });
    match damaged.or(session.and_then(Session::into_fault)) {
        Some(fault) => Err(fault.into()),
        None => result,
    }
}

/// Does `work` as if there were no checkpoint: it is short, and done again.
pub(super) fn without<R>(work: impl FnOnce() -> R) -> R {
    session::scope(None, work).0
}
