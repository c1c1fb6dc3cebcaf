//! A logarithmic axis.

/// Maps values to places on a line, by their logarithms.
#[derive(Debug, PartialEq)]
pub struct Axis {
    least: f64,
    most: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// An axis from `start` to `end` with room for all values; `None` where none is a positive number.
    pub fn over(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Option<Axis> {
        const MARGIN: f64 = 1.15;
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) = positive.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        (most > 0.0).then(|| Axis {
            least: least / MARGIN,
            most: most * MARGIN,
            start,
            end,
        })
    }

    /// Where a value lies.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value / self.least).ln() / (self.most / self.least).ln();
        self.start + share * (self.end - self.start)
    }

    /// Round values with their places: powers of ten, with twice and five times them where those are few.
    pub fn ticks(&self) -> Vec<(f64, f64)> {
        let tens = self.multiples(&[1.0]);
        let values = if tens.len() < 3 {
            self.multiples(&[1.0, 2.0, 5.0])
        } else {
            tens
        };
        values
            .into_iter()
            .map(|value| (value, self.place(value)))
            .collect()
    }

    fn multiples(&self, digits: &[f64]) -> Vec<f64> {
        let first = self.least.log10().floor() as i32;
        let last = self.most.log10().ceil() as i32;
        let values = (first..=last).flat_map(|power| {
            // Dividing by an exact power of ten keeps 0.2 what it is when printed.
            let scale = 10f64.powi(power.abs());
            digits.iter().map(move |digit| {
                if power < 0 {
                    digit / scale
                } else {
                    digit * scale
                }
            })
        });
        values
            .filter(|value| (self.least..=self.most).contains(value))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_are_equally_long_and_all_values_have_room() {
        let axis = Axis::over([10.0, 1e5].into_iter(), 0.0, 100.0).expect("values");
        let places: Vec<f64> = axis.ticks().iter().map(|tick| tick.1).collect();
        assert_eq!(axis.ticks().len(), 5);
        for pair in places.windows(3) {
            assert!((pair[2] - 2.0 * pair[1] + pair[0]).abs() < 1e-9);
        }
        assert!(places[0] > 0.0 && places[4] < 100.0);
    }

    #[test]
    fn few_decades_have_more_ticks() {
        let axis = Axis::over([0.3, 2.0].into_iter(), 0.0, 1.0).expect("values");
        let values: Vec<f64> = axis.ticks().iter().map(|tick| tick.0).collect();
        assert_eq!(values, [0.5, 1.0, 2.0]);
    }

    #[test]
    fn nothing_has_no_axis() {
        assert_eq!(
            Axis::over([f64::NAN, 0.0, -1.0].into_iter(), 0.0, 1.0),
            None
        );
    }
}
