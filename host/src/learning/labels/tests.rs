//! Numbers of classes, whatever the type of labels, how many there are and how they lie.

use super::{Classes, LabelError, LabelSlice, Labels};
use crate::learning::codes::Codes;

/// Beyond what one task numbers, and beyond the length of a sample.
const ROWS: usize = 150_001;

/// Classes and codes by comparing each label with every class.
fn expected<D: Copy + PartialOrd>(labels: &[D]) -> (Vec<D>, Vec<u32>) {
    let mut classes: Vec<D> = Vec::new();
    for label in labels {
        if let Err(at) =
            classes.binary_search_by(|class| class.partial_cmp(label).expect("ordered"))
        {
            classes.insert(at, *label);
        }
    }
    let code = |label: &D| classes.partition_point(|class| class < label) as u32;
    let codes = labels.iter().map(code).collect();
    (classes, codes)
}

/// Labels of `count` classes, `class` being called with their numbers, in an order without a period.
fn of<D>(rows: usize, count: usize, class: impl Fn(usize) -> D) -> Vec<D> {
    let number = |row: usize| (row * row + row / 7 * 5 + row % 11) % count;
    (0..rows).map(|row| class(number(row))).collect()
}

/// Compares with [`expected`] for few rows and for many.
fn agrees<D: super::Label + PartialOrd + std::fmt::Debug>(
    count: usize,
    class: impl Fn(usize) -> D,
) {
    for rows in [1, 2, 1_000, ROWS] {
        let labels = of(rows, count, &class);
        let (classes, codes) = Codes::of(&labels).expect("labels");
        let is_short = matches!(codes, Codes::Bytes(_));
        assert_eq!(
            is_short,
            classes.len() <= 256,
            "{rows} rows, {count} classes"
        );
        let found = (classes, codes.to_vec());
        assert!(
            found == expected(&labels),
            "{rows} rows, {count} classes: {:?}",
            found.0
        );
    }
}

#[test]
fn classes_are_numbered_in_their_order() {
    for count in [1, 2, 3, 255, 256, 257, 1_000] {
        agrees(count, |number| number as i64);
        agrees(count, |number| 3 - number as i32);
        agrees(count, |number| number as f64 * 2.0 - 7.0);
        // Too far apart for a table, but not at the ends of the type.
        agrees(count, |number| number as i64 * 1_000_003 - 5);
        agrees(count, |number| number as f32 * 65_536.0);
    }
    for count in [1, 2, 200] {
        agrees(count, |number| number as u8);
        agrees(count, |number| number as i8);
        agrees(count, |number| u64::MAX - number as u64);
        agrees(count, |number| i64::MIN + number as i64 * 2);
        agrees(count, |number| number as f64 * 1e300);
    }
    agrees(2, |number| number == 1);
}

#[test]
fn neighbours_of_a_byte_s_table_are_no_classes() {
    // A table of 255 numbers, of 256, and gaps in both.
    for width in [254, 255, 256] {
        for step in [1, 2, 5] {
            agrees(width / step + 1, |number| (number * step) as i16 - 100);
        }
    }
}

#[test]
fn a_class_that_no_sample_has_is_found() {
    // -1 lies below what a sample sees, 1 between, 3 above, and the others outside of any table of it.
    for rare in [-1, 1, 3, 300, i64::MIN, i64::MAX] {
        for row in [1, ROWS / 2, ROWS - 2] {
            let mut labels = of(ROWS, 2, |number| 2 * number as i64);
            labels[row] = rare;
            let (classes, codes) = Codes::of(&labels).expect("labels");
            assert!(
                (classes, codes.to_vec()) == expected(&labels),
                "{rare} in row {row}"
            );
            let floats: Vec<f64> = labels.iter().map(|label| *label as f64).collect();
            let (classes, codes) = Codes::of(&floats).expect("labels");
            assert!(
                (classes, codes.to_vec()) == expected(&floats),
                "{rare} in row {row}"
            );
        }
    }
    let mut names = of(ROWS, 2, |number| ["no", "yes"][number]);
    names[ROWS - 2] = "perhaps";
    let (classes, codes) = Codes::of_each(ROWS, |row| names[row]).expect("labels");
    assert!((classes, codes.to_vec()) == expected(&names));
}

#[test]
fn labels_sorted_by_class_and_without_rows_are_numbered() {
    let sorted: Vec<u32> = (0..ROWS).map(|row| (row / 10_000) as u32).collect();
    let (classes, codes) = Codes::of(&sorted).expect("labels");
    assert_eq!((classes.len(), codes.to_vec() == sorted), (16, true));
    let (classes, codes) = Codes::of::<i64>(&[]).expect("no labels");
    assert!(classes.is_empty() && codes.is_empty());
}

#[test]
fn floats_that_are_no_labels_are_named_in_any_row() {
    // By a table of bytes, a longer one, and hashes.
    for step in [1.0, 1_000.0, 1e6] {
        for row in [0, 70_000, ROWS - 1] {
            let mut labels = of(ROWS, 3, |number| number as f64 * step);
            labels[row] = 0.5;
            let error = Codes::of(&labels).expect_err("not whole");
            assert_eq!(error, LabelError::Continuous { row, value: 0.5 });
            labels[row] = f64::NAN;
            labels[ROWS / 2] = 0.5;
            let error = Codes::of(&labels).expect_err("not finite");
            assert!(matches!(error, LabelError::NotFinite { row: found, .. } if found == row));
        }
    }
}

