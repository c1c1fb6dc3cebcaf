//! What members say to each other: a kind, a rank and a text.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Bytes of a text at most; what is longer is cut.
const MOST: usize = 1 << 10;
/// Kind, rank and length.
const HEAD: usize = 12;

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// A member comes, and is answered by the same; the text is the job's.
    Hello = 1,
    /// It leaves in good order.
    Bye = 2,
    /// The rank's process is no more.
    Left = 3,
    /// The rank cannot go on; the text is why.
    Failed = 4,
}

const KINDS: [Kind; 4] = [Kind::Hello, Kind::Bye, Kind::Left, Kind::Failed];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) rank: usize,
    pub(super) text: String,
}

impl Frame {
    pub(super) fn of(kind: Kind, rank: usize, text: &str) -> Frame {
        let mut len = text.len().min(MOST);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let text = text[..len].to_owned();
        Frame { kind, rank, text }
    }

    fn bytes(&self) -> Vec<u8> {
        let head = [self.kind as u32, self.rank as u32, self.text.len() as u32];
        let head = head.into_iter().flat_map(u32::to_le_bytes);
        head.chain(self.text.bytes()).collect()
    }

    /// Frames are far smaller than what a connection holds back, so that nothing is waited for. A connection that fails is
    /// noticed by who reads from it.
    pub(super) fn send(&self, to: &mut TcpStream) {
        let _ = to.write_all(&self.bytes());
    }
}

/// Puts frames together from what arrives.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: Vec<u8>,
    is_broken: bool,
}

impl Reader {
    /// Reads what has arrived; whether more can.
    pub(super) fn fill(&mut self, from: &mut TcpStream) -> bool {
        let mut piece = [0; HEAD + MOST];
        match from.read(&mut piece) {
            Ok(0) => false,
            Ok(len) => {
                self.bytes.extend_from_slice(&piece[..len]);
                true
            }
            Err(error) => matches!(
                error.kind(),
                ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut
            ),
        }
    }

    /// The next frame, if all of it is there.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let (head, rest) = self.bytes.split_at_checked(HEAD)?;
        let number = |at: usize| {
            let bytes = head[4 * at..4 * at + 4].try_into();
            u32::from_le_bytes(bytes.unwrap_or_default()) as usize
        };
        let kind = KINDS.iter().find(|kind| **kind as usize == number(0));
        let (rank, len) = (number(1), number(2));
        let Some(kind) = kind.filter(|_| len <= MOST && !self.is_broken) else {
            self.is_broken = true;
            return None;
        };
        let text = String::from_utf8_lossy(rest.get(..len)?).into_owned();
        self.bytes.drain(..HEAD + len);
        Some(Frame {
            kind: *kind,
            rank,
            text,
        })
    }

    /// Whether what arrived is nothing that a member says.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_put_together_from_any_pieces() {
        let frames = [
            Frame::of(Kind::Hello, 3, "warpfuse 4 host:1"),
            Frame::of(Kind::Bye, 0, ""),
            Frame::of(Kind::Failed, 70_000, &"ä".repeat(MOST)),
        ];
        assert_eq!(frames[2].text.len(), MOST);
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        for step in [1, 5, 13, bytes.len()] {
            let (mut reader, mut found) = (Reader::default(), Vec::new());
            for piece in bytes.chunks(step) {
                reader.bytes.extend_from_slice(piece);
                found.extend(std::iter::from_fn(|| reader.next()));
            }
            assert_eq!(found, frames, "in pieces of {step} bytes");
        }
    }

    #[test]
    fn what_is_no_frame_breaks_the_connection() {
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[255; 64]] {
            let mut reader = Reader::default();
            reader.bytes.extend_from_slice(bytes);
            assert_eq!(reader.next(), None);
            assert!(reader.is_broken());
        }
    }
}
