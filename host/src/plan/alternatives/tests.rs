use super::*;

fn plain(bytes: u64) -> Packed {
    Packed {
        bytes,
        unpacked_bytes: 0,
    }
}

fn small() -> Fit {
    Fit {
        footprint: Footprint {
            bytes: 100_000,
            rows: 442,
            cols: 10,
            element: 4,
        },
        entries: None,
        packed: plain(50_000),
        reads: 90,
        kernel_seconds: 1e-5,
        form_seconds: 0.0,
        block_seconds: 1e-5,
        room: 80 << 30,
        is_open: false,
        host: HostRates::of_threads(16),
    }
}

/// 40 GiB of dense rows.
fn large() -> Fit {
    let small = small();
    Fit {
        footprint: Footprint {
            bytes: 40 << 30,
            rows: 1 << 20,
            ..small.footprint
        },
        packed: plain(40 << 30),
        reads: 1_000,
        room: 10 << 30,
        ..small
    }
}

#[test]
fn tiny_data_stay_on_the_cpu() {
    assert_eq!(small().alternatives()[0].place, FitPlace::Cpu);
}

#[test]
fn what_streams_takes_the_links_time_or_the_kernels() {
    let fit = large();
    let crossing = fit.streamed(0.0).crossing_bytes() as f64;
    let of_link = crossing / 55.4e9;
    let seconds = fit.streaming().pass_seconds;
    assert!(
        (seconds / of_link - 1.0).abs() < 0.01,
        "{seconds} s, {of_link} s"
    );
    let slow = Fit {
        block_seconds: 10.0,
        ..fit.clone()
    };
    assert!((slow.streaming().pass_seconds - 10.0).abs() < 1e-6);
    let roomier = Fit {
        room: 30 << 30,
        ..fit.clone()
    };
    assert!(roomier.streaming().seconds < fit.streaming().seconds);
}

#[test]
fn the_cpu_takes_the_rows_that_the_gpu_has_no_room_for() {
    let fit = large();
    // The host's memory delivers 185 GB/s, the link 55: dense rows are read where they are.
    let share = fit.host_share();
    assert!((0.5..0.9).contains(&share), "{share}");
    let both = fit.hybrid();
    for alone in [fit.streaming(), fit.on_cpu()] {
        assert!(both.seconds < alone.seconds, "{both} {alone}");
    }
    // A host of one thread is no help.
    let alone = Fit {
        host: HostRates {
            dense_gbs: 0.1,
            ..fit.host.clone()
        },
        ..fit
    };
    assert_eq!(alone.host_share(), 0.0);
}

#[test]
fn without_page_locked_blocks_the_cpu_does_one_after_the_other() {
    let few = Fit {
        reads: 10,
        ..large()
    };
    let both = few.hybrid();
    // What does not fit is the CPU's: nothing crosses that it would have to copy as well.
    let left = few.streamed(both.host_share).crossing_bytes() as f64;
    assert!(
        left < 0.02 * few.packed.bytes as f64,
        "{both}, {left} bytes"
    );
}

#[test]
fn nothing_is_no_time() {
    let nothing = Fit {
        footprint: Footprint {
            bytes: 0,
            rows: 0,
            cols: 0,
            element: 4,
        },
        packed: plain(0),
        reads: 0,
        kernel_seconds: 0.0,
        form_seconds: 0.0,
        block_seconds: 0.0,
        room: 0,
        ..small()
    };
    for alternative in nothing.alternatives() {
        assert!(alternative.seconds.is_finite(), "{alternative}");
    }
    assert_eq!(nothing.host_share(), 0.0);
}
