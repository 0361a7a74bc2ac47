//! Application of a plan's changes.

use host::settings::{Applied, Entry, Kernel, Opened, Store, read_entry, remove_spent, restore};
use model::error::{Exit, Failure, Result};
use model::fact::Fact;
use model::plan::{ChangeState, PlanDocument, PlannedChange};
use model::setting::Key;
use model::text::quoted_value;

/// Options for applying a plan.
pub struct ApplyOptions<'a> {
    /// True if a failed change leaves the earlier ones in force.
    pub keep_going: bool,
    /// Returns true if the user has requested a stop.
    pub stop: &'a dyn Fn() -> bool,
    /// Called with the entry's ID before the first change.
    pub started: &'a dyn Fn(&str) -> std::io::Result<()>,
}

/// Result of applying a plan.
#[derive(Clone, Debug)]
pub struct ApplyResult {
    /// Changes in their present states, under the entry's ID.
    pub document: PlanDocument,
    /// Failure that ended it early; none if all changes were made.
    pub failure: Option<Failure>,
}

/// Refuses a plan of another boot.
pub fn require_boot(plan: &PlanDocument, boot: &str) -> Result<()> {
    if plan.boot == boot {
        Ok(())
    } else {
        Err(Failure::usage(
            "the plan is for another machine or boot: make a new one with `onbeat tune plan -o FILE`",
        ))
    }
}

/// Refuses a plan of another boot, or one with values that have changed since.
pub fn require_current(kernel: &dyn Kernel, plan: &PlanDocument, boot: &str) -> Result<()> {
    require_boot(plan, boot)?;
    for change in &plan.changes {
        let now = match (kernel.read(&change.setting.key), &change.setting.key) {
            (Fact::Known(now), _) => now.trim().to_owned(),
            // The thread has ended, and its change is void.
            (Fact::Absent, Key::Task { .. }) => continue,
            _ => String::new(),
        };
        if now != change.now.trim() {
            return Err(Failure::usage(format!(
                "{} was {} when the plan was made and is {} now: make a new plan with `onbeat tune plan \
                -o FILE`",
                change.setting.key,
                quoted_value(change.now.trim()),
                quoted_value(&now)
            )));
        }
    }
    Ok(())
}

/// Makes the changes in their order. The first failure undoes the earlier ones, unless `keep_going`
/// is set.
///
/// # Errors
/// The journal cannot be begun; nothing was changed.
pub fn apply(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    opened: Opened,
    mut plan: PlanDocument,
    options: &ApplyOptions,
) -> Result<ApplyResult> {
    let unwritten = |error: &std::io::Error| {
        let what = "the journal of changes cannot be written, so nothing was changed";
        Failure::of_call(what, error, Exit::NotPermitted, "make /var/lib/onbeat/journal writable for root")
    };
    // The length of the history does not matter for the changes made now.
    let _ = remove_spent(store, &opened.boot);
    let mut entry = Entry::begin(kernel, store, opened).map_err(|error| unwritten(&error))?;
    plan.id = entry.id().to_owned();
    (options.started)(entry.id()).map_err(|error| {
        let what = "the process for the automatic undo could not be started, and nothing was changed";
        Failure::of_call(what, &error, Exit::Internal, "omit --for and --confirm-within")
    })?;
    let mut failure = None;
    for change in &mut plan.changes {
        if (options.stop)() {
            failure = Some(Failure {
                exit: Exit::Interrupted,
                message: "stopped: the changes were undone".to_owned(),
            });
            break;
        }
        // The rule has the texts; the journal is read by programs.
        let entry_change = PlannedChange { why: String::new(), cost: String::new(), ..change.clone() };
        match entry.make(&entry_change) {
            Ok(applied) => {
                note(change, &applied);
                if let (Applied::Refused(why), false) =
                    (&applied, change.setting.optional || options.keep_going)
                {
                    failure = Some(refused(change, why));
                    break;
                }
            }
            Err(error) => {
                failure = Some(unwritten(&error));
                break;
            }
        }
    }
    if failure.is_none() {
        match entry.complete() {
            Ok(()) => return Ok(ApplyResult { document: plan, failure: None }),
            Err(error) => failure = Some(unwritten(&error)),
        }
    }
    let left = take_back(kernel, store, &mut plan);
    if let (Some(failure), false) = (&mut failure, left.is_empty()) {
        failure.exit = Exit::Limit;
        failure.message = format!("{}; not restored: {}", failure.message, left.join(", "));
    }
    Ok(ApplyResult { document: plan, failure })
}

fn note(change: &mut PlannedChange, applied: &Applied) {
    let (state, why) = match applied {
        Applied::Done(state) => (*state, None),
        Applied::Already => (ChangeState::Applied, Some("it was so already".to_owned())),
        Applied::Gone => (ChangeState::Void, Some("the thread has ended".to_owned())),
        Applied::Refused(why) => (ChangeState::Refused, Some(why.clone())),
    };
    change.state = state;
    if let Some(why) = why {
        change.why = why;
    }
}

fn refused(change: &PlannedChange, why: &str) -> Failure {
    Failure::not_supported(format!(
        "{} could not be set to {}: {why}; earlier changes were undone: omit {}, or add --keep-going",
        change.setting.key,
        quoted_value(&change.setting.wanted),
        if change.rule.is_empty() { "it" } else { &change.rule },
    ))
}

/// Undoes the entry of a plan, and updates its changes; returns the keys not restored.
fn take_back(kernel: &mut dyn Kernel, store: &mut dyn Store, plan: &mut PlanDocument) -> Vec<String> {
    // Without a readable journal there is nothing here that a later undo would not know.
    let Ok(Some(entry)) = read_entry(store, &plan.id) else {
        return vec![format!("entry {}, whose journal cannot be read", plan.id)];
    };
    let (restored, _) = restore(kernel, store, &entry, false);
    for change in &mut plan.changes {
        if let Some(done) = restored.iter().find(|done| done.change.setting.key == change.setting.key) {
            change.state = done.state;
            if !done.why.is_empty() {
                change.why.clone_from(&done.why);
            }
        }
    }
    let left = restored.iter().filter(|done| done.state != ChangeState::Undone);
    left.map(|done| done.change.setting.key.to_string()).collect()
}

/// True if a change can cut off a remote login: CPUs taken away, network delayed.
pub fn cuts_off(key: &Key) -> bool {
    match key {
        Key::Group(_) | Key::GroupFile(_) => true,
        Key::Sysfs(file) => {
            file.starts_with("class/net/")
                || file.contains("/net/")
                || (file.starts_with("devices/system/cpu/") && file.ends_with("/online"))
        }
        Key::Sysctl(name) => name.starts_with("net."),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_thread_that_ended_meanwhile_is_void_and_not_refused() {
        let setting = model::setting::Setting::new("task:88/145".parse().unwrap(), "0-1");
        let mut change = PlannedChange::new(setting, "", "0-3");
        note(&mut change, &Applied::Gone);
        assert_eq!((change.state, change.why.as_str()), (ChangeState::Void, "the thread has ended"));
    }
}
