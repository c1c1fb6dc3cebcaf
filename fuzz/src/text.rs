//! Files of text: LIBSVM, CSV, Matrix Market.

use super::random::Random;

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "0.5",
    "-0.25",
    "1e3",
    "1e-3",
    "+7",
    "-0",
    ".5",
    "5.",
    "1e308",
    "1e-320",
    "1e400",
    "nan",
    "inf",
    "123456789012345678901234567890",
    "0.1234567890123456789",
    "0x10",
    "1e",
    "--1",
    "",
];
const INDICES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "12",
    "100",
    "65536",
    "4294967294",
    "4294967295",
    "4294967296",
    "-1",
    "1.5",
    "",
    "18446744073709551616",
];
const CELLS: &[&str] = &[
    "Ulm",
    "Bonn",
    "Köln",
    "yes",
    "no",
    "NA",
    "",
    "?",
    "NaN",
    "null",
    "2024-01-31",
    "31/12/2023",
    "10:30",
    "a b",
    "\"a,b\"",
    "\"say \"\"so\"\"\"",
    "\"open",
    "\"two\nlines\"",
    "x\"y",
    "\u{feff}",
    "1,5",
    "TRUE",
    "=1+1",
    " padded ",
    "\t",
];
const NAMES: &[&str] = &[
    "age", "city", "price", "y", "x1", "x2", "", "\"a b\"", "1", "hash[0]", "city=Ulm", "größe",
];
const LINE_ENDS: &[&str] = &["\n", "\n", "\n", "\r\n", "\n\n", "\r"];

/// One of the numbers; mostly one that is sound.
fn number(random: &mut Random) -> &'static str {
    let range = if random.once_in(12) {
        NUMBERS.len()
    } else {
        13
    };
    NUMBERS[random.below(range)]
}

/// `label index:value …`, with comments and queries.
pub fn libsvm(random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    let labelled = !random.once_in(5);
    for _ in 0..random.below(9) {
        if labelled {
            text.push_str(number(random));
        }
        if random.once_in(10) {
            text.push_str(" qid:");
            text.push_str(random.word(INDICES));
        }
        let mut index = random.below(3);
        for _ in 0..random.below(6) {
            index += 1 + random.below(3);
            let odd = random.once_in(20);
            let index = if odd {
                random.word(INDICES).to_owned()
            } else {
                index.to_string()
            };
            text.push_str(&format!(" {index}:{}", number(random)));
        }
        if random.once_in(10) {
            text.push_str(" # note 1:2");
        }
        text.push_str(random.word(LINE_ENDS));
    }
    text.into_bytes()
}

/// A table, with or without names.
pub fn csv(random: &mut Random) -> Vec<u8> {
    let delimiter = random.word(&[",", ",", ";", "\t", "|", " "]);
    let fields = 1 + random.below(6);
    let mut text = String::new();
    if !random.once_in(4) {
        let first = random.below(NAMES.len());
        let odd = random.once_in(8);
        let names = (0..fields).map(|field| {
            if odd {
                random.word(NAMES)
            } else {
                NAMES[(first + field) % NAMES.len()]
            }
        });
        text.push_str(&names.collect::<Vec<_>>().join(delimiter));
        text.push_str(random.word(LINE_ENDS));
    }
    let texts: Vec<bool> = (0..fields).map(|_| random.once_in(3)).collect();
    for _ in 0..random.below(30) {
        let cells = if random.once_in(40) {
            random.below(8)
        } else {
            fields
        };
        for field in 0..cells {
            let is_text = texts.get(field).copied().unwrap_or(false) != random.once_in(30);
            text.push_str(if is_text {
                random.word(CELLS)
            } else {
                number(random)
            });
            if field + 1 < cells {
                text.push_str(delimiter);
            }
        }
        text.push_str(random.word(LINE_ENDS));
    }
    text.into_bytes()
}

/// Entries or an array, with sizes that may be wrong.
pub fn matrix_market(random: &mut Random) -> Vec<u8> {
    const SIZES: &[&str] = &[
        "0",
        "1",
        "2",
        "3",
        "4",
        "5",
        "8",
        "100",
        "4294967295",
        "4294967296",
        "1000000000000",
        "-1",
        "x",
    ];
    let layout = random.word(&["coordinate", "coordinate", "array", "vector"]);
    let field = random.word(&["real", "real", "integer", "pattern", "complex", "double"]);
    let symmetry = random.word(&[
        "general",
        "general",
        "general",
        "general",
        "general",
        "symmetric",
        "skew-symmetric",
        "hermitian",
        "odd",
    ]);
    let mut text = format!("%%MatrixMarket matrix {layout} {field} {symmetry}\n");
    if random.once_in(4) {
        text.push_str("% a note\n\n");
    }
    let odd = random.once_in(6);
    let size = |random: &mut Random| {
        if odd {
            random.word(SIZES).to_owned()
        } else {
            (1 + random.below(6)).to_string()
        }
    };
    let (rows, cols) = (size(random), size(random));
    let entries = random.below(10);
    let claimed = if random.once_in(6) {
        size(random)
    } else {
        entries.to_string()
    };
    match layout {
        "array" => text.push_str(&format!("{rows} {cols}\n")),
        _ => text.push_str(&format!("{rows} {cols} {claimed}\n")),
    }
    let lines = match (layout, rows.parse::<usize>(), cols.parse::<usize>()) {
        ("array", Ok(rows), Ok(cols)) if rows < 10 && cols < 10 => rows * cols,
        _ => entries,
    };
    let sizes = [rows, cols].map(|size| size.parse().unwrap_or(5).clamp(1, 5));
    for _ in 0..lines {
        entry(&mut text, (layout, field), sizes, random);
        text.push_str(random.word(LINE_ENDS));
    }
    text.into_bytes()
}

/// An entry of a matrix, most often inside its rows and columns.
fn entry(
    text: &mut String,
    (layout, field): (&str, &str),
    [rows, cols]: [usize; 2],
    random: &mut Random,
) {
    let inside = |size: usize, random: &mut Random| {
        let outside = random.once_in(30);
        1 + random.below(if outside { 7 } else { size })
    };
    let (row, col) = (inside(rows, random), inside(cols, random));
    let value = number(random);
    text.push_str(&match (layout, field) {
        ("array", _) => value.to_owned(),
        (_, "pattern") => format!("{row} {col}"),
        (_, "complex") => format!("{row} {col} {value} {}", number(random)),
        _ => format!("{row} {col} {value}"),
    });
}
