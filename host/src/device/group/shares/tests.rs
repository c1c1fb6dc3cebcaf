//! Sums and gatherings in shares: even ones, uneven ones, and none.

use super::super::tests::{expected, floats, run};
use super::*;

/// Columns of members and pieces, of which some members have none, or all.
const SHARED: [(usize, usize, usize); 9] = [
    (1, 5, 1),
    (2, 0, 1),
    (2, 1, 4),
    (3, 2, 1),
    (3, 7, 3),
    (4, 64, 16),
    (4, 65, 16),
    (3, 20_000, 32),
    (4, 3, 8),
];

#[test]
fn shares_are_all_columns_once_and_whole_pieces() {
    for (size, columns, piece) in SHARED {
        let shares = Shares::of_pieces(columns, piece, size);
        let each: Vec<_> = (0..size).map(|rank| shares.of(rank)).collect();
        assert_eq!((each[0].start, each[size - 1].end), (0, columns));
        for (one, next) in each.iter().zip(&each[1..]) {
            assert_eq!(one.end, next.start);
            assert!(
                one.len().is_multiple_of(piece) && one.len() <= next.len(),
                "{each:?}"
            );
        }
        assert!(each[size - 1].len() < shares.each() + (size + 1) * piece);
    }
    let all_but_one = Shares::of_pieces(65, 16, 4).of_first(64);
    assert_eq!([0, 3].map(|rank| all_but_one.of(rank)), [0..16, 48..64]);
}

#[test]
fn sums_of_shares_are_those_of_all() {
    for ((size, columns, piece), of_column) in SHARED.into_iter().flat_map(|of| [(of, 1), (of, 3)])
    {
        let shares = Shares::of_pieces(columns, piece, size);
        let len = of_column * columns;
        let found = run(size, |group| {
            let own = shares.of(group.rank());
            let own = own.start * of_column..own.end * of_column;
            let mut all = floats(group.rank(), len);
            let mut words: Vec<i64> = all.iter().map(|x| x.to_bits() as i64).collect();
            let (given, mut summed) = (all.clone(), words.clone());
            group.sum(&mut summed)?;
            group.sum_share(&mut words, &shares)?;
            assert_eq!(words[own.clone()], summed[own.clone()]);
            group.sum_share(&mut all, &shares)?;
            let is_other = |i: &usize| !own.contains(i);
            assert!((0..len).filter(is_other).all(|i| all[i] == given[i]));
            group.gather_share(&mut all, &shares)?;
            Ok::<_, GroupError>(all)
        });
        for found in found {
            assert_eq!(
                found,
                Ok(expected(size, len)),
                "{size} members, {columns} columns"
            );
        }
    }
}

#[test]
fn other_shares_name_the_member() {
    let found = run(3, |group| {
        let piece = if group.rank() == 2 { 2 } else { 1 };
        let shares = Shares::of_pieces(9, piece, 3);
        group.sum_share(&mut [0.0_f64; 9], &shares)
    });
    for found in found {
        assert!(
            matches!(found, Err(GroupError::Differs { rank: 2, .. })),
            "{found:?}"
        );
    }
}
