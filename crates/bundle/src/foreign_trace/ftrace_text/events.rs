//! Texts of events in ftrace's output and in that of `trace-cmd report`.
//!
//! Source: the `print fmt` of include/trace/events; trace-cmd's plugins print sched_switch,
//! sched_waking and sched_wakeup shorter.

use super::super::interned::Interned;
use model::units::{CPU_LIMIT, Cpu, CpuSet, Nanos};
use trace::event::{Address, Task, Vector, What};

/// Parses the event of a name; `None` if it is not in the catalog, or has another text.
pub fn parse(event: &str, text: &str, names: &mut Interned) -> Option<What<Address>> {
    let int = |key: &str| number(text, key);
    Some(match event {
        "sched_switch" => switch(text)?,
        "sched_waking" => {
            let (task, target) = woken(text)?;
            What::Waking { task, target }
        }
        "sched_wakeup" | "sched_wakeup_new" => {
            let (task, target) = woken(text)?;
            What::Wakeup { task, target }
        }
        "sched_migrate_task" => {
            What::Migrate { pid: int("pid")?, from: cpu(text, "orig_cpu")?, to: cpu(text, "dest_cpu")? }
        }
        "sched_pi_setprio" => What::Inherit { pid: int("pid")?, old: int("oldprio")?, new: int("newprio")? },
        "sched_process_fork" => What::Fork { child: int("child_pid")? },
        "sched_process_exec" => What::Exec { old: int("old_pid")? },
        "sched_process_exit" => What::Exit,
        "irq_handler_entry" => What::IrqEntry { irq: int("irq")?, name: word(text, "name")?.into() },
        "irq_handler_exit" => What::IrqExit { irq: int("irq")? },
        "softirq_raise" => What::SoftirqRaise { vec: number(text, "vec")? },
        "softirq_entry" => What::SoftirqEntry { vec: number(text, "vec")? },
        "softirq_exit" => What::SoftirqExit { vec: number(text, "vec")? },
        "ipi_entry" => What::IpiEntry { reason: names.address(within(text)?) },
        "ipi_exit" => What::IpiExit { reason: names.address(within(text)?) },
        "ipi_raise" => {
            let targets = CpuSet::parse_list_or_mask(word(text, "target_mask")?).ok()?;
            What::IpiSend { targets, callsite: 0, callback: names.address(within(text)?) }
        }
        "ipi_send_cpu" | "ipi_send_cpumask" => {
            let targets = match word(text, "cpumask") {
                Some(mask) => CpuSet::parse_list_or_mask(mask).ok()?,
                None => [cpu(text, "cpu")?].into_iter().collect(),
            };
            let [callsite, callback] = ["callsite", "callback"].map(|key| function(text, key, names));
            What::IpiSend { targets, callsite, callback }
        }
        "csd_queue_cpu" => {
            let [callsite, function] = ["callsite", "func"].map(|key| function(text, key, names));
            What::CallQueue { target: cpu(text, "cpu")?, callsite, function }
        }
        "csd_function_entry" => What::CallEntry { function: function(text, "func", names) },
        "csd_function_exit" => What::CallExit { function: function(text, "func", names) },
        "nmi_handler" => {
            let handler = names.function(text.split_once(' ').map_or(text, |(handler, _)| handler));
            What::Nmi { handler, ns: Nanos(number(&text.replace("delta_ns: ", "delta_ns="), "delta_ns")?) }
        }
        _ => return parse_rest(event, text, names),
    })
}

