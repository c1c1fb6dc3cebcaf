//! An evolutionary search over a list of possible points: (µ + 1), one child at a time.
//!
//! Parents are among the fastest so far. A child has each coordinate from one of two parents, and some from any point at all;
//! it becomes the nearest point that was not tried. So children obey all constraints, whatever they are.
//!
//! No crate does this: those that are kept well (argmin, egobox, genetic_algorithm) search boxes of numbers or genes of their
//! own, where most of what they propose breaks the constraints of a space; the few lines below take points as they come.
//!
//! Source: H.-G. Beyer and H.-P. Schwefel, Evolution strategies: a comprehensive introduction, 2002.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::space::Scaled;
use super::{Outcome, Point};

/// µ.
const PARENTS: usize = 6;
/// Points that are tried before children are made: the fastest by prediction, else at random.
const FIRST: usize = 6;
/// Of this number of coordinates one is taken from any point instead of a parent.
const MUTATIONS: u32 = 4;

/// The next point; none when all have been tried.
pub(super) fn next(points: &[Point], tried: &[Option<Outcome>], seed: u64) -> Option<usize> {
    let untried: Vec<usize> = (0..points.len()).filter(|&i| tried[i].is_none()).collect();
    let count = points.len() - untried.len();
    // A function of what is known: a search that goes on after a kill is the search that was killed.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(count as u64));
    let mut timed: Vec<(usize, f64)> = (0..points.len())
        .filter_map(|i| Some((i, tried[i].as_ref()?.median_us()?)))
        .collect();
    timed.sort_by(|a, b| a.1.total_cmp(&b.1));
    if untried.is_empty() {
        return None;
    }
    if count < FIRST || timed.is_empty() {
        return first(points, &untried, &mut random);
    }
    timed.truncate(PARENTS);
    let parent = |random: &mut Xoshiro256PlusPlus| timed[random.random_range(0..timed.len())].0;
    let (a, b) = (parent(&mut random), parent(&mut random));
    let child = child(points, (a, b), &mut random);
    let scaled = Scaled::of(points);
    let distance = |i: usize| scaled.distance(&child, &points[i].coordinates);
    let prior = |i: usize| points[i].predicted_us.unwrap_or(f64::INFINITY);
    let nearer = |a: &usize, b: &usize| {
        let by_prior = || prior(*a).total_cmp(&prior(*b));
        distance(*a).total_cmp(&distance(*b)).then_with(by_prior)
    };
    untried.into_iter().min_by(nearer)
}

/// The fastest by prediction; any where nothing is predicted.
fn first(points: &[Point], untried: &[usize], random: &mut Xoshiro256PlusPlus) -> Option<usize> {
    let any = untried[random.random_range(0..untried.len())];
    let predicted = untried
        .iter()
        .filter(|i| points[**i].predicted_us.is_some());
    let us = |i: &usize| points[*i].predicted_us.unwrap_or(f64::INFINITY);
    let fastest = predicted.min_by(|a, b| us(a).total_cmp(&us(b)));
    Some(fastest.copied().unwrap_or(any))
}

fn child(points: &[Point], (a, b): (usize, usize), random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let axes = points[a].coordinates.len();
    (0..axes)
        .map(|axis| {
            let from = match random.random_range(0..MUTATIONS) {
                0 => random.random_range(0..points.len()),
                turn if turn % 2 == 1 => a,
                _ => b,
            };
            points[from].coordinates.get(axis).copied().unwrap_or(0.0)
        })
        .collect()
}
