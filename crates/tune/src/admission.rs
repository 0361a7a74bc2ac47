//! Admission of a plan from a file. The file only states the wanted values; their writing and
//! readback, their risk, and the permission to write them are decided here as for a new plan: a
//! file can come from anywhere, and the changes are made as root.

use std::collections::BTreeSet;

use facts::survey::Survey;
use model::error::{Failure, Result};
use model::fact::Fact;
use model::isolation::INNER_GROUP;
use model::plan::{ChangeState, PlanDocument, PlannedChange};
use model::setting::{Comparison, Key, Setting, TaskSetting};
use model::units::CpuSet;
use rules::change::ThreadId;
use rules::{partition, setting};

use crate::import::{ImportTarget, setting_of};
use crate::isolate::refusal::require_separable;
use crate::reading;

/// Plan with this version's knowledge of each of its settings.
///
/// # Errors
/// Usage: it has a change that no plan of this version would have.
pub fn admit(mut plan: PlanDocument, target: ImportTarget) -> Result<PlanDocument> {
    let groups = of_groups(&plan, target.survey);
    let mut keys = BTreeSet::new();
    for change in &mut plan.changes {
        let refuse = |why: &str| {
            Failure::usage(format!(
                "the plan has {}: {why}: make a new one with `onbeat tune plan -o FILE`",
                change.setting.key
            ))
        };
        if change.state != ChangeState::Planned {
            return Err(refuse("it is a list of applied changes, not a plan"));
        }
        if !keys.insert(change.setting.key.clone()) {
            return Err(refuse("the plan contains it twice"));
        }
        let admitted = admitted(change, target, &groups).map_err(|why| refuse(&why))?;
        change.path = admitted.key.path();
        change.setting = admitted;
    }
    Ok(plan)
}

fn admitted(
    change: &PlannedChange,
    target: ImportTarget,
    groups: &std::result::Result<Vec<Setting>, String>,
) -> std::result::Result<Setting, String> {
    let Setting { key, wanted, optional, .. } = &change.setting;
    let admitted = match key {
        Key::Task { tid, start, what } => {
            of_thread(ThreadId { tid: *tid, start: *start }, *what, wanted, target)?
        }
        Key::Group(_) | Key::GroupFile(_) => {
            let groups = groups.as_ref().map_err(Clone::clone)?;
            let same = |of: &&Setting| of.key == *key && of.wanted == *wanted;
            let found = groups.iter().find(same).cloned();
            found.ok_or("a partition of these CPUs does not need it on this machine")?
        }
        Key::IrqEffective(_) => return Err("it follows from where the interrupt may go".to_owned()),
        _ => setting_of(key, wanted, target)?,
    };
    Ok(Setting { optional: admitted.optional || *optional, ..admitted })
}

/// Setting of a kernel thread; rules never set threads of programs.
fn of_thread(
    thread: ThreadId,
    what: TaskSetting,
    wanted: &str,
    target: ImportTarget,
) -> std::result::Result<Setting, String> {
    let kernel = target.survey.threads.known().map_or(&[][..], |threads| threads.kernel.as_slice());
    let is_kernels = kernel.iter().any(|known| (known.tid, known.start) == (thread.tid, thread.start));
    let key = Key::Task { tid: thread.tid, start: thread.start, what };
    // A thread that has ended makes its change void.
    if !is_kernels && reading::read(target.files, &key) != Fact::Absent {
        return Err("it is not a kernel thread that a rule sets".to_owned());
    }
    setting::of_thread(thread, what, wanted)
}

/// Settings for the partition of the plan's CPUs on this machine.
fn of_groups(plan: &PlanDocument, survey: &Survey) -> std::result::Result<Vec<Setting>, String> {
    let of_group = |change: &&PlannedChange| matches!(change.setting.key, Key::Group(_) | Key::GroupFile(_));
    let all: Vec<&PlannedChange> = plan.changes.iter().filter(of_group).collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = |file: &str| {
        let key = Key::GroupFile(file.to_owned());
        all.iter().find(|change| change.setting.key == key).map(|change| change.setting.wanted.as_str())
    };
    let cpus = wanted("onbeat/cpuset.cpus.exclusive").or_else(|| wanted("onbeat/cpuset.cpus"));
    let cpus = cpus.and_then(|list| CpuSet::parse(list).ok());
    let cpus = cpus.ok_or("onbeat changes groups only for its own partition")?;
    require_separable(survey, &cpus).map_err(|failure| failure.message)?;
    let mut settings = partition::settings(survey, &cpus).map_err(|obstacle| obstacle.to_string())?;
    let nodes = format!("{INNER_GROUP}/cpuset.mems");
    if let Some(list) = wanted(&nodes) {
        let nodes = Setting::new(Key::GroupFile(nodes), list);
        settings.push(Setting { readback: Comparison::List, ..nodes });
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
