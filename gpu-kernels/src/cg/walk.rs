//! A block's way over its pieces.

use super::CgArgs;
use crate::cta::Cta;
use crate::verbs::load_together;

/// What a thread loads of its first elements, before it knows the scalars of the iteration.
pub(super) type First<L, const N: usize> = [Option<L>; N];

/// The elements that this block has of a piece.
#[derive(Clone, Copy)]
struct Part {
    start: u64,
    end: u64,
}

impl Part {
    /// Of piece number `piece` of those at hand; empty behind the last.
    #[inline(always)]
    fn of<T>(args: &CgArgs<'_, T>, piece: u32) -> Self {
        let start = piece as u64 * args.piece;
        Part {
            start,
            end: args.len.min(start + args.piece),
        }
    }

    /// Some of this thread's elements, from `first` on.
    #[inline(always)]
    fn load<C: Cta, L, const N: usize>(
        &self,
        cta: &C,
        first: u64,
        load: impl Fn(usize) -> L,
    ) -> First<L, N> {
        load_together(first, cta.threads() as u64, self.end, load)
    }
}

/// What this thread loads of the first elements of its block.
#[inline(always)]
pub(super) fn first<C: Cta, T, L, const N: usize>(
    cta: &C,
    args: &CgArgs<'_, T>,
    load: impl Fn(usize) -> L,
) -> First<L, N> {
    let part = Part::of(args, cta.block());
    part.load(cta, part.start + cta.thread() as u64, load)
}

/// Sums over the pieces that are this block's: block, block + blocks, …. `each` takes an element and what was loaded of it, and
/// adds to the sums of the thread; `write` takes the place and the sums of a piece. Of the first elements `first` is loaded.
#[inline(always)]
pub(super) fn each_piece<C: Cta, T, L: Copy, const K: usize, const N: usize>(
    cta: &C,
    args: &CgArgs<'_, T>,
    (first, load): (First<L, N>, impl Fn(usize) -> L),
    each: impl Fn(usize, L, &mut [f64; K]),
    write: impl Fn(usize, [f64; K]),
) {
    let mut piece = cta.block();
    loop {
        let part = Part::of(args, piece);
        if part.start >= args.len {
            break;
        }
        let begin = part.start + cta.thread() as u64;
        let (mut sums, mut i) = ([0.0; K], begin);
        while i < part.end {
            let held = match piece == cta.block() && i == begin {
                true => first,
                false => part.load(cta, i, &load),
            };
            for loaded in held {
                if let Some(loaded) = loaded {
                    each(i as usize, loaded, &mut sums);
                }
                i += cta.threads() as u64;
            }
        }
        write((args.first + piece) as usize, sums);
        piece += cta.blocks();
    }
}
