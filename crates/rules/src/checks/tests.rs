//! Checks for every check: its record is complete, and it behaves as its examples show.

use std::collections::BTreeSet;

use super::fixture::ExampleProgram;
use super::rule::CheckRule;
use super::{ALL, find};
use crate::judgement::{AuditVerdict, Severity};
use crate::{culprits, find as find_knob};

fn verdict(rule: &'static CheckRule, edits: &str) -> AuditVerdict {
    ExampleProgram::of(edits).findings(rule)[0].finding.verdict
}

#[test]
fn each_check_fires_stays_silent_and_is_unknown() {
    for rule in ALL {
        assert_eq!(verdict(rule, rule.examples.fires), AuditVerdict::Fail, "{} should fire", rule.id);
        let silent = ExampleProgram::of(rule.examples.silent).findings(rule);
        assert_ne!(
            silent[0].finding.verdict,
            AuditVerdict::Fail,
            "{} should be silent: {silent:#?}",
            rule.id
        );
        assert_ne!(
            silent[0].finding.verdict,
            AuditVerdict::Unknown,
            "{} should be silent: {silent:#?}",
            rule.id
        );
        // A few read only facts that are never refused: a thread of unknown policy is not listed.
        if !rule.examples.unknown.is_empty() {
            assert_eq!(
                verdict(rule, rule.examples.unknown),
                AuditVerdict::Unknown,
                "{} cannot tell",
                rule.id
            );
        }
    }
}

#[test]
fn nothing_above_low_in_a_well_written_program() {
    let check = ExampleProgram::of("").check();
    let grave = |found: &&super::findings::ProgramFinding| {
        found.finding.verdict == AuditVerdict::Fail && found.finding.severity > Severity::Low
    };
    let found: Vec<_> = check.findings.iter().filter(grave).collect();
    assert!(found.is_empty(), "{found:#?}");
    let unknown: Vec<&str> = check
        .findings
        .iter()
        .filter(|found| found.finding.verdict == AuditVerdict::Unknown)
        .map(|found| found.finding.rule)
        .collect();
    assert_eq!(unknown, ["blocking-calls"]);
    assert_eq!(check.threads.len(), 1);
    let sum = check.summary.pass + check.summary.fail + check.summary.unknown + check.summary.not_applicable;
    assert_eq!(sum, ALL.len());
}

/// The mistakes of examples/robot/careless.c as they show, and no others.
#[test]
fn eight_mistakes_have_eight_names() {
    let program = ExampleProgram::of(
        "mapping 5500-5501 name=robot rights=r-x flags=rd,ex
         stack 101 resident=12
         thread 101 prio=99 cpus=0-3 seen=0-2 faults=500 writes=50 written=900
         growth least=200 most=900 changes=40
         remap 101 times=40
         wait 101 futex 5500c0a0,80,2 times=9
         thread 102 comm=logger policy=other
         release 101 102 times=9
         timer 101 hrtimer_wakeup mode=1 times=500
         call 101 clock_nanosleep 1,0 times=500
         call 101 write 0,0 times=50",
    );
    let found: Vec<&str> = program
        .check()
        .findings
        .iter()
        .filter(|found| found.finding.verdict == AuditVerdict::Fail)
        .map(|found| found.finding.rule)
        .collect();
    assert_eq!(
        found,
        [
            "allocation-in-loop",
            "highest-priority",
            "lock-without-inheritance",
            "memory-unlocked",
            "no-affinity",
            "relative-sleep",
            "stack-untouched",
            "writes-in-loop"
        ]
    );
}

#[test]
fn ids_are_sorted_and_unique_across_all_kinds() {
    let ids: Vec<&str> = ALL.iter().map(|rule| rule.id).collect();
    let sorted: Vec<&str> = ids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(ids, sorted);
    for id in ids {
        assert!(find_knob(id).is_none() && culprits::find(id).is_none(), "{id} is another rule too");
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{id}");
        assert!(find(id).is_some());
    }
}

