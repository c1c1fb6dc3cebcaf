//! Where a block of rows lies, and what every form of it has in common.

use std::ops::Range;
use std::sync::Mutex;

use gpu_kernels::{In, Out};

use super::slices::Slices;
use crate::device::group::{Group, Shares};
use crate::device::{Buffer, Device};
use crate::ops::blocks::Part;
use crate::ops::launch::{slice, slice_mut};
use crate::ops::spread::Wish;
use crate::ops::terms::Terms;
use crate::ops::{Number, OpError};
use crate::parallel::locked;
use crate::plan::fused::Product;
use crate::plan::scaling::{self, Columns, Machines};

/// Where rows lie and how many there are: all that launches over a form need to know besides the form.
pub(in crate::ops) struct Site<T> {
    pub device: Device,
    pub rows: usize,
    pub cols: usize,
    /// Entries of the longest row.
    pub longest: u32,
    /// Of rows that members of a group share, where sums of all of them are one sum in every bit.
    pub together: Option<Together>,
    /// In which members of a group add up the sums of their rows, where one of them begins while others are computed.
    pub slices: Option<Slices>,
    /// Vectors of m elements that nobody has at the moment: what lies between launches.
    between: Mutex<Vec<Buffer<T>>>,
}

/// The rows of all members of a group, of which a site has some.
#[derive(Debug, Clone)]
pub(in crate::ops) struct Together {
    pub group: Group,
    pub rows: u64,
    /// Of which columns sums are wanted.
    pub wish: Wish,
}

impl Together {
    /// The shares of the columns of which each member finishes its own, and gives the others what came of it, where that
    /// pays: see [`scaling`](crate::plan::scaling). Without a link, where time says nothing, it always does.
    pub(in crate::ops) fn paying_shares<T: Number>(&self, site: &Site<T>) -> Option<Shares> {
        let in_shares = |machines: Machines| {
            machines.sums_pay_in_shares(&Columns {
                cols: site.cols as u64,
                element: size_of::<T>() as u64,
                summed: (size_of::<T>() + 8 * T::LIMBS) as u64,
                // Of no account for sums.
                memory_gb_s: f64::INFINITY,
            })
        };
        let pays = machines(&self.group).is_none_or(in_shares);
        pays.then(|| Shares::even(site.cols, self.group.size()))
    }

    /// The greatest of all members, element by element, of numbers that are as many on each.
    pub(in crate::ops) fn greatest(&self, numbers: &mut Buffer<u32>) -> Result<(), OpError> {
        let mut all: Vec<u64> = numbers.to_vec()?.into_iter().map(u64::from).collect();
        self.group.max(&mut all)?;
        let all: Vec<u32> = all.into_iter().map(|number| number as u32).collect();
        Ok(numbers.copy_from_slice(&all)?)
    }

    /// The greatest of all members of each of two numbers that stand in pairs, as many as each has.
    pub(in crate::ops) fn greatest_pair(&self, pairs: &mut Buffer<u32>) -> Result<(), OpError> {
        let own = pairs.to_vec()?;
        let most = |which: usize| own.iter().skip(which).step_by(2).copied().max();
        let mut all = [0, 1].map(|which| u64::from(most(which).unwrap_or(0)));
        self.group.max(&mut all)?;
        let pair = all.map(|number| number as u32);
        Ok(pairs.copy_from_slice(&pair.repeat(own.len() / 2))?)
    }
}

/// The GPUs of a group that have a link; without one time says nothing.
pub(in crate::ops) fn machines(group: &Group) -> Option<Machines> {
    group.link_name().map(|_| Machines {
        gpus: group.size() as u32,
        nodes: 1,
        link: scaling::NVLINK,
        one_launch: scaling::ONE_LAUNCH,
        network: scaling::NETWORK,
    })
}

/// A product that is to be computed; shapes and devices have been checked.
pub(in crate::ops) struct Call<'a, 'w, T: Number> {
    pub product: Product,
    /// y, or p.
    pub input: &'a Buffer<T>,
    pub terms: Terms<'a, T>,
    /// w, or p.
    pub output: &'w mut Buffer<T>,
    /// Of which rows.
    pub part: Part,
    /// What p is made of, where sums are to have the scale of that.
    pub within: Option<Within<'a, T>>,
}

/// What bounds p of `Xᵀ·p`: in magnitude no element is more than that of `v ⊙ (q − s)`, whatever the signs, with q = X·y of a
/// [fused](Product::Fused) product, or with q that is given ([transposed](Product::Transposed)). Fixed-point sums take the scale
/// of that product, which is known before p is: so both products of a block can be computed while it is on the device.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Within<'a, T: Number> {
    /// Which product.
    pub product: Product,
    /// y, or q.
    pub input: &'a Buffer<T>,
    /// v.
    pub weights: Option<&'a Buffer<T>>,
    /// s.
    pub shift: Option<&'a Buffer<T>>,
}

impl<'a, 'w, T: Number> Call<'a, 'w, T> {
    /// A product without terms.
    pub(in crate::ops) fn plain(
        product: Product,
        input: &'a Buffer<T>,
        output: &'w mut Buffer<T>,
    ) -> Self {
        Call {
            product,
            input,
            terms: Terms::default(),
            output,
            part: Part::All,
            within: None,
        }
    }
}

