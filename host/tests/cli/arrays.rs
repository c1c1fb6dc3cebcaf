//! What NumPy and SciPy write; `data/arrays.py` wrote these.

use std::path::Path;

use crate::program::{Folder, run};

fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/data");
    folder.join(name).display().to_string()
}

/// The matrix of all files, with labels of two cities.
const TABLE: &str = "\
a,b,c,d,y
0,1.5,0,-2,Köln
0,0,0,0,Ulm
3,0,0,4,Köln
0,0.25,0,0,Ulm
1,1,1,1,Köln
0,0,2,0,Ulm
";

/// Each column of the targets is a fit, and a model, of its own.
#[test]
fn several_targets_are_several_models() {
    use ndarray::Array2;
    use warpfuse::io::{write_npy, write_vector};
    use warpfuse::matrix::Features;
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let x = Array2::from_shape_fn((12, 3), |(i, j)| ((7 * i + 5 * j) % 11) as f64);
    let y = Array2::from_shape_fn((12, 2), |(i, j)| x[[i, j]] - 2.0 * x[[i, 2]] + j as f64);
    write_npy(Path::new(&path("x.npy")), &Features::Dense(x)).expect("written");
    write_npy(Path::new(&path("y.npy")), &Features::Dense(y.clone())).expect("written");
    let fit = |target: &str, words: &[&str]| {
        let (x, target) = (path("x.npy"), path(target));
        let fixed = [
            "train", "ridge", &x, "--target", &target, "--device", "cpu", "--json",
        ];
        run(fixed.iter().chain(words))
    };
    let model = path("model.safetensors");
    let together = fit("y.npy", &["-o", &model]).expect_code(0);
    let lines: Vec<serde_json::Value> = together
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect();
    assert_eq!(lines.len(), 2);
    for (number, line) in lines.iter().enumerate() {
        let single = format!("y{number}.npy");
        write_vector(Path::new(&path(&single)), &y.column(number).to_vec()).expect("written");
        let alone = fit(&single, &[]).expect_code(0).json();
        assert_eq!(line["target"], number);
        assert_eq!((&line["coef"], &line["r2"]), (&alone["coef"], &alone["r2"]));
        let saved = path(&format!("model.{number}.safetensors"));
        assert!(Path::new(&saved).exists(), "{saved}");
    }
    assert!(!Path::new(&model).exists());
    let refused = fit("y.npy", &["-o", "-"]).expect_code(1);
    assert!(
        refused.stderr.contains("expected one target"),
        "{}",
        refused.stderr
    );
}

#[test]
fn sparse_matrices_halves_and_texts_are_what_they_were() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let model = folder.path("model");
    let fit = |words: &[&str]| {
        let fixed = [
            "train", "logreg", "--device", "cpu", "--tol", "1e-10", "--json", "-o", &model,
        ];
        run(fixed.iter().chain(words)).expect_code(0).json()
    };
    let near = |found: &serde_json::Value, expected: &serde_json::Value, file: &str| {
        let numbers = |fit: &serde_json::Value| -> Vec<f64> {
            serde_json::from_value(fit["coef"].clone()).expect("numbers")
        };
        for (a, b) in numbers(found).into_iter().zip(numbers(expected)) {
            assert!((a - b).abs() <= 1e-9, "{file}: {a} instead of {b}");
        }
        assert_eq!(found["classes"], expected["classes"], "{file}");
    };
    let expected = fit(&[&table, "--target-column", "y"]);
    let labels = data("labels.npy");
    for file in ["csr.npz", "csc.npz", "coo.npz", "half.npy"] {
        near(&fit(&[&data(file), "--target", &labels]), &expected, file);
    }
    near(&fit(&[&data("texts.npz")]), &expected, "texts.npz");
    near(
        &fit(&[&data("texts.npz"), "--target-column", "y"]),
        &expected,
        "texts.npz",
    );
    let shown = fit(&[&data("csr.npz"), "--target", &labels]);
    assert_eq!(
        (&shown["rows"], &shown["cols"], &shown["nnz"]),
        (&6.into(), &4.into(), &10.into())
    );
    // Predictions are texts again, as NumPy saves them, and are read as targets.
    let predictions = folder.path("predictions.npy");
    let predict = ["predict", &model, &data("csr.npz"), "--device", "cpu"];
    run(predict.iter().chain(&["-o", &predictions])).expect_code(0);
    let plain = run(predict).expect_code(0).stdout;
    let texts = warpfuse::io::read_text_vector(&predictions).expect("read");
    let lines: Vec<String> = plain.lines().map(str::to_owned).collect();
    assert_eq!(texts, Some(lines));
    let bytes = fit(&[&data("half.npy"), "--target", &data("bytes.npy")]);
    assert_eq!(bytes["classes"], serde_json::json!(["K", "U"]));
    let predicted = run([
        "predict",
        &model,
        &data("coo.npz"),
        "--target",
        &data("bytes.npy"),
        "--device",
        "cpu",
    ]);
    let predicted = predicted.expect_code(0);
    assert_eq!(predicted.stdout.lines().count(), 6);
    assert!(
        predicted.stderr.contains("accuracy"),
        "{}",
        predicted.stderr
    );
}

