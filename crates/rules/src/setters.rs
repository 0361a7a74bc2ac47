//! What `onbeat tune` makes of a finding: the changes that it can make and undo, and each as
//! settings of the kernel.

use crate::audit::Finding;
use crate::change::{Change, ThreadId};
use crate::controls;
use crate::remedy::Part;
use facts::survey::Survey;
use model::setting::{Comparison, Key, Risk, Setting, TaskSetting};
use model::units::CpuSet;

/// What is changed for a finding, and what of it is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The changes, in the order in which they are made.
    pub changes: Vec<&'a Change>,
    /// Parts of the remedy that `onbeat tune` makes in none of their ways.
    pub left: Vec<&'a Part>,
}

/// Of each part of a finding's remedy the first way that can be made now and undone.
pub fn choice(finding: &Finding) -> Choice<'_> {
    let unsettable = crate::find(finding.rule).is_none_or(|knob| !knob.unsettable.is_empty());
    let mut chosen = Choice::default();
    for part in &finding.remedy.parts {
        match part.settable().filter(|_| !unsettable) {
            Some(way) => way.changes.iter().for_each(|change| {
                if !chosen.changes.contains(&change) {
                    chosen.changes.push(change);
                }
            }),
            None => chosen.left.push(part),
        }
    }
    chosen
}

/// A change as settings of this machine, in the order in which they are made.
///
/// A partition has none here: what it takes depends on the groups that there are, and is planned
/// with them. Files without a record in [`controls`] have none, which a test keeps from happening.
pub fn settings(change: &Change, survey: &Survey) -> Vec<Setting> {
    match change {
        Change::Affinity { threads, cpus, .. } => {
            threads.iter().map(|thread| affinity(*thread, cpus)).collect()
        }
        Change::Policy { threads, fifo, .. } => threads.iter().map(|thread| policy(*thread, *fifo)).collect(),
        _ => {
            let one = |(path, value): (String, &str)| {
                controls::find(&path).and_then(|control| control.setting(&path, value, survey))
            };
            change.writes().into_iter().filter_map(one).collect()
        }
    }
}

fn task(thread: ThreadId, what: TaskSetting) -> Key {
    Key::Task { tid: thread.tid, start: thread.start, what }
}

/// A thread may end before it is its turn, and a few refuse: neither is a failure.
fn affinity(thread: ThreadId, cpus: &CpuSet) -> Setting {
    Setting {
        readback: Comparison::List,
        optional: true,
        ..Setting::new(task(thread, TaskSetting::Affinity), cpus.to_string())
    }
}

fn policy(thread: ThreadId, fifo: Option<u32>) -> Setting {
    let wanted = fifo.map_or("other 0".to_owned(), |priority| format!("fifo {priority}"));
    Setting { risk: Risk::Medium, optional: true, ..Setting::new(task(thread, TaskSetting::Policy), wanted) }
}
