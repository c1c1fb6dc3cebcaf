//! Nonzeros by filter and chunk of channels: the layout of [`gpu_kernels::sparse_conv`]'s staged strategy.

use gpu_kernels::sparse_conv::StagedGeometry;
use rayon::prelude::*;

use crate::matrix::filters::{FilterValue, SparseFilters};

/// The arrays of the staged strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvRanges {
    /// The first pair of each filter and chunk, an even number, and the one behind the last.
    pub starts: Vec<u32>,
    /// Distances in words from an output's first input, and the bits of weights.
    pub pairs: Vec<u32>,
}

/// The pairs of filters; a tap is `dilation` rows and columns from the next.
pub fn ranges<V: FilterValue>(
    filters: &SparseFilters<V>,
    dilation: [usize; 2],
    tiles: &StagedGeometry,
    bits: impl Fn(V) -> u32 + Sync,
) -> ConvRanges {
    let (chunk, chunks) = (tiles.chunk as usize, tiles.chunks as usize);
    let distance = |channel: usize, row: usize, col: usize| {
        let tap = row * dilation[0] * tiles.row as usize + col * dilation[1];
        (channel % chunk * tiles.pitch as usize + tap) as u32
    };
    let of_filter = |filter: usize| {
        let mut of_chunks = vec![Vec::new(); chunks];
        for (channel, n) in filters.of_filter(filter) {
            let at = distance(channel, n.row.into(), n.col.into());
            of_chunks[channel / chunk].extend([at, bits(n.value)]);
        }
        of_chunks
    };
    let all: Vec<Vec<Vec<u32>>> = (0..filters.shape().filters)
        .into_par_iter()
        .map(of_filter)
        .collect();
    let mut ranges = ConvRanges {
        starts: Vec::with_capacity(2 * all.len() * chunks),
        pairs: Vec::new(),
    };
    for pairs in all.into_iter().flatten() {
        let first = ranges.pairs.len() / 2;
        let end = first + pairs.len() / 2;
        ranges.starts.extend([first as u32, end as u32]);
        ranges.pairs.extend(pairs);
        // Two pairs are read at once.
        ranges.pairs.resize(4 * end.div_ceil(2), 0);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::filters::FilterShape;

    #[test]
    fn pairs_lie_by_filter_and_chunk() {
        let shape = FilterShape {
            filters: 2,
            channels: 3,
            height: 1,
            width: 2,
        };
        let weights = [1_i16, 2, 0, 3, 4, 0, 0, 0, 5, 0, 0, 6];
        let filters = SparseFilters::from_dense(shape, &weights).expect("filters");
        let tiles = StagedGeometry {
            row: 10,
            pitch: 100,
            chunk: 2,
            chunks: 2,
            ..StagedGeometry::default()
        };
        let found = ranges(&filters, [1, 3], &tiles, |value| value as u32);
        assert_eq!(found.starts, [0, 3, 4, 5, 6, 7, 8, 9]);
        let pairs: Vec<[u32; 2]> = found.pairs.chunks(2).map(|p| [p[0], p[1]]).collect();
        let nothing = [0, 0];
        let first = [[0, 1], [3, 2], [103, 3], nothing, [0, 4], nothing];
        let second = [[100, 5], nothing, [3, 6], nothing];
        assert_eq!(pairs, [&first[..], &second[..]].concat());
    }
}
