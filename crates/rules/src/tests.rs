//! Checks for every rule: its record is complete, and it behaves as its examples show.

use super::change::{AdviceReason, Change};
use super::find;
use super::fixture::Machine;
use super::intent::Intent;
use super::judgement::AuditVerdict;
use super::knobs::ALL;
use crate::knob::Knob;
use facts::cmdline::Cmdline;
use host::access::Access;
use std::collections::BTreeSet;

/// The verdict after some edits to the well-set machine.
fn verdict(knob: &'static Knob, edits: &str) -> AuditVerdict {
    let mut machine = Machine::base();
    machine.edit(edits);
    machine.finding(knob).verdict
}

#[test]
fn each_rule_fires_stays_silent_and_is_unknown() {
    for knob in ALL {
        assert_eq!(verdict(knob, knob.examples.fires), AuditVerdict::Fail, "{} should fire", knob.id);
        assert_eq!(verdict(knob, knob.examples.silent), AuditVerdict::Pass, "{} should be silent", knob.id);
        assert_eq!(verdict(knob, knob.examples.unknown), AuditVerdict::Unknown, "{} cannot tell", knob.id);
    }
}

#[test]
fn ids_are_sorted_unique_and_in_kebab_case() {
    let ids: Vec<&str> = ALL.iter().map(|knob| knob.id).collect();
    let sorted: Vec<&str> = ids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(ids, sorted);
    for id in ids {
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{id}");
        assert!(!id.starts_with('-') && !id.ends_with('-') && !id.contains("--"), "{id}");
    }
}

/// Complaints about the texts of a record.
fn complaints(knob: &Knob) -> Vec<String> {
    let fix = (knob.fix)().text(&Default::default());
    let mut found = Vec::new();
    let mut complain = |wrong: bool, what: &str| {
        if wrong {
            found.push(format!("{}: {what}", knob.id));
        }
    };
    for (name, text) in [("what", knob.description), ("tell", knob.detection), ("cost", knob.side_effects)] {
        complain(text.len() < 30 || text.len() > 1200, &format!("`{name}` has {} bytes", text.len()));
        complain(!text.ends_with('.'), &format!("`{name}` ends without a full stop"));
    }
    for (name, text) in
        [("title", knob.title), ("why", knob.rationale), ("wanted", knob.wanted), ("fix", &fix)]
    {
        complain(text.ends_with('.'), &format!("`{name}` ends with a full stop"));
        complain(text.contains('\n'), &format!("`{name}` has more than one line"));
    }
    complain(
        knob.title.is_empty() || knob.rationale.len() < 20 || knob.wanted.is_empty(),
        "words are missing",
    );
    complain(knob.sources.is_empty(), "no source");
    for source in knob.sources {
        complain(!source.url.starts_with("https://") || source.title.is_empty(), "a source cannot be opened");
    }
    complain(knob.cures.is_empty(), "it cures nothing");
    complain(knob.reads.is_empty() && knob.facts.is_empty() && knob.programs.is_empty(), "it reads nothing");
    for path in knob.reads.iter().chain(knob.facts) {
        complain(!path.starts_with('/'), "it reads what is no path");
    }
    for other in knob.after.iter().chain(knob.conflicts) {
        complain(find(other).is_none() || *other == knob.id, &format!("there is no other rule {other}"));
    }
    complain(knob.programs.iter().any(|name| name.len() > 15), "the kernel cuts names after 15 bytes");
    found
}

