//! Rankings and decompositions on every device, against networkx, numpy and scikit-learn (`spectral.py` made
//! the figures), and against what defines them.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use ndarray::{Array1, Array2, Axis};
use serde_json::Value;
use warpfuse::device::Device;
use warpfuse::learning::{Dangling, FitError, Hits, PageRank, SvdModel, TruncatedSvd};
use warpfuse::matrix::{Dtype, Element, Features, csr_from_parts};
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::{Pattern, Random, matrix};
use warpfuse_tests::tolerance::{Truth, growth, unit_roundoff};

use super::learning::fit_subset;
use super::suite::{self, Suite, Test};

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    add_of::<f32>(suite);
    add_of::<f64>(suite);
    suite.add(Test::new("spectral/wrong_graphs"), wrong_graphs);
    for (name, shape, components, pattern) in SHAPES {
        let name = format!("spectral/svd_{name}/f64");
        let test = Test::new(name).within(fit_subset(*shape));
        suite.add(test, move |device| {
            svd_of_shape(device, *shape, *components, *pattern)
        });
    }
    suite.add(Test::new("spectral/svd_identity/f64"), identity);
    suite.add(Test::new("spectral/svd_rank_2/f64"), rank_two);
}

fn add_of<T: Number>(suite: &mut Suite) {
    let test = |name: &str| Test::new(format!("spectral/{name}/{}", T::DTYPE));
    suite.add(test("hits"), hits::<T>);
    suite.add(test("page_rank"), page_rank::<T>);
    suite.add(test("svd").within(Subset::Full), svd::<T>);
}

/// Sizes straddle a warp; the last ones need restarts.
const SHAPES: &[(&str, (usize, usize), usize, Pattern)] = &[
    ("one_column", (50, 1), 1, Pattern::Dense),
    ("one_row", (1, 40), 1, Pattern::Dense),
    ("wide", (31, 90), 3, Pattern::Dense),
    ("square_33", (33, 33), 33, Pattern::Dense),
    ("tall_sparse", (400, 130), 5, Pattern::Zipf(12)),
];

fn figures() -> Result<Value> {
    Ok(serde_json::from_str(include_str!("spectral.json"))?)
}

fn numbers(value: &Value) -> Result<Vec<f64>> {
    Ok(serde_json::from_value(value.clone())?)
}

/// Every value as close as `bound`.
fn within(values: Vec<f64>, bound: f64) -> Truth {
    let bounds = vec![bound; values.len()];
    Truth { values, bounds }
}

/// Where iterations stop: a change that rounding still allows.
fn tolerance<T: Number>() -> f64 {
    (16.0 * unit_roundoff(T::DTYPE)).max(1e-13)
}

/// The graph as sparse and as dense features, and what is known about it.
fn graphs<T: Number>() -> Result<(Value, [Arc<Features<T>>; 2])> {
    let graph = figures()?["graph"].clone();
    let nodes = graph["nodes"].as_u64().context("nodes")? as usize;
    let mut dense = Array2::from_elem((nodes, nodes), T::default());
    let (mut offsets, mut indices, mut values) = (vec![0; nodes + 1], Vec::new(), Vec::new());
    for edge in graph["edges"].as_array().context("edges")? {
        let (from, to, weight): (usize, usize, f64) = serde_json::from_value(edge.clone())?;
        let weight = <T as Element>::from_f64(weight);
        dense[[from, to]] = weight;
        indices.push(to as u32);
        values.push(weight);
        offsets[from + 1..].fill(indices.len() as u64);
    }
    let sparse = csr_from_parts((nodes, nodes), offsets, indices, values)?;
    Ok((
        graph,
        [
            Features::Sparse(sparse).into(),
            Features::Dense(dense).into(),
        ],
    ))
}

/// With r = σ₂²/σ₁² the error is at most r / (1 − r) times the last change.
fn hits<T: Number>(device: &Device) -> Result<()> {
    let (known, graphs) = graphs::<T>()?;
    let ratio = known["gap"].as_f64().context("gap")?.powi(2);
    let rounding = growth(3 * 67 + 8, unit_roundoff(T::DTYPE));
    let bound = (rounding + tolerance::<T>()) / (1.0 - ratio);
    for graph in graphs {
        let model = Hits::params().tolerance(tolerance::<T>()).max_iter(300);
        let model = model.fit(device, graph)?;
        ensure!(model.converged(), "not converged: {:?}", model.report());
        let pairs = [(model.hubs(), "hubs"), (model.authorities(), "authorities")];
        for (found, name) in pairs {
            let truth = within(numbers(&known[name])?, bound);
            suite::check(device, "hits", found, &truth).context(name)?;
            let sum: f64 = found.iter().sum();
            ensure!((sum - 1.0).abs() < 1e-12, "{name} add up to {sum}");
        }
    }
    Ok(())
}

