//! Loads of words of 4 and 8 bytes, as bits, and loads and stores of 16 bytes.

/// One asm line for words of 4 bytes and one for words of 8.
macro_rules! by_size {
    ($t:ty, $four:expr, $eight:expr) => {
        if <$t>::SIZE == 4 { $four } else { $eight }
    };
}

/// A read-only load with a given suffix, from address `$p`, of a 4- or 8-byte word, as bits.
macro_rules! load_word {
    ($t:ty, $suffix:literal, $p:expr) => {
        by_size!(
            $t,
            {
                let bits: u32;
                asm!(concat!("ld.global", $suffix, ".b32 {}, [{}];"), out(reg32) bits, in(reg64) $p,
                    options(pure, readonly, nostack));
                bits as u64
            },
            {
                let bits: u64;
                asm!(concat!("ld.global", $suffix, ".b64 {}, [{}];"), out(reg64) bits, in(reg64) $p,
                    options(pure, readonly, nostack));
                bits
            }
        )
    };
}

/// A 16-byte read-only load with a given suffix: four 4-byte words or two 8-byte words, as bits.
macro_rules! load_16 {
    ($t:ty, $suffix:literal, $p:expr) => {
        by_size!(
            $t,
            {
                let (a, b, c, d): (u32, u32, u32, u32);
                asm!(concat!("ld.global", $suffix, ".v4.b32 {{{},{},{},{}}}, [{}];"),
                    out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg64) $p,
                    options(pure, readonly, nostack));
                [a as u64, b as u64, c as u64, d as u64]
            },
            {
                let (a, b): (u64, u64);
                asm!(concat!("ld.global", $suffix, ".v2.b64 {{{},{}}}, [{}];"),
                    out(reg64) a, out(reg64) b, in(reg64) $p,
                    options(pure, readonly, nostack));
                [a, b, 0, 0]
            }
        )
    };
}

/// One 16-byte store of what `$bits` says of each element.
macro_rules! store_16 {
    ($t:ty, $p:expr, $bits:expr) => {
        by_size!(
            $t,
            asm!("st.global.v4.b32 [{}], {{{},{},{},{}}};", in(reg64) $p,
                in(reg32) $bits(0) as u32, in(reg32) $bits(1) as u32,
                in(reg32) $bits(2) as u32, in(reg32) $bits(3) as u32, options(nostack)),
            asm!("st.global.v2.b64 [{}], {{{},{}}};", in(reg64) $p,
                in(reg64) $bits(0), in(reg64) $bits(1), options(nostack))
        )
    };
}