#[test]
fn records_are_complete() {
    let found: Vec<String> = ALL.iter().flat_map(|knob| complaints(knob)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn order_has_no_circles() {
    // Each step goes to rules that have to be set before; a cycle would never end.
    for knob in ALL {
        let (mut reached, mut next) = (BTreeSet::new(), knob.after.to_vec());
        while let Some(id) = next.pop() {
            assert_ne!(id, knob.id, "{} has to be set before itself", knob.id);
            if reached.insert(id) {
                next.extend(find(id).map_or(&[][..], |knob| knob.after));
            }
        }
    }
}

#[test]
fn conflicts_are_mutual_and_no_order() {
    for knob in ALL {
        for other in knob.conflicts {
            let theirs = find(other).unwrap();
            assert!(theirs.conflicts.contains(&knob.id), "{other} does not know of {}", knob.id);
            assert!(!knob.after.contains(other) && !theirs.after.contains(&knob.id), "{}", knob.id);
        }
    }
}

/// A rule that is left as it is says why, in a line of its own.
#[test]
fn what_is_not_set_says_why() {
    for knob in ALL {
        let why = knob.unsettable;
        assert!(why.is_empty() || why.len() >= 20, "{}: {why}", knob.id);
        assert!(!why.ends_with('.') && !why.contains('\n') && why.len() <= 160, "{}: {why}", knob.id);
    }
}

#[test]
fn a_failed_finding_has_a_remedy() {
    for knob in ALL {
        let mut machine = Machine::base();
        machine.edit(knob.examples.fires);
        let found = machine.finding(knob);
        assert!(!found.fix.is_empty() && !found.value.is_empty() && !found.wanted.is_empty(), "{found:#?}");
        assert!(!found.value.contains('\n') && found.value.chars().count() <= 300, "{}", found.value);
    }
}

#[test]
fn an_unreadable_machine_passes_no_rule() {
    let (survey, intent) = Machine::of(Default::default()).survey();
    for knob in ALL {
        let found = super::audit::finding(knob, &survey, &intent);
        assert!(matches!(found.verdict, AuditVerdict::Unknown | AuditVerdict::NotApplicable), "{found:#?}");
    }
}

/// Refusing any single text must not make a rule pass that did not: what cannot be read must
/// not say yes.
#[test]
fn silence_makes_nothing_pass() {
    let base = Machine::base();
    let (_, intent) = base.survey();
    let before: Vec<AuditVerdict> = verdicts(&base, &intent);
    for path in base.answers.keys() {
        let mut deaf = base.clone();
        deaf.edit(&format!("{path} refused"));
        for ((knob, was), is) in ALL.iter().zip(&before).zip(verdicts(&deaf, &intent)) {
            let fine = is == *was
                || is == AuditVerdict::Unknown
                || (is == AuditVerdict::NotApplicable && *was != AuditVerdict::Fail);
            assert!(fine, "{} turns from {} to {} when {path} is refused", knob.id, was.name(), is.name());
        }
    }
}

fn verdicts(machine: &Machine, intent: &Intent) -> Vec<AuditVerdict> {
    let survey = machine.read();
    ALL.iter().map(|knob| super::audit::finding(knob, &survey, intent).verdict).collect()
}

/// Texts that no kernel writes, in the place of each text, and each in the place of all.
#[test]
fn hostile_texts_upset_no_rule() {
    let long = "9".repeat(70_000);
    let hostile: [&[u8]; 12] = [
        b"",
        b"\n",
        b"\0\0",
        b"\xff\xfe\x80",
        b"-9223372036854775808",
        b"18446744073709551616",
        b"0-8191",
        b"0-99999,1:2/0",
        b"[a] (b) [",
        b"isolated invalid (",
        b"\x1b[2J\r\x07",
        long.as_bytes(),
    ];
    let base = Machine::base();
    let (_, intent) = base.survey();
    let judge = |machine: &Machine| {
        let survey = machine.read();
        for knob in ALL {
            let found = super::audit::finding(knob, &survey, &intent);
            let texts = [&found.value, &found.reason, &found.fix, &found.wanted];
            assert!(texts.iter().all(|text| text.len() < 5000), "{found:#?}");
        }
    };
    let files =
        || base.answers.iter().filter(|(_, seen)| matches!(seen, Access::File(_))).map(|(path, _)| path);
    for text in hostile {
        let mut all = base.clone();
        files().for_each(|path| drop(all.answers.insert(path.clone(), Access::File(text.to_vec()))));
        judge(&all);
    }
    for (path, text) in files().zip(hostile.iter().cycle()) {
        let mut one = base.clone();
        one.answers.insert(path.clone(), Access::File(text.to_vec()));
        judge(&one);
    }
}

/// What is true of no CPU at all is not true of the machine's.
#[test]
fn without_a_cpu_no_rule_judges_cpus() {
    for online in [" refused", " absent", ": 0-x", ":", ": 0-99999999", ": 0-3,8192", ": 4294967296"] {
        let mut machine = Machine::base();
        machine.edit(&format!("/sys/devices/system/cpu/online{online}\n/sys/devices/system/cpu/isolated:"));
        let machine = Machine { cpus: None, ..machine };
        let (survey, intent) = machine.survey();
        assert!(intent.cpus.is_empty());
        assert_eq!(intent.chosen, super::intent::CpuSelection::Unknown, "not all of them: {online}");
        for id in ["fair-server", "nohz-full", "cpufreq-governor", "irq-affinity"] {
            let found = super::audit::finding(find(id).unwrap(), &survey, &intent);
            assert_eq!(found.verdict, AuditVerdict::Unknown, "{found:#?}");
        }
    }
}

#[test]
fn a_remedy_lasts_as_long_as_stated() {
    for knob in super::knobs::ALL {
        let usual = (knob.fix)();
        assert_eq!(usual.persistence(knob.persistence, &Cmdline::default()), knob.persistence, "{}", knob.id);
        let fix = usual.text(&Default::default());
        assert!(super::fixture::agree(&fix, knob.persistence), "{}: {:?}: {fix}", knob.id, knob.persistence);
        let mut machine = super::fixture::Machine::base();
        machine.edit(knob.examples.fires);
        assert!(!machine.finding(knob).fix.is_empty(), "{}", knob.id);
    }
}

/// Rules without a remedy that onbeat could apply, with the reason: each has to be listed here.
const WORDS_ALONE: &[(&str, AdviceReason)] = &[
    ("cgroup-cpuset", AdviceReason::Choice),
    ("clocksource", AdviceReason::Machine),
    ("co-kernel", AdviceReason::Choice),
    ("container-managers", AdviceReason::Program),
    ("core-types", AdviceReason::Machine),
    ("cpu-frequency-support", AdviceReason::Kernel),
    ("cpu-quota", AdviceReason::Program),
    ("cpuset-partition", AdviceReason::Choice),
    ("emulator-threads", AdviceReason::Threads),
    ("energy-efficient-ethernet", AdviceReason::Choice),
    ("firmware-random", AdviceReason::Choice),
    ("firmware-updates", AdviceReason::Program),
    ("graphics-drivers", AdviceReason::Machine),
    ("group-placement", AdviceReason::Program),
    ("guest-halt-poll", AdviceReason::Program),
    ("housekeeping-left", AdviceReason::Choice),
    ("hrtick", AdviceReason::Choice),
    ("idle-injection", AdviceReason::Program),
    ("interrupt-coalescing", AdviceReason::Choice),
    ("isolation-lists", AdviceReason::Choice),
    ("kvm-periodic-work", AdviceReason::Program),
    ("locked-memory-limit", AdviceReason::Program),
    ("memory-nodes", AdviceReason::Machine),
    ("parameter-conflicts", AdviceReason::Choice),
    ("parameter-length", AdviceReason::Choice),
    ("preemption-model", AdviceReason::Kernel),
    ("priority-99", AdviceReason::Threads),
    ("realtime-neighbours", AdviceReason::Threads),
    ("rival-tuners", AdviceReason::Program),
    ("rt-priority-limit", AdviceReason::Program),
    ("sched-ext", AdviceReason::Program),
    ("shared-cache", AdviceReason::Machine),
    ("shared-interrupts", AdviceReason::Machine),
    ("slabinfo-readers", AdviceReason::Program),
    ("swap", AdviceReason::Program),
    ("thermal-throttling", AdviceReason::Machine),
    ("tick-off", AdviceReason::Choice),
    ("unknown-parameters", AdviceReason::Choice),
    ("vcpu-placement", AdviceReason::Threads),
    ("vcpu-policy", AdviceReason::Threads),
    ("virtual-machine", AdviceReason::Machine),
];

#[test]
fn what_is_words_alone_is_known() {
    let mut found = Vec::new();
    for knob in ALL {
        let mut machine = Machine::base();
        machine.edit(knob.examples.fires);
        let remedy = machine.finding(knob).remedy;
        let changes = || remedy.parts.iter().flat_map(|part| &part.alternatives).flat_map(|way| &way.changes);
        let why = changes().find_map(|change| match change {
            Change::Advice { reason, .. } => Some(*reason),
            _ => None,
        });
        if changes().all(|change| matches!(change, Change::Advice { .. })) {
            found.extend(why.map(|why| (knob.id, why)));
        }
    }
    assert_eq!(found, WORDS_ALONE);
}