/// Parses timers, and other events than those of the scheduler and of interrupts.
fn parse_rest(event: &str, text: &str, names: &mut Interned) -> Option<What<Address>> {
    let timer = || word(text, "hrtimer").and_then(hex);
    Some(match event {
        "hrtimer_start" => {
            let expires = Nanos(number(text, "softexpires")?);
            What::TimerStart { timer: timer()?, function: function(text, "function", names), expires }
        }
        "hrtimer_expire_entry" => {
            let now = Nanos(number(text, "now")?);
            What::TimerEntry { timer: timer()?, function: function(text, "function", names), now }
        }
        "hrtimer_expire_exit" => What::TimerExit { timer: timer()? },
        "hrtimer_start_expired" => What::TimerStartExpired { timer: timer()? },
        "hrtimer_rearm" => {
            let deferred = number::<u8>(text, "deferred")? != 0;
            What::TimerRearm { next: Nanos(number(text, "next_event")?), deferred }
        }
        "timer_expire_entry" => What::WheelEntry { function: function(text, "function", names) },
        "timer_expire_exit" => What::WheelExit,
        "tasklet_entry" => What::TaskletEntry { function: function(text, "function", names) },
        "tasklet_exit" => What::TaskletExit,
        "workqueue_execute_start" => What::WorkEntry { function: worker(text, names) },
        "workqueue_execute_end" => What::WorkExit { function: worker(text, names) },
        "cpu_idle" => {
            let state: u32 = number(text, "state")?;
            What::Idle { state: (state != u32::MAX).then_some(state) }
        }
        "cpu_frequency" => What::Frequency { of: cpu(text, "cpu_id")?, khz: number(text, "state")? },
        "page_fault_user" => What::Fault { user: true },
        "page_fault_kernel" => What::Fault { user: false },
        "contention_begin" => {
            What::ContentionBegin { lock: hex(first(text))?, flags: lock_flags(word_of(text, "(flags=")?) }
        }
        "contention_end" => What::ContentionEnd { lock: hex(first(text))? },
        "contended_release" => What::ContendedRelease { lock: hex(first(text))? },
        "console" => What::Console,
        "irq_disable" | "irq_enable" | "preempt_disable" | "preempt_enable" => What::Toggle {
            irqs: event.starts_with("irq"),
            off: event.ends_with("disable"),
            caller: function(text, "caller", names),
        },
        "sys_enter" => {
            let id = first(text.strip_prefix("NR ")?).parse().ok()?;
            let mut args = within(text)?.split(", ").map(|arg| hex(arg).unwrap_or(0));
            let mut next = || args.next().unwrap_or(0);
            What::SyscallEntry { id, args: [next(), next(), next(), next()] }
        }
        "sys_exit" => What::SyscallExit { id: first(text.strip_prefix("NR ")?).parse().ok()? },
        "tracing_mark_write" | "print" => What::Mark { text: text.into() },
        _ => return vector(event),
    })
}

fn vector(event: &str) -> Option<What<Address>> {
    const ALL: [Vector; 11] = [
        Vector::LocalTimer,
        Vector::Reschedule,
        Vector::CallFunction,
        Vector::CallFunctionSingle,
        Vector::IrqWork,
        Vector::X86PlatformIpi,
        Vector::ThermalApic,
        Vector::ThresholdApic,
        Vector::DeferredErrorApic,
        Vector::ErrorApic,
        Vector::SpuriousApic,
    ];
    let of = |name: &str| ALL.into_iter().find(|vector| vector.name() == name);
    match (event.strip_suffix("_entry"), event.strip_suffix("_exit")) {
        (Some(name), _) => Some(What::VectorEntry { vector: of(name)? }),
        (_, Some(name)) => Some(What::VectorExit { vector: of(name)? }),
        _ => None,
    }
}

/// Parses `prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=...`, or
/// `a:1 [120] S ==> b:2 [19]`.
fn switch(text: &str) -> Option<What<Address>> {
    let (prev, next) = text.split_once(" ==> ")?;
    if let Some(rest) = prev.strip_prefix("prev_comm=") {
        let (prev_comm, prev) = rest.rsplit_once(" prev_pid=")?;
        let prev = format!("pid={prev}");
        let state = word(&prev, "prev_state")?;
        let (next_comm, next) = next.strip_prefix("next_comm=")?.rsplit_once(" next_pid=")?;
        let next = format!("pid={next}");
        let task = |comm: &str, text: &str, prio| {
            Some(Task { comm: comm.into(), pid: number(text, "pid")?, prio: number(text, prio)? })
        };
        let (prev_task, next) = (task(prev_comm, &prev, "prev_prio")?, task(next_comm, &next, "next_prio")?);
        return Some(What::Switch { prev: prev_task, state: state_of(state), next });
    }
    let (prev, state) = prev.rsplit_once(' ')?;
    Some(What::Switch { prev: short_task(prev)?, state: state_of(state), next: short_task(next)? })
}

