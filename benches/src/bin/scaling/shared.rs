//! Data sets that members share: made once, placed and timed by one, two and more.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};
use warpfuse::learning::Labels;
use warpfuse::matrix::Features;

use super::Wanted;
use super::known::{Known, Way};
use super::members::{Member, Members, STEP};
use super::products::Alone;
use super::shapes::{SHAPES, Shape};
use super::{fits, products, sums};

/// A data set.
pub struct Made {
    pub shape: Shape,
    features: Arc<Features<f32>>,
    labels: Arc<Labels>,
    /// Labels of this many times the rows.
    repeated: Mutex<Option<(usize, Arc<Labels>)>>,
    alone: OnceLock<Alone>,
}

/// What one member has of it.
pub struct Part {
    pub way: Way,
    /// Its rows.
    pub features: Arc<Features<f32>>,
    /// Of the rows of all members.
    pub labels: Arc<Labels>,
}

impl Part {
    /// The labels as they are.
    pub fn numbers(&self) -> Result<&[f64]> {
        match &*self.labels {
            Labels::Numbers(numbers) => Ok(numbers),
            _ => bail!("labels are numbers here"),
        }
    }
}

/// A member, and what it is to do.
pub struct Job<'a> {
    pub wanted: &'a Wanted,
    pub member: &'a Member,
    pub made: &'a Made,
    pub known: &'a Known,
}

impl Job<'_> {
    /// Microseconds of a member's product, of what one took for all rows and what the planner says of both.
    pub fn scaled_from_one(&self, planned: Option<f64>) -> Option<f64> {
        let (measured, planned_alone) = self.made.alone.get()?;
        Some(measured * planned? / (*planned_alone)?)
    }
}

impl Made {
    /// Makes it.
    pub fn new(shape: Shape) -> Result<Made> {
        Ok(Made {
            shape,
            features: Arc::new(shape.features(0..shape.rows)?),
            labels: Arc::new(Labels::Numbers(shape.labels())),
            repeated: Mutex::new(None),
            alone: OnceLock::new(),
        })
    }

    /// Keeps what one member took for a product.
    pub fn note_alone(&self, alone: Alone) {
        let _ = self.alone.set(alone);
    }

    /// The part of a member: its rows of all, or the same rows for each, as many as it may begin after.
    pub fn part(&self, member: &Member, way: Way) -> Part {
        let (size, rows) = (member.group.size(), self.shape.rows);
        let (own, labels) = match way {
            Way::Strong => (member.rows(rows), self.labels.clone()),
            Way::Weak => {
                let own = 0..rows / STEP * STEP;
                (own.clone(), self.repeated(size, own))
            }
        };
        let features = match own.len() == rows {
            true => self.features.clone(),
            false => Arc::new(self.features.share_rows(own)),
        };
        Part {
            way,
            features,
            labels,
        }
    }

    fn repeated(&self, times: usize, rows: Range<usize>) -> Arc<Labels> {
        let mut kept = locked(&self.repeated);
        if let Some((_, labels)) = kept.as_ref().filter(|(kept, _)| *kept == times) {
            return labels.clone();
        }
        let labels = match &*self.labels {
            Labels::Numbers(numbers) => Labels::Numbers(numbers[rows].repeat(times)),
            other => other.clone(),
        };
        let labels = Arc::new(labels);
        *kept = Some((times, labels.clone()));
        labels
    }
}

/// Makes the data sets, and has members place and time them.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    let shapes = SHAPES.iter().filter(|shape| wanted.takes(shape.name));
    let begun = Instant::now();
    let all: Vec<Made> = shapes
        .map(|shape| Made::new(shape.divided(wanted.divide)))
        .collect::<Result<_>>()?;
    eprintln!("made in {:.1} s", begun.elapsed().as_secs_f64());
    let known = Known::default();
    for size in &wanted.sizes {
        members.run(*size, |member| {
            if *size == 2 {
                let links = sums::links(member, wanted.divide)?;
                known.learn(links);
            }
            all.iter().try_for_each(|made| {
                let job = Job {
                    wanted,
                    member,
                    made,
                    known: &known,
                };
                ways(&job)
            })
        })?;
    }
    known.tell();
    Ok(())
}

/// Both ways, while there is time.
fn ways(job: &Job<'_>) -> Result<()> {
    // One alone is the same both ways.
    let is_alone = job.member.group.is_alone();
    for way in [Way::Strong, Way::Weak] {
        let is_wanted = way == Way::Strong || (job.wanted.weak && !is_alone);
        if !is_wanted || job.member.is_late(job.wanted)? {
            continue;
        }
        let begun = Instant::now();
        let part = job.made.part(job.member, way);
        if job.wanted.products {
            products::time(job, &part)?;
        }
        if job.wanted.fits {
            fits::time(job, &part)?;
        }
        if job.member.group.is_first() {
            let (size, seconds) = (job.member.group.size(), begun.elapsed().as_secs_f64());
            eprintln!(
                "{} {} {size}: {seconds:.1} s",
                job.made.shape.name,
                way.name()
            );
        }
    }
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
