//! Candidates against a culprit: the changes by its rules that the machine needs, the least risk
//! first.

use std::collections::BTreeSet;

use model::cure::CureCandidate;
use model::setting::Risk;
use model::sort::CompactSort;

/// Change requested by the audit that can be applied and undone now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedChange {
    pub rule: String,
    /// Texts `KEY: OLD -> NEW`.
    pub changes: Vec<String>,
    /// Highest risk of its changes.
    pub risk: Risk,
    /// Rules to apply before it, if they are applied at all, without their own predecessors.
    pub after: Vec<String>,
    /// Rules that it must not be combined with.
    pub conflicts: Vec<String>,
}

/// Candidates, in this order: each curing change alone, then each with all changes that must
/// precede it, including their predecessors. `cures` are the rules against the culprit, `kept`
/// those in force; `offered` is in the order of a plan, in which changes are applied.
pub fn candidates(
    cures: &[String],
    offered: &[OfferedChange],
    in_force: &[String],
    allowed: Risk,
) -> Vec<CureCandidate> {
    let may = |change: &&OfferedChange| {
        rank(change.risk) <= rank(allowed)
            && !in_force.iter().any(|rule| forbids(offered, &change.rule, rule))
    };
    let find = |rule: &String| offered.iter().find(|change| change.rule == *rule).filter(may);
    let mut single: Vec<&OfferedChange> = cures.iter().filter_map(find).collect();
    single.compact_sort_by_key(|change| rank(change.risk));
    let with_others = single.iter().filter_map(|change| {
        let wanted = before(change, &|rule| find(rule));
        let all: Vec<&OfferedChange> =
            offered.iter().filter(|one| wanted.contains(one.rule.as_str())).chain([*change]).collect();
        let fits = |one: &OfferedChange| all.iter().all(|other| !forbids(offered, &one.rule, &other.rule));
        (all.len() > 1 && all.iter().all(|one| fits(one))).then(|| together(all))
    });
    let mut found: Vec<CureCandidate> = Vec::new();
    for one in single.iter().map(|change| together([*change])).chain(with_others) {
        // Two rules may plan the same change, which is proven once.
        if !found.iter().any(|other| other.sets_the_same(&one)) {
            found.push(one);
        }
    }
    found
}

/// Changes that are excluded only by their risk.
pub fn too_risky<'a>(
    cures: &'a [String],
    offered: &'a [OfferedChange],
    allowed: Risk,
) -> impl Iterator<Item = &'a OfferedChange> {
    let risky = move |change: &&OfferedChange| rank(change.risk) > rank(allowed);
    offered.iter().filter(|change| cures.contains(&change.rule)).filter(risky)
}

/// Rules that must precede a change, with their predecessors. A rule that is satisfied already, or
/// cannot be applied, is not offered, and its predecessors are not needed for this change.
fn before<'a>(
    change: &OfferedChange,
    find: &dyn Fn(&String) -> Option<&'a OfferedChange>,
) -> BTreeSet<&'a str> {
    let (mut found, mut next) = (BTreeSet::new(), vec![change.after.as_slice()]);
    while let Some(rules) = next.pop() {
        for one in rules.iter().filter_map(find).filter(|one| one.rule != change.rule) {
            if found.insert(one.rule.as_str()) {
                next.push(&one.after);
            }
        }
    }
    found
}

fn together<'a>(changes: impl IntoIterator<Item = &'a OfferedChange>) -> CureCandidate {
    let mut candidate = CureCandidate::default();
    for change in changes {
        candidate.rules.push(change.rule.clone());
        candidate.changes.extend(change.changes.iter().cloned());
        if rank(change.risk) > rank(candidate.risk) {
            candidate.risk = change.risk;
        }
    }
    candidate
}

fn forbids(offered: &[OfferedChange], one: &str, other: &str) -> bool {
    let says = |rule: &str, against: &str| {
        let change = offered.iter().find(|change| change.rule == rule);
        change.is_some_and(|change| change.conflicts.iter().any(|rule| rule == against))
    };
    says(one, other) || says(other, one)
}