fn page_rank<T: Number>(device: &Device) -> Result<()> {
    let (_, graphs) = graphs::<T>()?;
    let rounding = growth(67 + 8, unit_roundoff(T::DTYPE));
    for case in figures()?["ranks"].as_array().context("ranks")? {
        let damping = case["damping"].as_f64().context("damping")?;
        let mut params = PageRank::params()
            .damping(damping)
            .tolerance(10.0 * tolerance::<T>())
            .max_iter(2000);
        if !case["personalisation"].is_null() {
            params = params.personalisation(numbers(&case["personalisation"])?);
        }
        if case["uniform"] == true {
            params = params.dangling(Dangling::Uniform);
        }
        let bound = (rounding + 10.0 * tolerance::<T>()) / (1.0 - damping);
        let truth = within(numbers(&case["scores"])?, bound);
        for graph in &graphs {
            let model = params.fit(device, graph.clone())?;
            ensure!(model.converged(), "not converged: {:?}", model.report());
            suite::check(device, "page rank", model.scores(), &truth)
                .with_context(|| format!("damping {damping}"))?;
        }
    }
    Ok(())
}

fn svd<T: Number>(device: &Device) -> Result<()> {
    let known = &figures()?["svd"];
    let rows: Vec<Vec<f64>> = serde_json::from_value(known["x"].clone())?;
    let x = Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat())?;
    let x = Arc::new(Features::Dense(x.mapv(<T as Element>::from_f64)));
    for case in known["cases"].as_array().context("cases")? {
        let params = TruncatedSvd::params(4).tolerance(1e-12);
        let params = match case["centred"] == true {
            true => params.centred(),
            false => params,
        };
        let model = params.fit(device, x.clone())?;
        ensure!(model.converged(), "not converged: {:?}", model.report());
        agree::<T>(device, &model, case)?;
    }
    Ok(())
}

/// A perturbation E of XᵀX turns a vector by ‖E‖ / gap at most (Davis and Kahan), and moves σ by ‖E‖ / σ.
fn agree<T: Number>(device: &Device, model: &SvdModel, case: &Value) -> Result<()> {
    let spectrum = numbers(&case["spectrum"])?;
    let unit = unit_roundoff(T::DTYPE);
    let error = spectrum[0].powi(2) * (growth(60 + 33 + 8, unit) + 1e-12 + 16.0 * unit);
    let sigma = numbers(&case["singular_values"])?;
    let bound = error / sigma[3];
    suite::check(
        device,
        "svd",
        model.singular_values(),
        &within(sigma.clone(), bound),
    )?;
    let components: Vec<Vec<f64>> = serde_json::from_value(case["components"].clone())?;
    for (i, (found, expected)) in model
        .components()
        .rows()
        .into_iter()
        .zip(components)
        .enumerate()
    {
        let neighbours = [i.checked_sub(1), Some(i + 1)].into_iter().flatten();
        let gaps = neighbours.map(|j| (spectrum[i].powi(2) - spectrum[j].powi(2)).abs());
        let gap = gaps.fold(f64::INFINITY, f64::min);
        let truth = within(expected, 2.0 * error / gap);
        suite::check(device, "svd", &found.to_vec(), &truth).with_context(|| format!("v {i}"))?;
    }
    let relative = 4.0 * error / spectrum[3].powi(2);
    let near = |values: Vec<f64>| Truth {
        bounds: values.iter().map(|value| relative * value).collect(),
        values,
    };
    let explained = near(numbers(&case["explained"])?);
    suite::check(device, "svd", model.explained_variance(), &explained)?;
    let ratio = near(numbers(&case["ratio"])?);
    suite::check(device, "svd", &model.explained_variance_ratio(), &ratio)
}

fn dense_of(features: &Features<f64>) -> Array2<f64> {
    features.to_dense().expect("it is small").into_owned()
}

