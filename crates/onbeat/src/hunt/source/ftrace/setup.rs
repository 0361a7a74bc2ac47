//! Settings of the instance: events that the kernel offers, filters and triggers for the threads in
//! scope.
//!
//! Source: Documentation/trace/events.rst (filters, triggers), Documentation/trace/ftrace.rst.

use std::io;

use crate::hunt::scope::Scope;
use crate::hunt::source::RecordingLevel;
use host::MachineFiles;
use host::tracefs::{Instance, Tracing};
use trace::catalog::{self, EventSpec};
use trace::decode::Decoder;
use trace::implied::ImpliedEvents;

/// Clock of the trace, the same as the schedule's: `local` differs from it by tens of milliseconds
/// on some machines.
const CLOCK: &str = "mono";

/// Options that cost time and add nothing: the events already contain the names of threads. Newer
/// kernels show the first one at the top level only.
const UNNEEDED_OPTIONS: [&str; 2] = ["norecord-cmd", "norecord-tgid"];

/// CPUs whose threads sleep on timers of other CPUs.
const TICKLESS: &str = "/sys/devices/system/cpu/nohz_full";

/// Events of the path from an interrupt to a thread.
const INTERRUPTS: [&str; 6] = [
    "irq_handler_entry",
    "irq_handler_exit",
    "local_timer_entry",
    "local_timer_exit",
    "sched_waking",
    "sched_switch",
];

/// Exits from idle states are implied by the CPU's next event.
const ENTERS_IDLE: &str = "state != 4294967295";

