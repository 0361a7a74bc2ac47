//! Gain of each setting according to a hunt: the time of the culprits that it cures.

use std::collections::BTreeMap;

use super::order::worst_first;
use crate::hunt::parts::total;
use crate::hunt::sentences::percent;
use crate::words::{clean, span};
use model::run::Run;
use model::sort::CompactSort;
use model::units::Nanos;
use rules::audit::{Audit, Finding};
use rules::judgement::AuditVerdict;

/// Least share of the time that is worth a mention.
const LITTLE: f64 = 0.05;

/// Limit of culprits that are named.
const NAMED: usize = 2;

/// Largest share of a hunt's lost time that each rule could recover.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HuntGains {
    title: String,
    total: Nanos,
    release: String,
    /// By rule: the share of the time, and the culprit that took most of it.
    shares: BTreeMap<String, (f64, String)>,
    /// Culprits with their shares and the rules that cure them.
    culprits: Vec<(String, f64, Vec<String>)>,
}

impl HuntGains {
    /// Gains from the culprits of a hunt. A rule that cures several may recover the time of all.
    pub fn of(title: &str, run: &Run) -> HuntGains {
        let mut shares: BTreeMap<String, (f64, String)> = BTreeMap::new();
        for culprit in &run.culprits {
            for knob in &culprit.knobs {
                let known = shares.entry(knob.clone()).or_insert_with(|| (0.0, culprit.name.clone()));
                known.0 = (known.0 + culprit.share.clamp(0.0, 1.0)).min(1.0);
            }
        }
        let release = run.host.release.clone();
        let culprits = run
            .culprits
            .iter()
            .map(|one| (one.name.clone(), one.share.clamp(0.0, 1.0), one.knobs.clone()))
            .collect();
        HuntGains { title: title.to_owned(), total: total(run), release, shares, culprits }
    }

    /// Culprits whose time no setting that fails here recovers; none if that time is little.
    pub fn beyond_settings(&self, audit: &Audit) -> Option<String> {
        let failed = worst_first(audit, AuditVerdict::Fail);
        let cured = |knobs: &[String]| knobs.iter().any(|knob| failed.iter().any(|found| found.rule == knob));
        let mut left: Vec<_> = self.culprits.iter().filter(|one| !cured(&one.2)).collect();
        left.compact_sort_by(|a, b| b.1.total_cmp(&a.1));
        let share: f64 = left.iter().map(|one| one.1).sum();
        if share < LITTLE {
            return None;
        }
        let names: Vec<String> = left.iter().take(NAMED).map(|one| clean(&one.0)).collect();
        Some(format!(
            "{} of the time has causes that no setting here removes ({}): see the next step that the hunt \
             names for each",
            percent(share.min(1.0)),
            names.join("; ")
        ))
    }

    /// Largest possible gain of a rule, in words; none if the hunt saw nothing of it.
    pub fn of_rule(&self, rule: &str) -> Option<String> {
        let (share, whose) = self.shares.get(rule)?;
        let most = percent(*share);
        Some(format!("up to {most} of the time lost in the hunt's spikes, most of it to {}", clean(whose)))
    }

    /// Short form of `of_rule`.
    pub fn badge(&self, rule: &str) -> Option<String> {
        self.shares.get(rule).map(|(share, _)| format!("up to {}", percent(*share)))
    }

    /// Basis of the order, in a sentence.
    pub fn sentence(&self, audit: &Audit) -> String {
        let other = match (self.release.as_str(), audit.host.release.as_str()) {
            (a, b) if a == b || a.is_empty() || b.is_empty() => String::new(),
            (a, _) => format!(" That was on another kernel, {}.", clean(a)),
        };
        let (title, total) = (clean(&self.title), span(self.total));
        let any = worst_first(audit, AuditVerdict::Fail).iter().any(|found| self.share(found.rule) > 0.0);
        if !any {
            return format!(
                "The hunt {title} lost none of its {total} to a setting that fails here: the worst are \
                 listed first.{other}"
            );
        }
        format!(
            "Ordered by the possible gain, of {total}, according to the hunt {title}; settings without a \
             gain come last.{other}"
        )
    }

    fn share(&self, rule: &str) -> f64 {
        self.shares.get(rule).map_or(0.0, |(share, _)| *share)
    }
}

/// Failed rules: by their gain if a hunt gives it, then worst first.
pub fn failing<'a>(audit: &'a Audit, gains: Option<&HuntGains>) -> Vec<&'a Finding> {
    let mut found = worst_first(audit, AuditVerdict::Fail);
    if let Some(gains) = gains {
        found.compact_sort_by(|a, b| gains.share(b.rule).total_cmp(&gains.share(a.rule)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Culprit;
    use rules::fixture::Machine;

    #[test]
    fn what_would_gain_most_comes_first() {
        let culprit = |name: &str, share: f64, knobs: &[&str]| Culprit {
            name: name.into(),
            share,
            knobs: knobs.iter().map(|knob| (*knob).to_owned()).collect(),
            ..Culprit::default()
        };
        let mut run = crate::hunt::fixture::run();
        run.culprits = vec![
            culprit("a timer", 0.3, &["skew-tick"]),
            culprit("b", 0.25, &["watchdog"]),
            culprit("c", 0.2, &["watchdog"]),
        ];
        let gains = HuntGains::of("hunt", &run);
        assert!(
            gains.of_rule("watchdog").is_some_and(|words| words.contains("45 %") && words.ends_with("to b"))
        );
        assert_eq!(gains.badge("numa-balancing"), None);
        let passing = rules::audit::audit(&Machine::base().survey().0, &Machine::base().survey().1);
        let beyond = gains.beyond_settings(&passing).expect("no rule that cures these fails");
        assert!(beyond.starts_with("75 % of the time") && beyond.contains("(a timer; b)"), "{beyond}");
        let mut machine = Machine::base();
        rules::knobs::ALL.iter().for_each(|knob| machine.edit(knob.examples.fires));
        let (survey, intent) = machine.survey();
        let audit = rules::audit::audit(&survey, &intent);
        let plain = failing(&audit, None);
        assert_eq!(plain, worst_first(&audit, AuditVerdict::Fail));
        let ordered = failing(&audit, Some(&gains));
        let place = |rule: &str| ordered.iter().position(|found| found.rule == rule);
        if let (Some(first), Some(second)) = (place("watchdog"), place("skew-tick")) {
            assert_eq!((first, second), (0, 1));
        }
        assert_eq!(ordered.len(), plain.len());
        assert!(gains.sentence(&audit).contains("the hunt hunt"));
    }
}
