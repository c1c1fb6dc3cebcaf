//! The rules of the shadow against plain lists of all accesses, for every short sequence.

use std::panic::Location;

use super::*;

fn visit(block: u32, epochs: (u32, u32), thread: u32) -> Visit<'static> {
    Visit {
        mark: Mark {
            who: Who::new(block, epochs, thread),
            site: Location::caller(),
        },
        cluster: None,
        generation: 1,
        contents: Contents::Lasting,
        races: Races::Checked,
    }
}

/// Block, epochs (of the block, of the warp) and thread of an access, and what it does.
type Step = ((u32, (u32, u32), u32), Action);

fn perform(word: &mut Word, (who, action): Step) -> Verdict {
    let visit = visit(who.0, who.1, who.2);
    match action {
        Action::Read | Action::Load => word.read(&visit, action),
        Action::Write => word.write(&visit, 7),
        Action::Add => word.add(&visit),
    }
}

/// Whether a step races with any of those before it.
fn races(before: &[Step], (who, action): Step) -> bool {
    before.iter().any(|(other, other_action)| {
        let is_same_warp = other.2 / WARP == who.2 / WARP;
        let is_earlier = other.1.0 < who.1.0 || is_same_warp && other.1 < who.1;
        let is_ordered = other.0 == who.0 && (is_earlier || other.2 == who.2);
        let conflict = !matches!(
            (action, other_action),
            (Action::Read, Action::Read) | (Action::Add, Action::Add)
        );
        conflict && !is_ordered
    })
}

#[test]
fn a_barrier_of_the_cluster_orders_what_blocks_did_before_it() {
    let epochs = ClusterEpochs::new(4, 2);
    let touch = |word: &mut Word, block, epoch, action| {
        let visit = Visit {
            cluster: Some(&epochs),
            ..visit(block, (epoch, 0), 0)
        };
        let verdict = match action {
            Action::Write => word.write(&visit, 7),
            Action::Add => word.add(&visit),
            _ => word.read(&visit, action),
        };
        matches!(verdict, Verdict::Conflict(_))
    };
    let written = |block, epoch| {
        let mut word = Word::POISON;
        assert!(!touch(&mut word, block, epoch, Action::Write));
        word
    };
    // Before the barrier nothing is ordered, whatever the blocks' own barriers.
    for action in [Action::Read, Action::Write, Action::Add] {
        assert!(touch(&mut written(5, 1), 4, 3, action), "{action}");
        assert!(touch(&mut written(4, 1), 5, 0, action), "{action}");
    }
    let (mut early, mut late) = (written(5, 1), written(5, 2));
    epochs.begin(4, 7);
    epochs.begin(5, 2);
    assert!(!touch(&mut early, 4, 7, Action::Read));
    assert!(touch(&mut late, 4, 7, Action::Read), "after the barrier");
    // A write behind which two threads of one block race.
    let mut word = written(5, 1);
    assert!(!touch(&mut word, 4, 7, Action::Add));
    let other = Visit {
        cluster: Some(&epochs),
        ..visit(4, (7, 0), 1)
    };
    let verdict = word.read(&other, Action::Read);
    assert!(matches!(verdict, Verdict::Conflict(_)));
}

/// All that some blocks and threads do in some epochs.
fn steps(blocks: &[u32], epochs: &[(u32, u32)], threads: &[u32]) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in blocks {
        for epochs in epochs {
            for thread in threads {
                for action in [Action::Read, Action::Write, Action::Add] {
                    steps.push(((*block, *epochs, *thread), action));
                }
            }
        }
    }
    steps
}

/// Whether `step` comes after what its block and its warp have done.
fn is_later(before: &[Step], step: &Step) -> bool {
    let (block, epochs, thread) = step.0;
    let of_block = before.iter().filter(|other| other.0.0 == block);
    of_block.map(|other| other.0).all(|(_, other, by)| {
        other.0 < epochs.0
            || other.0 == epochs.0 && (by / WARP != thread / WARP || other.1 <= epochs.1)
    })
}

/// Goes through all sequences of `left` more of the steps in which no epoch falls, as long as they do not race.
fn explore(steps: &[Step], word: &Word, before: &mut Vec<Step>, left: u32) -> u32 {
    let mut sequences = 0;
    for &step in steps {
        if !is_later(before, &step) {
            continue;
        }
        let mut next = *word;
        let found = matches!(perform(&mut next, step), Verdict::Conflict(_));
        assert_eq!(found, races(before, step), "{before:?}, then {step:?}");
        sequences += 1;
        if !found && left > 1 {
            before.push(step);
            sequences += explore(steps, &next, before, left - 1);
            before.pop();
        }
    }
    sequences
}

#[test]
fn two_witnesses_find_what_a_list_of_all_accesses_finds() {
    let mut word = Word::POISON;
    word.set(1);
    let of_blocks = steps(&[0, 1], &[(0, 0), (1, 0)], &[0, 1, 2]);
    let of_warps = steps(&[0], &[(0, 0), (0, 1), (1, 0)], &[0, 1, WARP, WARP + 1]);
    for steps in [of_blocks, of_warps] {
        let sequences = explore(&steps, &word, &mut Vec::new(), 5);
        assert!(sequences > 100_000, "{sequences} sequences");
    }
}

#[test]
fn global_contents_outlive_a_launch_and_shared_ones_do_not_outlive_a_block() {
    for (contents, survives) in [(Contents::Lasting, true), (Contents::OfGeneration, false)] {
        let first = Visit {
            contents,
            ..visit(0, (0, 0), 0)
        };
        let second = Visit {
            generation: 2,
            ..first
        };
        let mut word = Word::POISON;
        word.write(&first, 7);
        let verdict = word.read(&second, Action::Read);
        assert_eq!(matches!(verdict, Verdict::Clean), survives, "{contents:?}");
        assert_eq!(word.bits, if survives { 7 } else { 0 });
    }
}

#[test]
fn a_read_only_word_must_not_be_written_even_in_order() {
    let mut word = Word::POISON;
    word.set(1);
    perform(&mut word, ((0, (0, 0), 0), Action::Load));
    let found = perform(&mut word, ((0, (1, 0), 0), Action::Write));
    assert!(matches!(
        found,
        Verdict::Conflict(Conflict {
            kind: ConflictKind::ReadOnlyWritten,
            ..
        })
    ));
}
