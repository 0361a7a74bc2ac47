//! Inputs of a cure: its runs from their bundles, a hunt's culprits, and the changes that this
//! machine could make against each.

use std::collections::BTreeMap;
use std::path::Path;

use bundle::read::Bundle;
use experiment::cure::choice::{OfferedChange, candidates, rank, too_risky};
use facts::survey::survey;
use host::MachineFiles;
use model::cure::{CureCleanRun, CureCulprit, CureHunt, CureRemaining, CureRun, CureThread};
use model::error::{Exit, Failure, Result, json};
use model::plan::{LeftOut, PlanDocument};
use model::setting::{Key, Risk, Setting, TaskSetting};
use model::sort::CompactSort;
use model::spike::{Culprit, Recorder};
use model::text::clean;
use model::units::{CpuSet, Nanos};
use report::bounds::sentences;
use report::curing::page::{CureStory, html};
use rules::audit::{Audit, Finding, audit};
use rules::change::Persistence;
use rules::intent::{Profile, intent};
use rules::judgement::AuditVerdict;
use rules::knobs;
use stats::bounds::{BoundsVerdict, Question};
use tune::apply::cuts_off;
use tune::order::ordered;
use tune::plan::{PlanRequest, RuleRequest, plan};
use tune::reading;
use tune::rivals;

use crate::audit::{MachineSource, judge, survey_request};
use crate::compare::series;
use crate::curing_parts::decisive;
use crate::curing_program::by_counting;
use crate::curing_threads::elsewhere;
use crate::measurement::{Measurement, ReadOptions};
use crate::proving::{nothing_measured, segment_of};
use crate::tuning::boot_id;

/// A clean run from its bundle; for a long one, with the claims it supports.
pub fn clean_run(folder: &Path, begun: CureCleanRun, limit: Nanos, horizon: Nanos) -> Result<CureCleanRun> {
    let measured = ReadOptions::default().open(&folder.join(&begun.bundle))?;
    let segment = segment_of(&measured, &begun.bundle, limit)?;
    let mut run = CureCleanRun {
        valid: segment.valid,
        why: segment.why,
        observed_ns: segment.observed_ns,
        samples: segment.samples,
        late: segment.late,
        p50_ns: segment.p50_ns,
        max_ns: segment.max_ns,
        ..begun
    };
    let follows = measured.run.as_ref().is_some_and(|run| !run.threads.is_empty());
    if run.long && run.valid && follows {
        (run.verdict, run.said) = by_counting(&run, horizon);
    } else if run.long && run.valid {
        let question = Question { limit: Some(limit), horizon, chosen: true, ..Question::default() };
        let found = crate::bounds::bounds(&measured, &question)?;
        run.verdict = match found.verdict {
            BoundsVerdict::Supported => "supported",
            BoundsVerdict::Failed => "failed",
            _ => "inconclusive",
        }
        .into();
        run.said = found.claim.as_ref().map_or_else(String::new, |claim| sentences::verdict(&found, claim));
    } else if run.is_late_and_spoiled() {
        run.verdict = "failed".into();
    }
    Ok(run)
}

