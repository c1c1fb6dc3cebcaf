//! Tables as people have them: from a file to an evaluated model in one command, and predictions on others.

use crate::program::{Folder, number, numbers, run};

/// Homes with a text category, a missing value and a header; the price is 50·rooms + 30 in Ulm + 100.
const HOMES: &str = "\
city,rooms,garden,price
Ulm,3,yes,280
Bonn,2,no,200
Ulm,4,no,330
Bonn,5,yes,350
Ulm,NA,yes,305
Bonn,3,?,250
";

pub fn trained(extra: &[&str]) -> (Folder, String) {
    let folder = Folder::new();
    let (data, model) = (folder.path("homes.csv"), folder.path("model.safetensors"));
    std::fs::write(&data, HOMES).expect("written");
    let mut words = vec![
        "train",
        "linreg",
        &data,
        "--target-column",
        "price",
        "--missing",
        "indicator",
        "--l2",
        "1e-3",
        "--device",
        "cpu",
        "-o",
        &model,
        "--validation",
        &data,
    ];
    words.extend(extra);
    let run = run(words).expect_code(0);
    assert!(
        run.stdout.contains("city=Ulm") && run.stdout.contains("validation R²"),
        "{}",
        run.stdout
    );
    (folder, model)
}

#[test]
fn a_table_goes_from_file_to_evaluated_model_in_one_command() {
    let (folder, model) = trained(&[]);
    let homes = folder.path("homes.csv");
    let same = run(["evaluate", &model, &homes, "--device", "cpu", "--json"]).expect_code(0);
    assert!(number(&same.json(), "r2") > 0.99, "{}", same.stdout);
}

