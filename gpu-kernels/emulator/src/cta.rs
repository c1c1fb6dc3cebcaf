//! A lane as a kernel body sees it: the [`Cta`] of the emulator.

use std::panic::Location;

use gpu_kernels::cta::{Shared, WARP};
use gpu_kernels::{Cache, Cta, In, Out, Real, Shuffle, Word as Element, Words};

use super::address::{GlobalTarget, SharedTarget};
use super::block::Scope;
use super::collective::Collective;
use super::fault::{Action, FaultKind};
use super::matrix::SparseFactors;
use super::thread::Thread;

fn sum<T: Real>(old: u64, value: T) -> u64 {
    (T::from_bits(old) + value).to_bits()
}

impl Cta for Thread<'_> {
    fn thread(&self) -> u32 {
        self.number
    }

    fn threads(&self) -> u32 {
        self.block.launch.shape.block
    }

    fn block(&self) -> u32 {
        self.block.number
    }

    fn blocks(&self) -> u32 {
        self.block.launch.shape.grid
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn sync(&self) {
        self.wait_for_all(Scope::Block, Location::caller());
    }

    const CLUSTERS: bool = true;

    fn cluster_rank(&self) -> u32 {
        self.block.number - self.block.cluster.first
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn sync_cluster(&self) {
        self.wait_for_all(Scope::Cluster, Location::caller());
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn sync_warp(&self) {
        let warp = u32::MAX >> (WARP - self.lanes_of_warp());
        self.meet(Collective::barrier(self.lane(), warp, Location::caller()));
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn shuffle<T: Element>(&self, value: T, from: Shuffle, width: u32, members: u32) -> T {
        let site = Location::caller();
        if !width.is_power_of_two() || width > WARP {
            self.fail(site, FaultKind::ShuffleWidth { width });
        }
        let bits = value.to_bits();
        T::from_bits(self.meet(Collective::shuffle(
            self.lane(),
            bits,
            from,
            width,
            members,
            site,
        )))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn ballot(&self, holds: bool, members: u32) -> u32 {
        let site = Location::caller();
        self.meet(Collective::ballot(self.lane(), holds, members, site)) as u32
    }

    fn load<T: Element>(&self, from: In<'_, T>, i: usize, _: Cache) -> T {
        let target = GlobalTarget::input(from, i, 1);
        T::from_bits(self.load_element(&target, Action::Load, Location::caller()))
    }

    fn load_pack<T: Element, P: Words<T>>(&self, from: In<'_, T>, i: usize, _: Cache) -> P {
        let target = GlobalTarget::input(from, i, P::LANES as u32);
        let words = self.load_words(&target, Action::Load, Location::caller());
        let [a, b, c, d] = words.map(u64::from);
        P::from_words(if T::SIZE == 4 {
            [a, b, c, d]
        } else {
            [b << 32 | a, d << 32 | c, 0, 0]
        })
    }

    fn read<T: Element>(&self, from: Out<'_, T>, i: usize) -> T {
        let target = GlobalTarget::output(from, i);
        T::from_bits(self.load_element(&target, Action::Read, Location::caller()))
    }

    fn write<T: Element>(&self, to: Out<'_, T>, i: usize, value: T) {
        let target = GlobalTarget::output(to, i);
        self.store_word(&target, value.to_bits(), Location::caller());
    }

    fn add<T: Real>(&self, to: Out<'_, T>, i: usize, value: T) {
        let (target, site) = (GlobalTarget::output(to, i), Location::caller());
        self.update_word(&target, site, &|old| sum(old, value));
    }

    fn ticket(&self, counter: Out<'_, u32>, i: usize, last: u32) -> u32 {
        let target = GlobalTarget::output(counter, i);
        self.draw_ticket(&target, Location::caller(), last)
    }

    fn add_wrapping(&self, to: Out<'_, u64>, i: usize, value: u64) {
        let (target, site) = (GlobalTarget::output(to, i), Location::caller());
        self.update_word(&target, site, &|old| old.wrapping_add(value));
    }

    fn raise(&self, to: Out<'_, u32>, i: usize, value: u32) {
        let (target, site) = (GlobalTarget::output(to, i), Location::caller());
        self.update_word(&target, site, &|old| old.max(u64::from(value)));
    }

    fn peek(&self, from: Out<'_, u32>, i: usize) -> u32 {
        let (target, site) = (GlobalTarget::output(from, i), Location::caller());
        self.update_word(&target, site, &|old| old) as u32
    }

    fn send(&self, to: Out<'_, u64>, i: usize, packets: [u64; 2]) {
        for (at, packet) in (i..).zip(packets) {
            let (target, site) = (GlobalTarget::output(to, at), Location::caller());
            self.update_word(&target, site, &|_| packet);
        }
    }

    fn receive(&self, from: Out<'_, u64>, i: usize) -> [u64; 2] {
        [i, i + 1].map(|at| {
            let (target, site) = (GlobalTarget::output(from, at), Location::caller());
            self.update_word(&target, site, &|old| old)
        })
    }

    fn poll(&self, from: Out<'_, u32>, i: usize) -> u32 {
        let (target, site) = (GlobalTarget::output(from, i), Location::caller());
        self.update_word(&target, site, &|old| old) as u32
    }

    fn shared_read<T: Element>(&self, array: Shared<T>, i: usize) -> T {
        let target = SharedTarget::new(array, i);
        T::from_bits(self.shared_element(&target, Location::caller()))
    }

    fn shared_write<T: Element>(&self, array: Shared<T>, i: usize, value: T) {
        let target = SharedTarget::new(array, i);
        self.store_shared(&target, value.to_bits(), Location::caller());
    }

    fn shared_write_to<T: Element>(&self, rank: u32, array: Shared<T>, i: usize, value: T) {
        let target = SharedTarget::new(array, i);
        self.store_to_peer(rank, &target, value.to_bits(), Location::caller());
    }

    fn shared_add<T: Real>(&self, array: Shared<T>, i: usize, value: T) {
        let (target, site) = (SharedTarget::new(array, i), Location::caller());
        self.update_shared(&target, site, &|old| sum(old, value));
    }

    fn shared_fetch_add(&self, array: Shared<u32>, i: usize, value: u32) -> u32 {
        let (target, site) = (SharedTarget::new(array, i), Location::caller());
        self.update_shared(&target, site, &|old| old.wrapping_add(u64::from(value))) as u32
    }

    fn multiply_tf32(&self, a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4] {
        self.tf32_product((a, b), c, Location::caller())
    }

    fn multiply_halves(&self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        self.halves_product((a, b), c, Location::caller())
    }

    fn multiply_f64(&self, a: [f64; 8], b: [f64; 4], c: [f64; 4]) -> [f64; 4] {
        self.f64_product((a, b), c, Location::caller())
    }

    fn shared_read_matrices(&self, array: Shared<u32>, row: usize) -> [u32; 4] {
        self.read_matrices(array, row, Location::caller())
    }

    fn multiply_sparse_bytes<const A: bool, const B: bool>(
        &self,
        a: [u32; 4],
        b: [u32; 4],
        c: [i32; 4],
        metadata: u32,
    ) -> [i32; 4] {
        let factors = SparseFactors { a, b, metadata };
        self.sparse_bytes_product((factors, [A, B]), c, Location::caller())
    }

    fn multiply_sparse_halves<const BRAIN: bool, const PAIR: u32>(
        &self,
        a: [u32; 4],
        b: [u32; 4],
        c: [f32; 4],
        metadata: u32,
    ) -> [f32; 4] {
        let factors = SparseFactors { a, b, metadata };
        self.sparse_halves_product((factors, BRAIN, PAIR), c, Location::caller())
    }

    fn shared_fetch_add_to(&self, rank: u32, array: Shared<u32>, i: usize, value: u32) -> u32 {
        let (target, site) = (SharedTarget::new(array, i), Location::caller());
        let sum = |old: u64| old.wrapping_add(u64::from(value));
        self.update_of_peer(rank, &target, site, &sum) as u32
    }
}