/// What defines the triplets: VᵀV = I, XᵀX·v = σ²·v, and that no more than this is left of X.
fn defines_triplets(model: &SvdModel, x: &Array2<f64>, tolerance: f64) -> Result<()> {
    let v = model.components();
    let sigma = Array1::from(model.singular_values().to_vec());
    let largest = sigma.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let orthonormal = v.dot(&v.t()) - Array2::<f64>::eye(v.nrows());
    let off = orthonormal
        .iter()
        .fold(0.0_f64, |most, e| most.max(e.abs()));
    ensure!(off <= 1e-12, "VᵀV is off by {off:e}");
    let squares = (&sigma * &sigma).insert_axis(Axis(1));
    let residual = x.t().dot(&x.dot(&v.t())).t().to_owned() - v * &squares;
    let worst = residual.iter().fold(0.0_f64, |most, e| most.max(e.abs()));
    ensure!(
        worst <= tolerance * largest * largest,
        "XᵀX·v is off by {worst:e} of {:e}",
        largest * largest
    );
    // The largest singular value of what is left is at most the last one: ‖R·y‖ ≤ σₖ‖y‖.
    let rest = x - x.dot(&v.t()).dot(v);
    let mut y = Array1::from_elem(x.ncols(), 1.0);
    let mut left = 0.0;
    for _ in 0..200 {
        let next = rest.t().dot(&rest.dot(&y));
        left = next.dot(&next).sqrt().sqrt();
        y = next / (left * left).max(f64::MIN_POSITIVE);
    }
    let last = sigma[sigma.len() - 1];
    ensure!(
        left <= last * (1.0 + 1e-6) + 1e-9 * largest,
        "σ = {left} is left beyond the last, {last}"
    );
    Ok(())
}

fn svd_of_shape(
    device: &Device,
    shape: (usize, usize),
    components: usize,
    pattern: Pattern,
) -> Result<()> {
    let random = &mut Random::new(7);
    let features = matrix::<f64>(random, shape, pattern, |random| random.signed());
    let x = dense_of(&features);
    let params = TruncatedSvd::params(components).tolerance(1e-9);
    let features = Arc::new(features);
    let model = params.fit(device, features.clone())?;
    ensure!(model.converged(), "not converged: {:?}", model.report());
    defines_triplets(&model, &x, 1e-9)?;
    let coordinates = model.transform(device, features)?;
    let expected = x.dot(&model.components().t());
    let bound = growth(shape.1 + 8, unit_roundoff(Dtype::F64))
        * x.dot(&x.t()).diag().fold(0.0_f64, |a, b| a.max(*b)).sqrt();
    let flat = |a: &Array2<f64>| a.iter().copied().collect::<Vec<_>>();
    suite::check(
        device,
        "svd transform",
        &flat(&coordinates),
        &within(flat(&expected), bound),
    )
}

/// All singular values are equal: one direction says nothing about the others.
fn identity(device: &Device) -> Result<()> {
    let x = Array2::<f64>::eye(70) * 2.0;
    let model = TruncatedSvd::params(3).fit(device, Features::Dense(x.clone()))?;
    ensure!(
        model
            .singular_values()
            .iter()
            .all(|s| (s - 2.0).abs() < 1e-12),
        "{:?}",
        model.singular_values()
    );
    defines_triplets(&model, &x, 1e-9)
}

/// More components than the matrix has: the rest are zero, and orthonormal all the same.
fn rank_two(device: &Device) -> Result<()> {
    let random = &mut Random::new(5);
    let mut part = |shape| Array2::from_shape_simple_fn(shape, || random.signed());
    let x = part((50, 2)).dot(&part((2, 60)));
    let model = TruncatedSvd::params(4).fit(device, Features::Dense(x.clone()))?;
    let sigma = model.singular_values();
    ensure!(sigma[1] > 1.0 && sigma[2] < 1e-7 * sigma[0], "{sigma:?}");
    defines_triplets(&model, &x, 1e-9)
}

fn wrong_graphs(device: &Device) -> Result<()> {
    let dense = |x: Array2<f64>| Features::Dense(x);
    let empty = Hits::params().fit(device, dense(Array2::zeros((3, 4))));
    ensure!(empty == Err(FitError::NoEdges), "{empty:?}");
    let mut negative = Array2::<f64>::eye(3);
    negative[[2, 1]] = -1.0;
    let found = PageRank::params().fit(device, dense(negative));
    ensure!(
        matches!(found, Err(FitError::Edge { row: 2, .. })),
        "{found:?}"
    );
    let oblong = PageRank::params().fit(device, dense(Array2::zeros((3, 4))));
    ensure!(
        matches!(oblong, Err(FitError::NotSquare { .. })),
        "{oblong:?}"
    );
    let nobody = PageRank::params().fit(device, dense(Array2::zeros((4, 4))))?;
    ensure!(nobody.scores() == [0.25; 4], "{:?}", nobody.scores());
    for damping in [1.0, -0.1, f64::NAN] {
        let found = PageRank::params()
            .damping(damping)
            .fit(device, dense(Array2::eye(2)));
        ensure!(
            matches!(
                found,
                Err(FitError::Parameter {
                    name: "damping",
                    ..
                })
            ),
            "{found:?}"
        );
    }
    let many = TruncatedSvd::params(3).fit(device, dense(Array2::eye(2)));
    ensure!(
        matches!(
            many,
            Err(FitError::Parameter {
                name: "components",
                ..
            })
        ),
        "{many:?}"
    );
    Ok(())
}
