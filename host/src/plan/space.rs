//! Spaces of tuning parameters: which values they have, and which combinations are possible.
//!
//! Points are enumerated parameter by parameter; a constraint is looked at as soon as the last of its parameters has a value,
//! and a product that is to equal a number as soon as the values so far cannot lead to it. So what is impossible is never
//! combined with the values of the parameters that follow.
//!
//! ```
//! use warpfuse::plan::space::Space;
//! let mut space = Space::new();
//! let [threads, registers] = ["threads", "registers"].map(|name| {
//!     space.parameter(name, (5..=10).map(|power| 1 << power))
//! });
//! space.at_most("registers of an SM", &[threads, registers], 65_536);
//! space.requires("whole warps", &[threads], |values| values[0] % 32 == 0);
//! assert!(space.points().all(|point| point[0] * point[1] <= 65_536));
//! ```

/// A parameter of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter(usize);

/// Values of all parameters, in the order in which they were declared.
pub type Values = Vec<i64>;

/// What values have to pass.
type Test = Box<dyn Fn(&[i64]) -> bool + Send + Sync>;

enum Rule {
    /// The product of the parameters is the number; all values are positive.
    ProductIs(i64),
    /// The product is at most the number; all values are positive.
    ProductAtMost(i64),
    /// The values, in the order of the parameters, pass.
    Passes(Test),
    /// As `Passes`, where the first of the parameters has the value.
    Where(i64, Test),
}

struct Constraint {
    name: &'static str,
    over: Vec<usize>,
    rule: Rule,
}

/// Parameters, their values, and what must hold between them.
#[derive(Default)]
pub struct Space {
    parameters: Vec<(&'static str, Vec<i64>)>,
    constraints: Vec<Constraint>,
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let constraints: Vec<&str> = self.constraints.iter().map(|one| one.name).collect();
        f.debug_struct("Space")
            .field("parameters", &self.parameters)
            .field("constraints", &constraints)
            .finish()
    }
}

impl Space {
    /// No parameters: one point without values.
    pub fn new() -> Space {
        Space::default()
    }

    /// One more parameter.
    pub fn parameter(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = i64>,
    ) -> Parameter {
        self.parameters.push((name, values.into_iter().collect()));
        Parameter(self.parameters.len() - 1)
    }

    /// The product of positive parameters is `value`.
    pub fn product_is(&mut self, name: &'static str, of: &[Parameter], value: i64) {
        self.add(name, of, Rule::ProductIs(value));
    }

    /// The product of positive parameters is at most `value`.
    pub fn at_most(&mut self, name: &'static str, of: &[Parameter], value: i64) {
        self.add(name, of, Rule::ProductAtMost(value));
    }

    /// `passes` holds of the values of `of`, in that order.
    pub fn requires(
        &mut self,
        name: &'static str,
        of: &[Parameter],
        passes: impl Fn(&[i64]) -> bool + Send + Sync + 'static,
    ) {
        self.add(name, of, Rule::Passes(Box::new(passes)));
    }

    /// Where `of[0]` has `value`, `passes` holds of the values of `of`.
    pub fn requires_where(
        &mut self,
        name: &'static str,
        of: &[Parameter],
        value: i64,
        passes: impl Fn(&[i64]) -> bool + Send + Sync + 'static,
    ) {
        self.add(name, of, Rule::Where(value, Box::new(passes)));
    }

    fn add(&mut self, name: &'static str, of: &[Parameter], rule: Rule) {
        let over = of.iter().map(|parameter| parameter.0).collect();
        self.constraints.push(Constraint { name, over, rule });
    }

    /// Names of the parameters.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.parameters.iter().map(|(name, _)| *name)
    }

    /// How many points there would be without constraints.
    pub fn raw_points(&self) -> f64 {
        self.parameters
            .iter()
            .map(|(_, values)| values.len() as f64)
            .product()
    }

    /// The possible points, those of the first values first.
    pub fn points(&self) -> Points<'_> {
        Points {
            space: self,
            at: vec![0],
            values: Vec::new(),
            is_done: false,
        }
    }

    /// The first constraint that `values` break; none where the point is possible.
    ///
    /// # Panics
    /// When there are not as many values as parameters.
    pub fn broken(&self, values: &[i64]) -> Option<&'static str> {
        assert_eq!(
            values.len(),
            self.parameters.len(),
            "a value for each parameter"
        );
        let fails = |one: &&Constraint| !one.holds(values);
        self.constraints.iter().find(fails).map(|one| one.name)
    }

    /// Whether these are the values of a point, wherever they come from: as many as parameters, each one of its parameter's values,
    /// and no constraint broken.
    ///
    /// ```
    /// use warpfuse::plan::space::Space;
    /// let mut space = Space::new();
    /// let (a, b) = (space.parameter("a", [1, 2, 4]), space.parameter("b", [1, 2, 4]));
    /// space.at_most("a times b", &[a, b], 4);
    /// assert!(space.has(&[2, 2]) && !space.has(&[4, 2]) && !space.has(&[1, 3]) && !space.has(&[1]));
    /// ```
    pub fn has(&self, values: &[i64]) -> bool {
        let mut each = self.parameters.iter().zip(values);
        values.len() == self.parameters.len()
            && each.all(|((_, known), value)| known.contains(value))
            && self.broken(values).is_none()
    }

    /// Whether the values of the first parameters can be those of a point, as far as one constraint can tell.
    fn may_hold(&self, values: &[i64]) -> bool {
        let newest = values.len() - 1;
        let concerned = |one: &&Constraint| one.over.contains(&newest);
        self.constraints
            .iter()
            .filter(concerned)
            .all(|one| one.holds(values))
    }
}

