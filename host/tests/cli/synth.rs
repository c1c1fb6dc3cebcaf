//! `synth`.

use crate::program::{Folder, run};

#[test]
fn a_seed_means_the_same_file_and_another_seed_another() {
    let folder = Folder::new();
    let make = |name: &str, seed: &str| {
        let path = folder.path(name);
        let laws = [
            "--columns",
            "zipf:1.1",
            "--lengths",
            "lognormal:0.5",
            "--seed",
            seed,
            "-o",
            &path,
        ];
        let shape = [
            "synth",
            "sparse",
            "--rows",
            "50",
            "--cols",
            "400",
            "--nnz-per-row",
            "7",
        ];
        run(shape.iter().chain(&laws)).expect_code(0);
        folder.read(name)
    };
    let first = make("a.svm", "3");
    assert_eq!(first, make("b.svm", "3"));
    assert_ne!(first, make("c.svm", "4"));
}

#[test]
fn every_format_can_be_trained_on() {
    let folder = Folder::new();
    for (kind, name, target) in [
        ("sparse", "a.svm", None),
        ("sparse", "a.wfc", None),
        ("sparse", "a.mtx", Some("a.target.npy")),
        ("dense", "d.npy", Some("d.target.npy")),
        ("dense", "d.libsvm", None),
        ("dense", "d.mtx", Some("d.target.npy")),
    ] {
        let path = folder.path(name);
        let mut make = vec![
            "synth", kind, "--rows", "300", "--cols", "5", "--noise", "0", "-o", &path,
        ];
        if kind == "sparse" {
            make.extend(["--nnz-per-row", "3"]);
        }
        let made = run(make).expect_code(0);
        assert!(
            made.stdout.is_empty() && made.stderr.contains("300 samples x 5 features"),
            "{made:?}"
        );
        let target = target.map(|target| folder.path(target));
        let mut train = vec![
            "train", "linreg", &path, "--device", "cpu", "--json", "--strict",
        ];
        train.extend(target.iter().flat_map(|target| ["--target", target]));
        let fit = run(train).expect_code(0).json();
        assert!(
            fit["r2"].as_f64().is_some_and(|r2| r2 >= 1.0 - 1e-9),
            "{name}: {fit}"
        );
    }
}

#[test]
fn shapes_of_known_data_sets_are_scaled() {
    let folder = Folder::new();
    let path = folder.path("rcv1.svm");
    let made = run(["synth", "shape", "rcv1", "--scale", "0.01", "-o", &path]).expect_code(0);
    assert!(
        made.stderr.contains("202 samples x 47236 features"),
        "{}",
        made.stderr
    );
}

#[test]
fn what_cannot_be_made_is_an_error_before_anything_is_made() {
    let folder = Folder::new();
    let (npy, other, data) = (
        folder.path("x.npy"),
        folder.path("x.csv"),
        folder.path("x.svm"),
    );
    let sparse = [
        "synth",
        "sparse",
        "--rows",
        "5",
        "--cols",
        "5",
        "--nnz-per-row",
        "2",
        "-o",
    ];
    for (path, words) in [(&npy, "holds dense data"), (&other, "a name that ends in")] {
        let refused = run(sparse.iter().chain(&[path.as_str()])).expect_code(1);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    let many = [
        "synth",
        "dense",
        "--rows",
        "99999999999",
        "--cols",
        "1000",
        "-o",
        &data,
    ];
    let refused = run(many).expect_code(1);
    assert!(refused.stderr.contains("memory"), "{}", refused.stderr);
    run(["synth", "shape", "mnist", "-o", &data]).expect_code(2);
    run(sparse.iter().chain(&[data.as_str(), "--columns", "zipf"])).expect_code(2);
}
