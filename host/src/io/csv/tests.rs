use ndarray::array;

use crate::io::tests::read_as;
use crate::io::{CsvOptions, Header, MemoryLimit, ReadOptions, Target};
use crate::matrix::{Dataset, Features};

fn options(target: Option<&str>) -> ReadOptions {
    ReadOptions {
        target: target.map(Target::new),
        ..ReadOptions::default()
    }
}

fn dense(data: Dataset<f64>) -> (ndarray::Array2<f64>, Option<Vec<f64>>) {
    match data.features {
        Features::Dense(x) => (x, data.targets),
        _ => panic!("dense features expected"),
    }
}

fn read(text: &str, target: Option<&str>) -> (ndarray::Array2<f64>, Option<Vec<f64>>) {
    dense(read_as("a.csv", text, &options(target)).expect("a good file"))
}

#[test]
fn delimiters_headers_and_line_ends_are_recognised() {
    let expected = array![[1.0, -2.5], [3e2, 0.25]];
    for text in [
        "1,-2.5\n3e2,.25\n",
        "a,b\n1,-2.5\n3e2,.25",
        "a;b\r\n1;-2.5\r\n3e2;.25\r\n",
        "a\tb\n1\t-2.5\n3e2\t.25\n",
        "a|b\n1|-2.5\n3e2|.25\n",
        "\u{feff}\"a, with a comma\";\"b\"\n1;-2.5\n3e2;.25\n",
        "# a comment\n\n a , b \n  1 , -2.5 \n\n# more\n3e2,.25\n\n",
        "\"a \"\"quoted\"\" name\",b\n\"1\",\" -2.5 \"\n3e2,.25\n",
        "1,-2.5\n3e2,+.25\n",
    ] {
        assert_eq!(read(text, None), (expected.clone(), None), "{text}");
    }
}

#[test]
fn the_target_is_a_column_by_name_or_number() {
    let named = "a,price,b\n1,10,2\n3,30,4\n";
    let expected = (array![[1.0, 2.0], [3.0, 4.0]], Some(vec![10.0, 30.0]));
    for target in ["price", "2", "-2"] {
        assert_eq!(read(named, Some(target)), expected, "{target}");
    }
    // A name goes before a number.
    let numbered = "a,b,1\n1,2,10\n3,4,30\n";
    assert_eq!(read(numbered, Some("1")), expected);
    assert_eq!(read("10,1,2\n30,3,4\n", Some("1")), expected);
    assert_eq!(read("1,2,10\n3,4,30\n", Some("-1")), expected);
}

#[test]
fn what_is_said_goes_before_what_is_recognised() {
    let with = |delimiter, header| ReadOptions {
        csv: CsvOptions { delimiter, header },
        ..ReadOptions::default()
    };
    let read = |text: &str, options| dense(read_as("a.csv", text, &options).expect("good")).0;
    let years = "2020,2021\n1,2\n";
    assert_eq!(read(years, with(None, Header::Auto)).nrows(), 2);
    assert_eq!(read(years, with(None, Header::Present)), array![[1.0, 2.0]]);
    assert_eq!(
        read("1:2\n3:4\n", with(Some(b':'), Header::Absent)),
        array![[1.0, 2.0], [3.0, 4.0]]
    );
    let error = read_as("a.csv", "a,b\n1,2\n", &with(None, Header::Absent)).expect_err("letters");
    assert!(
        error
            .to_string()
            .ends_with("a.csv:1:1: expected a number, found `a,b`")
    );
}

#[test]
fn one_column_is_a_matrix_too() {
    assert_eq!(read("1\n2\n", None).0, array![[1.0], [2.0]]);
    assert_eq!(read("x\n1\n", None).0, array![[1.0]]);
}

#[test]
fn long_files_are_read_in_parallel_in_their_order() {
    let rows = 40_000;
    let text: String = (0..rows).map(|i| format!("{i},{}.5,-1\n", i * 2)).collect();
    let (x, targets) = read(&text, Some("1"));
    assert_eq!(x.dim(), (rows, 2));
    assert_eq!(targets, Some((0..rows).map(|i| i as f64).collect()));
    assert_eq!(x[(39_999, 0)], 79_998.5);
    let bad = text.replacen("\n30000,", "\n30000;", 1);
    let error = read_as("a.csv", &bad, &ReadOptions::default()).expect_err("a semicolon");
    assert!(
        error
            .to_string()
            .contains("a.csv:30001:1: expected a number"),
        "{error}"
    );
}

