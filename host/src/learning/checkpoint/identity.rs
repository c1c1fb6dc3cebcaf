//! Which fit a checkpoint belongs to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How far sums over X may differ, relative to the larger: they depend on the device and on how the rows are shared in their
/// last digits, and are of other data beyond.
const SAME: f64 = 1e-9;

/// What a fit is of: options by their names, digests of what it is given for each row, sums over X.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::learning) struct Identity {
    facts: Vec<(String, String)>,
    sums: Vec<(String, f64)>,
}

/// What differs between two fits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) what: String,
    pub(super) expected: String,
    pub(super) found: String,
}

/// How a fact is shown that one of two has.
const NONE: &str = "none";

impl Identity {
    /// Adds something that has to be the same.
    pub(in crate::learning) fn fact(&mut self, what: &str, is: impl ToString) {
        self.facts.push((what.to_owned(), is.to_string()));
    }

    /// Adds a sum, which has to be the same but for its last digits.
    pub(in crate::learning) fn sum(&mut self, what: &str, is: f64) {
        self.sums.push((what.to_owned(), is));
    }

    /// Adds each member of an object as a fact: `alpha` 0.5, `controls.tolerance` 1e-6.
    pub(in crate::learning) fn options(&mut self, options: &impl Serialize) {
        // Parameters of estimators are what models are saved with.
        let value = serde_json::to_value(options).unwrap_or_default();
        self.value("", &value);
    }

    fn value(&mut self, name: &str, value: &Value) {
        let Value::Object(members) = value else {
            return self.fact(name, value);
        };
        for (member, value) in members {
            match name {
                "" => self.value(member, value),
                _ => self.value(&format!("{name}.{member}"), value),
            }
        }
    }

    /// The first thing in which `found` is not this one.
    pub(super) fn difference(&self, found: &Identity) -> Option<Difference> {
        let of = |facts: &[(String, String)], what: &str| {
            let fact = facts.iter().find(|(name, _)| name == what);
            fact.map_or(NONE.to_owned(), |(_, is)| is.clone())
        };
        for (what, _) in self.facts.iter().chain(&found.facts) {
            let (expected, found) = (of(&self.facts, what), of(&found.facts, what));
            if expected != found {
                return Some(Difference {
                    what: what.clone(),
                    expected,
                    found,
                });
            }
        }
        for (what, expected) in &self.sums {
            let other = found.sums.iter().find(|(name, _)| name == what);
            let found = other.map_or(f64::NAN, |(_, found)| *found);
            if !is_same(*expected, found) {
                return Some(Difference {
                    what: what.clone(),
                    expected: expected.to_string(),
                    found: found.to_string(),
                });
            }
        }
        None
    }
}

fn is_same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= SAME * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(alpha: f64, squares: f64) -> Identity {
        let mut identity = Identity::default();
        let controls = serde_json::json!({"alpha": alpha, "controls": {"max_iter": 7}});
        identity.options(&controls);
        identity.sum("squares of X", squares);
        identity
    }

    #[test]
    fn what_differs_is_named() {
        assert_eq!(of(0.5, 3.0).difference(&of(0.5, 3.0 + 1e-13)), None);
        let differs = |found: &Identity| of(0.5, 3.0).difference(found).expect("differs");
        let options = differs(&of(0.25, 3.0));
        let said = (&*options.what, &*options.expected, &*options.found);
        assert_eq!(said, ("alpha", "0.5", "0.25"));
        for squares in [3.1, f64::NAN] {
            assert_eq!(differs(&of(0.5, squares)).what, "squares of X");
        }
        let mut more = of(0.5, 3.0);
        more.fact("offset", 17);
        let said = differs(&more);
        assert_eq!((&*said.expected, &*said.found), ("none", "17"));
        let flat = ("controls.max_iter".to_owned(), "7".to_owned());
        assert!(more.facts.contains(&flat));
    }
}