/// Parses `comm=a pid=1 prio=120 target_cpu=001`, or `a:1 [120] CPU:001`.
fn woken(text: &str) -> Option<(Task, Cpu)> {
    if let Some(rest) = text.strip_prefix("comm=") {
        let (comm, rest) = rest.rsplit_once(" pid=")?;
        let rest = format!("pid={rest}");
        let task = Task { comm: comm.into(), pid: number(&rest, "pid")?, prio: number(&rest, "prio")? };
        return Some((task, cpu(&rest, "target_cpu")?));
    }
    let (task, rest) = text.rsplit_once(" CPU:")?;
    let cpu = first(rest).parse().ok().filter(|&cpu| cpu < CPU_LIMIT)?;
    // Before 4.16 the success of the waking is between them.
    let task = task.rsplit_once("] ").map_or(task.to_owned(), |(task, _)| format!("{task}]"));
    Some((short_task(&task)?, Cpu(cpu)))
}

/// Parses `comm:pid [prio]`.
fn short_task(text: &str) -> Option<Task> {
    let (named, prio) = text.trim().strip_suffix(']')?.rsplit_once(" [")?;
    let (comm, pid) = named.rsplit_once(':')?;
    Some(Task { comm: comm.into(), pid: pid.parse().ok()?, prio: prio.parse().ok()? })
}

/// Number of a state in the kernel: 0 could run, 256 was preempted.
fn state_of(text: &str) -> i64 {
    match text {
        "R" => 0,
        _ if text.starts_with("R+") => 256,
        "S" => 1,
        _ => 2,
    }
}

fn lock_flags(text: &str) -> u32 {
    const NAMES: [&str; 6] = ["SPIN", "READ", "WRITE", "RT", "PERCPU", "MUTEX"];
    let bit = |name: &str| NAMES.iter().position(|known| *known == name).map_or(0, |at| 1 << at);
    text.trim_end_matches(')').split('|').map(bit).sum()
}

/// Parses `work struct 0000000012345678: function vmstat_update`.
fn worker(text: &str, names: &mut Interned) -> Address {
    text.rsplit_once("function ").map_or(0, |(_, function)| names.function(function))
}

fn function(text: &str, key: &str, names: &mut Interned) -> Address {
    let Some(value) = value_of(text, key) else { return 0 };
    // The name of a module follows a blank.
    let end = match value.split_once(' ') {
        Some((name, rest)) if rest.starts_with('[') => {
            name.len() + 1 + rest.find(']').map_or(0, |end| end + 1)
        }
        Some((name, _)) => name.len(),
        None => value.len(),
    };
    names.function(value[..end].trim_end_matches(','))
}

/// Text after `key=`.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let starts = |at: usize| at == 0 || matches!(text.as_bytes()[at - 1], b' ' | b'(');
    let mut found = text.match_indices(key).filter(|&(at, _)| starts(at));
    found.find_map(|(at, _)| text[at + key.len()..].strip_prefix('='))
}

fn word<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    value_of(text, key).map(first)
}

fn word_of<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
    text.split_once(begin).map(|(_, rest)| first(rest))
}

fn first(text: &str) -> &str {
    text.split_ascii_whitespace().next().unwrap_or_default()
}

fn number<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    let word = word(text, key)?;
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(word.len());
    word[..end].parse().ok()
}

