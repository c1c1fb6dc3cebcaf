//! Panels that are not compiled: instances of their template, which a tuner can generate.

use gpu_kernels::qr::QrVariant;

use super::points::named;
use super::{QrPoint, QrShape, panels};
use crate::plan::space::Space;
use crate::plan::template::Template;

/// Registers of a thread besides its piece of a column, about.
const OTHERS: i64 = 40;
/// Of an SM.
const REGISTERS: i64 = 65_536;
/// Of a thread.
const MOST_REGISTERS: i64 = 255;

/// A way to factor a batch by a kernel that is not compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedPoint {
    /// The launches. Its parameters are of no table: the planner does not take them.
    pub point: QrPoint,
    /// The kernel.
    pub variant: QrVariant,
    /// Its source.
    pub template: Template,
}

/// The parameters of panels that are not compiled, and their constraints: `lanes` (columns), `rows` (registers of a lane for its
/// column) and `warps`.
pub fn generated_space(shape: QrShape, bytes: u32) -> Space {
    let mut space = Space::new();
    // As many columns as there is an update for.
    let narrowest = i64::from(32 / bytes);
    let lanes = space.parameter(
        "lanes",
        [4, 8, 16, 32].into_iter().filter(|l| *l >= narrowest),
    );
    let rows = space.parameter("rows", [32, 64, 96, 128]);
    let warps = space.parameter("warps", [1, 2, 3, 4, 6, 8, 12, 16]);
    let words = i64::from(bytes / 4);
    let m = shape.rows as i64;
    space.requires("registers of a thread", &[rows], move |v| {
        v[0] * words + OTHERS <= MOST_REGISTERS
    });
    space.requires("registers of an SM", &[rows, warps], move |v| {
        (v[0] * words + OTHERS) * v[1] * 32 <= REGISTERS
    });
    let room = |v: &[i64]| v[1] * v[2] * (32 / v[0]);
    space.requires("all rows have room", &[lanes, rows, warps], move |v| {
        m <= room(v)
    });
    space.requires("little room is empty", &[lanes, rows, warps], move |v| {
        room(v) < 2 * m.max(32)
    });
    let compiled = panels(bytes);
    space.requires("not compiled", &[lanes, rows, warps], move |v| {
        !compiled.contains(&panel(v))
    });
    space
}

fn panel(values: &[i64]) -> QrVariant {
    let [lanes, rows, warps] = [0, 1, 2].map(|at| values[at] as u32);
    QrVariant::Panel { lanes, rows, warps }
}

/// The [space](generated_space) as launches, each with the source of its kernel.
///
/// ```
/// use warpfuse::plan::qr::{QrShape, generated, panels};
/// let all = generated(QrShape { rows: 300, cols: 200 }, 4);
/// assert!(all.iter().all(|one| !panels(4).contains(&one.variant)));
/// let one = all.iter().find(|one| one.template.entry == "qr_panel_f32_32_96_4").expect("384 rows");
/// assert_eq!(one.template.body, "crate::qr::panel::panel::<_, f32, 32, 96, 4, 128>");
/// assert_eq!(one.point.name, "panels 32x96x4, generated");
/// ```
pub fn generated(shape: QrShape, bytes: u32) -> Vec<GeneratedPoint> {
    let space = generated_space(shape, bytes);
    let points = space.points();
    points
        .filter_map(|values| of_values(shape, bytes, &values))
        .collect()
}

fn of_values(shape: QrShape, bytes: u32, values: &[i64]) -> Option<GeneratedPoint> {
    let &[lanes, rows, warps] = values else {
        return None;
    };
    let variant = panel(values);
    let number = if bytes == 4 { "f32" } else { "f64" };
    let threads = 32 * warps;
    // The values of a compiled one's space: kind, lanes, columns of each, rows, warps, whether later panels shrink.
    let values = vec![1, lanes, 1, rows, warps, 0];
    Some(GeneratedPoint {
        point: named(
            format!("panels {lanes}x{rows}x{warps}, generated"),
            (values, &[variant]),
            shape,
        )?,
        variant,
        template: Template {
            entry: format!("qr_panel_{number}_{lanes}_{rows}_{warps}"),
            arguments: format!("crate::qr::QrArgs<'a, {number}>"),
            body: format!(
                "crate::qr::panel::panel::<_, {number}, {lanes}, {rows}, {warps}, {threads}>"
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{QrPlan, point};
    use super::*;

    #[test]
    fn instances_have_room_and_names_of_their_own() {
        for bytes in [4, 8] {
            let mut found = 0;
            for (rows, cols) in [
                (40, 40),
                (128, 128),
                (512, 100),
                (1_000, 1_000),
                (4_096, 64),
            ] {
                let shape = QrShape { rows, cols };
                let all = generated(shape, bytes);
                found += all.len();
                for (i, one) in all.iter().enumerate() {
                    assert!(one.variant.most()[0] as usize >= rows);
                    let mut others = all[..i].iter();
                    assert!(others.all(|other| other.template.entry != one.template.entry));
                    let QrPlan::Panels(steps) = &one.point.plan else {
                        panic!("{one:?}");
                    };
                    assert!(steps.iter().all(|step| step.panel == one.variant));
                    assert_eq!(point(shape, bytes, &one.point.values), None, "no table's");
                }
            }
            assert!(found > 20, "{found} of {bytes} bytes");
        }
    }
}
