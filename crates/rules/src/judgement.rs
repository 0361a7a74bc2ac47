//! The judgement of a rule on a machine, and how judgements are combined.

use model::keyword::Keyword;
use serde::Serialize;

use super::remedy::Remedy;
use crate::change::Persistence;

/// The outcome of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditVerdict {
    /// Set as it should be.
    Pass,
    /// Not set as it should be.
    Fail,
    /// The needed facts could not be read or parsed; never counted as a pass.
    Unknown,
    /// The rule's condition is not met: nothing has to be set.
    NotApplicable,
}

impl AuditVerdict {
    /// The JSON value, such as `not-applicable`.
    pub fn name(self) -> &'static str {
        match self {
            AuditVerdict::Pass => "pass",
            AuditVerdict::Fail => "fail",
            AuditVerdict::Unknown => "unknown",
            AuditVerdict::NotApplicable => "not-applicable",
        }
    }
}

/// Severity of a wrong setting, in the terms of the kernel's guide to configuring for real time
/// (Documentation/core-api/real-time/kernel-configuration.rst), with one more level between high
/// and info.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    /// Costs little, or seldom.
    Low,
    /// Costs tens of microseconds, or more on some machines.
    Medium,
    /// Costs milliseconds, or occurs often.
    High,
    /// Makes latency unbounded.
    Fatal,
}

impl Keyword for Severity {
    const ALL: &'static [Severity] =
        &[Severity::Info, Severity::Low, Severity::Medium, Severity::High, Severity::Fatal];

    fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Fatal => "fatal",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Severity::Info => "Worth knowing",
            Severity::Low => "Small or rare cost",
            Severity::Medium => "Costs tens of microseconds, or more on some machines",
            Severity::High => "Costs milliseconds, or occurs often",
            Severity::Fatal => "Latency cannot be bounded with it",
        }
    }
}

/// Reason why a judgement is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnknownCause {
    /// The facts that were read do not decide it.
    #[default]
    Undecided,
    /// It exists only on a running kernel, and the machine is not one.
    NotRunning,
    /// No kernel configuration is known of a stopped machine.
    NotGiven,
    /// A text was refused, malformed or not captured.
    Unreadable,
}

/// The judgement of a rule on a machine. Empty fields have the value in the rule's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The outcome.
    pub verdict: AuditVerdict,
    /// The value found: `950000 of 1000000 us`; for an unknown, the part of it that is known.
    pub value: String,
    /// Expected value.
    pub wanted: String,
    /// Reason why it does not pass: failed setting, failed reading, or unmet condition.
    pub reason: String,
    /// Remedy; empty for the rule's usual one.
    pub remedy: Remedy,
    /// Severity, if it depends on the machine or its purpose.
    pub severity: Option<Severity>,
    /// Lifetime of the setting, if nothing has to be done and it differs from the one in the rule's
    /// record.
    pub persistence: Option<Persistence>,
    /// Reason why it is unknown, if it is.
    pub cause: UnknownCause,
}

/// A judgement; one that returns early, because something is unknown or not applicable, is an
/// `Err`.
pub type Judged = Result<Judgement, Judgement>;

impl Judgement {
    fn new(verdict: AuditVerdict, value: impl Into<String>, reason: impl Into<String>) -> Judgement {
        Judgement {
            verdict,
            value: value.into(),
            wanted: String::new(),
            reason: reason.into(),
            remedy: Remedy::default(),
            severity: None,
            persistence: None,
            cause: UnknownCause::default(),
        }
    }

    /// Passes with the value found.
    pub fn pass(value: impl Into<String>) -> Judgement {
        Judgement::new(AuditVerdict::Pass, value, "")
    }

    /// Fails with the value found.
    pub fn fail(value: impl Into<String>) -> Judgement {
        Judgement::new(AuditVerdict::Fail, value, "")
    }

    /// Unknown, with the reason and what would help.
    pub fn unknown(reason: impl Into<String>) -> Judgement {
        Judgement::new(AuditVerdict::Unknown, "", reason)
    }

    /// Sets the reason why it is unknown.
    pub fn cause(self, cause: UnknownCause) -> Judgement {
        Judgement { cause, ..self }
    }

    /// Not applicable; `reason` names the condition that is not met.
    pub fn not_applicable(reason: impl Into<String>) -> Judgement {
        Judgement::new(AuditVerdict::NotApplicable, "", reason)
    }

    /// Fails with the value if the condition holds, else passes with it.
    pub fn fail_if(wrong: bool, value: impl Into<String>) -> Judgement {
        if wrong { Judgement::fail(value) } else { Judgement::pass(value) }
    }

    /// Sets a more specific expected value.
    pub fn wanted(self, wanted: impl Into<String>) -> Judgement {
        Judgement { wanted: wanted.into(), ..self }
    }

    /// Sets a more specific reason.
    pub fn because(self, reason: impl Into<String>) -> Judgement {
        Judgement { reason: reason.into(), ..self }
    }

    /// Sets a more specific remedy.
    pub fn fix(self, remedy: impl Into<Remedy>) -> Judgement {
        Judgement { remedy: remedy.into(), ..self }
    }

    /// Sets the lifetime of it, or of the advice in words, if that differs from the rule's record.
    pub fn persistence(self, persistence: Persistence) -> Judgement {
        Judgement {
            remedy: self.remedy.with_persistence(persistence),
            persistence: Some(persistence),
            ..self
        }
    }

    /// Sets the severity for this machine.
    pub fn severity(self, severity: Severity) -> Judgement {
        Judgement { severity: Some(severity), ..self }
    }

