//! Members that end in every way, as threads and as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(120);

/// A place where nobody listens, of which no two tests have the same. Outgoing connections take ports from 32,768 on, one of
/// which might be in use by the time that a member listens.
fn place() -> String {
    const FIRST: u32 = 10_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let next = std::process::id() % 20_000 * 97 + TAKEN.fetch_add(1, Ordering::Relaxed);
    format!("127.0.0.1:{}", FIRST + next % 20_000)
}

fn member(place: &str, rank: usize, size: usize) -> Liveness {
    // A process that another test starts has, for a moment, the ports of this one.
    until(|| Liveness::begin(place, (rank, size)).ok())
}

/// What a member hears, once it hears something.
fn heard(member: &Liveness) -> GroupError {
    until(|| member.lost())
}

fn until<R>(found: impl Fn() -> Option<R>) -> R {
    let end = Instant::now() + LONG;
    loop {
        match found() {
            Some(found) => return found,
            None if Instant::now() > end => panic!("it did not come"),
            None => thread::yield_now(),
        }
    }
}

fn all_have_come(first: &Liveness) {
    until(|| (!locked(&first.0.state).came.contains(&false)).then_some(()));
}

/// Ends a member as the system ends a process: without a word.
fn sever(member: &Liveness) {
    let mut state = until(|| {
        let state = locked(&member.0.state);
        (!state.connections.is_empty()).then_some(state)
    });
    for (_, connection) in std::mem::take(&mut state.connections) {
        connection.shutdown(Shutdown::Both).expect("it is open");
    }
}

#[test]
fn who_ends_without_a_word_is_named_to_all() {
    for victim in 0..3 {
        let place = place();
        let all = [0, 1, 2].map(|rank| member(&place, rank, 3));
        all_have_come(&all[0]);
        sever(&all[victim]);
        for (_, other) in all.iter().enumerate().filter(|(rank, _)| *rank != victim) {
            assert_eq!(heard(other), left(victim), "rank {victim} ended");
        }
    }
}

#[test]
fn who_fails_says_why_and_the_first_one_counts() {
    for failing in 0..3 {
        let place = place();
        let all = [2, 1, 0].map(|rank| member(&place, rank, 3));
        all[2 - failing].report("out of memory");
        let rank = failing;
        let message = "out of memory".to_owned();
        let expected = GroupError::Failed { rank, message };
        all.iter()
            .for_each(|member| assert_eq!(heard(member), expected));
        all[2 - (failing + 1) % 3].report("another reason");
        all.iter()
            .for_each(|member| assert_eq!(heard(member), expected));
    }
}

#[test]
fn who_leaves_in_good_order_is_no_loss() {
    let place = place();
    let first = member(&place, 0, 3);
    let (second, third) = (member(&place, 1, 3), member(&place, 2, 3));
    all_have_come(&first);
    drop(second);
    until(|| (locked(&first.0.state).connections.len() == 1).then_some(()));
    assert_eq!((first.lost(), third.lost()), (None, None));
    // Rank 0 too: its last word arrives before the end of the connection.
    let ended = thread::spawn({
        let shared = third.0.clone();
        move || until(|| (Arc::strong_count(&shared) == 2).then_some(()))
    });
    drop(first);
    ended.join().expect("the thread of the third has ended");
    assert_eq!(third.lost(), None);
}

#[test]
fn who_has_not_come_is_known_to_rank_0() {
    let place = place();
    let first = member(&place, 0, 4);
    let third = member(&place, 2, 4);
    until(|| (first.absent() == [1, 3]).then_some(()));
    assert_eq!(third.absent(), [0, 1, 3]);
}

#[test]
fn members_of_other_jobs_and_strangers_are_sent_away() {
    let place = place();
    let first = member(&place, 0, 2);
    let mut stranger = TcpStream::connect(&place).expect("it listens");
    stranger
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .expect("it reads");
    let mut answer = Vec::new();
    stranger
        .read_to_end(&mut answer)
        .expect("it closes the connection");
    assert!(answer.is_empty());
    // Of three members, at the same place.
    let other = member(&place, 1, 3);
    let second = member(&place, 1, 2);
    all_have_come(&first);
    drop((other, second));
    until(|| locked(&first.0.state).connections.is_empty().then_some(()));
    assert_eq!(first.lost(), None);
}

/// Variables that make a process of this test a member.
const PLACE: &str = "WARPFUSE_TEST_LIVENESS";

/// Not a test of its own: what the processes of the next one do.
#[test]
#[ignore = "a process of another test"]
fn a_process_that_waits() {
    let Some(place) = std::env::var(PLACE).ok() else {
        return;
    };
    let rank = std::env::var("RANK").expect("a rank");
    let member = member(&place, rank.parse().expect("a number"), 3);
    until(|| (!locked(&member.0.state).connections.is_empty()).then_some(()));
    println!("here");
    println!("{}", heard(&member));
}

fn process(place: &str, rank: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    let name = "device::group::liveness::tests::a_process_that_waits";
    command.args([name, "--exact", "--ignored", "--nocapture"]);
    command
        .env(PLACE, place)
        .env("RANK", rank.to_string())
        .stdout(Stdio::piped());
    command.spawn().expect("this test again")
}

/// Reads lines until one contains the text.
fn wait_for(from: &mut impl BufRead, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(
            from.read_line(&mut line).is_ok_and(|len| len > 0),
            "{text:?} did not come"
        );
    }
}

#[test]
fn a_process_that_is_killed_is_named_by_the_others() {
    for victim in [1, 2] {
        let place = place();
        let first = member(&place, 0, 3);
        let mut others = [1, 2].map(|rank| process(&place, rank));
        let mut said = others
            .each_mut()
            .map(|other| BufReader::new(other.stdout.take().expect("a pipe")));
        said.iter_mut().for_each(|said| wait_for(said, "here"));
        others[victim - 1].kill().expect("it runs");
        assert_eq!(heard(&first), left(victim));
        wait_for(&mut said[2 - victim], &format!("rank {victim} left"));
        for mut other in others {
            other.wait().expect("it has ended");
        }
    }
}

#[test]
fn a_name_that_does_not_resolve_or_a_port_in_use_is_an_error_of_rank_0() {
    let place = place();
    let _first = member(&place, 0, 2);
    for place in [&*place, "no.such.host.invalid:1"] {
        let error = Liveness::begin(place, (0, 2)).expect_err("nobody can listen there");
        assert!(matches!(error, GroupError::Engine { .. }), "{error}");
    }
}
