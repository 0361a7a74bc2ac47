//! The judgement of a rule on a machine, and how judgements are combined.

use model::keyword::Keyword;
use serde::Serialize;

use super::remedy::Remedy;
use crate::change::Persistence;

/// The outcome of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditVerdict {
    /// As it should be.
    Pass,
    /// Not as it should be.
    Fail,
    /// The needed facts could not be read or understood; never counted as a pass.
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

/// The severity of a wrong setting, in the terms of the kernel's guide to configuring for real time
/// (Documentation/core-api/real-time/kernel-configuration.rst), with one more between high and
/// info.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    /// Costs little, or seldom.
    Low,
    /// Costs tens of microseconds, or more on some machines.
    Medium,
    /// Costs milliseconds, or comes often.
    High,
    /// Latency has no bound with it.
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
            Severity::Low => "Costs little, or seldom",
            Severity::Medium => "Costs tens of microseconds, or more on some machines",
            Severity::High => "Costs milliseconds, or comes often",
            Severity::Fatal => "No bound on latency can be had with it",
        }
    }
}

/// The reason for which a judgement is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnknownCause {
    /// The texts and values that were read do not decide it.
    #[default]
    Undecided,
    /// Only a running kernel has it, and what was read is not one.
    NotRunning,
    /// The kernel's configuration is not among the texts of a machine that does not run.
    NotGiven,
    /// A text was refused, malformed or not captured.
    Unreadable,
}

/// The judgement of a rule on a machine. Empty fields take those of the rule's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The outcome.
    pub verdict: AuditVerdict,
    /// What was found: `950000 of 1000000 us`; for an unknown, what is known of it.
    pub value: String,
    /// What it should be.
    pub wanted: String,
    /// Why it does not pass: what failed, what could not be read, which condition is not met.
    pub reason: String,
    /// What to do; none where it is the rule's usual remedy.
    pub remedy: Remedy,
    /// How bad it is, where that depends on the machine or on what it is for.
    pub severity: Option<Severity>,
    /// How long it lasts, if nothing has to be done and the setting is not as persistent as the
    /// rule's record states.
    pub persistence: Option<Persistence>,
    /// The cause for which it is unknown, if it is.
    pub cause: UnknownCause,
}

/// A judgement; one that returns early, because something is not known or not applicable,
/// is an `Err`.
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

    /// As it should be; what was found.
    pub fn pass(value: impl Into<String>) -> Judgement {
        Judgement::new(AuditVerdict::Pass, value, "")
    }

    /// Not as it should be; what was found.
    pub fn fail(value: impl Into<String>) -> Judgement {
        Judgement::new(AuditVerdict::Fail, value, "")
    }

    /// Cannot be determined; why not, and what would help.
    pub fn unknown(reason: impl Into<String>) -> Judgement {
        Judgement::new(AuditVerdict::Unknown, "", reason)
    }

    /// Sets why it is unknown.
    pub fn cause(self, cause: UnknownCause) -> Judgement {
        Judgement { cause, ..self }
    }

    /// The rule's condition is not met; `reason` names the condition.
    pub fn not_applicable(reason: impl Into<String>) -> Judgement {
        Judgement::new(AuditVerdict::NotApplicable, "", reason)
    }

    /// Fails with the first value if the condition holds, else passes with it.
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

    /// Sets how long it, or the advice in words, lasts, where that differs from the rule's record.
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

    /// All must pass: a part that fails decides, with its reasons; else one that is unknown does.
    ///
    /// Parts that do not apply are omitted, and those that only a running kernel decides where
    /// none runs; if none applies, the first gives the reason.
    pub fn all(legs: impl IntoIterator<Item = Judged>) -> Judged {
        Judgement::joined(
            legs,
            [LegKind::Fail, LegKind::Unknown, LegKind::Pass, LegKind::NotRunning, LegKind::Silent],
            Remedy::all,
        )
    }

    /// One must pass: a part that passes decides; else one that is unknown does, for it might.
    ///
    /// Parts that do not apply are left out; if all fail, all give their reasons.
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

    /// Joins the parts of the first kind that there is.
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
                // The first text that is missing says enough.
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
            .map_or_else(|| Ok(Judgement::not_applicable("there is nothing of the kind on this machine")), Ok)
    }
}

/// The kinds of parts that a joined judgement distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LegKind {
    Pass,
    /// It passes without a word of what was found: nothing stands against it.
    Silent,
    Fail,
    Unknown,
    NotRunning,
}

/// Words once each, with `; ` between them.
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

    /// Parts by letter: p, f, u, n; a verdict and the parts that gave its value or reason.
    fn check(join: fn(Vec<Judged>) -> Judged, legs: &str, expected: &str) {
        let leg = |(n, letter)| match letter {
            'p' => Ok(Judgement::pass(format!("p{n}"))),
            'f' => Ok(Judgement::fail(format!("f{n}"))),
            'u' => Err(Judgement::unknown(format!("u{n}"))),
            'r' => Err(Judgement::unknown(format!("r{n}")).cause(UnknownCause::NotRunning)),
            _ => Err(Judgement::not_applicable(format!("n{n}"))),
        };
        let judged = join(legs.chars().enumerate().map(leg).collect()).unwrap();
        let said = if judged.value.is_empty() { judged.reason } else { judged.value };
        assert_eq!(format!("{} {said}", judged.verdict.name()), expected, "{legs}");
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
        check(all, "", "not-applicable there is nothing of the kind on this machine");
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
