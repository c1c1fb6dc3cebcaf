//! What a plan tells of the strategies that it did not choose.

use super::*;

fn problems() -> Vec<Problem> {
    let sparse = [1_000, 28_000, 40_000, 1_000_000]
        .map(|cols| Problem::sparse(4_000_000, cols, 80_000_000, Precision::F32));
    let dense = [8, 500, 4_096].map(|cols| Problem::dense(1_000_000, cols, Precision::F32));
    sparse.into_iter().chain(dense).collect()
}

/// The strategies of all launches of one kernel, and what their fastest launch takes.
fn least_of_each(trials: &[Trial]) -> Vec<(Strategy, u64)> {
    let mut least: Vec<(Strategy, u64)> = Vec::new();
    for trial in trials {
        // The fastest launch comes first.
        if least
            .iter()
            .all(|(strategy, _)| *strategy != trial.strategy)
        {
            least.push((trial.strategy, trial.prediction.total_ns));
        }
    }
    least
}

fn told(plan: &Plan, of: Strategy) -> Option<&Reason> {
    plan.reasons.iter().find(|reason| match reason {
        Reason::RunnerUp { strategy, .. } | Reason::RuledOut { strategy, .. } => *strategy == of,
        _ => false,
    })
}

#[test]
fn every_strategy_is_told_of_and_what_is_told_is_true() {
    let (limits, kernels) = (device("h200"), compiled(Precision::F32));
    let planner = Planner::new(&limits, &kernels);
    let mut ruled_out = 0;
    for problem in problems() {
        for product in [Product::Forward, Product::Transposed, Product::Fused] {
            let plan = planner.plan(&problem, product).expect("a plan");
            let trials = planner.launches(&problem, product).expect("launches");
            if plan.then.is_some() || trials.is_empty() {
                continue;
            }
            let chosen_ns = plan.predicted_ns().expect("of the predicted model");
            for (strategy, least_ns) in least_of_each(&trials) {
                assert!(chosen_ns <= least_ns, "{strategy} is faster: {plan}");
                match told(&plan, strategy) {
                    None => assert_eq!(strategy, plan.strategy, "{plan}"),
                    Some(Reason::RunnerUp { ns, .. }) => assert_eq!(*ns, least_ns, "{plan}"),
                    Some(Reason::RuledOut { ns, .. }) => {
                        ruled_out += 1;
                        assert!((chosen_ns + 1..=least_ns).contains(ns), "{plan}");
                    }
                    Some(other) => unreachable!("{other}"),
                }
            }
        }
    }
    assert!(ruled_out > 0, "no bound was put to the test");
}
