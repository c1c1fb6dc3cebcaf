//! `train hits`, `train pagerank`, `train svd`: numbers, files, reports.

use crate::program::{Folder, diabetes, number, numbers, run, run_with};

/// 1 → 3, 2 → 3, 3 → 1; node 4 has no edges, and nothing in the file shows that it is a column.
const GRAPH: &str = "%%MatrixMarket matrix coordinate pattern general\n4 4 3\n1 3\n2 3\n3 1\n";

#[test]
fn hits_are_scores_that_add_up_to_one() {
    let folder = Folder::new();
    let (graph, hubs) = (folder.file("g.mtx", GRAPH), folder.path("hubs.txt"));
    let arguments = [
        "train", "hits", &graph, "--device", "cpu", "--json", "--hubs", &hubs,
    ];
    let found = run(arguments).expect_code(0).json();
    assert_eq!(found["model"], "hits");
    let authorities = numbers(&found, "authorities");
    assert!((authorities[2] - 1.0).abs() < 1e-7, "{found}");
    let hubs = numbers(&found, "hubs");
    assert!(
        (hubs[0] - 0.5).abs() < 1e-7 && (hubs[1] - 0.5).abs() < 1e-7,
        "{found}"
    );
    assert_eq!(
        folder
            .read("hubs.txt")
            .iter()
            .filter(|byte| **byte == b'\n')
            .count(),
        4
    );
}

#[test]
fn page_rank_knows_dangling_nodes_and_personalisation() {
    let folder = Folder::new();
    let graph = folder.file("g.mtx", GRAPH);
    let arguments = [
        "train",
        "pagerank",
        &graph,
        "--device",
        "cpu",
        "--json",
        "--tol",
        "1e-12",
        "--max-iter",
        "500",
    ];
    let found = run(arguments).expect_code(0).json();
    let scores = numbers(&found, "scores");
    // Node 4 dangles: x₄ = x₂ = (0.15 + 0.85·x₄) / 4.
    let jumps = 0.15 / (4.0 - 0.85);
    assert!(
        (scores[3] - jumps).abs() < 1e-10 && (scores[1] - jumps).abs() < 1e-10,
        "{found}"
    );
    assert!((scores.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{found}");

    let weights = folder.path("y.npy");
    run([
        "synth",
        "dense",
        "--rows",
        "3",
        "--cols",
        "1",
        "-o",
        &folder.path("x.npy"),
        "--target",
        &weights,
    ])
    .expect_code(0);
    let refused = run(["train", "pagerank", &graph, "--personalisation", &weights]).expect_code(1);
    assert!(
        refused.stderr.contains("each of the 4 nodes, found 3"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_sparse_graph_is_as_wide_as_it_is_tall() {
    let graph = "0 1:1\n0 1:1\n0 2:1\n";
    let arguments = ["train", "pagerank", "-", "--device", "cpu", "--json"];
    let found = run_with(arguments, graph.as_bytes()).expect_code(0).json();
    assert_eq!(numbers(&found, "scores").len(), 3);
    let refused = run_with(arguments, b"0 1:1 5:1\n0 1:1\n").expect_code(1);
    assert!(
        refused.stderr.contains("2 rows and 5 columns"),
        "{}",
        refused.stderr
    );
}

#[test]
fn an_iteration_that_stops_early_counts_when_strict() {
    let folder = Folder::new();
    let graph = folder.file("g.mtx", GRAPH);
    let run = run([
        "train",
        "pagerank",
        &graph,
        "--device",
        "cpu",
        "--max-iter",
        "2",
        "--strict",
    ])
    .expect_code(3);
    assert!(
        run.stderr.contains("NOT CONVERGED after 2 products"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("NOT CONVERGED"), "{}", run.stdout);
}

#[test]
fn singular_values_and_coordinates_agree() {
    let folder = Folder::new();
    let (v, coordinates) = (folder.path("v.npy"), folder.path("u.npy"));
    let data = diabetes();
    let arguments = [
        "train",
        "svd",
        &data,
        "--device",
        "cpu",
        "-k",
        "3",
        "--json",
        "-o",
        &v,
        "--transformed",
        &coordinates,
    ];
    let found = run(arguments).expect_code(0).json();
    let sigma = numbers(&found, "singular_values");
    // scikit-learn's TruncatedSVD(3, algorithm="arpack") on the same data.
    let expected = [2.0060435563947223, 1.2216053690118973, 1.0981649507815308];
    for (found, expected) in sigma.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-9 * expected, "{sigma:?}");
    }
    assert!(found.get("components").is_none(), "{found}");
    assert_eq!(number(&found, "cols"), 10.0);
    // The squared entries of a column of coordinates add up to σ².
    let fit = run([
        "train",
        "svd",
        &coordinates,
        "--device",
        "cpu",
        "-k",
        "3",
        "--json",
    ])
    .expect_code(0)
    .json();
    for (found, expected) in numbers(&fit, "singular_values").iter().zip(&sigma) {
        assert!((found - expected).abs() <= 1e-9 * expected, "{fit}");
    }
    let text = run(["train", "svd", &data, "--centre", "--device", "cpu"]).expect_code(0);
    assert!(
        text.stdout.contains("σ[1]") && text.stdout.contains("of the variance"),
        "{}",
        text.stdout
    );
}