#[test]
fn all_kinds_of_labels_name_the_same_classes() {
    fn check(labels: LabelSlice<'_>) {
        let (classes, codes) = Classes::encode(labels).expect("labels");
        assert_eq!(classes, Classes::Numbers(vec![0.0, 1.0]), "{labels:?}");
        assert_eq!(
            (labels.len(), codes.to_vec()),
            (3, vec![1, 0, 1]),
            "{labels:?}"
        );
        assert_eq!(
            classes.codes(labels).expect("known"),
            [1, 0, 1],
            "{labels:?}"
        );
    }
    macro_rules! check_as {
        ($($type:ty),*) => { $(check([1 as $type, 0 as $type, 1 as $type][..].into());)* };
    }
    check_as!(f64, f32, i64, i32, i16, i8, u64, u32, u16, u8);
    check([true, false, true][..].into());
    let names = ["b", "a", "b"];
    let owned = names.map(String::from);
    for labels in [LabelSlice::from(&names[..]), LabelSlice::from(&owned[..])] {
        let (classes, codes) = Classes::encode(labels).expect("labels");
        assert_eq!(
            (classes.to_string().as_str(), codes.to_vec()),
            ("a, b", vec![1, 0, 1])
        );
        assert_eq!(classes.codes(labels).expect("known"), [1, 0, 1]);
    }
}

#[test]
fn numbers_that_f64_does_not_hold_are_no_classes_of_a_model() {
    let long = [0, (1_i64 << 53) + 1];
    let error = Classes::encode(&long[..]).expect_err("too long");
    assert!(
        error.to_string().contains("found 9007199254740993"),
        "{error}"
    );
    assert_eq!(Codes::of(&long).expect("codes").0, long);
    let (classes, _) = Classes::encode(&[0_i64, 1 << 53][..]).expect("held");
    assert_eq!(classes.label(1), "9007199254740992");
    let unknown = classes.codes(&long[..]).expect_err("unknown");
    assert!(
        unknown
            .to_string()
            .contains("found 9007199254740993 for sample 1"),
        "{unknown}"
    );
}

fn text(labels: &[&str]) -> Labels {
    Labels::Text(labels.iter().map(|label| (*label).to_owned()).collect())
}

#[test]
fn whole_numbers_of_any_size_are_labels_and_others_are_not() {
    let encode = |labels: &[f64]| Classes::encode(&Labels::Numbers(labels.to_vec()));
    let (classes, codes) = encode(&[1e300, -1e19, 1e300]).expect("whole numbers");
    assert_eq!((classes.len(), codes.to_vec()), (2, vec![1, 0, 1]));
    let error = encode(&[1.0, 0.5, f64::NAN]).expect_err("not finite");
    assert!(
        matches!(error, LabelError::NotFinite { row: 2, .. }),
        "{error}"
    );
    let error = encode(&[1e300, 0.5]).expect_err("not whole");
    assert_eq!(error, LabelError::Continuous { row: 1, value: 0.5 });
}

#[test]
fn numbers_are_sorted_by_size_and_zeros_are_one() {
    let labels = Labels::Numbers(vec![10.0, -1.0, 0.0, 2.0, -0.0, 10.0]);
    let (classes, codes) = Classes::encode(&labels).expect("finite labels");
    assert_eq!(classes, Classes::Numbers(vec![-1.0, 0.0, 2.0, 10.0]));
    assert_eq!(codes.to_vec(), [3, 0, 1, 2, 1, 3]);
    assert_eq!(classes.label(3), "10");
    assert_eq!(classes.decode(&[3, 0]), Labels::Numbers(vec![10.0, -1.0]));
}

#[test]
fn text_is_sorted_by_code_points() {
    let labels = text(&["é", "b", "B", "a", "b", "10", "9"]);
    let (classes, codes) = Classes::encode(&labels).expect("text");
    assert_eq!(classes.to_string(), "10, 9, B, a, b, é");
    assert_eq!(codes.to_vec(), [5, 4, 2, 3, 4, 0, 1]);
    assert_eq!(classes.decode(&codes.to_vec()), labels);
}

#[test]
fn labels_that_a_model_does_not_know_are_named() {
    let (classes, _) = Classes::encode(&Labels::Numbers(vec![1.0, 2.0])).expect("finite");
    let error = classes
        .codes(&Labels::Numbers(vec![1.0, 3.0]))
        .expect_err("unknown");
    assert!(
        error
            .to_string()
            .contains("labels 1, 2, found 3 for sample 1"),
        "{error}"
    );
    assert!(matches!(
        classes.codes(&text(&["1"])),
        Err(LabelError::Kind { .. })
    ));
    let nan = Classes::encode(&Labels::Numbers(vec![0.0, f64::NAN]));
    assert!(matches!(nan, Err(LabelError::NotFinite { row: 1, .. })));
}

#[test]
fn json_has_numbers_as_numbers_and_names_as_strings() {
    let names = Classes::Text(vec!["a".into()]);
    assert_eq!(serde_json::to_string(&names).expect("JSON"), r#"["a"]"#);
    for classes in [Classes::Numbers(vec![-1.0, 1.0]), names] {
        let json = serde_json::to_string(&classes).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Classes>(&json).expect("classes"),
            classes
        );
    }
}
