//! Access to the fields of an event: in the event's record, whose layout is in its `format` file,
//! or in the tracepoint's arguments, by the kernel's types.
//!
//! The arguments are cheaper, and a foreign program on the same CPU does not make the kernel skip
//! ours (`bpf_prog_active` of kernel/trace/bpf_trace.c is checked for trace events alone).

use host::bpf::Attached;
use trace::format::{Format, Place};

use crate::assembler::Width;
use crate::btf::{Btf, Parameter};

/// The events that programs run at, each with its subsystem.
pub const EVENTS: [(&str, &str); 7] = [
    ("timer", "hrtimer_start"),
    ("timer", "hrtimer_expire_entry"),
    ("sched", "sched_waking"),
    ("sched", "sched_switch"),
    ("power", "suspend_resume"),
    ("sched", "sched_exit_tp"),
    ("lock", "contended_release"),
];
pub const START: usize = 0;
pub const EXPIRE: usize = 1;
pub const WAKING: usize = 2;
pub const SWITCH: usize = 3;
pub const SUSPEND: usize = 4;
/// A tracepoint without an event, found only in the kernel's types.
pub const EXIT: usize = 5;
/// Since 7.2; without it the holder of a contended lock is not known.
pub const RELEASE: usize = 6;

/// A field of an event's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventField {
    pub offset: i16,
    pub width: Width,
}

/// Fields by the `format` files.
#[derive(Clone, Debug)]
pub struct ByFormat {
    pub ids: [u32; 4],
    pub start_timer: EventField,
    pub start_function: EventField,
    pub start_expiry: EventField,
    pub expire_timer: EventField,
    pub expire_function: EventField,
    pub expire_now: EventField,
    pub waking_tid: EventField,
    pub waking_prio: EventField,
    pub previous_tid: EventField,
    pub previous_prio: EventField,
    pub previous_state: EventField,
    pub previous_comm: i16,
    pub next_tid: EventField,
    pub next_prio: EventField,
    pub next_comm: i16,
    /// Event of a suspend, if the kernel has it.
    pub suspend: Option<u32>,
}

/// Fields by the kernel's types.
#[derive(Clone, Debug)]
pub struct ByTypes {
    pub ids: [u32; 4],
    pub suspend: Option<u32>,
    pub release: Option<u32>,
    /// Offsets in `struct task_struct`.
    pub tid: i16,
    pub process: i16,
    pub prio: i16,
    pub comm: i16,
    pub flags: i16,
    /// Offsets in `struct hrtimer` and in the target of its `base`.
    pub function: i16,
    pub expiry: i16,
    pub base: i16,
    pub clock_offset: i16,
    /// The arguments of sched_switch.
    pub previous: i16,
    pub next: i16,
    pub preempted: i16,
    /// `None` before 5.18: the thread's own state is read.
    pub state: Option<i16>,
    pub task_state: Option<(i16, Width)>,
    /// Fields of sched_exit_tp, or the reason that S is not available on this kernel.
    pub exit: Result<ExitFields, String>,
}

/// Fields read by the program at sched_exit_tp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitFields {
    pub id: u32,
    /// Argument that is true if there was a switch.
    pub is_switch: i16,
    /// Offsets in `struct task_struct` of its counts of voluntary and involuntary switches.
    pub slept: i16,
    pub preempted: i16,
}

/// Source of the fields: the records' formats or the kernel's types.
#[derive(Clone, Debug)]
pub enum EventFields {
    Format(ByFormat),
    Types(ByTypes),
}

impl EventFields {
    /// Attach point of an event's program.
    pub fn attached(&self, event: usize) -> Option<Attached> {
        match (self, event) {
            // An interrupt within its program would lose the waking.
            (EventFields::Format(_), EXIT | RELEASE) => None,
            (EventFields::Format(format), SUSPEND) => format.suspend.map(Attached::Event),
            (EventFields::Format(format), _) => format.ids.get(event).copied().map(Attached::Event),
            (EventFields::Types(types), EXIT) => {
                types.exit.as_ref().ok().map(|exit| Attached::RawTracepoint(exit.id))
            }
            (EventFields::Types(types), SUSPEND) => types.suspend.map(Attached::RawTracepoint),
            (EventFields::Types(types), RELEASE) => types.release.map(Attached::RawTracepoint),
            (EventFields::Types(types), _) => types.ids.get(event).copied().map(Attached::RawTracepoint),
        }
    }
}

