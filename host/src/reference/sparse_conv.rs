//! Convolutional layers, weight by weight.

/// Sizes of a layer; pairs are rows and columns.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    /// Images.
    pub batch: usize,
    /// Input channels of a group.
    pub in_per_group: usize,
    /// Rows and columns of an input channel.
    pub size: [usize; 2],
    /// Filters.
    pub filters: usize,
    /// Filters of a group.
    pub out_per_group: usize,
    /// Rows and columns of a filter.
    pub kernel: [usize; 2],
    /// From one output's input to the next.
    pub stride: [usize; 2],
    /// Zeros before.
    pub padding: [usize; 2],
    /// From one tap's input to the next.
    pub dilation: [usize; 2],
    /// Rows and columns of the convolution's result.
    pub out: [usize; 2],
    /// Whether negative sums become 0.
    pub rectify: bool,
}

/// Windows of pooling.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// Whether the mean is taken, not the largest.
    pub average: bool,
    /// Rows and columns of a window.
    pub window: [usize; 2],
    /// From one to the next.
    pub stride: [usize; 2],
    /// Rows and columns of the result.
    pub out: [usize; 2],
}

/// Sums with bias, images × filters × rows × columns, and for each the sum of the magnitudes of its terms. `input` gives the
/// value of (image, channel, row, column), `weights` are dense, filters × channels of a group × rows × columns; a zero
/// weight contributes nothing.
///
/// # Panics
/// When an array is too short.
pub fn convolve(
    layer: &Layer,
    input: impl Fn([usize; 4]) -> f64,
    weights: &[f64],
    bias: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let mut results = (Vec::new(), Vec::new());
    for image in 0..layer.batch {
        for filter in 0..layer.filters {
            for row in 0..layer.out[0] {
                for col in 0..layer.out[1] {
                    let at = [image, filter, row, col];
                    let (sum, magnitude) = one(layer, &input, weights, at);
                    let bias = bias.get(filter).copied().unwrap_or(0.0);
                    let sum = sum + bias;
                    let rectified = layer.rectify && sum < 0.0;
                    results.0.push(if rectified { 0.0 } else { sum });
                    results.1.push(magnitude + bias.abs());
                }
            }
        }
    }
    results
}

/// A sum without bias.
fn one(
    layer: &Layer,
    input: &impl Fn([usize; 4]) -> f64,
    weights: &[f64],
    [image, filter, row, col]: [usize; 4],
) -> (f64, f64) {
    let [height, width] = layer.kernel;
    let first = filter / layer.out_per_group * layer.in_per_group;
    let (mut sum, mut magnitude) = (0.0, 0.0);
    for channel in 0..layer.in_per_group {
        for i in 0..height {
            let Some(y) = place(layer, 0, row, i) else {
                continue;
            };
            let start = ((filter * layer.in_per_group + channel) * height + i) * width;
            for (j, &weight) in weights[start..start + width].iter().enumerate() {
                // Most are zero: where they meet the input is not asked.
                if weight == 0.0 {
                    continue;
                }
                if let Some(x) = place(layer, 1, col, j) {
                    let product = weight * input([image, first + channel, y, x]);
                    sum += product;
                    magnitude += product.abs();
                }
            }
        }
    }
    (sum, magnitude)
}

/// Where tap `tap` of output `out` meets the input, if inside.
fn place(layer: &Layer, axis: usize, out: usize, tap: usize) -> Option<usize> {
    let at = out * layer.stride[axis] + tap * layer.dilation[axis];
    let at = at.checked_sub(layer.padding[axis])?;
    (at < layer.size[axis]).then_some(at)
}

/// The largest or the mean of windows over maps of `size` rows and columns.
///
/// # Panics
/// When maps are not whole.
pub fn pool(windows: &Windows, size: [usize; 2], maps: &[f64]) -> Vec<f64> {
    let mut results = Vec::new();
    for map in maps.chunks_exact(size[0] * size[1]) {
        for row in 0..windows.out[0] {
            for col in 0..windows.out[1] {
                let mut held = Vec::new();
                for i in 0..windows.window[0] {
                    for j in 0..windows.window[1] {
                        let (y, x) = (row * windows.stride[0] + i, col * windows.stride[1] + j);
                        held.push(map[y * size[1] + x]);
                    }
                }
                results.push(if windows.average {
                    held.iter().sum::<f64>() / held.len() as f64
                } else {
                    held.into_iter().fold(f64::NEG_INFINITY, f64::max)
                });
            }
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_one_by_hand() {
        let layer = Layer {
            batch: 1,
            in_per_group: 1,
            size: [2, 3],
            filters: 1,
            out_per_group: 1,
            kernel: [1, 3],
            stride: [1, 1],
            padding: [0, 1],
            dilation: [1, 1],
            out: [2, 3],
            rectify: true,
        };
        let x = [1.0, 2.0, 4.0, -1.0, 0.0, 1.0];
        let input = |[_, _, row, col]: [usize; 4]| x[row * 3 + col];
        let (sums, magnitudes) = convolve(&layer, input, &[1.0, 10.0, -1.0], &[1.0]);
        assert_eq!(sums, [9.0, 18.0, 43.0, 0.0, 0.0, 11.0]);
        assert_eq!(magnitudes, [13.0, 26.0, 43.0, 11.0, 3.0, 11.0]);
        let windows = Windows {
            average: false,
            window: [2, 2],
            stride: [1, 1],
            out: [1, 2],
        };
        assert_eq!(pool(&windows, [2, 3], &sums), [18.0, 43.0]);
    }
}