/// Findings of a hunt with the changes to try against them; `kept` are the rules in force.
///
/// # Errors
/// Usage: recording alone makes the usual wake-up as late as the limit. Inconclusive: nothing was
/// seen, so that no culprit can be named or ruled out.
pub fn hunted(
    folder: &Path,
    begun: CureHunt,
    limit: Nanos,
    machine: &Curable,
    in_force: &[String],
    allowed: Risk,
) -> Result<CureHunt> {
    let run = Bundle::open(&folder.join(&begun.bundle))?.run;
    if let Some(what) = nothing_measured(&run) {
        let remedy = "make sure that the followed program runs all the time, and can be started repeatedly";
        let message = format!("{what} in the hunt: {remedy}");
        return Err(Failure { exit: Exit::Inconclusive, message });
    }
    if let Some(recorder) = &run.recorder {
        require_cheap(recorder, limit)?;
    }
    let recorder = run.recorder.clone().unwrap_or_default();
    let mut found: Vec<(&Culprit, Option<u64>)> = run.culprits.iter().zip(decisive(&run, limit)).collect();
    found.compact_sort_by_key(|(culprit, _)| std::cmp::Reverse(culprit.total_ns));
    let of = |&(culprit, decisive): &(&Culprit, Option<u64>)| {
        let moved = elsewhere(&run, culprit, &machine.files, &machine.kernel, &machine.cpus);
        let (mut candidates, mut left) =
            (candidates(&culprit.knobs, &machine.offered, in_force, allowed), Vec::new());
        match moved {
            Some(moved) if rank(moved.risk) <= rank(allowed) => candidates.push(moved),
            Some(moved) => left.push(CureRemaining {
                culprit: culprit.name.clone(),
                needs: "decision".into(),
                what: format!(
                    "moving {} is of {} risk: allow it with --yes",
                    moved.name(),
                    moved.risk.name()
                ),
            }),
            None => {}
        }
        left.extend(machine.left(culprit, allowed, !candidates.is_empty() || !left.is_empty()));
        CureCulprit {
            name: culprit.name.clone(),
            rule: culprit.rule.clone().unwrap_or_default(),
            lost_ns: culprit.total_ns,
            spikes: culprit.spikes,
            decisive,
            candidates,
            left,
        }
    };
    Ok(CureHunt {
        culprits: found.iter().map(of).collect(),
        spikes: (run.spikes.len() as u64).saturating_add(run.spikes_dropped),
        unexplained_ns: recorder.unexplained_ns,
        latency_ns: recorder.latency_ns,
        ..begun
    })
}

fn require_cheap(recorder: &Recorder, limit: Nanos) -> Result<()> {
    let Some(median) = recorder.median_ns.iter().flatten().max() else { return Ok(()) };
    if *median < limit {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "invalid --limit: with tracing, the usual wake-up takes {}, and {} cannot be distinguished from \
         that; choose a higher limit",
        median.spaced(),
        limit.spaced()
    )))
}

/// Changes that this machine could make now.
pub struct Curable {
    files: MachineFiles,
    /// The CPUs that are measured.
    cpus: CpuSet,
    /// Kernel threads, which stay where they are.
    kernel: Vec<u32>,
    audit: Audit,
    /// Changes that can be made and undone, in the order of a plan.
    pub offered: Vec<OfferedChange>,
    /// Changes that failing rules ask for and that cannot be made, by rule.
    left_out: BTreeMap<&'static str, LeftOut>,
}

/// Audits this machine for these CPUs; nothing is written.
pub fn curable(cpus: &CpuSet) -> Result<Curable> {
    let files = MachineSource::Live.open()?;
    let survey = survey(&files, &survey_request());
    let intent = intent(&survey, Profile::ControlLoop, Some(cpus)).map_err(Failure::usage)?;
    let audit = audit(&survey, &intent);
    let boot = boot_id()?;
    let now = |key: &_| reading::read(&files, key);
    let (mut offered, mut left_out) = (Vec::new(), BTreeMap::new());
    for finding in audit.findings.iter().filter(|finding| finding.verdict == AuditVerdict::Fail) {
        let rule = RuleRequest { rule: finding.rule.to_owned(), value: None };
        let request = PlanRequest { rules: vec![rule], without: Vec::new() };
        let mut document = plan(&survey, &audit, &request, &boot, &now)?;
        rivals::leave_out(&survey, &files, &mut document, false);
        match offer(finding, &document) {
            Ok(Some(change)) => offered.push(change),
            Ok(None) => {}
            Err(left) => {
                left_out.insert(finding.rule, left);
            }
        }
    }
    let in_order: Vec<&str> = ordered(knobs::ALL.to_vec()).iter().map(|knob| knob.id).collect();
    offered
        .compact_sort_by_key(|change: &OfferedChange| in_order.iter().position(|rule| *rule == change.rule));
    let threads = survey.threads.known().map_or(&[][..], |threads| threads.kernel.as_slice());
    let kernel = threads.iter().map(|thread| thread.tid).collect();
    Ok(Curable { files, cpus: cpus.clone(), kernel, audit, offered, left_out })
}

