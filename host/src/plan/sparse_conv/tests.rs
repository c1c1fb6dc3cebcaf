use gpu_kernels::sparse_conv::Pieces;

use super::*;
use crate::plan::limits::DeviceLimits;

/// 16-bit inputs, and weights of one byte or both.
fn shorts(weights: u32) -> Pieces {
    Pieces {
        inputs: 2,
        weights,
        bytes: 1,
    }
}

fn h200() -> DeviceLimits {
    DeviceLimits::known("h200").expect("a known device")
}

#[test]
fn the_layer_of_the_source_takes_one_block_per_sm() {
    let tiles = tiles(&ConvShape::of_the_source(), shorts(2), &h200()).expect("tensor cores");
    let t = tiles.geometry;
    assert_eq!((t.tile, t.inputs, t.tiles), ([8, 16], [10, 18], [4, 2]));
    assert_eq!((t.filter_tiles, t.part, t.parts), (16, 128, 4));
    assert_eq!((tiles.blocks, tiles.pools), (128, true));
}

#[test]
fn tiles_that_cut_windows_leave_pooling_to_another_launch() {
    let shape = ConvShape {
        pool: Some(Pool::max(3)),
        ..ConvShape::of_the_source()
    };
    assert!(
        !tiles(&shape, shorts(2), &h200())
            .expect("tensor cores")
            .pools
    );
    let overlapping = Pool {
        stride: [1; 2],
        ..Pool::max(2)
    };
    let shape = ConvShape {
        pool: Some(overlapping),
        ..shape
    };
    assert!(
        !tiles(&shape, shorts(2), &h200())
            .expect("tensor cores")
            .pools
    );
}

fn work(nnz: usize, steps: Option<u64>) -> ConvWork {
    ConvWork {
        nnz,
        longest: nnz / 512,
        integers: steps.is_some(),
        pieces: steps.map(|_| shorts(2)),
        bytes: if steps.is_some() { 2 } else { 4 },
        sum_bytes: 4,
        finite: true,
        zeros: 0,
        steps,
    }
}

#[test]
fn tensor_cores_are_for_integers_with_many_nonzeros() {
    let shape = ConvShape::of_the_source();
    let strategy = |work| plan(&shape, &work, &h200()).strategy;
    let many = work(512 * 512, Some(16 * 80));
    assert_eq!(strategy(many), ConvStrategy::Tensor);
    assert_ne!(strategy(work(512 * 4, Some(16 * 70))), ConvStrategy::Tensor);
    let floats = work(512 * 512, None);
    assert_eq!(strategy(floats), ConvStrategy::Staged);
    assert!(plan_with(ConvStrategy::Tensor, &shape, &floats, &h200()).is_none());
}

#[test]
fn weights_of_a_byte_take_half_of_the_products() {
    let shape = ConvShape::of_the_source();
    let long = work(512 * 512, Some(16 * 80));
    let short = ConvWork {
        pieces: Some(shorts(1)),
        ..long
    };
    let us = |work| {
        let plan = plan_with(ConvStrategy::Tensor, &shape, &work, &h200()).expect("integers");
        let Tiles::Tensor(tiles) = plan.tiles else {
            panic!("tiles of tensor cores, found {:?}", plan.tiles);
        };
        (tiles.pieces.weights, plan.predicted_us[0].1)
    };
    let (of_long, of_short) = (us(long), us(short));
    assert_eq!((of_long.0, of_short.0), (2, 1));
    assert!(of_short.1 < of_long.1, "{of_short:?}");
}

#[test]
fn filters_that_are_not_sparse_are_multiplied_as_dense_ones() {
    let shape = ConvShape::of_the_source();
    let plan = |percent: usize| plan(&shape, &work(512 * 512 * 9 * percent / 100, None), &h200());
    assert_eq!(plan(10).strategy, ConvStrategy::Staged);
    let dense = plan(100);
    assert_eq!(dense.strategy, ConvStrategy::Lowered);
    // The reason is in the text: what each was predicted to take.
    assert!(dense.to_string().contains("predicted: lowered"), "{dense}");
    let grouped = ConvShape { groups: 2, ..shape };
    let dense = work(512 * 512 * 9, None);
    assert!(plan_with(ConvStrategy::Lowered, &grouped, &dense, &h200()).is_none());
}

#[test]
fn zeros_are_skipped_where_they_are_said_to_be_many() {
    let shape = ConvShape {
        batch: 16,
        ..ConvShape::of_the_source()
    };
    let plan = |zeros| {
        let work = ConvWork {
            zeros,
            ..work(512 * 512, None)
        };
        plan(&shape, &work, &h200()).strategy
    };
    assert_eq!(plan(0), ConvStrategy::Staged);
    assert_eq!(plan(950), ConvStrategy::Skip);
}

#[test]
fn infinite_weights_are_not_multiplied_by_what_is_outside() {
    let shape = ConvShape::of_the_source();
    let infinite = ConvWork {
        finite: false,
        zeros: 950,
        ..work(512 * 512, None)
    };
    for strategy in [ConvStrategy::Staged, ConvStrategy::Skip] {
        assert!(plan_with(strategy, &shape, &infinite, &h200()).is_none());
    }
    assert_eq!(
        plan(&shape, &infinite, &h200()).strategy,
        ConvStrategy::Lowered
    );
}

#[test]
fn ranges_hold_what_outputs_meet() {
    // Of 256 outputs of 7 × 7 maps with a border: five images and a part of one before and after.
    let shape = ConvShape {
        batch: 16,
        padding: [1; 2],
        ..ConvShape::new(64, [7; 2], 512, [3; 2])
    };
    let tiles = staged_tiles(&shape, 4, &h200()).expect("it fits");
    let (lanes, image) = (32 * tiles.outputs as usize, 81);
    let place = |output: usize| {
        let (cell, of) = (output % 49, output / 49);
        of * image + cell / 7 * 9 + cell % 7
    };
    let outputs = 16 * 49;
    for first in (0..outputs).step_by(lanes) {
        let last = (first + lanes - 1).min(outputs - 1);
        let end = place(last) + 2 * 9 + 2 + 1;
        let found = end - place(first) / 4 * 4;
        assert!(found <= tiles.geometry.pitch as usize, "{first}: {found}");
    }
    let strided = ConvShape {
        stride: [2; 2],
        ..shape
    };
    assert!(skip_bands(&strided, [4, 4], &h200()).is_none());
    assert!(staged_tiles(&shape, 8, &h200()).is_none());
}

#[test]
fn shapes_are_refused_with_a_reason() {
    let good = ConvShape::of_the_source();
    let refused = |shape: ConvShape| shape.check().expect_err("refused").to_string();
    let groups = ConvShape { groups: 3, ..good };
    assert!(refused(groups).contains("3 groups"));
    let side = ConvShape {
        kernel: [12, 3],
        ..good
    };
    assert!(refused(side).contains("at most 11"));
    let large = ConvShape {
        batch: 1 << 14,
        ..good
    };
    assert!(refused(large).contains("split the batch"));
    let none = ConvShape {
        stride: [0, 1],
        ..good
    };
    assert!(refused(none).contains("stride"));
    let huge = ConvShape {
        padding: [usize::MAX, 0],
        ..good
    };
    assert!(huge.check().is_err());
}