impl ByFormat {
    /// Reads the formats of all events through `text`, which is given a path below tracefs.
    pub fn read(text: impl Fn(&str) -> std::io::Result<String>) -> Result<ByFormat, String> {
        let format = |event: usize| {
            let (subsystem, name) = EVENTS[event];
            let read = text(&format!("events/{subsystem}/{name}/format"));
            Format::parse(&read.map_err(|error| format!("cannot read the event {name}: {error}"))?)
        };
        let (start, expire) = (format(START)?, format(EXPIRE)?);
        let (waking, switch) = (format(WAKING)?, format(SWITCH)?);
        Ok(ByFormat {
            ids: [&start, &expire, &waking, &switch].map(|format| format.id.into()),
            start_timer: number(&start, "hrtimer", 8)?,
            start_function: number(&start, "function", 8)?,
            start_expiry: number(&start, "softexpires", 8)?,
            expire_timer: number(&expire, "hrtimer", 8)?,
            expire_function: number(&expire, "function", 8)?,
            expire_now: number(&expire, "now", 8)?,
            waking_tid: number(&waking, "pid", 4)?,
            waking_prio: number(&waking, "prio", 4)?,
            previous_tid: number(&switch, "prev_pid", 4)?,
            previous_prio: number(&switch, "prev_prio", 4)?,
            previous_state: number(&switch, "prev_state", 8)?,
            previous_comm: name(&switch, "prev_comm")?,
            next_tid: number(&switch, "next_pid", 4)?,
            next_prio: number(&switch, "next_prio", 4)?,
            next_comm: name(&switch, "next_comm")?,
            suspend: format(SUSPEND).ok().map(|format| format.id.into()),
        })
    }
}

/// A field of a record that is read whole. The first 8 bytes are not a program's to read.
fn number(format: &Format, wanted: &str, size: usize) -> Result<EventField, String> {
    let found = format.field(wanted).filter(|field| field.place == Place::Inside && field.size == size);
    let aligned = found.filter(|field| field.offset >= 8 && field.offset % size == 0);
    aligned
        .and_then(|field| {
            Some(EventField { offset: i16::try_from(field.offset).ok()?, width: Width::of(size)? })
        })
        .ok_or_else(|| format!("the event {} has no field {wanted} of {size} bytes", format.name))
}

/// A thread's name in a record.
fn name(format: &Format, wanted: &str) -> Result<i16, String> {
    let found = format.field(wanted).filter(|field| field.place == Place::Inside && field.size == 16);
    let aligned = found.filter(|field| field.offset >= 8 && field.offset % 4 == 0);
    aligned
        .and_then(|field| i16::try_from(field.offset).ok())
        .ok_or_else(|| format!("the event {} has no field {wanted} of 16 letters", format.name))
}

impl ByTypes {
    /// Finds all places in the kernel's types.
    pub fn find(btf: Btf<'_>) -> Result<ByTypes, String> {
        let member = |structure: &str, member: &str| {
            btf.member(structure, member).ok_or_else(|| format!("this kernel's {structure} has no {member}"))
        };
        let tracepoint = |event: usize| {
            let name = EVENTS[event].1;
            btf.tracepoint(name).ok_or_else(|| format!("this kernel has no tracepoint {name}"))
        };
        let switch = tracepoint(SWITCH)?;
        let (tasks, numbers) = (switch.pointers_to("task_struct"), switch.numbers());
        let ([previous, next], [preempted, state @ ..]) = (tasks.as_slice(), numbers.as_slice()) else {
            return Err("this kernel's sched_switch has other arguments".to_owned());
        };
        let (start, expire) = (tracepoint(START)?, tracepoint(EXPIRE)?);
        let waking = tracepoint(WAKING)?;
        let first = |pointers: Vec<i16>| pointers.first() == Some(&0);
        if !first(start.pointers_to("hrtimer"))
            || !first(expire.pointers_to("hrtimer"))
            || !first(waking.pointers_to("task_struct"))
        {
            return Err("this kernel's timer or waking events have other arguments".to_owned());
        }
        // `__state` of 4 bytes since 5.14, `state` of a long before.
        let newer = btf.member("task_struct", "__state").map(|at| (at, Width::B4));
        let task_state = newer.or_else(|| btf.member("task_struct", "state").map(|at| (at, Width::B8)));
        if state.is_empty() && task_state.is_none() {
            return Err("this kernel's task_struct has no state".to_owned());
        }
        Ok(ByTypes {
            ids: [start.id, expire.id, waking.id, switch.id],
            suspend: tracepoint(SUSPEND).ok().map(|found| found.id),
            release: tracepoint(RELEASE).ok().map(|found| found.id),
            tid: member("task_struct", "pid")?,
            process: member("task_struct", "tgid")?,
            prio: member("task_struct", "prio")?,
            comm: member("task_struct", "comm")?,
            flags: member("task_struct", "flags")?,
            function: member("hrtimer", "function")?,
            expiry: member("hrtimer", "_softexpires")?,
            base: member("hrtimer", "base")?,
            clock_offset: member("hrtimer_clock_base", "offset")?,
            previous: *previous,
            next: *next,
            preempted: *preempted,
            state: state.first().copied(),
            task_state,
            exit: ExitFields::find(btf),
        })
    }
}