#[test]
fn texts_are_no_numbers_and_sparse_matrices_have_no_targets() {
    let texts = run(["train", "ridge", &data("texts.npz"), "--device", "cpu"]).expect_code(1);
    assert!(texts.stderr.contains("the text `Köln`"), "{}", texts.stderr);
    let named = [
        "train",
        "ridge",
        &data("csr.npz"),
        "--target-column",
        "data",
        "--device",
        "cpu",
    ];
    let sparse = run(named).expect_code(1);
    assert!(sparse.stderr.contains("--target"), "{}", sparse.stderr);
}

/// A number per row may come as text: targets, weights, offsets, groups.
#[test]
fn numbers_of_rows_may_be_text() {
    use ndarray::Array2;
    use warpfuse::io::{write_npy, write_vector};
    use warpfuse::matrix::Features;
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let x = Array2::from_shape_fn((12, 3), |(i, j)| ((7 * i + 5 * j) % 11) as f64);
    write_npy(Path::new(&path("x.npy")), &Features::Dense(x)).expect("written");
    let columns = [("y", 0.75), ("w", 0.5), ("o", 0.25)];
    for (name, step) in columns {
        let numbers: Vec<f64> = (0..12).map(|i| step * f64::from(i * i % 7)).collect();
        write_vector(path(&format!("{name}.npy")), &numbers).expect("written");
        let lines: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        folder.file(&format!("{name}.txt"), lines);
    }
    let fit = |extension: &str| {
        let [y, w, o] = columns.map(|(name, _)| path(&format!("{name}.{extension}")));
        let x = path("x.npy");
        let words = [
            "train",
            "ridge",
            &x,
            "--target",
            &y,
            "--sample-weight",
            &w,
            "--offset",
            &o,
            "--device",
            "cpu",
            "--json",
        ];
        run(words).expect_code(0).json()["coef"].clone()
    };
    assert_eq!(fit("txt"), fit("npy"));
    let x = path("x.npy");
    let bad = folder.file("bad.txt", "1\n2\nthree\n");
    let refused = run(["train", "ridge", &x, "--target", &bad, "--device", "cpu"]).expect_code(1);
    let words = "bad.txt:3:1: expected one finite number per line, found `three`";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    // What is expected and what was found are the right way round.
    let model = folder.path("model");
    let narrow = folder.file("narrow.svm", "1 1:1\n2 2:2\n3 1:3\n");
    run(["train", "ridge", &narrow, "--device", "cpu", "-o", &model]).expect_code(0);
    let wide = run(["predict", &model, &x, "--device", "cpu"]).expect_code(1);
    let words = "expected at most 2 columns, found data of 3";
    assert!(wide.stderr.contains(words), "{}", wide.stderr);
}