/// A rule's changes as a candidate, or the reason that they may not be tried.
fn offer(finding: &Finding, document: &PlanDocument) -> std::result::Result<Option<OfferedChange>, LeftOut> {
    if let Some(left) = document.left_out.first() {
        return Err(left.clone());
    }
    if document.changes.iter().any(|change| lets_run_for_ever(&change.setting)) {
        return Err(LeftOut {
            rule: finding.rule.to_owned(),
            why: "real-time throttling is off, so nothing would stop a thread that never sleeps".into(),
            instead: finding.fix.clone(),
        });
    }
    if document.changes.iter().all(|change| is_for_later(&change.setting)) && !document.changes.is_empty() {
        return Err(LeftOut {
            rule: finding.rule.to_owned(),
            why: "it only affects interrupts requested later, and moves none of the present ones".into(),
            instead: String::new(),
        });
    }
    if let Some(change) = document.changes.iter().find(|change| cuts_off(&change.setting.key)) {
        return Err(LeftOut {
            rule: finding.rule.to_owned(),
            why: format!(
                "{} can disconnect this machine, or take CPUs from the measurement",
                change.setting.key
            ),
            instead: finding.fix.clone(),
        });
    }
    let Some(risk) = document.changes.iter().map(|change| change.setting.risk).max_by_key(|risk| rank(*risk))
    else {
        return Ok(None);
    };
    let knob = knobs::ALL.iter().find(|knob| knob.id == finding.rule);
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let against = knobs::ALL.iter().filter(|other| other.conflicts.contains(&finding.rule));
    let mut conflicts: Vec<String> = knob.map_or_else(Vec::new, |knob| owned(knob.conflicts));
    conflicts.extend(against.map(|other| other.id.to_owned()));
    let changes = document.changes.iter().map(|change| {
        // Numbers in one file are separated by tabs.
        let now = change.now.split_whitespace().collect::<Vec<_>>().join(" ");
        let now = if now.is_empty() { "?" } else { &now };
        format!("{}: {} -> {}", change.setting.key, clean(now), clean(&change.setting.wanted))
    });
    Ok(Some(OfferedChange {
        rule: finding.rule.to_owned(),
        changes: changes.collect(),
        risk,
        after: knob.map_or_else(Vec::new, |knob| owned(knob.after)),
        conflicts,
    }))
}

/// True for a setting without effect on current work: the mask that an interrupt begins with
/// (kernel: SMP IRQ affinity, default_smp_affinity). No pair of runs could show that it helps.
fn is_for_later(setting: &Setting) -> bool {
    setting.key.to_string() == "irq:default"
}

/// True for a setting that removes the limit of a real-time thread that never sleeps: a machine
/// whose culprit is such a thread could be lost.
fn lets_run_for_ever(setting: &Setting) -> bool {
    setting.key.to_string() == "sysctl:kernel.sched_rt_runtime_us" && setting.wanted.trim() == "-1"
}

impl Curable {
    /// True if the machine complies with this rule.
    pub fn is_met(&self, rule: &str) -> bool {
        let finding = self.audit.findings.iter().find(|finding| finding.rule == rule);
        finding.is_some_and(|finding| finding.verdict == AuditVerdict::Pass)
    }

    /// True if the affinity of a thread is exactly these CPUs.
    pub fn runs_there(&self, thread: &CureThread) -> bool {
        let key = Key::Task { tid: thread.tid, start: thread.start, what: TaskSetting::Affinity };
        reading::read(&self.files, &key).known().is_some_and(|now| now.trim() == thread.cpus)
    }

