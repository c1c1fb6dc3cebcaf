//! What was measured so far, and what the scaling model makes of one and two members for more.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use warpfuse::plan::scaling::{Columns, Course, Machines};

use super::sums;

/// How rows grow with members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// As many in all.
    Strong,
    /// As many of each member.
    Weak,
}

impl Way {
    /// As lines have it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Strong => "strong",
            Way::Weak => "weak",
        }
    }
}

/// What a line is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Of the shape, with how products add.
    pub shape: String,
    /// How rows grow.
    pub way: Way,
    /// How many members.
    pub members: usize,
}

/// Sums over the members in something that is timed.
#[derive(Debug, Clone, Copy)]
pub struct Sums {
    /// How many of all columns.
    pub count: usize,
    /// n, and bytes of a column.
    pub columns: Columns,
}

/// The model's error that the project allows.
const ALLOWED: f64 = 0.12;

/// Times of a run.
#[derive(Default)]
pub struct Known {
    links: Mutex<Option<Machines>>,
    times: Mutex<BTreeMap<(Case, &'static str), f64>>,
    /// Measured over predicted.
    ratios: Mutex<BTreeMap<(Case, &'static str), f64>>,
}

impl Known {
    /// What sums of two members have shown.
    pub fn learn(&self, links: Machines) {
        *locked(&self.links) = Some(links);
    }

    /// This many GPUs over the links of this run, or over those of two H100.
    pub fn machines(&self, gpus: usize) -> Machines {
        let links = locked(&self.links).unwrap_or_else(|| sums::machines(gpus));
        Machines {
            gpus: gpus as u32,
            ..links
        }
    }

    /// Notes the times of a case, each with the sums in it; what the line says besides: how many times as fast as one member they
    /// are, and what the model makes of one and two for more.
    pub fn note(
        &self,
        case: &Case,
        times: &[(&'static str, f64, Option<Sums>)],
    ) -> Map<String, Value> {
        let (mut gains, mut model) = (Map::new(), Map::new());
        for (name, us, sums) in times.iter().copied() {
            locked(&self.times).insert((case.clone(), name), us);
            if case.members > 1
                && let Some(one) = self.time(case, name, 1)
            {
                gains.insert(name.to_owned(), (one / us).into());
            }
            if let Some(predicted) = self.predicted(case, (name, sums)) {
                locked(&self.ratios).insert((case.clone(), name), us / predicted);
                model.insert(format!("{name}_us"), predicted.into());
                model.insert(format!("{name}_ratio"), (us / predicted).into());
            }
        }
        let gain = match case.way {
            Way::Strong => "speed_up",
            Way::Weak => "efficiency",
        };
        let both = [(gain, gains), ("model", model)].into_iter();
        let both = both.filter(|(_, found)| !found.is_empty());
        both.map(|(name, found)| (name.to_owned(), found.into()))
            .collect()
    }

    fn time(&self, case: &Case, name: &'static str, members: usize) -> Option<f64> {
        // One alone is the same both ways.
        let way = if members == 1 { Way::Strong } else { case.way };
        let of = Case {
            members,
            way,
            ..case.clone()
        };
        locked(&self.times).get(&(of, name)).copied()
    }

    /// Of more than two members, of the times of one and two.
    fn predicted(&self, case: &Case, (name, sums): (&'static str, Option<Sums>)) -> Option<f64> {
        if case.members < 3 {
            return None;
        }
        let sums_us = |members: usize| {
            let machines = self.machines(members);
            sums.map_or(0.0, |sums| {
                let of = &sums.columns;
                let one = match of.summed == of.element {
                    true => machines.sum_us(of.cols * of.summed),
                    false => machines.sum_of_columns_us(of),
                };
                sums.count as f64 * one
            })
        };
        let one = self.time(case, name, 1)?;
        let two = (self.time(case, name, 2)? - sums_us(2)).max(0.0);
        let course = match case.way {
            Way::Strong => Course::strong(one, two),
            Way::Weak => Course::weak(one, two),
        };
        Some(course.us(case.members as u32) + sums_us(case.members))
    }

    /// How often the model was right.
    pub fn tell(&self) {
        let ratios = locked(&self.ratios);
        let error = |ratio: f64| (ratio - 1.0).abs();
        let worst = ratios
            .iter()
            .max_by(|a, b| error(*a.1).total_cmp(&error(*b.1)));
        let Some(((case, name), ratio)) = worst else {
            return;
        };
        let within = ratios.values().filter(|ratio| error(**ratio) <= ALLOWED);
        println!(
            "{}",
            json!({
                "what": "model",
                "links": *locked(&self.links),
                "cases": ratios.len(),
                "within_12_percent": within.count(),
                "worst": { "shape": case.shape, "scaling": case.way.name(), "members": case.members, "time": name, "ratio": ratio },
            })
        );
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