impl Constraint {
    /// With values for all of its parameters, whether it holds; with fewer, whether it may.
    fn holds(&self, values: &[i64]) -> bool {
        let known = self.over.iter().filter_map(|&at| values.get(at).copied());
        let is_whole = self.over.iter().all(|&at| at < values.len());
        match &self.rule {
            Rule::ProductIs(wanted) => {
                let product = known.fold(1_i64, i64::saturating_mul);
                let divides = product > 0 && wanted % product == 0;
                divides && (!is_whole || product == *wanted)
            }
            Rule::ProductAtMost(most) => known.fold(1_i64, i64::saturating_mul) <= *most,
            Rule::Passes(_) if !is_whole => true,
            Rule::Passes(passes) => passes(&known.collect::<Vec<_>>()),
            Rule::Where(..) if !is_whole => true,
            Rule::Where(value, passes) => {
                let known: Vec<i64> = known.collect();
                known[0] != *value || passes(&known)
            }
        }
    }
}

/// The possible points of a space.
#[derive(Debug)]
pub struct Points<'a> {
    space: &'a Space,
    /// For each parameter that has a value, and the one that is to get one: the number of its next value.
    at: Vec<usize>,
    values: Values,
    is_done: bool,
}

impl Iterator for Points<'_> {
    type Item = Values;

    fn next(&mut self) -> Option<Values> {
        while !self.is_done {
            let depth = self.values.len();
            let Some((_, choices)) = self.space.parameters.get(depth) else {
                let found = self.values.clone();
                self.back();
                return Some(found);
            };
            match choices.get(self.at[depth]) {
                Some(&value) => {
                    self.at[depth] += 1;
                    self.values.push(value);
                    if self.space.may_hold(&self.values) {
                        self.at.push(0);
                    } else {
                        self.values.pop();
                    }
                }
                None => self.back(),
            }
        }
        None
    }
}

impl Points<'_> {
    /// To the parameter before, which takes its next value.
    fn back(&mut self) {
        self.at.pop();
        self.is_done = self.values.pop().is_none();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed's mapping: threads and elements of a thread along both sides of a matrix, and their registers.
    fn mapping(side: i64) -> Space {
        let mut space = Space::new();
        let powers = |most: i64| {
            (0..)
                .map(|power| 1_i64 << power)
                .take_while(move |p| *p <= most)
        };
        let rows = space.parameter("thread rows", powers(side));
        let cols = space.parameter("thread columns", powers(side));
        let threads_down = space.parameter("threads down", powers(side));
        let threads_across = space.parameter("threads across", powers(side));
        let warp_down = space.parameter("lanes down", powers(32));
        let warp_across = space.parameter("lanes across", powers(32));
        let step_down = space.parameter("step down", powers(side));
        let step_across = space.parameter("step across", powers(side));
        let chunk = space.parameter("chunk", 1..=64);
        let switches = ["a", "b", "c", "d", "e", "f"].map(|name| space.parameter(name, 0..=1));
        space.product_is("rows are covered", &[rows, threads_down], side);
        space.product_is("columns are covered", &[cols, threads_across], side);
        space.product_is("lanes of a warp", &[warp_down, warp_across], 32);
        space.at_most("threads of a block", &[threads_down, threads_across], 1_024);
        space.at_most("registers of a thread", &[rows, cols], 128);
        space.at_most("steps stay inside", &[rows, step_down], side);
        space.at_most("steps stay inside", &[cols, step_across], side);
        space.requires("lanes are threads", &[threads_down, warp_down], |v| {
            v[0] % v[1] == 0
        });
        space.requires("lanes are threads", &[threads_across, warp_across], |v| {
            v[0] % v[1] == 0
        });
        space.requires("chunks divide a column", &[rows, chunk], |v| {
            v[0] % v[1] == 0
        });
        space.requires_where(
            "no switch without another",
            &[switches[0], switches[1]],
            1,
            |v| v[1] == 1,
        );
        space
    }

    #[test]
    fn a_thousand_million_raw_points_are_not_walked() {
        let space = mapping(64);
        assert!(space.raw_points() > 1e9, "{:e}", space.raw_points());
        // Walking all of them would take minutes in this profile.
        let points: Vec<Values> = space.points().collect();
        assert!(points.len() > 1_000 && (points.len() as f64) < 1e-3 * space.raw_points());
        assert!(points.iter().all(|point| space.broken(point).is_none()));
    }

    #[test]
    fn the_points_are_those_that_break_nothing() {
        let mut space = Space::new();
        let a = space.parameter("a", 1..=6);
        let b = space.parameter("b", 1..=6);
        let c = space.parameter("c", 0..=3);
        space.product_is("a·b", &[a, b], 6);
        space.requires_where("c after a = 2", &[a, c], 2, |values| values[1] > 1);
        let found: Vec<Values> = space.points().collect();
        let mut expected = Vec::new();
        for a in 1..=6 {
            for b in 1..=6 {
                for c in 0..=3 {
                    if a * b == 6 && (a != 2 || c > 1) {
                        expected.push(vec![a, b, c]);
                    }
                }
            }
        }
        assert_eq!(found, expected);
        assert_eq!(space.broken(&[2, 3, 0]), Some("c after a = 2"));
        assert_eq!(Space::new().points().count(), 1);
        let mut none = Space::new();
        none.parameter("empty", []);
        assert_eq!(none.points().count(), 0);
    }
}
