//! Policy and priority of a run's threads in words.

use crate::words::clean;
use model::keyword::Word;
use model::run::Run;
use model::vocabulary::Policy;

/// Words for a condition that the document does not have.
pub(super) const NOT_KNOWN: &str = "not known";

/// Policy and priority: `SCHED_FIFO, priority 80`.
pub fn policy(run: &Run) -> String {
    let named = |name: &str| format!("SCHED_{}", clean(name).to_uppercase());
    match (&run.plan.policy, run.plan.priority) {
        (Word::Known(Policy::Other), _) => "SCHED_OTHER (no real-time priority)".into(),
        (Word::Known(Policy::Deadline), _) => "SCHED_DEADLINE".into(),
        (policy, _) if policy.is_empty() => NOT_KNOWN.into(),
        (policy, Some(priority)) => format!("{}, priority {priority}", named(policy.as_str())),
        (policy, None) => format!("{}, priority not known", named(policy.as_str())),
    }
}