pub const fn rank(risk: Risk) -> u8 {
    match risk {
        Risk::Low => 0,
        Risk::Medium => 1,
        Risk::High => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(rule: &str, risk: Risk, after: &[&str], conflicts: &[&str]) -> OfferedChange {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let changes = vec![format!("sysctl:{rule}: 1 -> 0")];
        OfferedChange { rule: rule.into(), changes, risk, after: owned(after), conflicts: owned(conflicts) }
    }

    fn tried(cures: &[&str], offered: &[OfferedChange], in_force: &[&str], allowed: Risk) -> Vec<String> {
        let owned = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        let found = candidates(&owned(cures), offered, &owned(in_force), allowed);
        found.iter().map(CureCandidate::name).collect()
    }

    #[test]
    fn the_least_risk_comes_first_and_more_than_is_allowed_never() {
        let all = [
            offered("steals", Risk::Medium, &[], &[]),
            offered("harmless", Risk::Low, &[], &[]),
            offered("unsafe", Risk::High, &[], &[]),
        ];
        let cures = ["unsafe", "steals", "not-offered", "harmless"];
        assert_eq!(tried(&cures, &all, &[], Risk::Low), ["harmless"]);
        assert_eq!(tried(&cures, &all, &[], Risk::High), ["harmless", "steals", "unsafe"]);
        assert_eq!(tried(&["harmless"], &all, &[], Risk::High), ["harmless"]);
        let owned: Vec<String> = cures.map(str::to_owned).into();
        let risky: Vec<&str> = too_risky(&owned, &all, Risk::Low).map(|one| one.rule.as_str()).collect();
        assert_eq!(risky, ["steals", "unsafe"]);
    }

    #[test]
    fn what_two_rules_plan_alike_is_one_candidate() {
        let mut all = [
            offered("cpumask", Risk::Low, &[], &[]),
            offered("queues", Risk::Low, &["cpumask"], &[]),
            offered("more", Risk::Low, &["cpumask"], &[]),
        ];
        for change in &mut all[..2] {
            change.changes = vec!["workqueue:cpumask: 3 -> 1".into()];
        }
        assert_eq!(tried(&["cpumask", "queues"], &all, &[], Risk::Low), ["cpumask"]);
        assert_eq!(tried(&["queues", "more"], &all, &[], Risk::Low), ["queues", "more", "cpumask more"]);
    }

    #[test]
    fn a_change_is_tried_alone_and_then_with_what_comes_before_it() {
        let all = [
            offered("default", Risk::Low, &[], &[]),
            offered("isolation", Risk::Medium, &[], &[]),
            offered("affinity", Risk::Low, &["isolation", "default"], &[]),
        ];
        assert_eq!(tried(&["affinity"], &all, &[], Risk::Low), ["affinity", "default affinity"]);
        assert_eq!(tried(&["affinity"], &all, &[], Risk::Medium), ["affinity", "default isolation affinity"]);
    }

    #[test]
    fn what_comes_before_that_comes_too_in_the_order_of_a_plan() {
        let chain = |middle: Risk| {
            vec![
                offered("first", Risk::Low, &[], &[]),
                offered("unneeded", Risk::Low, &[], &[]),
                offered("middle", middle, &["met", "first"], &[]),
                offered("last", Risk::Low, &["middle"], &[]),
            ]
        };
        assert_eq!(tried(&["last"], &chain(Risk::Low), &[], Risk::Low), ["last", "first middle last"]);
        // A forbidden change is not applied, and its predecessors would be useless.
        assert_eq!(tried(&["last"], &chain(Risk::High), &[], Risk::Low), ["last"]);
        // Two predecessors that exclude each other cannot both be applied.
        let torn = [
            offered("one", Risk::Low, &[], &["other"]),
            offered("other", Risk::Low, &[], &[]),
            offered("last", Risk::Low, &["one", "other"], &[]),
        ];
        assert_eq!(tried(&["last"], &torn, &[], Risk::Low), ["last"]);
        // Cyclic records, which the tests of the rules exclude, end here too.
        let round = [offered("a", Risk::Low, &["b"], &[]), offered("b", Risk::Low, &["a"], &[])];
        assert_eq!(tried(&["a"], &round, &[], Risk::Low), ["a", "b a"]);
    }

    #[test]
    fn what_must_not_be_combined_is_not() {
        let all =
            [offered("one", Risk::Low, &["other"], &["other"]), offered("other", Risk::Low, &[], &["kept"])];
        assert_eq!(tried(&["one", "other"], &all, &[], Risk::Low), ["one", "other"]);
        assert_eq!(tried(&["one", "other"], &all, &["other"], Risk::Low), ["other"]);
        assert_eq!(tried(&["one", "other"], &all, &["kept"], Risk::Low), ["one"]);
    }
}