    /// Passes if all parts do: failing parts decide, with their reasons; else unknown ones do.
    ///
    /// Parts that do not apply are omitted, and so are those that only a running kernel decides,
    /// without one; if none applies, the first gives the reason.
    pub fn all(legs: impl IntoIterator<Item = Judged>) -> Judged {
        Judgement::joined(
            legs,
            [LegKind::Fail, LegKind::Unknown, LegKind::Pass, LegKind::NotRunning, LegKind::Silent],
            Remedy::all,
        )
    }

    /// Passes if one part does; else unknown parts decide, because they might pass.
    ///
    /// Parts that do not apply are omitted; if all fail, all give their reasons.
    pub fn any(legs: impl IntoIterator<Item = Judged>) -> Judged {
        Judgement::joined(
            legs,
            [LegKind::Pass, LegKind::Silent, LegKind::Unknown, LegKind::NotRunning, LegKind::Fail],
            Remedy::any,
        )
    }

    fn leg_kind(&self) -> Option<LegKind> {
        match (self.verdict, self.cause) {
            (AuditVerdict::Pass, _) if self.value.is_empty() => Some(LegKind::Silent),
            (AuditVerdict::Pass, _) => Some(LegKind::Pass),
            (AuditVerdict::Fail, _) => Some(LegKind::Fail),
            (AuditVerdict::Unknown, UnknownCause::NotRunning) => Some(LegKind::NotRunning),
            (AuditVerdict::Unknown, _) => Some(LegKind::Unknown),
            (AuditVerdict::NotApplicable, _) => None,
        }
    }

    /// Joins the parts of the first kind in the order that exists.
    fn joined(
        legs: impl IntoIterator<Item = Judged>,
        order: [LegKind; 5],
        remedies: fn(Vec<Remedy>) -> Remedy,
    ) -> Judged {
        let legs: Vec<Judgement> = legs.into_iter().map(|leg| leg.unwrap_or_else(|early| early)).collect();
        for kind in order {
            let mut deciding: Vec<&Judgement> =
                legs.iter().filter(|leg| leg.leg_kind() == Some(kind)).collect();
            if kind == LegKind::NotRunning {
                // The first missing text is enough as a reason.
                deciding.truncate(1);
            }
            let Some(first) = deciding.first() else { continue };
            let words = |of: fn(&Judgement) -> &str| join(deciding.iter().map(|leg| of(leg)));
            return Ok(Judgement {
                verdict: first.verdict,
                value: words(|leg| &leg.value),
                wanted: words(|leg| &leg.wanted),
                reason: words(|leg| &leg.reason),
                remedy: remedies(deciding.iter().map(|leg| leg.remedy.clone()).collect()),
                severity: deciding.iter().filter_map(|leg| leg.severity).max(),
                persistence: deciding.iter().find_map(|leg| leg.persistence),
                cause: deciding.iter().map(|leg| leg.cause).max().unwrap_or_default(),
            });
        }
        legs.into_iter()
            .next()
            .map_or_else(|| Ok(Judgement::not_applicable("this machine has nothing of this kind")), Ok)
    }
}

/// Kinds of parts that a joined judgement distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LegKind {
    Pass,
    /// Passes without a value: nothing contradicts it.
    Silent,
    Fail,
    Unknown,
    NotRunning,
}

/// The words, each once, separated by `; `.
fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    seen.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks parts by letter (p, f, u, n): the verdict, and the parts in its value or reason.
    fn check(join: fn(Vec<Judged>) -> Judged, legs: &str, expected: &str) {
        let leg = |(n, letter)| match letter {
            'p' => Ok(Judgement::pass(format!("p{n}"))),
            'f' => Ok(Judgement::fail(format!("f{n}"))),
            'u' => Err(Judgement::unknown(format!("u{n}"))),
            'r' => Err(Judgement::unknown(format!("r{n}")).cause(UnknownCause::NotRunning)),
            _ => Err(Judgement::not_applicable(format!("n{n}"))),
        };
        let judged = join(legs.chars().enumerate().map(leg).collect()).unwrap();
        let words = if judged.value.is_empty() { judged.reason } else { judged.value };
        assert_eq!(format!("{} {words}", judged.verdict.name()), expected, "{legs}");
    }

    #[test]
    fn all_must_pass() {
        let all = |legs| Judgement::all(legs);
        check(all, "pp", "pass p0; p1");
        check(all, "pufn", "fail f2");
        check(all, "pfpf", "fail f1; f3");
        check(all, "pun", "unknown u1");
        check(all, "np", "pass p1");
        check(all, "rp", "pass p1");
        check(all, "rnr", "unknown r0");
        check(all, "prf", "fail f2");
        check(all, "nn", "not-applicable n0");
        check(all, "", "not-applicable this machine has nothing of this kind");
    }

    #[test]
    fn one_must_pass() {
        let any = |legs| Judgement::any(legs);
        check(any, "fpu", "pass p1");
        check(any, "fu", "unknown u1");
        check(any, "nff", "fail f1; f2");
        check(any, "fr", "unknown r1");
        check(any, "nn", "not-applicable n0");
    }

    #[test]
    fn the_worst_part_sets_the_severity() {
        let leg = |severity| Ok(Judgement::fail("same").because("x").severity(severity));
        let judged = Judgement::all([leg(Severity::Low), leg(Severity::High)]).unwrap();
        assert_eq!((judged.severity, judged.value.as_str()), (Some(Severity::High), "same"));
        assert!(Severity::Fatal > Severity::High && Severity::High > Severity::Medium);
    }
}
