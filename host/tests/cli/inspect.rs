//! What is in a model, what its columns are called, and how two differ.

use crate::program::{Folder, run};
use crate::tables::trained;

#[test]
fn inspect_shows_a_model_and_the_difference_of_two() {
    let (folder, model) = trained(&[]);
    let shown = run(["inspect", &model]).expect_code(0).stdout;
    for words in [
        "2 categories: Bonn, Ulm",
        "city=Ulm",
        "rooms (missing)",
        "target",
        "price",
        "converged",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let json = run(["inspect", &model, "--json"]).expect_code(0).json();
    assert_eq!(
        json["feature_names"].as_array().map(Vec::len),
        json["coef"][0].as_array().map(Vec::len)
    );
    let same = run(["inspect", &model, "--diff", &model])
        .expect_code(0)
        .stdout;
    assert!(same.contains("do not differ"), "{same}");
    let (data, other) = (folder.path("homes.csv"), folder.path("other.safetensors"));
    run([
        "train",
        "linreg",
        &data,
        "--target-column",
        "price",
        "--missing",
        "mean",
        "--l2",
        "1",
        "--device",
        "cpu",
        "-o",
        &other,
    ])
    .expect_code(0);
    let diff = run(["inspect", &model, "--diff", &other])
        .expect_code(0)
        .stdout;
    assert!(
        diff.contains("l2") && diff.contains("rooms (missing)") && diff.contains("absent"),
        "{diff}"
    );
}

#[test]
fn a_page_shows_a_model_and_the_difference_of_two() {
    let (folder, model) = trained(&[]);
    let (other, page) = (folder.path("other.safetensors"), folder.path("page.html"));
    let homes = folder.path("homes.csv");
    let fit = [
        "train",
        "linreg",
        &homes,
        "--target-column",
        "price",
        "--missing",
        "mean",
        "--device",
        "cpu",
        "-o",
        &other,
    ];
    run(fit).expect_code(0);
    let json = run(["inspect", &model, "--json", "--report", &page])
        .expect_code(0)
        .json();
    let html = std::fs::read_to_string(&page).expect("a page");
    let again = run(["inspect", &model, "--report", &page]).expect_code(0);
    assert!(again.stdout.contains("city=Ulm"));
    assert_eq!(
        std::fs::read_to_string(&page).expect("a page"),
        html,
        "the same bytes"
    );
    for words in [
        "city=Ulm",
        "rooms (missing)",
        "2 categories: Bonn, Ulm",
        "price",
        "Converged",
    ] {
        assert!(html.contains(words), "{words}");
    }
    for coef in json["coef"][0].as_array().expect("a list") {
        assert!(
            html.contains(&format!("value=\"{}\"", coef.as_f64().expect("a number"))),
            "{coef}"
        );
    }
    run(["inspect", &model, "--diff", &other, "--report", &page]).expect_code(0);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(
        html.contains("absent") && html.contains("other.safetensors"),
        "{html}"
    );
}

#[test]
fn names_from_a_file_are_kept_shown_and_checked() {
    let folder = Folder::new();
    let (train, names, model) = (
        folder.path("t.svm"),
        folder.path("names.txt"),
        folder.path("m.safetensors"),
    );
    std::fs::write(&train, "1 1:1 3:1\n2 2:2 3:1\n3 1:3 2:1\n5 2:4\n").expect("written");
    std::fs::write(&names, "age\nheight\nweight\n").expect("written");
    let fit = run([
        "train", "ridge", &train, "--names", &names, "--device", "cpu", "-o", &model,
    ])
    .expect_code(0);
    assert!(fit.stdout.contains("height"), "{}", fit.stdout);
    let shown = run(["inspect", &model]).expect_code(0);
    assert!(
        shown.stdout.contains("weight") && shown.stdout.contains("index base"),
        "{}",
        shown.stdout
    );
    // A table with these names is matched by them.
    let table = folder.path("new.csv");
    std::fs::write(&table, "weight,age,height\n1,0,2\n").expect("written");
    let matched = run(["predict", &model, &table, "--device", "cpu"])
        .expect_code(0)
        .stdout;
    let all = run(["predict", &model, &train, "--device", "cpu", "-q"])
        .expect_code(0)
        .stdout;
    assert_eq!(matched.lines().next(), all.lines().nth(1));
    std::fs::write(&names, "age\nweight\nheight\n").expect("written");
    let other = run([
        "predict", &model, &train, "--names", &names, "--device", "cpu",
    ])
    .expect_code(1);
    assert!(
        other.stderr.contains("`height`") && other.stderr.contains("`weight`"),
        "{}",
        other.stderr
    );
}

#[test]
fn coefficients_are_numbered_as_the_file_numbers_columns() {
    let folder = Folder::new();
    let plain = folder.path("plain.csv");
    std::fs::write(&plain, "1,9,2\n2,8,1\n3,9,5\n4,7,1\n").expect("written");
    let fit = |file: &str, more: &[&str]| {
        let fixed = ["train", "ridge", file, "--device", "cpu"];
        run(fixed.iter().chain(more)).expect_code(0).stdout
    };
    let first = fit(&plain, &["--target-column", "1"]);
    assert!(
        first.contains("coef[2]") && first.contains("coef[3]") && !first.contains("coef[1]"),
        "{first}"
    );
    let matrix = folder.path("x.mtx");
    let entries = "%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 1\n2 2 1\n3 1 2\n";
    std::fs::write(&matrix, entries).expect("written");
    let targets = folder.path("y.npy");
    ndarray_npy::write_npy(&targets, &ndarray::array![1.0, 2.0, 4.0]).expect("written");
    let second = fit(&matrix, &["--target", &targets]);
    assert!(
        second.contains("coef[1]") && second.contains("coef[2]") && !second.contains("coef[0]"),
        "{second}"
    );
}