fn cpu(text: &str, key: &str) -> Option<Cpu> {
    number(text, key).filter(|&cpu| cpu < CPU_LIMIT).map(Cpu)
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Text in brackets.
fn within(text: &str) -> Option<&str> {
    text.split_once('(')?.1.rsplit_once(')').map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(event: &str, text: &str) -> Option<What<Address>> {
        parse(event, text, &mut Interned::default())
    }

    fn task(comm: &str, pid: i32, prio: i32) -> Task {
        Task { comm: comm.into(), pid, prio }
    }

    #[test]
    fn switches_and_wakings_are_read_in_both_forms() {
        let expected = What::Switch { prev: task("a b", 7, 120), state: 256, next: task("c:d", 8, 19) };
        for text in [
            "prev_comm=a b prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=c:d next_pid=8 next_prio=19",
            "a b:7 [120] R+ ==> c:d:8 [19]",
        ] {
            assert_eq!(read("sched_switch", text), Some(expected.clone()), "{text}");
        }
        let expected = What::Waking { task: task("a b", 7, 19), target: Cpu(3) };
        for text in
            ["comm=a b pid=7 prio=19 target_cpu=003", "a b:7 [19] CPU:003", "a b:7 [19] success=1 CPU:003"]
        {
            assert_eq!(read("sched_waking", text), Some(expected.clone()), "{text}");
        }
        assert_eq!(read("sched_switch", "prev_comm=a prev_pid=x ==> next_comm="), None);
    }

    #[test]
    fn interrupts_timers_and_locks_are_read() {
        let timer = "hrtimer=00000000ef0e2bcc function=hrtimer_wakeup expires=12 softexpires=11 mode=ABS";
        let start = What::TimerStart { timer: 0xef0e_2bcc, function: 2, expires: Nanos(11) };
        assert_eq!(read("hrtimer_start", timer), Some(start));
        let entry = What::TimerEntry { timer: 0xef, function: 2, now: Nanos(9) };
        assert_eq!(
            read("hrtimer_expire_entry", "hrtimer=0xef now=9 function=hrtimer_wakeup/0x0"),
            Some(entry)
        );
        let expired = What::TimerStartExpired { timer: 0xef };
        assert_eq!(read("hrtimer_start_expired", "hrtimer=00000000000000ef"), Some(expired));
        let rearm = What::TimerRearm { next: Nanos(9), deferred: true };
        assert_eq!(read("hrtimer_rearm", "next_event=9 deferred=1"), Some(rearm));
        assert_eq!(
            read("local_timer_entry", "vector=236"),
            Some(What::VectorEntry { vector: Vector::LocalTimer })
        );
        assert_eq!(read("softirq_raise", "vec=4 [action=BLOCK]"), Some(What::SoftirqRaise { vec: 4 }));
        let irq = What::IrqEntry { irq: 36, name: "virtio1-req.0".into() };
        assert_eq!(read("irq_handler_entry", "irq=36 name=virtio1-req.0"), Some(irq));
        let begin = What::ContentionBegin { lock: 0xab, flags: 5 };
        assert_eq!(read("contention_begin", "00000000000000ab (flags=SPIN|WRITE)"), Some(begin));
        assert_eq!(read("cpu_idle", "state=4294967295 cpu_id=1"), Some(What::Idle { state: None }));
        let send = read("ipi_send_cpu", "cpu=2 callsite=a+0x1/0x2 [m] callback=b+0x0/0x9");
        let targets = [Cpu(2)].into_iter().collect();
        assert_eq!(send, Some(What::IpiSend { targets, callsite: 2, callback: 4 }));
        let nmi = What::Nmi { handler: 2, ns: Nanos(1200) };
        assert_eq!(read("nmi_handler", "perf_event_nmi_handler() delta_ns: 1200 handled: 1"), Some(nmi));
        let enter = What::SyscallEntry { id: 202, args: [0x7f, 0x80, 2, 0] };
        assert_eq!(read("sys_enter", "NR 202 (7f, 80, 2, 0, 0, 1)"), Some(enter));
        assert_eq!((read("other", "a=1"), read("x_entry", "")), (None, None));
    }
}
