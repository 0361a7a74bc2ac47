//! A plan: what the failing rules ask for, as changes in the order in which they are made.

use facts::survey::Survey;
use model::error::{Failure, Result};
use model::fact::Fact;
use model::plan::{LeftOut, PlanDocument, PlannedChange};
use model::setting::{Key, Risk, Setting};
use model::text::quoted;
use rules::audit::{Audit, Finding};
use rules::judgement::AuditVerdict;
use rules::knob::Knob;
use rules::knobs;

use crate::order::ordered;

/// What is wanted of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanRequest {
    /// These rules only; all that fail where there are none.
    pub rules: Vec<RuleRequest>,
    /// Not these.
    pub without: Vec<String>,
}

/// A rule that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRequest {
    pub rule: String,
    /// Another value than the rule's own.
    pub value: Option<String>,
}

impl RuleRequest {
    /// From `RULE` or `RULE=VALUE`.
    ///
    /// # Errors
    /// Usage: there is no such rule.
    pub fn parse(text: &str) -> Result<RuleRequest> {
        let (rule, value) = match text.split_once('=') {
            Some((rule, value)) => (rule, Some(value.to_owned())),
            None => (text, None),
        };
        known(rule)?;
        Ok(RuleRequest { rule: rule.to_owned(), value })
    }
}

fn known(rule: &str) -> Result<&'static Knob> {
    knobs::ALL.iter().copied().find(|knob| knob.id == rule).ok_or_else(|| {
        Failure::usage(format!("there is no rule {}: `onbeat rules` lists them", quoted(rule)))
    })
}

/// Makes a plan of an audit; `now` reads the value of a key, on the machine or in its capture.
///
/// # Errors
/// Usage: a rule that is not known, or a value that its setting does not take.
pub fn plan(
    survey: &Survey,
    audit: &Audit,
    request: &PlanRequest,
    boot: &str,
    now: &dyn Fn(&Key) -> Fact<String>,
) -> Result<PlanDocument> {
    for rule in request.without.iter().chain(request.rules.iter().map(|named| &named.rule)) {
        known(rule)?;
    }
    let (mut changes, mut left_out): (Vec<PlannedChange>, Vec<LeftOut>) = (Vec::new(), Vec::new());
    for knob in ordered(knobs::ALL.to_vec()) {
        let named = request.rules.iter().find(|named| named.rule == knob.id);
        if request.without.iter().any(|rule| rule == knob.id)
            || (named.is_none() && !request.rules.is_empty())
        {
            continue;
        }
        let Some(finding) = audit.findings.iter().find(|finding| finding.rule == knob.id) else { continue };
        match of_rule(survey, knob, finding, named.and_then(|named| named.value.as_deref()))? {
            Wanted::Nothing => {}
            Wanted::Left(left) => left_out.push(left),
            Wanted::Settings(settings) => {
                changes
                    .extend(settings.into_iter().filter_map(|setting| planned(knob, finding, setting, now)));
            }
        }
    }
    Ok(PlanDocument::new(boot, without_repeats(changes), left_out))
}

enum Wanted {
    Nothing,
    Settings(Vec<Setting>),
    Left(LeftOut),
}

fn of_rule(survey: &Survey, knob: &'static Knob, finding: &Finding, value: Option<&str>) -> Result<Wanted> {
    let left = |why: &str| {
        Wanted::Left(LeftOut { rule: knob.id.to_owned(), why: why.to_owned(), instead: finding.fix.clone() })
    };
    if let Some(value) = value {
        let settings = rules::setting::with_value(survey, knob, &finding.remedy, value);
        let refuse = |why| Failure::usage(format!("{}={}: {why}", knob.id, quoted(value)));
        return settings.map(Wanted::Settings).map_err(refuse);
    }
    match finding.verdict {
        AuditVerdict::Pass | AuditVerdict::NotApplicable => return Ok(Wanted::Nothing),
        AuditVerdict::Unknown => return Ok(left(&format!("it is unknown: {}", finding.reason))),
        AuditVerdict::Fail => {}
    }
    if !knob.unsettable.is_empty() {
        return Ok(left(knob.unsettable));
    }
    match rules::setting::settings(survey, &finding.remedy) {
        Ok(settings) => Ok(Wanted::Settings(settings)),
        Err(why) => Ok(left(&why)),
    }
}

/// None where it is so already: another rule's change, or the kernel's own.
fn planned(
    knob: &'static Knob,
    finding: &Finding,
    setting: Setting,
    now: &dyn Fn(&Key) -> Fact<String>,
) -> Option<PlannedChange> {
    let read = now(&setting.key).known().cloned();
    if read.as_deref().is_some_and(|read| setting.is_met_by(read)) {
        return None;
    }
    let mut change = PlannedChange::new(setting, knob.id, read.as_deref().unwrap_or_default().trim());
    change.why.clone_from(&finding.reason);
    knob.side_effects.clone_into(&mut change.cost);
    Some(change)
}

/// Two rules can ask for the same; the first of them has it.
fn without_repeats(changes: Vec<PlannedChange>) -> Vec<PlannedChange> {
    let mut seen = std::collections::BTreeSet::new();
    changes
        .into_iter()
        .filter(|change| seen.insert((change.setting.key.clone(), change.setting.wanted.clone())))
        .collect()
}

/// The rules of a plan that take a safeguard away.
pub fn high_risk(plan: &PlanDocument) -> Vec<&str> {
    let mut rules: Vec<&str> = plan
        .changes
        .iter()
        .filter(|change| change.setting.risk == Risk::High)
        .map(|change| change.rule.as_str())
        .collect();
    rules.dedup();
    rules
}
