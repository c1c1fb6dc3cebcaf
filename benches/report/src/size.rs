//! Sizes of cases: what a sweep goes over.

use std::collections::BTreeSet;

use super::record::Shape;

/// A dimension of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// n, or columns of a product.
    Columns,
    /// m, or rows of a product.
    Rows,
    /// Entries of a row.
    PerRow,
    /// Elements.
    Elements,
}

const ALL: [Size; 4] = [Size::Columns, Size::Rows, Size::PerRow, Size::Elements];

/// The dimension with the most values among shapes; of several the first.
pub fn of_most_values(shapes: &[&Shape]) -> Size {
    let count = |size: &Size| size.values(shapes).len();
    let most = ALL.iter().map(count).max().unwrap_or(0);
    let found = ALL.into_iter().find(|size| count(size) == most);
    found.unwrap_or(Size::Elements)
}

impl Size {
    /// Along an axis.
    pub fn name(self) -> &'static str {
        match self {
            Size::Columns => "columns",
            Size::Rows => "rows",
            Size::PerRow => "entries of a row",
            Size::Elements => "elements",
        }
    }

    /// Of a shape; `None` where it has no such dimension.
    pub fn of(self, shape: &Shape) -> Option<f64> {
        let found = match (self, shape) {
            (Size::Elements, shape) => return Some(shape.elements()),
            (
                Size::Columns,
                Shape::Dense { cols, .. }
                | Shape::Sparse { cols, .. }
                | Shape::Drawn { cols, .. }
                | Shape::Batch { cols, .. },
            ) => cols,
            (
                Size::Rows,
                Shape::Dense { rows, .. }
                | Shape::Sparse { rows, .. }
                | Shape::Drawn { rows, .. }
                | Shape::Batch { rows, .. },
            ) => rows,
            (Size::PerRow, Shape::Sparse { per_row, .. } | Shape::Drawn { per_row, .. }) => per_row,
            _ => return None,
        };
        Some(*found as f64)
    }

    /// Its values among shapes, each once.
    pub fn values(self, shapes: &[&Shape]) -> BTreeSet<u64> {
        let values = shapes.iter().filter_map(|shape| self.of(shape));
        values.map(f64::to_bits).collect()
    }
}

impl Shape {
    /// Stored elements, pairs, or multiplications.
    pub fn elements(&self) -> f64 {
        let product = |sizes: &[u64]| sizes.iter().map(|size| *size as f64).product();
        match self {
            Shape::Dense { rows, cols } => product(&[*rows, *cols]),
            Shape::Sparse { rows, per_row, .. } | Shape::Drawn { rows, per_row, .. } => {
                product(&[*rows, *per_row])
            }
            Shape::Vector { len } => *len as f64,
            Shape::Points {
                targets, sources, ..
            } => product(&[*targets, *sources]),
            Shape::Layer {
                batch,
                channels,
                filters,
                side,
                kernel,
                permille,
            } => {
                product(&[
                    *batch, *channels, *filters, *side, *side, *kernel, *kernel, *permille,
                ]) / 1e3
            }
            Shape::Product { m, n, k } => product(&[*m, *n, *k]),
            Shape::Batch { count, rows, cols } => product(&[*count, *rows, *cols]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_goes_over_what_differs() {
        let shape = |rows, cols| Shape::Dense { rows, cols };
        let (a, b, c) = (shape(100, 10), shape(50, 20), shape(100, 5));
        assert_eq!(of_most_values(&[&a, &b, &c]), Size::Columns);
        assert_eq!(of_most_values(&[&a, &shape(50, 10)]), Size::Rows);
        assert_eq!(Size::Columns.values(&[&a, &b, &c]).len(), 3);
        assert_eq!(Size::Columns.of(&Shape::Vector { len: 9 }), None);
        assert_eq!(of_most_values(&[&Shape::Vector { len: 9 }]), Size::Elements);
    }

    #[test]
    fn elements_are_what_is_multiplied() {
        assert_eq!(Shape::Product { m: 2, n: 3, k: 4 }.elements(), 24.0);
        let layer = Shape::Layer {
            batch: 2,
            channels: 3,
            filters: 5,
            side: 4,
            kernel: 3,
            permille: 500,
        };
        assert_eq!(layer.elements(), 2_160.0);
    }
}
