//! Names of culprits: the rule's title, and the distinction from others of that rule.

use super::names;
use super::rule::{CulpritRule, Grouping};
use model::run;

/// Name of the culprits that are no longer distinguished.
pub(super) const POOLED: &str = "many others";

/// Distinction of the slice's culprit from others of the same rule.
pub(super) fn group_name(by: Grouping, slice: &run::Slice) -> String {
    match by {
        Grouping::Single => String::new(),
        Grouping::Function => names::function_with_module(&slice.who),
        Grouping::Thread => names::thread_name(&slice.who.comm).to_owned(),
        Grouping::Irq => {
            let function = names::function_with_module(&slice.who);
            [slice.who.irq.as_str(), &function].join(" ").trim().to_owned()
        }
        Grouping::OwnName => names::fallback_name(slice),
    }
}

/// Displayed name: the distinction of the culprit, after its rule's title.
pub(super) fn full_name(rule: Option<&CulpritRule>, apart: &str) -> String {
    match rule {
        Some(rule) if apart.is_empty() => rule.title.to_owned(),
        Some(rule) if rule.grouping != Grouping::OwnName || apart == POOLED => {
            format!("{}: {apart}", rule.title)
        }
        _ => apart.to_owned(),
    }
}