#[test]
fn records_are_complete() {
    let mut found = Vec::new();
    for rule in ALL {
        let mut complain = |wrong: bool, what: &str| {
            if wrong {
                found.push(format!("{}: {what}", rule.id));
            }
        };
        for (name, text) in [("what", rule.description), ("tell", rule.detection)] {
            complain(text.len() < 30 || text.len() > 1200, &format!("`{name}` has {} bytes", text.len()));
            complain(!text.ends_with('.'), &format!("`{name}` ends without a full stop"));
        }
        for (name, text) in
            [("title", rule.title), ("why", rule.rationale), ("wanted", rule.wanted), ("fix", rule.fix)]
        {
            complain(
                text.ends_with('.') || text.contains('\n') || text.len() < 4,
                &format!("`{name}` is no line without full stop"),
            );
        }
        complain(rule.sources.is_empty() || rule.reads.is_empty(), "no source, or it reads nothing");
        for source in rule.sources {
            complain(
                !source.url.starts_with("https://") || source.title.is_empty(),
                "a source cannot be opened",
            );
        }
        complain(rule.examples.fires.is_empty() || rule.examples.silent.is_empty(), "no example");
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_failed_finding_says_what_it_saw_and_what_to_change() {
    for rule in ALL {
        for found in ExampleProgram::of(rule.examples.fires).findings(rule) {
            let finding = &found.finding;
            assert!(
                !finding.value.is_empty() && !finding.wanted.is_empty() && !finding.fix.is_empty(),
                "{finding:#?}"
            );
            assert!(
                !finding.value.contains('\n') && finding.value.chars().count() <= 400,
                "{}",
                finding.value
            );
        }
    }
}

/// A failed reading must not make a check pass.
#[test]
fn silence_makes_nothing_pass() {
    let lines = [
        "smaps",
        "status",
        "limits",
        "growth",
        "group",
        "pages",
        "cores",
        "trace",
        "waits 101",
        "io 101",
        "counters 101",
        "affinity 101",
    ];
    for rule in ALL {
        for edits in [rule.examples.fires, rule.examples.silent] {
            let was = verdict(rule, edits);
            for line in lines {
                let is = verdict(rule, &format!("{edits}\n{line} refused"));
                let fine = is == was
                    || is == AuditVerdict::Unknown
                    || (is == AuditVerdict::NotApplicable && was != AuditVerdict::Fail);
                assert!(
                    fine,
                    "{} turns from {} to {} when {line} is refused",
                    rule.id,
                    was.name(),
                    is.name()
                );
            }
        }
    }
}

#[test]
fn without_real_time_threads_there_is_nothing_to_judge_of_them() {
    let check = ExampleProgram::of("thread 101 policy=other").check();
    assert!(check.threads.is_empty());
    let of = |id: &str| check.findings.iter().find(|found| found.finding.rule == id).unwrap().finding.verdict;
    assert_eq!(of("no-affinity"), AuditVerdict::NotApplicable);
    assert_eq!(of("memory-unlocked"), AuditVerdict::Pass);
    // Threads that appeared and ended may have done anything.
    let mut brief = ExampleProgram::of("thread 101 policy=other");
    brief.process.real_time_ended = 300;
    let finding = brief.findings(find("no-affinity").unwrap()).remove(0).finding;
    assert!(
        finding.verdict == AuditVerdict::Unknown && finding.reason.contains("at least 300"),
        "{finding:?}"
    );
}

#[test]
fn calls_of_other_numbers_have_no_names() {
    let edits = "process numbers=other\ncall 101 write 0,0 times=50\nwait 101 clock_nanosleep 1,0 times=90\n\
                 timer 101 hrtimer_wakeup mode=1 times=500\nthread 101 voluntary=500";
    let check = ExampleProgram::of(edits).check();
    let of = |id: &str| check.findings.iter().find(|found| found.finding.rule == id).unwrap().finding.verdict;
    for id in ["blocking-calls", "relative-sleep", "wall-clock-sleep", "lock-without-inheritance"] {
        assert_eq!(of(id), AuditVerdict::Unknown, "{id}");
    }
    assert_eq!(of("writes-in-loop"), AuditVerdict::Pass, "its counters have none written");
}