    /// Remaining cures that are not tried; those of the culprit's record if no others are known.
    fn left(&self, culprit: &Culprit, allowed: Risk, is_known: bool) -> Vec<CureRemaining> {
        let remaining = |needs: &str, what: String| CureRemaining {
            culprit: culprit.name.clone(),
            needs: needs.to_owned(),
            what,
        };
        let risky = too_risky(&culprit.knobs, &self.offered, allowed).map(|change| {
            remaining(
                "decision",
                format!("{} is of {} risk: allow it with --yes", change.rule, change.risk.name()),
            )
        });
        let mut all: Vec<CureRemaining> = risky.collect();
        for knob in &culprit.knobs {
            let Some(left) = self.left_out.get(knob.as_str()) else { continue };
            let finding = self.audit.findings.iter().find(|finding| finding.rule == knob);
            let needs = finding.map_or("decision", |finding| needs(finding.persistence));
            let what = if left.instead.is_empty() { &left.why } else { &left.instead };
            all.push(remaining(needs, format!("{knob}: {}", what.trim())));
        }
        if all.is_empty() && !is_known {
            let words = match culprit.remedy.trim() {
                "" => "no rule covers it: change its priority or its CPUs where it is started",
                remedy => remedy,
            };
            all.push(remaining("decision", words.to_owned()));
        }
        all
    }
}

/// Requirement of a change of this persistence.
fn needs(persistence: Persistence) -> &'static str {
    match persistence {
        Persistence::Runtime => "decision",
        Persistence::Boot => "reboot",
        Persistence::Build => "kernel",
        Persistence::Firmware => "hardware",
    }
}

/// Path below a cure's folder of the machine's capture with that number of changes kept.
pub fn machine(changes: usize) -> String {
    format!("machine/{changes:03}")
}

/// The page of a cure's story.
pub fn page(folder: &Path, record: &CureRun) -> Result<String> {
    let changes = record.kept_changes();
    let open = |run: &CureCleanRun| ReadOptions::default().open(&folder.join(&run.bundle)).ok();
    let counting = || record.runs.iter().filter(|run| run.counts());
    let before: Vec<Measurement> = counting().filter(|run| run.changes == 0).filter_map(open).collect();
    let after = counting().filter(|run| run.changes == changes && changes > 0);
    let after: Vec<Measurement> = after.filter_map(open).collect();
    let cpus = CpuSet::parse(&record.plan.cpus).ok();
    let map_of = |path: &Path| {
        let judged = judge(MachineSource::Captured(path), Profile::ControlLoop, cpus.as_ref());
        judged.ok().map(|judged| judged.map())
    };
    // A run's bundle has less of the machine than a capture.
    let map = |changes: usize, side: &[Measurement]| {
        map_of(&folder.join(machine(changes))).or_else(|| map_of(&side.last()?.path))
    };
    let maps = [map(0, &before), if changes > 0 { map(changes, &after) } else { None }];
    let story = CureStory { record, before: series(&before), after: series(&after), maps };
    Ok(html(&story, &json(record)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // Bundles have to be made to be read.

    use super::*;
    use std::fs;

    #[test]
    fn a_hunt_that_saw_nothing_names_nobody_and_rules_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let measured = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/runs/measured/run.json");
        let measured = fs::read_to_string(measured).unwrap();
        let machine = curable(&CpuSet::parse("0").unwrap()).unwrap();
        let hunted = |name: &str, cycles: Option<u64>| {
            let mut run: serde_json::Value = serde_json::from_str(&measured).unwrap();
            if let Some(cycles) = cycles {
                run["threads"] = serde_json::json!([{ "tid": 7, "comm": "robot", "cycles": cycles }]);
            }
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("run.json"), run.to_string()).unwrap();
            let begun = CureHunt { bundle: name.into(), ..CureHunt::default() };
            super::hunted(folder.path(), begun, Nanos(1_000_000), &machine, &[], Risk::Low)
        };
        let refused = hunted("silent", Some(0)).unwrap_err();
        assert!(refused.exit == Exit::Inconclusive && refused.message.starts_with("no cycle was measured"));
        assert!(hunted("seen", Some(9)).is_ok() && hunted("woken", None).is_ok());
    }
}