/// Instance with the events that this kernel offers.
pub struct EventSetup {
    instance: Instance,
    formats: Vec<(&'static EventSpec, String)>,
    /// Events that the kernel does not offer, `system:event`.
    pub missing: Vec<String>,
    /// Events that could not be read or armed, with the reason.
    pub refused: Vec<String>,
    armed: RecordingLevel,
    stacks: Vec<(&'static str, String)>,
    /// True if measuring threads may be woken from other CPUs.
    woken_remotely: bool,
}

impl EventSetup {
    /// Creates the instance, with recording off, on the schedule's clock.
    pub fn open(tracing: &Tracing) -> io::Result<EventSetup> {
        let instance = tracing.instance()?;
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", CLOCK)?;
        // The kernel changes the option of all enabled events, also of those of other programs.
        if tracing.others().are_none() {
            for option in UNNEEDED_OPTIONS {
                // Without effect, recording costs more time.
                let _ = instance.write("trace_options", option);
            }
        }
        let (mut formats, mut missing, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for wanted in catalog::all() {
            match tracing.read(&format!("events/{}/{}/format", wanted.system, wanted.event)) {
                Ok(text) => formats.push((wanted, text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    missing.extend((!wanted.newer).then(|| name_of(wanted)));
                }
                Err(error) => refused.push(format!("{}: {error}", name_of(wanted))),
            }
        }
        Ok(EventSetup {
            instance,
            formats,
            missing,
            refused,
            armed: RecordingLevel::Nothing,
            stacks: Vec::new(),
            woken_remotely: MachineFiles::live()
                .read_text(TICKLESS)
                .known()
                .is_some_and(|cpus| !matches!(cpus.trim(), "" | "(null)")),
        })
    }

    /// Completion of events, if the recording leaves out those that others imply.
    pub fn implied(&self) -> Option<ImpliedEvents> {
        leaves_out(self.armed).then(|| ImpliedEvents::new(self.woken_remotely))
    }

    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Decoder of this kernel's trace pages; `text` is the address of `_stext`, 0 if unknown.
    pub fn decoder(&self, tracing: &Tracing, text: u64) -> Result<Decoder, String> {
        let header = tracing.read("events/header_page").map_err(|error| error.to_string())?;
        let formats: Vec<_> = self.formats.iter().map(|(wanted, text)| (*wanted, text.as_str())).collect();
        Ok(Decoder::new(&header, cfg!(target_endian = "big"), &formats)?.with_text(text))
    }

    /// Names of the armed events.
    pub fn events(&self) -> Vec<String> {
        let armed = |wanted: &EventSpec| wanted.has_switch() && self.is_armed(wanted, self.armed);
        let named =
            self.formats.iter().filter(|(wanted, _)| armed(wanted)).map(|(wanted, _)| name_of(wanted));
        named.filter(|name| !self.refused.iter().any(|refused| refused.starts_with(name.as_str()))).collect()
    }

    /// Sets the buffer size of each CPU; recorded events are lost.
    pub fn resize(&self, kib: u64) -> io::Result<()> {
        self.instance.write("buffer_size_kb", &kib.to_string())
    }

    /// Switches to a level. This patches the kernel's text: no thread may be measuring.
    pub fn arm(&mut self, level: RecordingLevel, scope: &Scope) -> io::Result<()> {
        self.instance.write("tracing_on", "0")?;
        self.drop_stacks();
        for at in 0..self.formats.len() {
            let wanted = self.formats[at].0;
            let (before, after) = (self.is_armed(wanted, self.armed), self.is_armed(wanted, level));
            if before != after && wanted.has_switch() {
                self.switch(wanted, after.then_some(level), scope);
            }
        }
        self.armed = level;
        if has_stacks(level) {
            self.add_stacks(scope);
        }
        self.instance.write("tracing_on", if level == RecordingLevel::Nothing { "0" } else { "1" })
    }

    /// Sets filters and stacks for other threads; the enabled events stay the same.
    pub fn set_threads(&mut self, scope: &Scope) {
        for at in 0..self.formats.len() {
            let wanted = self.formats[at].0;
            let armed = self.is_armed(wanted, self.armed);
            let Some(filter) = filter_of(wanted, self.armed, scope).filter(|_| armed) else {
                continue;
            };
            let path = format!("events/{}/{}/filter", wanted.system, wanted.event);
            self.refuse(&name_of(wanted), self.instance.write(&path, &filter));
        }
        if has_stacks(self.armed) {
            self.add_stacks(scope);
        }
    }

    /// Disables the events of system calls; the others stay enabled.
    pub fn end_syscalls(&mut self) {
        let RecordingLevel::Victims { stacks, syscalls: true } = self.armed else { return };
        for at in 0..self.formats.len() {
            let wanted = self.formats[at].0;
            if wanted.system == "raw_syscalls" {
                self.switch(wanted, None, &Scope::default());
            }
        }
        self.armed = RecordingLevel::Victims { stacks, syscalls: false };
    }

    /// True if an event belongs to a level.
    fn is_armed(&self, wanted: &EventSpec, level: RecordingLevel) -> bool {
        is_armed(wanted, level) && !(leaves_out(level) && is_implied(wanted, self.woken_remotely))
    }

    fn refuse(&mut self, what: &str, done: io::Result<()>) {
        if let Err(error) = done {
            let refused = format!("{what}: {error}");
            if !self.refused.contains(&refused) {
                self.refused.push(refused);
            }
        }
    }

    fn switch(&mut self, wanted: &'static EventSpec, on: Option<RecordingLevel>, scope: &Scope) {
        let dir = format!("events/{}/{}", wanted.system, wanted.event);
        let filter = on.and_then(|level| filter_of(wanted, level, scope));
        let filtered = filter.map_or(Ok(()), |filter| self.instance.write(&format!("{dir}/filter"), &filter));
        let value = if on.is_some() { "1" } else { "0" };
        let switched = filtered.and_then(|()| self.instance.write(&format!("{dir}/enable"), value));
        self.refuse(&name_of(wanted), switched);
    }

    /// Records stacks where the timer interrupts a thread, and where a measuring thread preempts
    /// one ([`switch_stacks`]). The idle thread's stack carries no information, and would cost each
    /// wake-up from idle microseconds.
    pub fn add_stacks(&mut self, scope: &Scope) {
        let expiry = scope.timers("hrtimer").map(|who| format!("({who}) && common_pid != 0"));
        let switch = switch_stacks(scope, matches!(self.armed, RecordingLevel::Victims { .. }));
        let wanted = [
            ("events/timer/hrtimer_expire_entry/trigger", expiry),
            ("events/sched/sched_switch/trigger", switch),
        ];
        for (path, when) in wanted {
            let trigger = when.map(|when| format!("stacktrace if {when}"));
            let there = self.stacks.iter().position(|(there, _)| *there == path);
            if trigger.is_none() || there.is_some_and(|at| Some(&self.stacks[at].1) == trigger.as_ref()) {
                continue;
            }
            if let Some(at) = there {
                let (_, before) = self.stacks.remove(at);
                self.refuse(&format!("stacks at {path}"), self.instance.write(path, &format!("!{before}")));
            }
            let Some(trigger) = trigger else { continue };
            let written = self.instance.write(path, &trigger);
            if written.is_ok() {
                self.stacks.push((path, trigger));
            }
            self.refuse(&format!("stacks at {path}"), written);
        }
    }

    /// Events with a stack, `system:event`.
    pub fn stacks(&self) -> Vec<String> {
        let name = |path: &str| path.split('/').skip(1).take(2).collect::<Vec<_>>().join(":");
        self.stacks.iter().map(|(path, _)| name(path)).collect()
    }

    fn drop_stacks(&mut self) {
        for (path, trigger) in self.stacks.drain(..) {
            // The rest is removed with the instance.
            let _ = self.instance.write(path, &format!("!{trigger}"));
        }
    }
}

/// Condition on the switches at which a stack is recorded; an event has one such trigger. For
/// followed threads it includes switches to sleep, which alone show what a thread waits for.
///
/// State 0 is a thread that returns to user mode: for a measuring thread's wake-up the stack at the
/// timer's interrupt has the same information, and a second stack is a third of the cost.
fn switch_stacks(scope: &Scope, follows: bool) -> Option<String> {
    let in_kernel = if !follows && scope.timers("hrtimer").is_some() { " && prev_state != 0" } else { "" };
    let preempts = scope.threads("next_pid").map(|who| format!("({who}) && prev_pid != 0{in_kernel}"));
    if !follows {
        return preempts;
    }
    // The lowest eight bits are the sleeping states (TASK_REPORT, include/linux/sched.h).
    let who = scope.threads("prev_pid").or_else(|| scope.grows().then(|| REAL_TIME.to_owned()));
    let sleeps = who.map(|who| format!("({who}) && prev_state & 255"));
    match (preempts, sleeps) {
        (Some(preempts), Some(sleeps)) => Some(format!("({preempts}) || ({sleeps})")),
        (preempts, sleeps) => preempts.or(sleeps),
    }
}

fn name_of(wanted: &EventSpec) -> String {
    format!("{}:{}", wanted.system, wanted.event)
}

/// True if an event belongs to a level. Events of each system call cost more than they explain:
/// they are armed for followed threads alone, on request. Starts of timers are filtered to the
/// threads in scope and onbeat's own: they are not in the path of a wake-up, and a timer that was
/// due on another CPU and did not expire there shows a stop from outside.
fn is_armed(wanted: &EventSpec, level: RecordingLevel) -> bool {
    match (level, wanted.system, wanted.event) {
        (RecordingLevel::Nothing, ..) => false,
        (RecordingLevel::Timers, _, event) => event == "hrtimer_start",
        (RecordingLevel::Interrupts, _, event) => INTERRUPTS.contains(&event),
        (RecordingLevel::Victims { syscalls, .. }, "raw_syscalls", _) => syscalls,
        (RecordingLevel::Victims { .. }, ..) => true,
        (_, system, event) => system != "raw_syscalls" && !event.starts_with("sched_process_"),
    }
}

/// True for the levels of measuring threads, whose path to a wake-up is short and known.
fn leaves_out(level: RecordingLevel) -> bool {
    matches!(level, RecordingLevel::Events | RecordingLevel::Stacks)
}

/// True for an event that others imply ([`trace::implied`]): each one in the path of a wake-up
/// costs 600 instructions. A thread woken on its own CPU is in the queue at once.
fn is_implied(wanted: &EventSpec, woken_remotely: bool) -> bool {
    match wanted.event {
        "local_timer_entry" | "local_timer_exit" => true,
        "sched_wakeup" => !woken_remotely,
        _ => false,
    }
}

/// Condition for any thread that may join later, while none is known (MAX_RT_PRIO,
/// include/linux/sched/prio.h).
const REAL_TIME: &str = "prev_prio < 100";

fn has_stacks(level: RecordingLevel) -> bool {
    matches!(level, RecordingLevel::Stacks | RecordingLevel::Victims { stacks: true, .. })
}

/// Filter of an event that is of interest for some threads only, or that others imply.
fn filter_of(wanted: &EventSpec, level: RecordingLevel, scope: &Scope) -> Option<String> {
    match (wanted.system, wanted.event) {
        ("timer", "hrtimer_expire_exit") if leaves_out(level) => scope.other_timers("hrtimer"),
        ("power", "cpu_idle") if leaves_out(level) => Some(ENTERS_IDLE.to_owned()),
        // A thread that joins later has started its timer before it is known.
        ("timer", "hrtimer_start" | "hrtimer_start_expired") if scope.grows() => None,
        ("timer", "hrtimer_start" | "hrtimer_start_expired") => {
            scope.with_housekeeping().threads("common_pid")
        }
        ("exceptions" | "raw_syscalls", _) => scope.threads_or_none("common_pid"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_others_imply_are_left_out_for_measuring_threads_alone() {
        let named = |name: &str| catalog::all().find(|wanted| wanted.event == name).unwrap();
        let implied = |remotely| {
            let all = catalog::all().filter(move |wanted| is_implied(wanted, remotely));
            all.map(|wanted| wanted.event).collect::<Vec<_>>()
        };
        let timer = ["local_timer_entry", "local_timer_exit"];
        assert_eq!(implied(false), ["sched_wakeup", timer[0], timer[1]]);
        assert_eq!(implied(true), timer);
        let mut scope = Scope::new(vec![7], 5);
        scope.learn(&[(7, 1, 0x99)]);
        let victims = RecordingLevel::Victims { stacks: true, syscalls: false };
        let filters =
            |level| ["hrtimer_expire_exit", "cpu_idle"].map(|name| filter_of(named(name), level, &scope));
        let expected = ["hrtimer != 0x99", ENTERS_IDLE].map(|filter| Some(filter.to_owned()));
        assert_eq!(filters(RecordingLevel::Stacks), expected);
        assert_eq!((filters(victims), leaves_out(victims)), ([None, None], false));
        assert_eq!(ENTERS_IDLE, format!("state != {}", u32::MAX));
    }

    #[test]
    fn a_thread_on_its_way_to_user_mode_costs_a_stack_where_no_other_tells_of_it() {
        let mut scope = Scope::new(vec![7], 5);
        let preempts = "(next_pid == 7) && prev_pid != 0";
        assert_eq!(switch_stacks(&scope, false).as_deref(), Some(preempts));
        scope.learn(&[(7, 1, 0x99)]);
        assert_eq!(switch_stacks(&scope, false), Some(format!("{preempts} && prev_state != 0")));
        let sleeps = "(prev_pid == 7) && prev_state & 255";
        assert_eq!(switch_stacks(&scope, true), Some(format!("({preempts}) || ({sleeps})")));
        let later = Scope::default().growing(Vec::new());
        assert_eq!(switch_stacks(&later, true).as_deref(), Some("(prev_prio < 100) && prev_state & 255"));
        assert_eq!(switch_stacks(&Scope::default(), false), None);
    }
}
