//! All checks on one program: the findings, as values and as JSON.

use serde::Serialize;

use super::ALL;
use super::rule::{CheckJudge, CheckRule};
use super::view::ProgramView;
use crate::audit::{Finding, VerdictCounts};
use crate::change::Persistence;
use crate::judgement::{AuditVerdict, Judgement};
use crate::remedy::Remedy;
use facts::cmdline::Cmdline;
use model::units::Nanos;

/// Name and version of the JSON.
pub const SCHEMA: &str = "onbeat.check/1";

/// A check applied to a process, or to one of its threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramFinding {
    #[serde(flatten)]
    pub finding: Finding,
    /// Thread that it is about; none if it is about the process, or no single thread.
    pub tid: Option<u32>,
}

/// The process that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckedProcess {
    pub pid: u32,
    pub comm: String,
}

/// A thread of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckedThread {
    pub tid: u32,
    pub comm: String,
    pub policy: &'static str,
    pub priority: u32,
    pub cpus: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramCheck {
    pub schema: &'static str,
    pub process: CheckedProcess,
    /// Its real-time threads.
    pub threads: Vec<CheckedThread>,
    /// At least one finding for each check, in the checks' order; one for each thread that fails.
    pub findings: Vec<ProgramFinding>,
    /// Number of checks by verdict.
    pub summary: VerdictCounts,
    /// Time that recording adds to a wake-up of a thread; 0 if nothing was recorded, null if it was
    /// not measured.
    pub cost_ns_per_wakeup: Option<u64>,
    /// Time that recording adds to a system call.
    pub cost_ns_per_call: Option<u64>,
    pub window_ns: Nanos,
    /// Things that were omitted, or could not be seen.
    pub remarks: Vec<String>,
}

/// Time that recording adds to a wake-up and to a system call of the program's threads, in
/// nanoseconds: 0 if none of these were recorded, none if it was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckCost {
    pub wakeup: Option<u64>,
    pub call: Option<u64>,
}

/// Judges a program by all checks.
pub fn check(view: &ProgramView, cost: CheckCost, remarks: Vec<String>) -> ProgramCheck {
    let findings: Vec<ProgramFinding> = ALL.iter().flat_map(|rule| findings_of(rule, view)).collect();
    let count = |verdict| {
        let of_rule = |rule: &&&CheckRule| {
            findings.iter().any(|found| found.finding.rule == rule.id && found.finding.verdict == verdict)
        };
        ALL.iter().filter(of_rule).count()
    };
    let summary = VerdictCounts {
        pass: count(AuditVerdict::Pass),
        fail: count(AuditVerdict::Fail),
        unknown: count(AuditVerdict::Unknown),
        not_applicable: count(AuditVerdict::NotApplicable),
    };
    let thread = |thread: &facts::process::ProgramThread| CheckedThread {
        tid: thread.tid,
        comm: thread.comm.clone(),
        policy: thread.policy_name(),
        priority: thread.priority,
        cpus: thread.allowed.known().map(ToString::to_string).unwrap_or_default(),
    };
    ProgramCheck {
        schema: SCHEMA,
        process: CheckedProcess { pid: view.process.pid, comm: view.process.comm.clone() },
        threads: view.process.real_time().map(thread).collect(),
        findings,
        summary,
        cost_ns_per_wakeup: cost.wakeup,
        cost_ns_per_call: cost.call,
        window_ns: view.process.window,
        remarks,
    }
}

/// Findings of a check: one per thread that fails, else one for all.
pub fn findings_of(rule: &'static CheckRule, view: &ProgramView) -> Vec<ProgramFinding> {
    let one = |judged: Judgement, tid| ProgramFinding { finding: finding(rule, judged), tid };
    let judge = match rule.judge {
        CheckJudge::Process(judge) => {
            return vec![one(judge(view).unwrap_or_else(|early| early), None)];
        }
        CheckJudge::Thread(judge) => judge,
    };
    let judged = view
        .process
        .real_time()
        .map(|thread| (thread.tid, judge(view, thread).unwrap_or_else(|early| early)));
    let judged: Vec<(u32, Judgement)> = judged.collect();
    for verdict in
        [AuditVerdict::Fail, AuditVerdict::Unknown, AuditVerdict::Pass, AuditVerdict::NotApplicable]
    {
        let mut with = judged.iter().filter(|(_, judged)| judged.verdict == verdict).peekable();
        let Some((tid, first)) = with.peek().copied() else { continue };
        if verdict == AuditVerdict::Fail {
            return with.map(|(tid, judged)| one(judged.clone(), Some(*tid))).collect();
        }
        // A judgement that is the same for all threads is about none in particular.
        let alone = judged.len() == 1 || with.clone().count() == 1;
        return vec![one(first.clone(), alone.then_some(*tid))];
    }
    vec![one(no_thread(view), None)]
}

/// Judgement of threads if none could be judged.
fn no_thread(view: &ProgramView) -> Judgement {
    match view.process.real_time_ended {
        0 => Judgement::not_applicable("none of its threads has a real-time policy"),
        brief => Judgement::unknown(format!(
            "its real-time threads ended before they could be judged (at least {brief} in {})",
            view.span()
        )),
    }
}

fn finding(rule: &'static CheckRule, judged: Judgement) -> Finding {
    let or = |text: String, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text };
    Finding {
        rule: rule.id,
        verdict: judged.verdict,
        severity: judged.severity.unwrap_or(rule.severity),
        value: judged.value,
        wanted: or(judged.wanted, rule.wanted),
        reason: or(judged.reason, rule.rationale),
        // A program stays the same until it is rebuilt.
        persistence: Persistence::Build,
        fix: match judged.verdict {
            AuditVerdict::Fail => or(judged.remedy.text(&Cmdline::default()), rule.fix),
            _ => String::new(),
        },
        remedy: Remedy::default(),
        source: rule.sources.first().map_or("", |source| source.url),
        disputed: "",
    }
}