impl ExitFields {
    /// Finds the argument of sched_exit_tp that is true after a switch; before 6.17 an instruction
    /// address precedes it (include/trace/events/sched.h). Other signatures are refused.
    fn find(btf: Btf<'_>) -> Result<ExitFields, String> {
        let name = EVENTS[EXIT].1;
        let found = btf.tracepoint(name).ok_or_else(|| format!("this kernel has no tracepoint {name}"))?;
        match found.parameters().as_slice() {
            [Parameter::Truth] | [Parameter::Truth, Parameter::Number(8)] => {}
            _ => return Err(format!("this kernel's {name} has other arguments")),
        }
        let member = |member: &str| {
            btf.member("task_struct", member)
                .ok_or_else(|| format!("this kernel's task_struct has no {member}"))
        };
        Ok(ExitFields { id: found.id, is_switch: 0, slept: member("nvcsw")?, preempted: member("nivcsw")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::tests::Made;
    use crate::btf::{FUNC_PROTO, INT, PTR, TYPEDEF};

    /// Integers by encoding and size: those of sched_exit_tp.
    fn exit_with(parameters: &[(u32, u32)], members: &[&str]) -> Result<ExitFields, String> {
        let mut types = Made::default();
        let data = types.add("", PTR, 0, 0, &[]);
        let mut words = vec![0, data];
        for (encoding, size) in parameters {
            let number = types.add("int", INT, 0, *size, &[(encoding << 24) | (size * 8)]);
            words.extend([0, types.add("name", TYPEDEF, 0, number, &[])]);
        }
        let long = types.add("long unsigned int", INT, 0, 8, &[64]);
        let members: Vec<_> =
            members.iter().zip((0..).step_by(8)).map(|(name, at)| (*name, long, at)).collect();
        types.structure("task_struct", &members);
        let function = types.add("", FUNC_PROTO, words.len() / 2, 0, &words);
        let pointer = types.add("", PTR, 0, function, &[]);
        types.add("btf_trace_sched_exit_tp", TYPEDEF, 0, pointer, &[]);
        ExitFields::find(Btf::parse(&types.bytes()).unwrap())
    }

    #[test]
    fn the_end_of_a_switch_is_read_from_known_arguments_alone() {
        const TRUTH: (u32, u32) = (4, 1);
        let both = ["nvcsw", "nivcsw"];
        let known = exit_with(&[TRUTH], &both).unwrap();
        assert_eq!((known.is_switch, known.slept, known.preempted), (0, 0, 8));
        assert!(exit_with(&[TRUTH, (0, 8)], &both).is_ok(), "with an address, as before 6.17");
        for other in [
            &[][..],
            &[(0, 1)],
            &[(0, 8), TRUTH],
            &[TRUTH, TRUTH],
            &[TRUTH, (0, 4)],
            &[TRUTH, (0, 8), (0, 8)],
        ] {
            let why = exit_with(other, &both).unwrap_err();
            assert!(why.contains("sched_exit_tp has other arguments"), "{why}");
        }
        assert!(exit_with(&[TRUTH], &["nvcsw"]).unwrap_err().contains("nivcsw"));
        let mut none = Made::default();
        none.add("int", INT, 0, 4, &[32]);
        let why = ExitFields::find(Btf::parse(&none.bytes()).unwrap()).unwrap_err();
        assert!(why.contains("no tracepoint sched_exit_tp"), "{why}");
    }
}