/// The vectors of a product over some rows, as kernels take them.
pub(in crate::ops) struct BlockVectors<'a, T> {
    pub input: In<'a, T>,
    pub weights: In<'a, T>,
    pub shift: In<'a, T>,
    pub addend: In<'a, T>,
    pub solve: In<'a, f64>,
    pub output: Out<'a, T>,
    pub alpha: T,
    pub beta: T,
}

impl<'a, T: Number> Call<'a, 'a, T> {
    /// Those of a block of these rows: vectors of m elements from its first row on, vectors of n elements whole. β·z of a
    /// result of n elements is not a block's.
    pub(in crate::ops) fn of_rows(self, rows: &Range<usize>) -> BlockVectors<'a, T> {
        let Call {
            product,
            input,
            terms,
            output,
            ..
        } = self;
        let is_forward = product == Product::Forward;
        BlockVectors {
            input: match product {
                Product::Transposed => slice(input, rows),
                Product::Fused | Product::Forward => input.input(),
            },
            weights: terms.weights.map_or(In::none(), |v| slice(v, rows)),
            shift: terms.shift(),
            addend: match terms.addend {
                Some((_, z)) if is_forward => slice(z, rows),
                _ => In::none(),
            },
            solve: terms.solve(),
            output: match is_forward {
                true => slice_mut(output, rows),
                false => output.output(),
            },
            alpha: terms.alpha,
            beta: terms.beta(),
        }
    }
}

/// The launches of one product over a form.
///
/// A form is added by a file of this folder with what lies on the device and a type that implements this; see the page of
/// the room.
pub(in crate::ops) trait OnDevice<T: Number>: Send + Sync {
    /// Whether all of w is written, β·z included. Other launches add to what is there.
    fn writes_all(&self) -> bool;

    /// Launches; nothing is waited for.
    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError>;
}

impl<T: Number> Site<T> {
    pub(in crate::ops) fn new(device: &Device, (rows, cols): (usize, usize), longest: u64) -> Self {
        Site {
            device: device.clone(),
            rows,
            cols,
            longest: longest as u32,
            together: None,
            slices: None,
            between: Mutex::new(Vec::new()),
        }
    }

    /// Rows of all members.
    pub(in crate::ops) fn all_rows(&self) -> u64 {
        let own = self.rows as u64;
        self.together.as_ref().map_or(own, |all| all.rows)
    }

    /// Entries of which sums of a product consist at most, in a row.
    pub(in crate::ops) fn longest(&self, product: Product) -> u32 {
        match product {
            Product::Transposed => 1,
            Product::Fused | Product::Forward => self.longest,
        }
    }

    /// Calls `work` with a vector of m elements, whatever they are.
    pub(in crate::ops) fn with_row_vector(
        &self,
        work: impl FnOnce(&mut Buffer<T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.with_row_vectors(|[p]| work(p))
    }

    /// The same with N of them. All that works over these rows takes them from here; of those that are large one is kept:
    /// at 19 million rows each is 77 MB of what a limit leaves.
    pub(in crate::ops) fn with_row_vectors<const N: usize>(
        &self,
        work: impl FnOnce([&mut Buffer<T>; N]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let mut taken = Vec::with_capacity(N);
        while taken.len() < N {
            let kept = locked(&self.between).pop();
            taken.push(kept.map_or_else(|| self.device.zeros(self.rows), Ok)?);
        }
        let mut vectors = taken.iter_mut();
        let done = work(std::array::from_fn(|_| vectors.next().expect("N of them")));
        let mut kept = locked(&self.between);
        kept.append(&mut taken);
        if !self.device.ledger().keeps_idle(self.rows * size_of::<T>()) {
            kept.truncate(1);
        }
        done
    }

    /// The pattern in two products: `p = v ⊙ (X·y − s)`, then `w = α·Xᵀ·p + β·z`.
    pub(in crate::ops) fn in_two_products(
        &self,
        call: Call<'_, '_, T>,
        mut run: impl FnMut(Call<'_, '_, T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let Call {
            input,
            terms,
            output,
            part,
            ..
        } = call;
        self.with_row_vector(|p| {
            run(Call {
                product: Product::Forward,
                input,
                terms: terms.of_first_half(),
                output: &mut *p,
                part,
                within: None,
            })?;
            run(Call {
                product: Product::Transposed,
                input: p,
                terms: terms.of_second_half(),
                output,
                part,
                within: None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_vectors_are_kept_for_whoever_needs_some_next() -> Result<(), OpError> {
        for (rows, most) in [(100, 3), (5_000_000, 1)] {
            let site = Site::<f32>::new(&Device::cpu(), (rows, 10), 1);
            let kept = || locked(&site.between).len();
            site.with_row_vectors(|[a, b]| {
                assert_eq!((a.len(), b.len(), kept()), (rows, rows, 0));
                site.with_row_vector(|c| {
                    assert_eq!(c.len(), rows);
                    Ok(())
                })
            })?;
            assert_eq!(kept(), most);
            site.with_row_vectors(|[_, _]| Ok(()))?;
            site.with_row_vector(|_| Ok(()))?;
            assert_eq!(kept(), most);
        }
        Ok(())
    }
}
