//! The walk over the slices of a sparse X with hot columns: see [`hot`](crate::fused::hot).
//!
//! Slices of more steps than are held come in parts, each a round trip to memory; all but the last are read twice.

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::fused::Compute;
use crate::fused::fixed::point::FixedPoint;
use crate::fused::fixed::sums::SharedSums;
use crate::fused::hot::addend::{write_of_slice, write_rest};
use crate::fused::hot::share::{ENTRIES, Share, Steps, is_place};
use crate::fused::hot::values::Load;
use crate::fused::hot::{CLASSES, HotArgs, SPARE, scale_of};
use crate::verbs::{each_of_block, global_warp, global_warps, lane, load_or, sum_of_lanes};

/// What the rows of a block have in common.
struct Block<T> {
    /// The hot elements of y, and zeros.
    input: Shared<T>,
    sums: SharedSums<T>,
    scale: i32,
    shift: T,
    has_non_finite: bool,
}

impl<T: FixedPoint> Block<T> {
    #[inline(always)]
    fn open<C: Cta, P: Compute>(cta: &C, args: &HotArgs<'_, T>) -> Self {
        let places = args.columns.len() as u32;
        let input = Shared::at(0, if P::DOTS { places + SPARE } else { 0 });
        let sums = SharedSums::open(cta, input.end(), (places, SPARE));
        each_of_block(cta, input.len(), |place| {
            let y = if (place as u32) < places {
                cta.read(args.hot, place)
            } else {
                T::ZERO
            };
            cta.shared_write(input, place, y);
        });
        cta.sync();
        Block {
            input,
            sums,
            scale: scale_of(cta, args),
            shift: load_or(cta, args.shift, 0, T::ZERO),
            has_non_finite: args.non_finite != 0,
        }
    }

    /// Adds the hot entries of a part, times f and the row's constant, to the sums.
    #[inline(always)]
    fn add<C: Cta, V: Load<T>>(
        &self,
        cta: &C,
        args: &HotArgs<'_, T>,
        share: &Share<T>,
        (f, constant): (T, T),
    ) {
        let is_finite = f.exponent_field() != T::NON_FINITE;
        let factor = if is_finite { f.scaled(self.scale) } else { f } * constant;
        if !is_finite || self.has_non_finite {
            self.add_all(cta, args, share.places(), share.products(factor));
        } else if V::IS_CONSTANT && share.has(ENTRIES / 2 - 1) {
            // All additions are requested before one is done; with values that would not fit in the registers of 1,024
            // threads.
            self.sums
                .add_each(cta, share.places(), share.products(factor));
        } else {
            for k in 0..ENTRIES / 2 {
                if !share.has(k) {
                    break;
                }
                let products = share.products_of_pair(k, factor);
                self.sums.add_each(cta, share.pair(k), products);
            }
        }
    }

    /// Adds products that may be infinite or NaN.
    #[inline(always)]
    fn add_all<C: Cta>(
        &self,
        cta: &C,
        args: &HotArgs<'_, T>,
        places: [u32; ENTRIES],
        products: [T; ENTRIES],
    ) {
        for k in 0..ENTRIES {
            if is_place(args, places[k]) {
                self.add_any(cta, args, places[k], products[k]);
            }
        }
    }

    /// Adds a product that may be infinite or NaN.
    #[inline(always)]
    fn add_any<C: Cta>(&self, cta: &C, args: &HotArgs<'_, T>, place: u32, product: T) {
        if product.exponent_field() == T::NON_FINITE {
            cta.add(args.specials, place as usize, product);
        } else {
            self.sums.add(cta, place, product);
        }
    }
}

/// [`HotVariant::Walk`](crate::fused::HotVariant::Walk).
#[inline(always)]
pub(crate) fn walk<C: Cta, T: FixedPoint, P: Compute, V: Load<T>>(cta: &C, args: &HotArgs<'_, T>) {
    // As `most_threads` has it.
    if T::SIZE == 4 {
        cta.launch_bounds::<1024, 1>();
    } else {
        cta.launch_bounds::<768, 1>();
    }
    let block = Block::open::<C, P>(cta, args);
    let (mut number, mut from, mut position) = (0, 0, 0);
    while number < CLASSES {
        let end = end_of_class(args, number);
        let class = Class {
            bits: number as u32,
            end,
            // Of this lane's row in slice 0, if that were of the class.
            position: (position + (lane(cta) >> (5 - number))).wrapping_sub(from << number),
        };
        class.walk::<C, T, P, V>(cta, args, &block, from);
        position += (end - from) << number;
        (number, from) = (number + 1, end);
    }
    write_rest(cta, args, from);
    block.sums.flush(cta, args.sums);
}

/// The slice behind the last of a class: no index that only the running kernel knows, which would put the arguments
/// into local memory.
#[inline(always)]
fn end_of_class<T>(args: &HotArgs<'_, T>, class: usize) -> u32 {
    let [a, b, c, d, e] = args.slices;
    match class {
        0 => a,
        1 => b,
        2 => c,
        3 => d,
        _ => e,
    }
}

/// Slices of 2^bits rows.
///
/// The number of rows is no constant: five copies of the body were 8,000 instructions.
struct Class {
    bits: u32,
    /// The slice behind the last.
    end: u32,
    /// What this lane's position is, less 2^bits for each slice.
    position: u32,
}

