//! Writing of decided values, and verification of the result.

use std::collections::BTreeMap;
use std::io;

use model::fact::{Fact, errno_name};
use model::setting::{Comparison, Key, TaskSetting};
use model::units::CpuSet;

use super::Kernel;
use super::journal::{EntryStep, OldValue};
use super::placing::{first_word, is_partition, is_placing};

/// Writes the decided values, in two rounds because a partner may revert a value just written.
/// Returns the keys that do not read as wanted, with their present values and the reasons.
pub(super) fn execute(
    kernel: &mut dyn Kernel,
    step: &EntryStep,
    writes: &[OldValue],
) -> Vec<(OldValue, String)> {
    let setting = &step.change.setting;
    let mut failed: BTreeMap<Key, io::Error> = BTreeMap::new();
    for round in 0..2 {
        for write in writes {
            let own = write.key == setting.key;
            let is_first = setting.restored_first.contains(&write.key);
            if is_first && own_is_restored(kernel, step, writes) {
                continue;
            }
            let is_unread = is_first || (own && setting.readback == Comparison::Unread);
            let now = (!is_unread).then(|| kernel.read(&write.key));
            let value = match (&now, &write.value) {
                // If the key's own value is refused, writing a partner may set it.
                (Some(Fact::Known(now)), Some(wanted))
                    if is_restored(step, &write.key, now, wanted)
                        && !(failed.contains_key(&setting.key) && setting.partners.contains(&write.key)) =>
                {
                    continue;
                }
                (Some(Fact::Absent), _) => continue,
                (Some(Fact::Known(now)), Some(wanted)) if own && !is_partition(&write.key) => {
                    Some(setting.restoring(wanted, now))
                }
                // A key that is not read back is written once if that succeeds.
                (None, _) if own && round > 0 && !failed.contains_key(&write.key) => continue,
                // Without the reason for which a partition is invalid.
                (_, Some(value)) if is_partition(&write.key) => first_word(value).map(str::to_owned),
                (_, value) => value.as_ref().map(|value| value.trim().to_owned()),
            };
            match kernel.write(&write.key, value.as_deref()) {
                Ok(()) => failed.remove(&write.key),
                Err(error) => failed.insert(write.key.clone(), error),
            };
        }
    }
    let is_own_restored =
        writes.iter().all(|write| write.key != setting.key) || own_is_restored(kernel, step, writes);
    let left = |write: &OldValue| {
        let own = write.key == setting.key;
        // The key itself shows the result of these.
        if setting.restored_first.contains(&write.key) {
            return None;
        }
        let now = if own && setting.readback == Comparison::Unread {
            if !failed.contains_key(&write.key) {
                return None;
            }
            None
        } else {
            match (kernel.read(&write.key), &write.value) {
                (Fact::Absent, _) => return None,
                (Fact::Known(now), Some(wanted)) if is_restored(step, &write.key, &now, wanted) => {
                    return None;
                }
                (Fact::Known(now), Some(wanted))
                    if is_limited(&write.key, &now, wanted, failed.get(&write.key))
                        && (is_placing(step) || (!own && is_own_restored)) =>
                {
                    return None;
                }
                (now, _) => now.known().cloned(),
            }
        };
        let why = match failed.get(&write.key) {
            Some(error) => format!("{}: {}", write.key, refusal(error)),
            None => format!("{} has a different value than before", write.key),
        };
        Some((OldValue { key: write.key.clone(), value: now }, why))
    };
    writes.iter().filter_map(left).collect()
}

/// True if the step's own key reads as wanted.
fn own_is_restored(kernel: &dyn Kernel, step: &EntryStep, writes: &[OldValue]) -> bool {
    let setting = &step.change.setting;
    if setting.readback == Comparison::Unread {
        return false;
    }
    let own = writes.iter().find(|write| write.key == setting.key).and_then(|write| write.value.as_ref());
    match (kernel.read(&setting.key), own) {
        (Fact::Known(now), Some(wanted)) => setting.is_restored(&now, wanted),
        _ => false,
    }
}

/// True if a key reads as wanted; keys other than the step's own are compared as text.
fn is_restored(step: &EntryStep, key: &Key, now: &str, wanted: &str) -> bool {
    if *key == step.change.setting.key {
        step.change.setting.is_restored(now, wanted)
    } else {
        model::setting::same(Comparison::Exact, now, wanted)
    }
}

/// True if a thread has those of its CPUs that its group has, or its group has none of them:
/// another program may have reduced the group's CPUs.
fn is_limited(key: &Key, now: &str, wanted: &str, error: Option<&io::Error>) -> bool {
    let affinity = matches!(key, Key::Task { what: TaskSetting::Affinity, .. });
    let of = |text: &str| CpuSet::parse(text).unwrap_or_default();
    let (now, wanted) = (of(now), of(wanted));
    // sched_setaffinity(2) applies those CPUs of a mask that the group has, and fails if there are
    // none.
    let is_none = error.is_some_and(|error| error.raw_os_error() == Some(libc::EINVAL));
    let fits = if is_none {
        now.and(&wanted).is_empty()
    } else {
        error.is_none() && now.without(&wanted).is_empty()
    };
    affinity && !now.is_empty() && fits
}

/// Reason for which the kernel refused, as text.
pub(super) fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(errno) => format!("the kernel refused it: {}", errno_name(errno)),
        None => error.to_string(),
    }
}
