//! Reading what LIBLINEAR writes, and writing what it reads.

use super::*;

/// As LIBLINEAR 2.47 writes it: a blank after each weight, the first label of the data first.
const BINARY: &str = "\
solver_type L2R_LR
nr_class 2
label 1 -1
nr_feature 3
bias 0.5
w
0.5 
-1.25e-2 
3 
-4 
";

fn reread(model: &LiblinearModel) {
    let text = model.to_text().expect("a model that fits the format");
    let again = LiblinearModel::of_text(&text).expect("what was written");
    assert_eq!(again, *model, "{text}");
}

#[test]
fn two_classes_have_one_function_which_is_turned_to_the_larger_label() {
    let model = LiblinearModel::of_text(BINARY).expect("a model");
    assert_eq!(model.solver.task(), Task::LogisticRegression);
    assert_eq!(model.labels, [-1, 1]);
    assert_eq!(model.coef, [[0.5, -0.0125, 3.0]]);
    assert_eq!(model.intercept, [-2.0]);
    let turned =
        LiblinearModel::of_text(&BINARY.replace("label 1 -1", "label -1 1")).expect("a model");
    assert_eq!(turned.coef, [[-0.5, 0.0125, -3.0]]);
    assert_eq!(turned.intercept, [2.0]);
    reread(&model);
    reread(&turned);
}

#[test]
fn more_classes_have_a_function_each_in_the_order_of_their_labels() {
    let text = "solver_type L2R_L2LOSS_SVC\nnr_class 3\nlabel 7 2 5\nnr_feature 2\nbias -1\nw\n1 2 3 \n4 5 6 \n";
    let model = LiblinearModel::of_text(text).expect("a model");
    assert_eq!(model.labels, [2, 5, 7]);
    assert_eq!(model.coef, [[2.0, 5.0], [3.0, 6.0], [1.0, 4.0]]);
    assert_eq!(model.intercept, [0.0; 3]);
    reread(&model);
    let joint = text.replace("L2R_L2LOSS_SVC", "MCSVM_CS");
    reread(&LiblinearModel::of_text(&joint).expect("a model"));
}

#[test]
fn regressions_have_no_labels() {
    let text = "solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 1\nbias 1\nw\n0.1 \n0.2 \n";
    let model = LiblinearModel::of_text(text).expect("a model");
    assert_eq!((model.coef[0][0], model.intercept[0]), (0.1, 0.2));
    assert_eq!(model.to_text().expect("text"), text);
}

#[test]
fn numbers_survive_the_round_trip_bit_by_bit() {
    let coef = vec![0.1 + 0.2, 1e-300, -1.0 / 3.0, f64::MIN_POSITIVE, 1e22, -0.0];
    let intercept = vec![std::f64::consts::PI];
    let (solver, labels) = (SolverType::L2rLr, vec![0, 1]);
    let model = LiblinearModel {
        solver,
        labels,
        coef: vec![coef],
        intercept,
    };
    let again = LiblinearModel::of_text(&model.to_text().expect("text")).expect("a model");
    let bits = |model: &LiblinearModel| -> Vec<u64> {
        model.coef[0].iter().map(|w| w.to_bits()).collect()
    };
    assert_eq!(bits(&again), bits(&model));
    assert_eq!(again.intercept, model.intercept);
}

#[test]
fn faults_have_a_line_and_say_what_was_expected() {
    let faults = [
        ("nr_class 2", "nr_class two", 2, "a number of classes"),
        ("L2R_LR", "L3R", 1, "a solver type"),
        ("label 1 -1", "label 1 1", 6, "2 different labels"),
        ("label 1 -1\n", "", 5, "2 different labels"),
        ("bias 0.5\n", "", 5, "a line bias"),
        ("bias 0.5", "bias 11e400", 5, "the constant feature"),
        ("bias 0.5", "bias nan", 5, "the constant feature"),
        ("bias 0.5", "bias 1e308", 10, "weights of the constant"),
        ("3 \n", "", 10, "1 finite weights"),
        ("3 \n", "3 4 \n", 9, "1 finite weights"),
        ("3 \n", "nan \n", 9, "1 finite weights"),
        ("-4 \n", "-4 \n5 \n", 10, "the end of the file"),
        (
            "nr_feature 3",
            "nr_feature 18446744073709551615",
            11,
            "1 finite weights",
        ),
        ("nr_feature", "features", 4, "solver_type, nr_class"),
    ];
    for (good, bad, at, words) in faults {
        let error = LiblinearModel::of_text(&BINARY.replacen(good, bad, 1)).expect_err(bad);
        let LiblinearError::Syntax { line, expected, .. } = &error else {
            panic!("{bad}: {error}");
        };
        assert_eq!(*line, at, "{bad}: {error}");
        assert!(expected.starts_with(words), "{bad}: {error}");
    }
    let one_class = LiblinearModel::of_text("solver_type ONECLASS_SVM\n");
    assert!(matches!(one_class, Err(LiblinearError::Unsupported { .. })));
}

#[test]
fn what_the_format_cannot_hold_is_refused() {
    let good = LiblinearModel::of_text(BINARY).expect("a model");
    let changed = |change: &dyn Fn(&mut LiblinearModel)| {
        let mut model = good.clone();
        change(&mut model);
        model.to_text()
    };
    assert!(changed(&|model| model.coef[0][1] = f64::NAN).is_err());
    assert!(changed(&|model| model.labels.push(3)).is_err());
    assert!(changed(&|model| model.labels.clear()).is_err());
    assert!(changed(&|model| model.solver = SolverType::L2rL2lossSvr).is_err());
}