impl Class {
    /// The class's slices, the first of which is `from`.
    #[inline(always)]
    fn walk<C: Cta, T: FixedPoint, P: Compute, V: Load<T>>(
        &self,
        cta: &C,
        args: &HotArgs<'_, T>,
        block: &Block<T>,
        from: u32,
    ) {
        let step = global_warps(cta);
        let mut number = from + global_warp(cta);
        let mut steps = Steps::of(cta, args, (number, self.end));
        while number < self.end {
            let slice = Slice {
                number,
                parts: steps.parts(),
                lanes: WARP >> self.bits,
                position: self.position.wrapping_add(number << self.bits),
            };
            let held = slice.multiply::<C, T, P, V>(cta, args, block, &steps);
            // On their way while sums are added to; before the product they would not fit in the registers.
            steps = Steps::of(cta, args, (number + step, self.end));
            slice.add::<C, T, P, V>(cta, args, block, &held);
            write_of_slice(cta, args, number);
            number += step;
        }
    }
}

/// Some rows that share a warp.
struct Slice {
    number: u32,
    /// Into how many parts that registers hold its steps fall.
    parts: u32,
    /// Of a row.
    lanes: u32,
    /// That of this lane's row.
    position: u32,
}

/// What a lane has of a slice whose rows have been multiplied by y.
struct Multiplied<T> {
    /// The last part.
    share: Share<T>,
    row: Row<T>,
    dot: T,
}

impl Slice {
    #[inline(always)]
    fn multiply<C: Cta, T: FixedPoint, P: Compute, V: Load<T>>(
        &self,
        cta: &C,
        args: &HotArgs<'_, T>,
        block: &Block<T>,
        steps: &Steps,
    ) -> Multiplied<T> {
        let mut share = load::<C, T, P, V>(cta, args, (steps, 0, Cache::Once));
        let row = Row::<T>::load::<C, P, V>(cta, args, self.position);
        let mut dot = T::ZERO;
        if P::DOTS {
            dot = share.dot(cta, args, (block.input, dot));
            let mut part = 1;
            while part < self.parts {
                share = load::<C, T, P, V>(cta, args, (steps, part, Cache::Keep));
                dot = share.dot(cta, args, (block.input, dot));
                part += 1;
            }
            dot = sum_of_lanes(cta, dot, self.lanes);
        }
        Multiplied { share, row, dot }
    }

    /// Adds the rows to the sums.
    #[inline(always)]
    fn add<C: Cta, T: FixedPoint, P: Compute, V: Load<T>>(
        &self,
        cta: &C,
        args: &HotArgs<'_, T>,
        block: &Block<T>,
        Multiplied { share, row, dot }: &Multiplied<T>,
    ) {
        if !row.is_there {
            return;
        }
        let f = row.factor::<P>(*dot, block.shift);
        if args.factors.is_some() && lane(cta).is_multiple_of(self.lanes) {
            let constant = row.constant.scaled(args.constant_exponent);
            cta.write(args.factors, self.position as usize, f * constant);
        }
        block.add::<C, V>(cta, args, share, (f, row.constant));
        // Without products it is the first part that is held.
        let (mut part, end) = if P::DOTS {
            (0, self.parts - 1)
        } else {
            (1, self.parts)
        };
        while part < end {
            let number = cta.fresh(self.number);
            let steps = Steps::of(cta, args, (number, number + 1));
            let share = load::<C, T, P, V>(cta, args, (&steps, part, Cache::Keep));
            block.add::<C, V>(cta, args, &share, (f, row.constant));
            part += 1;
        }
    }
}

/// Part of a slice, as the product P wants it.
#[inline(always)]
fn load<C: Cta, T: FixedPoint, P: Compute, V: Load<T>>(
    cta: &C,
    args: &HotArgs<'_, T>,
    part: (&Steps, u32, Cache),
) -> Share<T> {
    if P::DOTS {
        Share::load::<C, V, true>(cta, args, part)
    } else {
        Share::load::<C, V, false>(cta, args, part)
    }
}

/// What there is besides the entries of a row.
struct Row<T> {
    is_there: bool,
    /// Of p, for [`Product::Transposed`](crate::fused::Product::Transposed).
    input: T,
    weight: T,
    /// What its values are, if they are equal; else 1.
    constant: T,
}

impl<T: FixedPoint> Row<T> {
    /// That of a position: requested before it is needed.
    #[inline(always)]
    fn load<C: Cta, P: Compute, V: Load<T>>(cta: &C, args: &HotArgs<'_, T>, position: u32) -> Self {
        let row = load_or(cta, args.order, position as usize, position);
        let mut found = Row {
            is_there: row < args.rows,
            input: T::ZERO,
            weight: T::ONE,
            constant: T::ONE,
        };
        if found.is_there {
            found.weight = load_or(cta, args.weights, row as usize, T::ONE);
            if !P::DOTS {
                found.input = cta.load(args.input, row as usize, Cache::Once);
            }
            if V::IS_CONSTANT {
                found.constant = load_or(cta, args.constants, position as usize, args.constant);
            }
        }
        found
    }

    /// f.
    #[inline(always)]
    fn factor<P: Compute>(&self, dot: T, shift: T) -> T {
        let p = if P::DOTS {
            self.constant * dot - shift
        } else {
            self.input
        };
        p * self.weight
    }
}
