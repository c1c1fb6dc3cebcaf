use super::*;
use crate::plan::limits::DeviceLimits;

fn h200() -> DeviceLimits {
    DeviceLimits::known("h200").expect("a known device")
}

#[test]
fn the_layer_of_the_source_takes_one_block_per_sm() {
    let tiles = tiles(&ConvShape::of_the_source(), 2, &h200()).expect("tensor cores");
    let t = tiles.geometry;
    assert_eq!((t.tile, t.inputs, t.tiles), ([8, 16], [10, 18], [4, 2]));
    assert_eq!((t.filter_tiles, t.part, t.parts), (16, 256, 2));
    assert_eq!((tiles.blocks, tiles.pools), (128, true));
}

#[test]
fn tiles_that_cut_windows_leave_pooling_to_another_launch() {
    let shape = ConvShape {
        pool: Some(Pool::max(3)),
        ..ConvShape::of_the_source()
    };
    assert!(!tiles(&shape, 2, &h200()).expect("tensor cores").pools);
    let overlapping = Pool {
        stride: [1; 2],
        ..Pool::max(2)
    };
    let shape = ConvShape {
        pool: Some(overlapping),
        ..shape
    };
    assert!(!tiles(&shape, 2, &h200()).expect("tensor cores").pools);
}

#[test]
fn few_nonzeros_are_for_direct_and_many_for_tensor_cores() {
    let shape = ConvShape::of_the_source();
    let work = |nnz: usize, steps: u64| ConvWork {
        nnz,
        longest: nnz / 512,
        pieces: 2,
        bytes: 2,
        sum_bytes: 4,
        finite: true,
        zeros: 0,
        steps: Some(steps),
    };
    let strategy = |work| plan(&shape, &work, &h200()).strategy;
    assert_eq!(strategy(work(512 * 512, 16 * 80)), ConvStrategy::Tensor);
    assert_eq!(strategy(work(512 * 4, 16 * 70)), ConvStrategy::Direct);
    let floats = ConvWork {
        pieces: 0,
        steps: None,
        ..work(512 * 512, 0)
    };
    assert_eq!(strategy(floats), ConvStrategy::Direct);
    assert!(plan_with(ConvStrategy::Tensor, &shape, &floats, &h200()).is_none());
}

#[test]
fn filters_that_are_not_sparse_are_multiplied_as_dense_ones() {
    let shape = ConvShape::of_the_source();
    let work = |percent: usize| ConvWork {
        nnz: 512 * 512 * 9 * percent / 100,
        longest: 512 * 9,
        pieces: 0,
        bytes: 4,
        sum_bytes: 4,
        finite: true,
        zeros: 0,
        steps: None,
    };
    let plan = |percent| plan(&shape, &work(percent), &h200());
    assert_eq!(plan(2).strategy, ConvStrategy::Direct);
    let dense = plan(100);
    assert_eq!(dense.strategy, ConvStrategy::Lowered);
    // The reason is in the text: what each was predicted to take.
    assert!(dense.to_string().contains("predicted: lowered"), "{dense}");
    let grouped = ConvShape { groups: 2, ..shape };
    assert!(plan_with(ConvStrategy::Lowered, &grouped, &work(100), &h200()).is_none());
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
