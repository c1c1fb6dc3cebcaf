//! One-dimensional convolution, tap by tap.

/// Which inputs meet which taps; x is zero outside its length.
#[derive(Debug, Clone, Copy)]
pub struct Conv1d {
    /// Elements of an input channel.
    pub len: usize,
    /// Elements of an output channel.
    pub out_len: usize,
    /// Output channels.
    pub out_channels: usize,
    /// Input channels of a group.
    pub in_per_group: usize,
    /// Output channels of a group.
    pub out_per_group: usize,
    /// Taps of a filter.
    pub taps: usize,
    /// From one output's input to the next.
    pub stride: usize,
    /// From one tap's input to the next.
    pub dilation: usize,
    /// Zeros before the input.
    pub before: usize,
}

/// All outputs, and for each the sum of the magnitudes of its products, which error bounds are relative to.
///
/// # Panics
/// When a slice is too short for the shape.
pub fn convolve<T: Copy + Into<f64>>(
    shape: &Conv1d,
    x: &[T],
    filters: &[T],
) -> (Vec<f64>, Vec<f64>) {
    let mut results = (Vec::new(), Vec::new());
    for o in 0..shape.out_channels {
        for i in 0..shape.out_len {
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for c in 0..shape.in_per_group {
                let channel = o / shape.out_per_group * shape.in_per_group + c;
                for k in 0..shape.taps {
                    let tap = filters[(o * shape.in_per_group + c) * shape.taps + k].into();
                    let at = (i * shape.stride + k * shape.dilation).checked_sub(shape.before);
                    let inside = at.filter(|at| *at < shape.len);
                    let x = inside.map_or(0.0, |at| x[channel * shape.len + at].into());
                    sum += tap * x;
                    magnitude += (tap * x).abs();
                }
            }
            results.0.push(sum);
            results.1.push(magnitude);
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_one_by_hand() {
        let shape = Conv1d {
            len: 3,
            out_len: 3,
            out_channels: 1,
            in_per_group: 1,
            out_per_group: 1,
            taps: 3,
            stride: 1,
            dilation: 1,
            before: 1,
        };
        let (values, magnitudes) = convolve(&shape, &[1.0, 2.0, 4.0], &[1.0, 10.0, -1.0]);
        assert_eq!(values, [8.0, 17.0, 42.0]);
        assert_eq!(magnitudes, [12.0, 25.0, 42.0]);
    }
}
