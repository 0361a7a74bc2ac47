//! Conditions that the result of another tool states.

use super::policy;
use crate::words::clean;
use model::run::Run;
use model::vocabulary::{Ended, IdleStates, Policy};

/// Reliability of an imported result, by the statements of its file.
pub fn fair(run: &Run) -> String {
    let plan = &run.plan;
    let mut limits: Vec<String> = Vec::new();
    if plan.policy == Policy::Other {
        limits.push("no real-time priority".into());
    }
    if plan.idle == IdleStates::AsIs {
        limits.push("idle states not held".into());
    }
    if run.ended == Ended::Limit {
        limits.push("stopped at the first latency over its limit".into());
    }
    limits.extend(plan.notes.iter().map(|note| clean(note)));
    if run.primary().any(|cpu| cpu.overflows.unwrap_or(0) > 0) {
        limits.push("samples beyond the histogram's end".into());
    }
    let has_load = plan.notes.iter().any(|note| note.starts_with("load"));
    if !limits.is_empty() {
        if !has_load {
            limits.push("the load is not stated".into());
        }
        return format!("in part: {}", limits.join("; "));
    }
    let states = |known: bool, what: String| if known { Ok(what) } else { Err(what) };
    let facts = [
        states(!plan.policy.is_empty(), policy::policy(run)),
        states(!plan.idle.is_empty(), "idle states held".into()),
        states(!run.host.release.is_empty(), "its kernel".into()),
    ];
    let known: Vec<&str> = facts.iter().filter_map(|fact| fact.as_deref().ok()).collect();
    match known.as_slice() {
        [] => "not known: the file does not state priority, idle states, kernel or load".into(),
        known => {
            format!("known from the file: {}; the load is not stated", known.join(", "))
        }
    }
}

/// Next step after an import without real-time priority.
pub fn next(run: &Run) -> Option<String> {
    (run.plan.policy == Policy::Other)
        .then(|| "measure with real-time priority: `onbeat measure -p 80`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_states_is_used() {
        let mut run = crate::fixture::import().run;
        for cpu in &mut run.cpus {
            (cpu.overflows, cpu.overflows_from_ns) = (None, None);
        }
        assert!(fair(&run).starts_with("not known"), "{}", fair(&run));
        (run.plan.policy, run.plan.priority) = (Policy::Fifo.into(), Some(80));
        assert_eq!(fair(&run), "known from the file: SCHED_FIFO, priority 80; the load is not stated");
        (run.plan.policy, run.ended) = (Policy::Other.into(), Ended::Limit.into());
        assert!(fair(&run).ends_with("the load is not stated"), "{}", fair(&run));
        run.plan.notes.push("load average 3.1 2.0 1.0".into());
        let text = fair(&run);
        for part in ["no real-time priority", "stopped at", "load average 3.1"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("not stated"), "{text}");
        assert!(next(&run).is_some());
    }
}
