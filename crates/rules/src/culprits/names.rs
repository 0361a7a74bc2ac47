//! Names of threads and functions in culprits: the same for the same cause, whatever the CPU or the
//! ID.

use model::run::{Slice, Who};
use model::slice::SliceKind;

/// Threads that exist once per CPU: the name represents all of them. Interrupt threads are not per
/// CPU.
const PER_CPU: &[&str] = &[
    "backlog_napi",
    "cpuhp",
    "idle_inject",
    "irq_work",
    "ksoftirqd",
    "ktimers",
    "kworker",
    "migration",
    "rcuc",
    "rcuog",
    "rcuop",
    "rcuos",
    "stopper",
];

/// Function without its module and its offset: `spin` of `spin+0x4/0x10 [faults]`.
pub fn bare_function(frame: &str) -> &str {
    frame.split([' ', '+', '[']).next().unwrap_or(frame)
}

/// Name of a thread without the number of its CPU: `ksoftirqd` of `ksoftirqd/3`, `kworker` of
/// `kworker/3:1-events`.
pub fn thread_name(comm: &str) -> &str {
    match comm.split_once('/') {
        Some((name, _)) if PER_CPU.contains(&name) => name,
        _ => comm,
    }
}

/// Number and name in an interrupt thread's name: `24-eth0` of `irq/24-eth0`.
pub fn irq_thread(comm: &str) -> Option<&str> {
    let rest = comm.strip_prefix("irq/")?;
    rest.starts_with(|c: char| c.is_ascii_digit()).then_some(rest)
}

/// Function with its module: `spin [faults]`.
pub fn function_with_module(who: &Who) -> String {
    match who.module.as_str() {
        _ if who.function.is_empty() => String::new(),
        "" => who.function.clone(),
        module => format!("{} [{module}]", who.function),
    }
}

/// Function that waits for a lock with priority inheritance whose holder runs on another CPU.
pub const SPINS: &str = "rtmutex_spin_on_owner";

/// Most informative name of a slice that no rule matches: the function, else the interrupt, else
/// the thread.
pub fn fallback_name(slice: &Slice) -> String {
    let who = &slice.who;
    if slice.kind == SliceKind::Own {
        return format!("the thread itself, {}", thread_name(&who.comm));
    }
    if slice.kind == SliceKind::Blocked && !who.function.is_empty() {
        let place = match who.function.trim_start_matches('_') {
            // The function is the same for any lock and any condition.
            "futex_lock_pi" => "futex with priority inheritance".to_owned(),
            SPINS => "lock with priority inheritance".to_owned(),
            futex if futex.starts_with("futex_") => "futex".to_owned(),
            _ => function_with_module(who),
        };
        // For a futex the events show who woke the thread, and sometimes only that this released
        // it: the same wait has one name.
        let released = place != "futex" && slice.evidence.contains("released by");
        let verb = match who.function.as_str() {
            SPINS => "held by",
            _ if released => "released by",
            _ => "woken by",
        };
        return match who.comm.as_str() {
            "" => place,
            comm => format!("{place}, {verb} {}", thread_name(comm)),
        };
    }
    let texts = [function_with_module(who), who.irq.clone(), thread_name(&who.comm).to_owned()];
    let text = texts.into_iter().find(|text| !text.is_empty());
    text.unwrap_or_else(|| kind_name(slice.kind.known()).to_owned())
}

/// Cause of the time in slices that no event attributes.
fn kind_name(kind: Option<SliceKind>) -> &'static str {
    match kind {
        Some(SliceKind::Switch) => "the way from the waking to the switch",
        Some(SliceKind::ReturnToUser) => "the way from the switch to the thread's own code",
        Some(SliceKind::TimerIrq | SliceKind::TimerSoftirq) => "the timer's own way",
        Some(SliceKind::Stopped) => "a stop from outside",
        _ => "nobody that the events name",
    }
}

/// `hog-812, priority 50`: a thread for display, without its ID if there are many of its kind.
pub fn thread_with_priority(who: &Who) -> String {
    let rank = match who.prio {
        ..0 => "deadline".to_owned(),
        0..=98 => format!("real-time priority {}", 99 - who.prio),
        99 => "real-time priority 0".to_owned(),
        Who::PRIO_UNKNOWN => "priority not known".to_owned(),
        100.. => format!("nice {}", who.prio.saturating_sub(120)),
    };
    match who.comm.as_str() {
        "" => rank,
        comm => format!("{comm}, {rank}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cpus_make_no_other_thread() {
        for (comm, name) in [
            ("ksoftirqd/3", "ksoftirqd"),
            ("kworker/u8:2-events_unbound", "kworker"),
            ("irq/24-eth0", "irq/24-eth0"),
            ("a/b", "a/b"),
            ("", ""),
        ] {
            assert_eq!(thread_name(comm), name);
        }
        assert_eq!(irq_thread("irq/9-acpi"), Some("9-acpi"));
        assert_eq!(irq_thread("irq_work/3"), None);
        assert_eq!(irq_thread("irq/x"), None);
    }

    #[test]
    fn frames_are_compared_without_offset_and_module() {
        assert_eq!(bare_function("spin+0x4/0x10 [faults]"), "spin");
        assert_eq!(bare_function("spin [faults]"), "spin");
        assert_eq!(bare_function(""), "");
    }

    #[test]
    fn priorities_are_shown_as_users_set_them() {
        let who = |prio| Who { comm: "hog".into(), prio, ..Who::default() };
        assert_eq!(thread_with_priority(&who(19)), "hog, real-time priority 80");
        assert_eq!(thread_with_priority(&who(-1)), "hog, deadline");
        assert_eq!(thread_with_priority(&who(110)), "hog, nice -10");
        assert_eq!(thread_with_priority(&who(Who::PRIO_UNKNOWN)), "hog, priority not known");
    }

    #[test]
    fn a_lock_that_is_spun_for_is_held_by_its_holder() {
        let who = Who { comm: "logger".into(), function: SPINS.into(), ..Who::default() };
        let slice = Slice { kind: SliceKind::Blocked.into(), who, ..Slice::default() };
        assert_eq!(fallback_name(&slice), "lock with priority inheritance, held by logger");
    }
}
