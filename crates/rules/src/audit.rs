//! The audit: all rules applied to one machine, as values and as JSON.

use serde::Serialize;

use super::intent::{CpuSelection, Intent};
use super::judgement::{AuditVerdict, Judgement, Severity};
use super::remedy::Remedy;
use super::{competing_tuners, knobs};
use crate::change::Persistence;
use crate::knob::Knob;
use crate::view::MachineView;
use facts::cmdline::Cmdline;
use facts::survey::Survey;
use facts::uname::series;
use model::keyword::Keyword;

/// Name and version of the JSON.
pub const SCHEMA: &str = "onbeat.audit/1";

/// A rule applied to a machine. Its text does not depend on the time, the process or the place of
/// reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    /// Outcome.
    pub verdict: AuditVerdict,
    /// Severity if it fails.
    pub severity: Severity,
    /// The value found; `""` if none was.
    pub value: String,
    /// Expected value.
    pub wanted: String,
    /// Reason why it affects latency; for unknown, the reason; for not applicable, the condition.
    #[serde(rename = "why")]
    pub reason: String,
    /// Lifetime of a change.
    #[serde(rename = "lasts")]
    pub persistence: Persistence,
    /// Remedy as text; `""` if none is needed.
    pub fix: String,
    /// Remedy as data; empty if none is needed.
    #[serde(skip)]
    pub remedy: Remedy,
    /// Source of the rule.
    pub source: &'static str,
    /// Point that experts dispute, and the measurement that settles it; `""` for none.
    #[serde(rename = "contested")]
    pub disputed: &'static str,
}

/// Number of findings by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub struct VerdictCounts {
    pub pass: usize,
    pub fail: usize,
    pub unknown: usize,
    pub not_applicable: usize,
}

/// The machine that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditedMachine {
    /// `uname -r`
    pub release: String,
    /// `uname -m`
    pub machine: String,
    pub preempt: &'static str,
    /// The hypervisor, `none` on metal.
    #[serde(rename = "virtual")]
    pub virtualization: String,
    /// CPUs that are online.
    pub online: String,
}

/// Files that were judged in place of a running kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JudgedTexts {
    /// File with the kernel's configuration.
    pub kconfig: Option<String>,
    /// True if options may be missing from that: they count as not set.
    #[serde(rename = "excerpt")]
    pub is_excerpt: bool,
    /// File with its command line.
    pub cmdline: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Audit {
    pub schema: &'static str,
    /// Profile that the machine is judged for.
    pub profile: &'static str,
    /// The audited CPUs, as a list.
    pub cpus: String,
    /// Choice of the audited CPUs.
    pub chosen: CpuSelection,
    pub host: AuditedMachine,
    /// Files that were judged; none if a running kernel was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<JudgedTexts>,
    /// One finding for each rule, in the rules' order.
    pub findings: Vec<Finding>,
    /// Number of findings by verdict.
    pub summary: VerdictCounts,
}

/// Judges a machine by all rules.
pub fn audit(survey: &Survey, intent: &Intent) -> Audit {
    let findings: Vec<Finding> = knobs::ALL.iter().map(|knob| finding(knob, survey, intent)).collect();
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let summary = VerdictCounts {
        pass: count(AuditVerdict::Pass),
        fail: count(AuditVerdict::Fail),
        unknown: count(AuditVerdict::Unknown),
        not_applicable: count(AuditVerdict::NotApplicable),
    };
    Audit {
        schema: SCHEMA,
        profile: intent.profile.name(),
        cpus: intent.cpus.to_string(),
        chosen: intent.chosen,
        host: audited_machine(survey),
        texts: None,
        findings,
        summary,
    }
}

fn audited_machine(survey: &Survey) -> AuditedMachine {
    let facts = &survey.facts;
    AuditedMachine {
        release: facts.release.known().cloned().unwrap_or_default(),
        machine: facts.machine.known().cloned().unwrap_or_default(),
        preempt: facts.preempt.name(),
        virtualization: facts.virtualization.clone(),
        online: facts.online.known().map(ToString::to_string).unwrap_or_default(),
    }
}

/// Explains masked addresses (`host::access`) in names of interfaces, which cannot be typed in.
fn with_names(text: String) -> String {
    let masked = ["enx-address", "wlx-address", "wwx-address", "usx-address"];
    match masked.iter().find(|name| text.contains(*name)) {
        Some(name) => format!("{text}; replace {name} by the name that `ip link` shows"),
        None => text,
    }
}

/// Judges a machine by one rule.
pub fn finding(knob: &'static Knob, survey: &Survey, intent: &Intent) -> Finding {
    let judged = MachineView::new(survey, intent, knob.reads).judge(knob.judge);
    let Judgement { verdict, value, wanted, reason, remedy, severity, persistence, cause: _ } = judged;
    let or = |text: String, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text };
    let (none, fails) = (Cmdline::default(), verdict == AuditVerdict::Fail);
    let booted = survey.facts.cmdline.known().unwrap_or(&none);
    let mut remedy = if fails { remedy.or_usual(knob.fix).remaining(booted) } else { Remedy::default() };
    if let Some((major, minor)) = survey.facts.release.known().and_then(|release| series(release)) {
        remedy = remedy.known_to(major, minor);
    }
    let advice = with_names(remedy.text(booted));
    Finding {
        rule: knob.id,
        verdict,
        severity: severity.unwrap_or(knob.severity),
        value,
        wanted: or(wanted, knob.wanted),
        reason: or(reason, knob.rationale),
        persistence: if fails {
            remedy.persistence(knob.persistence, booted)
        } else {
            persistence.unwrap_or(knob.persistence)
        },
        fix: if advice.is_empty() { advice } else { advice + &competing_tuners::warning(knob, survey) },
        remedy,
        source: knob.sources.first().map_or("", |source| source.url),
        disputed: knob.disputed,
    }
}