/// A text, the target column requested, and how the error ends.
const FAULTS: &[(&str, Option<&str>, &str)] = &[
    (
        "",
        None,
        ":1:1: expected at least one line of numbers, found the end of the file",
    ),
    (
        "# nothing\n\n",
        None,
        ":3:1: expected at least one line of numbers, found the end of the file",
    ),
    (
        "a,b\n",
        None,
        ":2:1: expected at least one line of numbers, found the end of the file",
    ),
    ("1,2\n3,x\n", None, ":2:3: expected a number, found `x`"),
    (
        "1,2\r\n3,4x\r\n",
        None,
        ":2:3: expected a number, found `4x`",
    ),
    (
        "1,2\n3,\n",
        None,
        ":2:3: expected a number, found the end of the line",
    ),
    ("1,2\n,4\n", None, ":2:1: expected a number, found `,4`"),
    (
        "1,2\n3,nan\n",
        None,
        ":2:3: expected a finite number that fits f64, found `nan`",
    ),
    (
        "1,2\n3,1e999\n",
        None,
        ":2:3: expected a finite number that fits f64, found `1e999`",
    ),
    (
        "1,2\n3\n",
        None,
        ":2:2: expected 2 fields as in the first line (there are 1), found the end of the line",
    ),
    (
        "1,2\n3,4,5\n",
        None,
        ":2:5: expected the end of the line after 2 fields, as in the first line, found `5`",
    ),
    (
        "1,2\n3 4,5\n",
        None,
        ":2:3: expected a delimiter or the end of the line after the field, found `4,5`",
    ),
    (
        "1,2\n\"3,4\n",
        None,
        r#":2:1: expected a number, found `\"3,4`"#,
    ),
    (
        "\"a,b\n1,2\n",
        None,
        r#":1:1: expected a closing quote on the same line, found `\"a,b`"#,
    ),
    (
        "1,2\n3,4",
        Some("3"),
        ":1:1: expected a target column called `3` (the columns are a number from 1 to 2, as there is no header), found `1,2`",
    ),
    (
        "a,b\n3,4",
        Some("c"),
        ":1:1: expected a target column called `c` (the columns are `a`, `b`), found `a,b`",
    ),
    (
        "a,b\n3,4",
        Some("0"),
        ":1:1: expected a target column called `0` (the columns are `a`, `b`), found `a,b`",
    ),
    (
        "a,b\n3,4",
        Some("-9223372036854775808"),
        ":1:1: expected a target column called `-9223372036854775808` (the columns are `a`, `b`), found `a,b`",
    ),
    (
        "y\n3\n",
        Some("y"),
        ":1:1: expected at least one column of features, found `y`",
    ),
    (
        "\0\0\0\n\u{1}\n",
        None,
        ":2:1: expected a number, found `\\x01`",
    ),
];

#[test]
fn faults_are_reported_with_their_place() {
    for (text, target, expected) in FAULTS {
        let error = match read_as("bad.csv", text, &options(*target)) {
            Ok(_) => panic!("{text:?} was read without an error"),
            Err(error) => error.to_string(),
        };
        assert!(
            error.ends_with(&format!("bad.csv{expected}")),
            "{text:?}\n  {error}"
        );
    }
}

#[test]
fn the_memory_limit_holds() {
    let options = ReadOptions {
        memory: MemoryLimit::Bytes(10_000),
        ..ReadOptions::default()
    };
    let error = read_as("a.csv", "1,2,3\n".repeat(1000), &options).expect_err("24,000 bytes");
    assert!(
        error.to_string().contains("data that fit 10000 bytes"),
        "{error}"
    );
}

proptest::proptest! {
    #[test]
    fn nothing_makes_it_panic(text in "[-0-9a.,;\"#\t\r\n |e]{0,60}", target in "[a1-]{0,2}") {
        let _ = read_as("a.csv", &text, &options(Some(&target)));
        let _ = read_as("a.csv", &text, &options(None));
    }
}
