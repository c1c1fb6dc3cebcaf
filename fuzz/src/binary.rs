//! Binary files: npy, npz, caches.

use flate2::Crc;

use super::random::Random;

const TYPES: &[(&str, usize)] = &[
    ("<f8", 8),
    ("<f8", 8),
    ("<f4", 4),
    (">f8", 8),
    (">f4", 4),
    ("<f2", 2),
    ("<i8", 8),
    ("<i4", 4),
    ("<i2", 2),
    ("|i1", 1),
    ("<u8", 8),
    ("<u4", 4),
    ("|u1", 1),
    ("|b1", 1),
    ("<c16", 16),
    ("|O", 8),
    ("|S3", 3),
    ("<U3", 12),
    ("", 1),
];
const SIZES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "1000",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "-1",
    "x",
];

/// Numbers of which most are finite.
fn numbers(random: &mut Random, (kind, size): (&str, usize), count: usize) -> Vec<u8> {
    let wild = random.once_in(8);
    let mut bytes = Vec::with_capacity(count * size);
    for _ in 0..count {
        let small = random.below(9) as f64 - 2.0;
        match kind {
            _ if wild => (0..size).for_each(|_| bytes.push(random.bits() as u8)),
            "<f8" => bytes.extend(small.to_le_bytes()),
            ">f8" => bytes.extend(small.to_be_bytes()),
            "<f4" => bytes.extend((small as f32).to_le_bytes()),
            ">f4" => bytes.extend((small as f32).to_be_bytes()),
            _ => {
                bytes.push(random.below(5) as u8);
                bytes.resize(bytes.len() + size.saturating_sub(1), 0);
            }
        }
    }
    bytes
}

/// An array of that shape, which may be anything.
fn array(random: &mut Random, shape: &[usize]) -> Vec<u8> {
    let usual = if random.once_in(2) { 8 } else { TYPES.len() };
    let kind = *random.pick(&TYPES[..usual]);
    let count: usize = shape.iter().product();
    let count = if random.once_in(10) {
        random.below(40)
    } else {
        count
    };
    let mut sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    if random.once_in(10) {
        let at = random.below(sizes.len() + 1);
        sizes.insert(at, random.word(SIZES).to_owned());
    }
    let order = *random.pick(&["False", "False", "True", "Maybe"]);
    let comma = if sizes.len() == 1 { "," } else { "" };
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': {order}, 'shape': ({}{comma}), }}",
        kind.0,
        sizes.join(", ")
    );
    if random.once_in(12) {
        header = header.replace("descr", "dscr");
    }
    let version: u8 = *random.pick(&[1, 1, 1, 2, 3, 9]);
    let prefix = if version == 1 { 10 } else { 12 };
    while !(prefix + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(numbers(random, kind, count));
    bytes
}

/// An array of one or two axes.
pub fn npy(random: &mut Random) -> Vec<u8> {
    let shape = [random.below(6), random.below(6), random.below(3)];
    let axes = *random.pick(&[1, 2, 2, 2, 3]);
    array(random, &shape[..axes])
}

/// An archive of arrays, or of the parts of a sparse matrix.
pub fn npz(random: &mut Random) -> Vec<u8> {
    const SPARSE: &[&[&str]] = &[
        &["indices", "indptr", "format", "shape", "data"],
        &["row", "col", "format", "shape", "data"],
    ];
    const DENSE: &[&[&str]] = &[
        &["arr_0"],
        &["arr_0", "arr_1"],
        &["x", "y"],
        &["X", "target"],
        &["x", "z", "y"],
        &[],
    ];
    let sparse = random.once_in(2);
    let names = *random.pick(if sparse { SPARSE } else { DENSE });
    let rows = random.below(5);
    let entries = random.below(7);
    let members = names.iter().map(|name| {
        let content = match *name {
            "format" => of_text(random.word(&["csr", "csr", "csc", "coo", "dia", ""])),
            "shape" => of_integers(&[
                rows as i64,
                *random.pick(&[5, 5, 5, 9, 0, 1, 4, -1, 1 << 40, i64::MAX]),
            ]),
            "indptr" => of_integers(&offsets(random, rows, entries)),
            "indices" | "row" | "col" => {
                let entries: Vec<i64> = (0..entries).map(|_| random.below(5) as i64).collect();
                of_integers(&entries)
            }
            "data" => of_floats(&vec![0.5; entries]),
            "y" | "target" | "arr_1" => array(random, &[rows]),
            _ => array(random, &[rows, 3]),
        };
        (format!("{name}.npy"), content)
    });
    let members: Vec<_> = members.collect();
    let sound = !random.once_in(10);
    zip(&members, sound)
}

fn offsets(random: &mut Random, rows: usize, entries: usize) -> Vec<i64> {
    let mut offsets: Vec<i64> = (0..rows)
        .map(|_| random.below(entries + 1) as i64)
        .collect();
    if !random.once_in(8) {
        offsets.sort_unstable();
        offsets.insert(0, 0);
        offsets[rows] = entries as i64;
    }
    offsets
}

fn plain(kind: &str, count: usize, data: Vec<u8>) -> Vec<u8> {
    let shape = if kind.starts_with('|') {
        String::new()
    } else {
        format!("{count},")
    };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    while !(11 + header.len()).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &data].concat()
}

fn of_text(text: &str) -> Vec<u8> {
    plain("|S3", 1, text.as_bytes().to_vec())
}

fn of_integers(numbers: &[i64]) -> Vec<u8> {
    plain(
        "<i8",
        numbers.len(),
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
    )
}

fn of_floats(numbers: &[f64]) -> Vec<u8> {
    plain(
        "<f8",
        numbers.len(),
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
    )
}

/// Members that are stored as they are. Source: PKWARE's APPNOTE.TXT 6.3.
fn zip(members: &[(String, Vec<u8>)], sound: bool) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let mut checksum = Crc::new();
        checksum.update(content);
        let (start, length) = (bytes.len() as u32, content.len() as u32);
        let mut common = vec![0; 10];
        common.extend(checksum.sum().wrapping_add(u32::from(!sound)).to_le_bytes());
        common.extend([length.to_le_bytes(), length.to_le_bytes()].concat());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        bytes.extend([b"PK\x03\x04", &common[..], name.as_bytes(), content].concat());
        directory.extend(
            [
                b"PK\x01\x02\x14\x00",
                &common[..],
                &[0; 10],
                &start.to_le_bytes(),
                name.as_bytes(),
            ]
            .concat(),
        );
    }
    let (at, count) = (bytes.len() as u32, members.len() as u16);
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend([(directory.len() as u32).to_le_bytes(), at.to_le_bytes()].concat());
    bytes.extend([0; 2]);
    bytes
}
