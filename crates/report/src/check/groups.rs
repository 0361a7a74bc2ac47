//! Findings of a check by rule: threads with equal findings are named together.

use crate::words::clean;
use model::sort::CompactSort;
use model::text::several;
use model::units::named_cpus;
use rules::audit::Finding;
use rules::checks::findings::{ProgramCheck, ProgramFinding};
use rules::checks::rule::CheckRule;
use rules::judgement::AuditVerdict;

/// Limit of threads that are named; the others are counted.
const MAX_NAMED: usize = 4;

/// Equal findings of a rule.
pub struct FindingGroup<'a> {
    pub finding: &'a Finding,
    /// Threads concerned, in words; `""` for the process.
    pub threads: String,
    /// Number of different findings of the same rule that are not shown.
    pub more: usize,
}

/// Limit of groups of a rule: with hundreds of threads each may have a different finding.
const MAX_OF_RULE: usize = 3;

/// Findings of a verdict, worst first, else in the order of the checks.
pub fn groups(check: &ProgramCheck, verdict: AuditVerdict) -> Vec<FindingGroup<'_>> {
    let mut groups: Vec<(&ProgramFinding, Vec<u32>)> = Vec::new();
    for found in check.findings.iter().filter(|found| found.finding.verdict == verdict) {
        match groups.iter_mut().find(|(first, _)| first.finding == found.finding) {
            Some((_, tids)) => tids.extend(found.tid),
            None => groups.push((found, found.tid.into_iter().collect())),
        }
    }
    groups.compact_sort_by_key(|(found, _)| std::cmp::Reverse(found.finding.severity));
    let mut list: Vec<FindingGroup> = Vec::new();
    for (found, tids) in groups {
        let finding = &found.finding;
        let same = list.iter().filter(|group| group.finding.rule == finding.rule).count();
        match list.iter_mut().rfind(|group| group.finding.rule == finding.rule) {
            Some(last) if same == MAX_OF_RULE => last.more += 1,
            _ => list.push(FindingGroup { finding, threads: threads(check, &tids), more: 0 }),
        }
    }
    list
}

/// Number of findings of a rule that are not shown, in words; `""` for none.
pub fn more(group: &FindingGroup) -> String {
    match group.more {
        0 => String::new(),
        n => format!("{} of this check; --json has all", several(n as u64, "more finding", "more findings")),
    }
}

/// Findings grouped by their text, as lines: the rules, and the text.
pub fn lines(found: &[FindingGroup]) -> Vec<(Vec<&'static str>, String)> {
    let mut lines: Vec<(Vec<&str>, String)> = Vec::new();
    for group in found {
        let finding = group.finding;
        let text = clean(if finding.value.is_empty() { &finding.reason } else { &finding.value });
        match lines.iter_mut().find(|(_, own)| *own == text) {
            Some((rules, _)) if rules.contains(&finding.rule) => {}
            Some((rules, _)) => rules.push(finding.rule),
            None => lines.push((vec![finding.rule], text)),
        }
    }
    lines
}

fn threads(check: &ProgramCheck, tids: &[u32]) -> String {
    let name = |tid: &u32| {
        let thread = check.threads.iter().find(|thread| thread.tid == *tid);
        thread.map_or_else(|| format!("thread {tid}"), |thread| format!("{} ({tid})", clean(&thread.comm)))
    };
    let named: Vec<String> = tids.iter().take(MAX_NAMED).map(name).collect();
    let more = tids.len().saturating_sub(MAX_NAMED);
    let kind = if tids.len() == 1 { "thread" } else { "threads" };
    match (named.is_empty(), more) {
        (true, _) => String::new(),
        (_, 0) => format!("{kind} {}", named.join(", ")),
        _ => format!("{kind} {} and {more} more", named.join(", ")),
    }
}

/// Answer in a sentence.
pub fn answer(check: &ProgramCheck) -> String {
    let failing = groups(check, AuditVerdict::Fail);
    let count = &check.summary;
    let rest =
        format!("{} unknown, {} passed, {} not applicable", count.unknown, count.pass, count.not_applicable);
    let process = format!("{} ({})", clean(&check.process.comm), check.process.pid);
    match failing.first() {
        None => format!("{process}: no check failed; {rest}."),
        Some(worst) => format!(
            "{process}: {} failed, the worst {}; {rest}.",
            several(count.fail as u64, "check", "checks"),
            model::keyword::Keyword::name(worst.finding.severity)
        ),
    }
}

/// Observed threads, length of the observation, and its cost.
pub fn conditions(check: &ProgramCheck) -> String {
    let threads: Vec<String> = check.threads.iter().take(8).map(thread_words).collect();
    let more = check.threads.len().saturating_sub(threads.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let threads = if threads.is_empty() {
        "No thread has a real-time policy".to_owned()
    } else {
        format!("Real-time threads: {}{more}", threads.join(", "))
    };
    let cost = match check.cost_ns_per_wakeup {
        None => "the cost of recording was not measured".to_owned(),
        Some(0) => "nothing was recorded".to_owned(),
        Some(..100) => "recording cost less than 0.1 us per wake-up".to_owned(),
        Some(ns) => format!("recording cost about {:.1} us per wake-up", ns as f64 / 1000.0),
    };
    format!("{threads}. Observed for {}; {cost}.", check.window_ns.spoken())
}

fn thread_words(thread: &rules::checks::findings::CheckedThread) -> String {
    let cpus =
        if thread.cpus.is_empty() { String::new() } else { format!(" on {}", named_cpus(&thread.cpus)) };
    match thread.policy {
        "deadline" => format!("{} (deadline{cpus})", clean(&thread.comm)),
        policy => format!("{} ({policy} {}{cpus})", clean(&thread.comm), thread.priority),
    }
}

/// Title of a check.
pub fn title(id: &str) -> &'static str {
    rule(id).map_or("", |rule| rule.title)
}

/// Record of a check.
pub fn rule(id: &str) -> Option<&'static CheckRule> {
    rules::checks::find(id)
}
