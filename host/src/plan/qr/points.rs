//! The ways to factor a batch, which the tuner tries.

use gpu_kernels::qr::QrVariant;

use super::{QrPlan, QrShape, panels, plan_with, tiny};
use crate::plan::space::Space;

/// One way to factor a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct QrPoint {
    /// Lanes, registers, warps, and whether later panels take the smallest kernel that has room.
    pub name: String,
    /// The values of the parameters, in the order of the [space].
    pub values: Vec<i64>,
    /// The same as numbers: powers of two as their exponents.
    pub coordinates: Vec<f64>,
    /// The launches.
    pub plan: QrPlan,
}

/// The parameters of the kernels for a shape and their constraints: `kind` (0 tiny, 1 panels), `lanes`, `each` (columns of a
/// lane), `rows` (registers of a lane for one of them), `warps`, `shrinks`.
pub fn space(shape: QrShape, bytes: u32) -> Space {
    let mut space = Space::new();
    let kind = space.parameter("kind", [0, 1]);
    let lanes = space.parameter("lanes", [2, 4, 8, 16, 32]);
    let each = space.parameter("each", [1, 2, 4]);
    let rows = space.parameter("rows", [8, 16, 32, 64]);
    let warps = space.parameter("warps", [1, 2, 4, 8, 16]);
    let shrinks = space.parameter("shrinks", [0, 1]);
    let QrShape { rows: m, cols: n } = shape;
    let tiny = [kind, lanes, each, rows];
    space.requires_where("a tiny matrix fits", &tiny, 0, move |v| {
        n as i64 <= v[1] * v[2] && m as i64 <= v[3]
    });
    let of_tiny = [kind, each, warps, shrinks];
    space.requires_where("blocks of tiny matrices", &of_tiny, 0, |v| {
        v[2] == if v[1] == 1 { 4 } else { 2 } && v[3] == 0
    });
    space.requires_where("panels have a column a lane", &[kind, each], 1, |v| {
        v[1] == 1
    });
    space.requires_where("tiles of 32 rows", &[kind, rows], 1, |v| v[1] % 32 == 0);
    space.requires_where(
        "all rows have room",
        &[kind, lanes, rows, warps],
        1,
        move |v| m as i64 <= v[2] * v[3] * (32 / v[1]),
    );
    let words = i64::from(bytes / 4);
    // A column's piece, and some 40 registers for everything else, of the 65,536 of an SM.
    space.requires("registers of an SM", &[each, rows, warps], move |v| {
        (v[0] * v[1] * words + 40) * v[2] * 32 <= 65_536
    });
    let compiled = compiled(bytes);
    space.requires("compiled", &[kind, lanes, each, rows, warps], move |v| {
        compiled.iter().any(|known| known[..] == *v)
    });
    space
}

/// Kind, lanes, columns of each, rows and warps of the compiled kernels.
fn compiled(bytes: u32) -> Vec<[i64; 5]> {
    let all = tiny().into_iter().chain(panels(bytes));
    let parameters = |variant| match variant {
        QrVariant::Lanes { lanes, rows } => [0, lanes, 1, rows, 4],
        QrVariant::Columns { lanes, each, rows } => [0, lanes, each, rows, 2],
        QrVariant::Panel { lanes, rows, warps } => [1, lanes, 1, rows, warps],
        _ => [0; 5],
    };
    all.map(|variant| parameters(variant).map(i64::from))
        .collect()
}

/// The ways to factor matrices of a shape, of which the planner takes [one](super::plan).
///
/// ```
/// use warpfuse::plan::qr::{QrShape, plan, points};
/// let shape = QrShape { rows: 512, cols: 512 };
/// let points = points(shape, 4);
/// assert!(points.len() > 4 && points.iter().any(|point| point.plan == plan(shape, 4)));
/// ```
pub fn points(shape: QrShape, bytes: u32) -> Vec<QrPoint> {
    let space = space(shape, bytes);
    let points = space.points();
    points
        .filter_map(|values| of_values(shape, bytes, values))
        .collect()
}

/// One point of the [space], by the values of its parameters; none where they are not possible.
///
/// ```
/// use warpfuse::plan::qr::{QrShape, point, points};
/// let shape = QrShape { rows: 100, cols: 100 };
/// let first = &points(shape, 4)[0];
/// assert_eq!(point(shape, 4, &first.values).as_ref(), Some(first));
/// assert_eq!(point(shape, 4, &[0, 32, 1, 32, 4, 0]), None); // no tiny matrix
/// ```
pub fn point(shape: QrShape, bytes: u32, values: &[i64]) -> Option<QrPoint> {
    match space(shape, bytes).has(values) {
        true => of_values(shape, bytes, values.to_vec()),
        false => None,
    }
}

fn of_values(shape: QrShape, bytes: u32, values: Vec<i64>) -> Option<QrPoint> {
    let [kind, lanes, each, rows, warps, shrinks] = values[..] else {
        return None;
    };
    let [lanes, each, rows, warps] = [lanes, each, rows, warps].map(|value| value as u32);
    let (name, plan) = match (kind, each) {
        (0, 1) => {
            let variant = QrVariant::Lanes { lanes, rows };
            (format!("lanes {lanes}x{rows}"), QrPlan::Lanes(variant))
        }
        (0, _) => {
            let variant = QrVariant::Columns { lanes, each, rows };
            let name = format!("columns {lanes}x{each}x{rows}");
            (name, QrPlan::Lanes(variant))
        }
        _ => {
            let first = QrVariant::Panel { lanes, rows, warps };
            let (allowed, then) = match shrinks {
                0 => (vec![first], ""),
                _ => (down_from(first, bytes), ", then smaller ones"),
            };
            let name = format!("panels {lanes}x{rows}x{warps}{then}");
            return named(name, (values, &allowed), shape);
        }
    };
    Some(with_plan(name, values, plan))
}

/// The point of panels of which the first that has room is taken; none where none has.
pub(super) fn named(
    name: String,
    (values, allowed): (Vec<i64>, &[QrVariant]),
    shape: QrShape,
) -> Option<QrPoint> {
    let plan = plan_with(allowed, shape)?;
    Some(with_plan(name, values, plan))
}

fn with_plan(name: String, values: Vec<i64>, plan: QrPlan) -> QrPoint {
    let exponent = |value: &i64| (*value as f64 + 1.0).log2().round();
    QrPoint {
        name,
        coordinates: values.iter().map(exponent).collect(),
        values,
        plan,
    }
}

/// The panels that have room for fewer rows than `first`, then `first`.
fn down_from(first: QrVariant, bytes: u32) -> Vec<QrVariant> {
    let smaller = |panel: &QrVariant| panel.most()[0] < first.most()[0];
    let smaller = panels(bytes).into_iter().filter(smaller);
    smaller.chain([first]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan;
    use super::*;

    #[test]
    fn points_are_different_and_the_planner_has_one_of_them() {
        for bytes in [4, 8] {
            for size in [8, 16, 32, 64, 128, 512, 1_024] {
                let shape = QrShape {
                    rows: size,
                    cols: size,
                };
                let all = points(shape, bytes);
                assert!(
                    all.iter().any(|point| point.plan == plan(shape, bytes)),
                    "{size}"
                );
                for (i, point) in all.iter().enumerate() {
                    assert!(all[..i].iter().all(|other| other.name != point.name));
                    if let QrPlan::Panels(steps) = &point.plan {
                        assert!(
                            steps
                                .iter()
                                .all(|s| s.panel.most()[0] as usize + s.start >= size)
                        );
                    }
                }
            }
        }
    }
}
