//! Means of columns.

/// The mean of each column: numbers of their own, or read off sums that somebody has, which takes no memory.
///
/// ```
/// use warpfuse::matrix::ColumnMeans;
/// let (sums, means) = ([4.0, 6.0], ColumnMeans::from(vec![2.0, 3.0]));
/// let of_sums = ColumnMeans::of_sums(&sums, 2);
/// assert_eq!([of_sums.at(0), of_sums.at(1)], [means.at(0), means.at(1)]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMeans<'a>(Numbers<'a>);

#[derive(Debug, Clone, PartialEq)]
enum Numbers<'a> {
    Own(Vec<f64>),
    Of { sums: &'a [f64], rows: f64 },
}

impl<'a> ColumnMeans<'a> {
    /// Of columns with these sums over `rows` rows; zeros when there are none.
    pub fn of_sums(sums: &'a [f64], rows: usize) -> Self {
        let rows = rows.max(1) as f64;
        ColumnMeans(Numbers::Of { sums, rows })
    }

    /// The mean of column `j`.
    ///
    /// # Panics
    /// When there is no such column.
    pub fn at(&self, j: usize) -> f64 {
        match &self.0 {
            Numbers::Own(means) => means[j],
            Numbers::Of { sums, rows } => sums[j] / rows,
        }
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Numbers::Own(means) => means.len(),
            Numbers::Of { sums, .. } => sums.len(),
        }
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Vec<f64>> for ColumnMeans<'_> {
    fn from(means: Vec<f64>) -> Self {
        ColumnMeans(Numbers::Own(means))
    }
}