#[test]
fn columns_are_matched_by_name_and_unseen_categories_are_counted() {
    let (folder, model) = trained(&[]);
    let first = folder.path("first.csv");
    std::fs::write(
        &first,
        "city,rooms,garden\nUlm,3,yes\nBonn,4,no\nBonn,,no\n",
    )
    .expect("written");
    let shuffled = folder.path("shuffled.csv");
    std::fs::write(
        &shuffled,
        "garden,rooms,city\nyes,3,Ulm\nno,4,Bonn\nno,,Bonn\n",
    )
    .expect("written");
    let predict =
        |file: &str| run(["predict", &model, file, "--device", "cpu", "--json"]).expect_code(0);
    let (a, b) = (predict(&first), predict(&shuffled));
    assert_eq!(
        numbers(&a.json(), "predictions"),
        numbers(&b.json(), "predictions")
    );
    assert_eq!(a.stderr, "");

    let unseen = folder.path("unseen.csv");
    std::fs::write(
        &unseen,
        "city,rooms,garden\nKiel,3,no\nUlm,3,no\nKiel,4,no\n",
    )
    .expect("written");
    let seen = predict(&unseen);
    assert!(
        seen.stderr.contains("`city`")
            && seen.stderr.contains("in 2 rows")
            && seen.stderr.contains("`Kiel`"),
        "{}",
        seen.stderr
    );
    let refused = run([
        "predict", &model, &unseen, "--unseen", "refuse", "--device", "cpu",
    ])
    .expect_code(1);
    assert!(
        refused.stderr.contains("unseen.csv:2: ") && refused.stderr.contains("`Kiel`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn columns_that_lack_or_are_too_many_are_named() {
    let (folder, model) = trained(&[]);
    let file = folder.path("other.csv");
    std::fs::write(&file, "city,garden\nUlm,yes\n").expect("written");
    let lacking = run(["predict", &model, &file, "--device", "cpu"]).expect_code(1);
    assert!(
        lacking.stderr.contains("none called `rooms`"),
        "{}",
        lacking.stderr
    );

    std::fs::write(&file, "city,garden,age,rooms,color\nUlm,yes,1,3,red\n").expect("written");
    let extra = run(["predict", &model, &file, "--device", "cpu"]).expect_code(1);
    assert!(
        extra.stderr.contains("found `age`, `color` too"),
        "{}",
        extra.stderr
    );
    run([
        "predict",
        &model,
        &file,
        "--device",
        "cpu",
        "--extra-columns",
        "ignore",
    ])
    .expect_code(0);

    std::fs::write(&file, "Ulm,3,yes\n").expect("written");
    let nameless = run([
        "predict", &model, &file, "--device", "cpu", "--header", "auto",
    ]);
    assert_eq!(nameless.code, 1, "{}", nameless.stderr);
    run([
        "predict", &model, &file, "--device", "cpu", "--header", "no",
    ])
    .expect_code(0);
}

#[test]
fn missing_values_and_dates_are_refused_with_advice() {
    let folder = Folder::new();
    let file = folder.path("data.csv");
    let train = |more: &[&str]| {
        let mut words = vec![
            "train",
            "ridge",
            &file,
            "--target-column",
            "y",
            "--device",
            "cpu",
        ];
        words.extend(more);
        run(words)
    };
    std::fs::write(&file, "age,y\n1,2\n,3\n4,5\n").expect("written");
    let missing = train(&[]).expect_code(1);
    assert!(
        missing
            .stderr
            .contains("data.csv:3: expected a value in column `age`")
            && missing.stderr.contains("--missing mean"),
        "{}",
        missing.stderr
    );
    train(&["--missing", "mean"]).expect_code(0);

    std::fs::write(&file, "day,y\n2024-01-31,2\n2024-02-01,3\n2024-02-02,5\n").expect("written");
    let date = train(&[]).expect_code(1);
    assert!(
        date.stderr
            .contains("column `day`, found the date `2024-01-31`")
            && date.stderr.contains("--drop"),
        "{}",
        date.stderr
    );
    train(&["--categorical", "day"]).expect_code(0);
    std::fs::write(&file, "age,y\n1,2\n2,NA\n").expect("written");
    assert!(
        train(&["--missing", "mean"])
            .expect_code(1)
            .stderr
            .contains("target in column `y`")
    );
}

#[test]
fn text_targets_are_classes() {
    let folder = Folder::new();
    let (file, model) = (folder.path("flowers.csv"), folder.path("m.safetensors"));
    std::fs::write(
        &file,
        "length,kind\n1,setosa\n1.2,setosa\n3,virginica\n3.3,virginica\n",
    )
    .expect("written");
    run([
        "train",
        "logreg",
        &file,
        "--target-column",
        "kind",
        "--device",
        "cpu",
        "-o",
        &model,
    ])
    .expect_code(0);
    let labels = run(["predict", &model, &file, "--device", "cpu"]).expect_code(0);
    assert_eq!(labels.stdout, "setosa\nsetosa\nvirginica\nvirginica\n");
    assert!(labels.stderr.contains("accuracy 1"), "{}", labels.stderr);
    let numbers = run([
        "train",
        "ridge",
        &file,
        "--target-column",
        "kind",
        "--device",
        "cpu",
    ])
    .expect_code(1);
    assert!(
        numbers.stderr.contains("found the text `setosa`"),
        "{}",
        numbers.stderr
    );
}

#[test]
fn hashed_texts_take_the_columns_asked_for() {
    let folder = Folder::new();
    let file = folder.path("homes.csv");
    std::fs::write(&file, HOMES).expect("written");
    let fit = run([
        "train",
        "ridge",
        &file,
        "--target-column",
        "price",
        "--hash",
        "2^6",
        "--missing",
        "mean",
        "--device",
        "cpu",
        "--json",
    ])
    .expect_code(0)
    .json();
    assert_eq!(fit["cols"], 65);
}

#[test]
fn a_model_keeps_its_index_base() {
    let folder = Folder::new();
    let (train, model) = (folder.path("train.svm"), folder.path("m.safetensors"));
    std::fs::write(&train, "1 0:1 2:1\n2 1:2 2:1\n3 0:3 1:1\n5 1:4\n").expect("written");
    run(["train", "ridge", &train, "--device", "cpu", "-o", &model]).expect_code(0);
    // No index 0 in the first row alone: read by itself it would be taken for a file with indices from 1.
    let row = folder.path("row.svm");
    std::fs::write(&row, "2 1:2 2:1\n").expect("written");
    let predict = |file: &str, more: &[&str]| {
        let mut words = vec!["predict", &model, file, "--device", "cpu", "-q"];
        words.extend(more);
        run(words)
    };
    let all = predict(&train, &[]).expect_code(0).stdout;
    assert_eq!(
        predict(&row, &[]).expect_code(0).stdout.lines().next(),
        all.lines().nth(1)
    );
    // A file with indices from 1 is shifted where the user says so.
    std::fs::write(&row, "2 2:2 3:1\n").expect("written");
    let shifted = predict(&row, &["--index-base", "1"]).expect_code(0);
    assert_eq!(shifted.stdout.lines().next(), all.lines().nth(1));

    std::fs::write(&train, "1 1:1 3:1\n2 2:2 3:1\n3 1:3 2:1\n5 2:4\n").expect("written");
    run(["train", "ridge", &train, "--device", "cpu", "-o", &model]).expect_code(0);
    std::fs::write(&row, "2 0:2 1:1\n").expect("written");
    let refused = predict(&row, &[]).expect_code(1);
    assert!(refused.stderr.contains("at least 1"), "{}", refused.stderr);
}

#[test]
fn columns_without_names_are_left_out_by_number_and_found_again() {
    let folder = Folder::new();
    let (file, model) = (folder.path("plain.csv"), folder.path("m.safetensors"));
    std::fs::write(&file, "1,9,2,3\n2,8,1,5\n3,9,5,4\n4,7,1,8\n").expect("written");
    let fit = [
        "train",
        "ridge",
        &file,
        "--target-column",
        "4",
        "--drop",
        "2",
        "--device",
        "cpu",
        "-o",
        &model,
    ];
    run(fit).expect_code(0);
    let predict = |file: &str| {
        run([
            "predict",
            &model,
            file,
            "--device",
            "cpu",
            "-q",
            "--target-column",
            "4",
        ])
    };
    let whole = predict(&file).expect_code(0).stdout;
    std::fs::write(&file, "1,2,3\n2,1,5\n3,5,4\n4,1,8\n").expect("written");
    let fixed = [
        "predict",
        &model,
        &file,
        "--device",
        "cpu",
        "-q",
        "--target-column",
        "3",
    ];
    assert_eq!(run(fixed).expect_code(0).stdout, whole);

    // Fields of a header without names are named by their numbers.
    std::fs::write(&file, ",a,,y\n0,1,2,3\n1,2,1,5\n2,3,5,4\n3,4,1,8\n").expect("written");
    run([
        "train",
        "ridge",
        &file,
        "--target-column",
        "y",
        "--device",
        "cpu",
        "-o",
        &model,
    ])
    .expect_code(0);
    let again = run(["predict", &model, &file, "--device", "cpu", "-q"]).expect_code(0);
    assert_eq!(again.stdout.lines().count(), 4);
    let shown = run(["inspect", &model]).expect_code(0).stdout;
    assert!(shown.contains("column 3"), "{shown}");
}

#[test]
fn columns_left_out_by_name_cannot_be_told_without_names() {
    let folder = Folder::new();
    let (file, model) = (folder.path("homes.csv"), folder.path("m.safetensors"));
    std::fs::write(&file, HOMES).expect("written");
    let fit = [
        "train",
        "ridge",
        &file,
        "--target-column",
        "price",
        "--drop",
        "garden",
        "--missing",
        "mean",
        "--device",
        "cpu",
        "-o",
        &model,
    ];
    run(fit).expect_code(0);
    let by_order = [
        "predict", &model, &file, "--header", "no", "--device", "cpu",
    ];
    let refused = run(by_order).expect_code(1);
    assert!(
        refused.stderr.contains("expected 2 columns"),
        "{}",
        refused.stderr
    );
}

#[test]
fn advice_is_for_the_command_that_runs() {
    let (folder, model) = trained(&[]);
    let file = folder.path("wrong.csv");
    for wrong in ["three", "2024-01-31"] {
        std::fs::write(&file, format!("city,rooms,garden\nUlm,{wrong},yes\n")).expect("written");
        let refused = run(["predict", &model, &file, "--device", "cpu"]).expect_code(1);
        let text = refused.stderr;
        assert!(text.contains("`rooms`") && text.contains(wrong), "{text}");
        assert!(
            text.contains("train the model") && !text.contains("--drop"),
            "{text}"
        );
    }
}

#[test]
fn a_file_without_texts_is_no_table_for_a_model_of_one() {
    let (_folder, model) = trained(&[]);
    let data = crate::program::diabetes();
    let refused = run(["predict", &model, &data, "--device", "cpu"]).expect_code(1);
    assert!(
        refused.stderr.contains("expected a CSV file"),
        "{}",
        refused.stderr
    );
}

/// Three targets of a table are three models, each of which knows the other targets as columns that are left out.
#[test]
fn several_columns_of_a_table_are_targets() {
    let folder = Folder::new();
    let (data, model) = (folder.path("plots.csv"), folder.path("model.safetensors"));
    let mut text = String::from("height,soil,yield,area,weight\n");
    for i in 0..30 {
        let (area, clay) = (f64::from(i % 7), i % 3 == 0);
        let soil = if clay { "clay" } else { "sand" };
        let shift = if clay { 5.0 } else { 0.0 };
        let [height, harvest, weight] = [2.0 * area + shift, 1.0 - area, 3.0 * shift];
        text += &format!("{height},{soil},{harvest},{area},{weight}\n");
    }
    std::fs::write(&data, text).expect("written");
    let train = |columns: &str, extra: &[&str]| {
        let words = ["train", "ridge", &data, "--target-columns", columns];
        let rest = ["--alpha", "1e-9", "--device", "cpu", "-o", &model];
        run(words.iter().chain(&rest).chain(extra).copied())
    };
    train("height,yield,-1", &[]).expect_code(0);
    let expected = [
        ("0", "height", 2.0),
        ("1", "yield", -1.0),
        ("2", "weight", 0.0),
    ];
    for (place, name, slope) in expected {
        let own = folder.path(&format!("model.{place}.safetensors"));
        // The file has the targets of the others as well: they are none of the model's columns.
        let score = run(["evaluate", &own, &data, "--device", "cpu", "--json"]).expect_code(0);
        assert!(number(&score.json(), "r2") > 1.0 - 1e-9, "{name}");
        let told = run(["inspect", &own, "--json"]).expect_code(0);
        assert!(
            told.stdout.contains("area") && told.stdout.contains(name),
            "{}",
            told.stdout
        );
        let row = folder.path("row.csv");
        let predicted = |area: u32| {
            std::fs::write(&row, format!("area,soil\n{area},sand\n")).expect("written");
            let run = run(["predict", &own, &row, "--device", "cpu", "--json"]).expect_code(0);
            numbers(&run.json(), "predictions")[0]
        };
        assert!((predicted(1) - predicted(0) - slope).abs() < 1e-6, "{name}");
    }
    for (columns, message) in [
        ("height", "expected two columns or more, found one"),
        ("height,1", "found `height` twice"),
        ("height,none", "expected a column called `none`"),
        ("height,soil", "expected a number in column `soil`"),
    ] {
        let refused = train(columns, &[]).expect_code(1);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    let both = train("height,yield", &["--target-column", "weight"]).expect_code(2);
    assert!(
        both.stderr.contains("cannot be used with"),
        "{}",
        both.stderr
    );
    let cv = [
        "cv",
        "ridge",
        &data,
        "--target-columns",
        "height,yield",
        "--path",
        "auto",
    ];
    let cv = run(cv).expect_code(1);
    assert!(
        cv.stderr.contains("expected one target, found 2"),
        "{}",
        cv.stderr
    );
}
