//! Matrices in buffers of their own: what others call a batch of pointers.

use gpu_kernels::In;
use gpu_kernels::qr::TABLE_WORDS;

use super::batch::Matrices;
use super::factors::{Qr, table_of};
use super::launch;
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError, checks};

/// Where the word of a matrix's place is in its row of the table.
const PLACE: usize = 2;

impl<T: Number> Qr<T> {
    /// Factors matrices of which each lies in a buffer of its own, from its [piece](super::Piece)'s offset on. On a GPU nothing
    /// is copied but a table of their places, eight words a matrix.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::ops::qr::{Order, Piece, Qr, TriangleForm};
    ///
    /// let device = Device::auto();
    /// let one = device.upload(&[3.0_f64, 4.0])?; // 2 × 1
    /// let other = device.upload(&[0.0, 5.0, 12.0])?; // 1 × 2, behind one element
    /// let piece = |rows, cols, offset| Piece { rows, cols, offset, order: Order::ColumnMajor, ld: rows };
    /// let mut qr = Qr::new(&device, vec![piece(2, 1, 0), piece(1, 2, 1)], TriangleForm::Whole)?;
    /// qr.factor_apart(&[&one, &other])?;
    /// assert_eq!(qr.factors().to_vec()?[0], -5.0);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// [`OpError::Length`] where there are not as many buffers as matrices, or the batch is not one of
    /// [pieces](Matrices::Each), or a buffer is too short; else as [`factor`](Self::factor).
    pub fn factor_apart(&mut self, a: &[&Buffer<T>]) -> Result<(), OpError> {
        let Matrices::Each(pieces) = &self.matrices else {
            return checks::length("pieces of a batch in buffers of their own", a.len(), 0);
        };
        checks::length("buffers", pieces.len(), a.len())?;
        for (piece, a) in pieces.iter().zip(a) {
            piece.check("A", a.len())?;
            a.expect_on(&self.device, "factor matrices")?;
        }
        match (&self.device, self.plan.clone()) {
            (_, _) if a.is_empty() => Ok(()),
            (Device::Cuda(_), Some(plan)) => {
                let (base, places) = self.places_of(a)?;
                let own = self.table.replace(places);
                let done = launch::factor(self, base, &plan);
                // Memory that is freed is used again behind the launches that read it.
                self.table = own;
                done
            }
            _ => self.factor_copied(a),
        }
    }

    /// What begins in the lowest buffer, and the table with places that count from there: of one address space, in which
    /// kernels reach all that was checked against its own buffer.
    fn places_of<'a>(&self, a: &[&'a Buffer<T>]) -> Result<(In<'a, T>, Buffer<u64>), OpError> {
        let address = |a: &Buffer<T>| a.input().pointer().addr();
        let lowest = a.iter().copied().min_by_key(|a| address(a));
        let base = lowest.expect("there are buffers").input();
        let mut words = table_of(&self.matrices);
        for (row, a) in words.chunks_exact_mut(TABLE_WORDS as usize).zip(a) {
            // Allocations begin at multiples of whole packs.
            row[PLACE] += ((address(a) - base.pointer().addr()) / size_of::<T>()) as u64;
        }
        Ok((base, self.device.upload(&words)?))
    }

    /// Through one buffer, for devices that look at where kernels read.
    fn factor_copied(&mut self, a: &[&Buffer<T>]) -> Result<(), OpError> {
        let mut all: Vec<T> = Vec::new();
        let mut pieces = Vec::with_capacity(a.len());
        for (i, a) in a.iter().enumerate() {
            let mut piece = self.matrices.piece(i);
            piece.offset += all.len();
            pieces.push(piece);
            all.extend(a.to_vec()?);
        }
        let moved = Matrices::Each(pieces);
        let plan = self.plan.clone();
        let mut through = Qr::with_plan(&self.device, moved, self.form, plan)?;
        through.factor(&self.device.upload(&all)?)?;
        self.factors.copy_from(&through.factors)?;
        self.first.copy_from(&through.first)?;
        self.t.copy_from(&through.t)?;
        self.status.copy_from(&through.status)?;
        Ok(())
    }
}
