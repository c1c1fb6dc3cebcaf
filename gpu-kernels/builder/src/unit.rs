//! Units: kernels that are compiled together, and how units become runs of the compiler.

/// Kernels of one family and element type, which the crate compiles under conditions of their own.
///
/// The name is the conditions, joined by `_`: the unit `Sparse_f32` is compiled under `--cfg Sparse --cfg f32`, and every other
/// unit that these two conditions allow with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Name.
    pub name: String,
    /// Names of its kernels.
    pub kernels: Vec<String>,
}

impl Unit {
    /// Collects units from pairs of a unit's and a kernel's name, in the order of their first kernels.
    ///
    /// ```
    /// let units = gpu_kernels_builder::Unit::collect([("A_f32", "a0"), ("B", "b"), ("A_f32", "a1")]);
    /// assert_eq!(units.len(), 2);
    /// assert_eq!(units[0].kernels, ["a0", "a1"]);
    /// ```
    pub fn collect<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        for (name, kernel) in pairs {
            match units.iter_mut().find(|unit| unit.name == name) {
                Some(unit) => unit.kernels.push(kernel.to_owned()),
                None => units.push(Unit {
                    name: name.to_owned(),
                    kernels: vec![kernel.to_owned()],
                }),
            }
        }
        units
    }

    fn conditions(&self) -> impl Iterator<Item = &str> {
        self.name.split('_')
    }

    /// What it has in common with units that one run may compile without compiling others too.
    fn element(&self) -> &str {
        self.conditions().nth(1).unwrap_or("")
    }
}

/// One run of the compiler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Job<'a> {
    /// What it has to compile; it may compile more.
    pub units: Vec<&'a Unit>,
}

impl<'a> Job<'a> {
    /// Conditions, each once.
    pub(crate) fn conditions(&self) -> Vec<&'a str> {
        let mut all: Vec<&str> = self
            .units
            .iter()
            .flat_map(|unit| unit.conditions())
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn weight(&self) -> usize {
        self.units.iter().map(|unit| unit.kernels.len()).sum()
    }
}

/// Kernels below which a run of its own does not pay: it reads and checks the whole crate first, some seconds.
const LEAST: usize = 48;

/// Divides units into about this many runs of similar length. Units of one element type stay together where possible, because
/// a run compiles every unit that its conditions allow.
pub(crate) fn jobs(units: &[Unit], count: usize) -> Vec<Job<'_>> {
    let total: usize = units.iter().map(|unit| unit.kernels.len()).sum();
    let share = total.div_ceil(count.max(1)).max(LEAST);
    let mut sorted: Vec<&Unit> = units.iter().collect();
    sorted.sort_by_key(|unit| unit.element().to_owned());
    let mut jobs: Vec<Job> = Vec::new();
    for unit in sorted {
        match jobs.last_mut() {
            Some(job) if job.weight() + unit.kernels.len() / 2 < share => job.units.push(unit),
            _ => jobs.push(Job { units: vec![unit] }),
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str, kernels: usize) -> Unit {
        Unit {
            name: name.into(),
            kernels: (0..kernels).map(|i| format!("{name}_{i}")).collect(),
        }
    }

    #[test]
    fn jobs_hold_every_unit_once_and_similar_numbers_of_kernels() {
        let units = [
            unit("A_f32", 100),
            unit("A_f64", 90),
            unit("B_f32", 110),
            unit("B_f64", 100),
            unit("C", 3),
        ];
        let jobs = jobs(&units, 2);
        assert_eq!(jobs.len(), 2);
        let mut names: Vec<&str> = jobs
            .iter()
            .flat_map(|job| job.units.iter().map(|unit| unit.name.as_str()))
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["A_f32", "A_f64", "B_f32", "B_f64", "C"]);
        assert_eq!(jobs[1].conditions(), ["A", "B", "f64"]);
    }

    #[test]
    fn few_kernels_are_one_job() {
        let units = [unit("A_f32", 10), unit("B_f64", 20)];
        let jobs = jobs(&units, 16);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].conditions(), ["A", "B", "f32", "f64"]);
    }
}
