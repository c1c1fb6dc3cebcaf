//! R of a tall matrix from AᵀA.

use gpu_kernels::In;
use gpu_kernels::Out;
use gpu_kernels::qr::{Lies, QrArgs, QrVariant, REFUSED, Steps, gram_sums, gram_words};

use super::{Dressing, TallQr};
use crate::device::{Buffer, Device};
use crate::ops::qr::launch;
use crate::ops::{Number, OpError};
use crate::plan::tall::tall_gram;

/// Memory for the sums of all blocks, and what is said of them.
#[derive(Debug)]
pub(super) struct Gram {
    blocks: u32,
    sums: Buffer<f64>,
    words: Buffer<u32>,
}

impl Gram {
    /// None where reflectors are taken from the start.
    pub fn new<T: Number>(device: &Device, rows: usize) -> Result<Option<Gram>, OpError> {
        let blocks = device
            .limits()
            .and_then(|limits| tall_gram(T::SIZE, rows, limits));
        let Some(blocks) = blocks else {
            return Ok(None);
        };
        Ok(Some(Gram {
            blocks,
            sums: device.zeros(gram_sums(blocks) as usize)?,
            words: device.zeros(gram_words(blocks) as usize)?,
        }))
    }

    /// What later launches look at.
    pub fn verdict(&mut self) -> Out<'_, u32> {
        self.words.output()
    }

    /// The word that says how it went; waits for it.
    pub fn word(&self) -> Result<u32, OpError> {
        let mut word = [0];
        self.words.read(0, &mut word)?;
        Ok(word[0])
    }

    /// Whether R comes from reflectors; waits for it.
    pub fn is_refused(&self) -> Result<bool, OpError> {
        Ok(self.word()? & REFUSED != 0)
    }
}

impl<T: Number> TallQr<T> {
    /// R of the whole matrix to the last level, or a word that it is not exact enough.
    pub(super) fn take_products(
        &mut self,
        a: In<'_, T>,
        steps: Steps,
        dressing: &Dressing<'_, T>,
    ) -> Result<(), OpError> {
        let (Some(gram), Some(last)) = (&mut self.gram, self.levels.last_mut()) else {
            return Ok(());
        };
        let is_dressed = !dressing.is_plain();
        let lies = match lies(self.piece.offset, &steps, T::SIZE) {
            Lies::InColumns if is_dressed => Lies::Otherwise,
            lies => lies,
        };
        let n = self.width as u64;
        let args = QrArgs {
            a,
            f: last.output(),
            count: 1,
            rows: self.piece.rows as u32,
            cols: self.width as u32,
            a_steps: steps,
            f_steps: Steps {
                row: n,
                col: 1,
                each: n * n,
            },
            dress: dressing.args(),
            sums: gram.sums.output(),
            verdict: gram.words.output(),
            ..QrArgs::none()
        };
        let variant = QrVariant::Gram { lies, is_dressed };
        launch::run(&self.device, variant, u64::from(gram.blocks), args)
    }
}

/// Whether lines of A begin with whole packs.
fn lies(offset: usize, steps: &Steps, bytes: u32) -> Lies {
    let pack = 16 / bytes as usize;
    let begins = |step: u64| step.is_multiple_of(pack as u64) && offset.is_multiple_of(pack);
    match steps {
        Steps { col: 1, row, .. } if begins(*row) => Lies::InRows,
        Steps { row: 1, col, .. } if begins(*col) => Lies::InColumns,
        _ => Lies::Otherwise,
    }
}
