//! Groups of threads: every collective with one to four members, and members that fail, leave, differ or do not come.

use std::time::Duration;

use proptest::prelude::*;

use super::launch::{LIVENESS_PORT, NCCL_PORT, is_alone, limit, meeting_point};
use super::threads::members;
use super::*;
use crate::device::{Device, DeviceError, EmulatorOptions};

/// Long enough for a busy machine: no test waits as long.
const LONG: Duration = Duration::from_secs(120);
/// Of waits that are meant to end by the limit.
const SHORT: Duration = Duration::from_millis(50);

/// What each of `size` members returns.
pub(super) fn run<R: Send>(size: usize, work: impl Fn(&Group) -> R + Sync) -> Vec<R> {
    run_threads(size, |group| {
        group.set_limit(LONG);
        work(&group)
    })
}

/// Numbers of a member, of very different sizes so that the order of a sum shows.
pub(super) fn floats(rank: usize, len: usize) -> Vec<f64> {
    let of = |i: usize| {
        let mantissa = 1.0 + ((7 * i + 13 * rank) % 97) as f64 / 97.0;
        mantissa * 10f64.powi(((5 * i + 3 * rank) % 31) as i32 - 15)
    };
    (0..len).map(of).collect()
}

/// In the order of the ranks.
pub(super) fn expected(size: usize, len: usize) -> Vec<f64> {
    let mut sum = floats(0, len);
    for rank in 1..size {
        let own = floats(rank, len);
        sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    sum
}

#[test]
fn floats_are_added_in_the_order_of_the_ranks() {
    // The longest are exchanged in pieces, the others gathered.
    for (size, len) in [
        (1, 5),
        (2, 0),
        (2, 1),
        (3, 5),
        (4, 3),
        (2, 9_001),
        (3, 20_000),
        (4, 16_385),
    ] {
        let sums = run(size, |group| {
            let mut own = floats(group.rank(), len);
            group.sum(&mut own).map(|()| own)
        });
        for sum in sums {
            assert_eq!(
                sum,
                Ok(expected(size, len)),
                "{size} members, {len} numbers"
            );
        }
    }
}

#[test]
fn integers_wrap_and_the_greatest_is_found() {
    for size in 1..=4 {
        let found = run(size, |group| {
            let rank = group.rank();
            let mut signed = [i64::MAX, -(rank as i64), 1];
            let mut unsigned = [u64::MAX, rank as u64];
            let mut greatest = [rank as f32, -(rank as f32)];
            let mut most = [rank as u64, 7];
            group.sum(&mut signed)?;
            group.sum(&mut unsigned)?;
            group.max(&mut greatest)?;
            group.max(&mut most)?;
            Ok::<_, GroupError>((signed, unsigned, greatest, most))
        });
        let n = size as i64;
        let below = n * (n - 1) / 2;
        let signed = [i64::MAX.wrapping_mul(n), -below, n];
        let unsigned = [u64::MAX.wrapping_mul(n as u64), below as u64];
        let last = size - 1;
        let all = (signed, unsigned, [last as f32, 0.0], [last as u64, 7]);
        assert!(found.into_iter().all(|found| found == Ok(all)));
    }
}

#[test]
fn nan_is_the_greatest() {
    for at in 0..3 {
        let found = run(3, |group| {
            let mut own = [if group.rank() == at { f64::NAN } else { 1.0 }];
            group.max(&mut own).map(|()| own[0])
        });
        assert!(found.into_iter().all(|found| found.is_ok_and(f64::is_nan)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_members_have_is_gathered_in_order(lengths in prop::collection::vec(0_usize..9, 1..=4)) {
        let own = |rank: usize| -> Vec<u32> { (0..lengths[rank]).map(|i| (100 * rank + i) as u32).collect() };
        let all: Vec<u32> = (0..lengths.len()).flat_map(own).collect();
        let found = run(lengths.len(), |group| group.all_gather(&own(group.rank())));
        prop_assert!(found.into_iter().all(|found| found.as_ref() == Ok(&all)));
    }

    #[test]
    fn a_broadcast_is_of_one_member(size in 1_usize..=4, from in 0_usize..4, len in 0_usize..70) {
        let from = from % size;
        let own = |rank: usize| -> Vec<u8> { (0..len).map(|i| (31 * rank + i) as u8).collect() };
        let found = run(size, |group| {
            let mut values = own(group.rank());
            group.broadcast(from, &mut values).map(|()| values)
        });
        prop_assert!(found.into_iter().all(|found| found == Ok(own(from))));
    }

    /// A sum that goes from member to member is that of one member who does all of it.
    #[test]
    fn what_is_carried_has_the_order_of_the_members(size in 1_usize..=4, parts in 1_usize..5, len in 0_usize..6) {
        let work = |rank: usize, part: usize, values: &mut [f64]| {
            let own = floats(rank + part, values.len());
            values.iter_mut().zip(own).for_each(|(value, own)| *value += own);
        };
        let mut expected = vec![0.0; parts * len];
        for rank in 0..size {
            for (part, values) in expected.chunks_mut(len.max(1)).enumerate() {
                work(rank, part, values);
            }
        }
        let found = run(size, |group| {
            let mut values = vec![0.0; parts * len];
            group.carry((&mut values, parts), |part, values| work(group.rank(), part, values))?;
            group.broadcast(group.size() - 1, &mut values)?;
            Ok::<_, GroupError>(values)
        });
        prop_assert!(found.into_iter().all(|found| found.as_ref() == Ok(&expected)));
    }
}

#[test]
fn a_barrier_waits_for_all() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let came = AtomicUsize::new(0);
    let seen = run(4, |group| {
        came.fetch_add(1, Ordering::SeqCst);
        group.barrier().map(|()| came.load(Ordering::SeqCst))
    });
    assert_eq!(seen, vec![Ok(4); 4]);
}

#[test]
fn other_lengths_other_types_and_other_operations_name_the_member() {
    type Odd = fn(&Group) -> Result<(), GroupError>;
    let odd: [Odd; 5] = [
        |group| group.sum(&mut [1.0, 2.0]),
        |group| group.sum(&mut [1.0_f32]),
        |group| group.sum(&mut [1_i64]),
        |group| group.max(&mut [1.0]),
        |group| group.broadcast(1, &mut [1.0]),
    ];
    for odd in odd {
        let found = run(3, |group| match group.rank() {
            1 => odd(group),
            _ => group.sum(&mut [1.0]),
        });
        for found in found {
            let Err(GroupError::Differs { rank: 1, .. }) = found else {
                panic!("{found:?}");
            };
        }
    }
}

#[test]
fn a_member_that_fails_is_named_with_its_words() {
    for failing in 0..3 {
        let found = run(3, |group| {
            if group.rank() == failing {
                assert!(group.fail("no more memory").is_some());
            }
            (group.sum(&mut [1.0]), group.barrier())
        });
        let failed = GroupError::Failed {
            rank: failing,
            message: "no more memory".to_owned(),
        };
        for (first, then) in found {
            assert_eq!(first, Err(failed.clone()));
            assert_eq!(then, Err(failed.clone()), "a broken group stays broken");
        }
    }
}

#[test]
fn long_words_of_a_failure_are_cut_between_characters() {
    let message = "größer ".repeat(60);
    let found = run(2, |group| {
        if group.rank() == 1 {
            group.fail(&message);
        }
        group.barrier()
    });
    let Err(GroupError::Failed {
        rank: 1,
        message: found,
    }) = &found[0]
    else {
        panic!("{found:?}");
    };
    assert!(found.len() > 200 && message.starts_with(found.as_str()));
}

#[test]
fn a_member_that_returns_early_is_named() {
    for leaving in 0..3 {
        let found = run(3, |group| match group.rank() == leaving {
            true => Ok(()),
            false => group.barrier(),
        });
        for (rank, found) in found.into_iter().enumerate() {
            match found {
                Ok(()) => assert_eq!(rank, leaving),
                // The others see it themselves, or hear of it from rank 0, or see that rank 0 has gone for that reason.
                Err(GroupError::Left { rank, .. }) => assert!(rank == leaving || rank == 0),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_member_that_panics_ends_the_wait_of_the_others() {
    let seen = std::sync::Mutex::new(Vec::new());
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(3, |group| {
            assert!(group.rank() != 2, "a fault of rank 2");
            let found = group.sum(&mut [0.5]);
            locked(&seen).push(found);
        })
    }));
    assert!(ended.is_err(), "the panic goes on");
    let how = roll_call::PANICKED;
    let left = Err(GroupError::Left { rank: 2, how });
    assert_eq!(*locked(&seen), vec![left; 2]);
}

#[test]
fn a_member_that_does_not_come_is_named() {
    let mut all = members(3);
    let idle = all.pop().expect("rank 2");
    let waiting = std::thread::scope(|scope| {
        let begun: Vec<_> = all
            .iter()
            .map(|group| {
                group.set_limit(SHORT);
                scope.spawn(|| group.barrier())
            })
            .collect();
        begun
            .into_iter()
            .map(|member| member.join().expect("no panic"))
            .collect::<Vec<_>>()
    });
    for found in &waiting {
        let Err(GroupError::Missing {
            ranks, operation, ..
        }) = found
        else {
            panic!("{found:?}");
        };
        assert_eq!((&ranks[..], *operation), (&[2][..], "a barrier"));
    }
    let text = waiting[0].clone().expect_err("no barrier").to_string();
    assert!(
        text.starts_with("rank 2 did not come to a barrier within"),
        "{text}"
    );
    drop(idle);
}

#[test]
fn alone_everything_is_ones_own() {
    let group = Group::alone();
    let mut own = [1.5, -2.0];
    assert!(group.is_alone() && group.is_first());
    assert_eq!(group.sum(&mut own), Ok(()));
    assert_eq!(group.max(&mut own), Ok(()));
    assert_eq!(group.broadcast(0, &mut own), Ok(()));
    assert_eq!(group.all_gather(&own), Ok(vec![1.5, -2.0]));
    assert_eq!(group.carry((&mut own, 1), |_, own| own[0] += 1.0), Ok(()));
    assert_eq!(own, [2.5, -2.0]);
    group.fail("nobody listens");
    assert_eq!(group.barrier(), Ok(()));
}

/// A launcher's variables.
fn of(variables: &[(&str, &str)]) -> Result<Option<Launch>, GroupError> {
    Launch::read(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn launchers_are_told_apart() {
    let slurm = [
        ("SLURM_PROCID", "3"),
        ("SLURM_STEP_NUM_TASKS", "8"),
        ("SLURM_LOCALID", "1"),
    ];
    let launch = |launcher, rank, size, local_rank| {
        Ok(Some(Launch {
            launcher,
            rank,
            size,
            local_rank,
        }))
    };
    assert_eq!(of(&slurm), launch(Launcher::Slurm, 3, 8, Some(1)));
    // torchrun, started by srun: its own numbers count.
    let torchrun = [
        ("RANK", "5"),
        ("WORLD_SIZE", "16"),
        ("LOCAL_RANK", "1"),
        ("MASTER_ADDR", "node1"),
    ];
    let both = [&slurm[..], &torchrun[..]].concat();
    assert_eq!(of(&both), launch(Launcher::Torchrun, 5, 16, Some(1)));
    let pmi = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
    assert_eq!(of(&pmi), launch(Launcher::Pmi, 0, 2, None));
    // A batch script of Slurm, and variables that somebody else uses by the same name.
    assert_eq!(
        of(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]),
        Ok(None)
    );
    assert_eq!(of(&[("RANK", "5"), ("WORLD_SIZE", "16")]), Ok(None));
    assert_eq!(of(&[]), Ok(None));
}

#[test]
fn variables_that_make_no_sense_are_named() {
    for (rank, size, named) in [
        ("4", "4", "OMPI_COMM_WORLD_RANK"),
        ("-1", "4", "OMPI_COMM_WORLD_RANK"),
        ("0", "0", "OMPI_COMM_WORLD_SIZE"),
        ("0", "four", "OMPI_COMM_WORLD_SIZE"),
    ] {
        let found = of(&[
            ("OMPI_COMM_WORLD_RANK", rank),
            ("OMPI_COMM_WORLD_SIZE", size),
        ]);
        let Err(GroupError::Environment { variable, .. }) = found else {
            panic!("{found:?}");
        };
        assert_eq!(variable, named);
    }
}

#[test]
fn the_limit_is_a_number_of_seconds() {
    let of = |text: &'static str| limit(move |_| Some(text.to_owned()));
    assert_eq!(of("30"), Ok(Some(Duration::from_secs(30))));
    assert_eq!(limit(|_| None), Ok(None));
    assert!(of("0").is_err() && of("-3").is_err() && of("soon").is_err());
}

#[test]
fn a_process_may_be_told_to_be_alone() {
    let of = |text: &'static str| is_alone(move |_| Some(text.to_owned()));
    assert_eq!(is_alone(|_| None), Ok(false));
    assert_eq!(of("alone"), Ok(true));
    assert!(of("all").is_err());
}

#[test]
fn processes_meet_at_the_ports_after_the_launchers() {
    let above = |host: &'static str, port: &'static str, above: usize| {
        let read = move |name: &str| match name {
            "MASTER_ADDR" => Some(host.to_owned()),
            "MASTER_PORT" => Some(port.to_owned()),
            _ => None,
        };
        meeting_point(read, above)
    };
    let of = |host, port| above(host, port, NCCL_PORT);
    assert_eq!(of("node1", "29500"), Ok("node1:29501".to_owned()));
    assert_eq!(of("fe80::1", "1"), Ok("[fe80::1]:2".to_owned()));
    let liveness = above("node1", "65533", LIVENESS_PORT);
    assert_eq!(liveness, Ok("node1:65535".to_owned()));
    for (host, port) in [
        ("node1", "0"),
        ("node1", "65534"),
        ("node1", "x"),
        ("", "29500"),
    ] {
        assert!(of(host, port).is_err(), "{host} {port}");
    }
}

#[test]
fn members_need_devices_of_one_kind() {
    let found = run(3, |group| {
        let device = match group.rank() {
            2 => Device::emulator(EmulatorOptions::default()),
            _ => Device::cpu(),
        };
        device.in_group(group).map(|_| ())
    });
    let error = GroupError::Devices {
        rank: 2,
        expected: "a CPU",
        found: "an emulator",
    };
    assert!(found.into_iter().all(|found| found == Err(error.clone())));
}

#[test]
fn numbers_on_devices_are_added_and_gathered() {
    let found = run(3, |group| {
        let device = Device::emulator(EmulatorOptions::default()).in_group(group)?;
        let rank = group.rank() as u64;
        let (mut words, mut floats) = (
            device.upload(&[u64::MAX, rank])?,
            device.upload(&[0.5_f32])?,
        );
        group.sum_together(&mut [&mut words, &mut floats])?;
        let mut all = device.upload(&[rank as f32; 4])?;
        // 1, 0 and 3 elements.
        group.gather_on_devices(&mut all, &[1, 0, 3])?;
        Ok::<_, DeviceError>((words.to_vec()?, floats.to_vec()?, all.to_vec()?))
    });
    let expected = (vec![u64::MAX - 2, 3], vec![1.5], vec![0.0, 2.0, 2.0, 2.0]);
    for found in found {
        assert_eq!(found.as_ref(), Ok(&expected));
    }
}
