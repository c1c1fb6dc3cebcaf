//! What becomes of good bytes.

use super::random::Random;

/// Bytes that readers stumble over.
const TOKENS: &[&[u8]] = &[
    b"",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b" ",
    b",",
    b";",
    b":",
    b"\"",
    b"\"\"",
    b"#",
    b"%",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"-",
    b"+",
    b".",
    b"e",
    b"-0",
    b"1e400",
    b"-1e-400",
    b"nan",
    b"inf",
    b"-Infinity",
    b"NA",
    b"0x1p3",
    b"1_000",
    b"1,5",
    b"4294967295",
    b"4294967296",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775807",
    b"99999999999999999999999999999999999999",
    b"\xc3\xa4",
    b"\xed\xa0\x80",
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"\x00\x00\x00\x00\x00\x00\x00\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
];

/// Changes some bytes.
pub fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        once(bytes, random);
    }
}

fn once(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = bytes.len().min(at + 1 + random.below(12));
    match random.below(7) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.bits() as u8,
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let part = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, part);
        }
        5 => {
            let token = random.pick(TOKENS);
            bytes.splice(at..end, token.iter().copied());
        }
        _ => {
            let token = random.pick(TOKENS);
            bytes.splice(at..at, token.iter().copied());
        }
    }
}
