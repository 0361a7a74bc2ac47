//! The programs, generated for the kernel at hand.
//!
//! Timers: [`timers::started`] stores the timer of a thread that is about to sleep,
//! [`timers::fired`] a timer that fired on this CPU. [`waking`] joins the two: T. [`switch`] runs
//! when the thread gets its CPU: W, and counts both; [`exit`] runs after the switch, if the kernel
//! has that tracepoint: S; [`release`] keeps who released a lock. They use array maps alone:
//! nothing that could take a lock, so nothing that differs on PREEMPT_RT.

pub mod counting;
pub mod exit;
pub mod leaving;
pub mod maxima;
mod pieces;
pub mod pulse;
pub mod release;
pub mod switch;
pub mod timers;
pub mod waking;

use crate::assembler::{Alu, Assembler, BadCode, Cond, FP, Helper, Label, R0, R1, R2, R3, Reg, Width};
use crate::fields::{EventField, EventFields};
use crate::layout::{CountedEvent, SLOT_MASK, config, slot};

/// The lowest priority that is not real-time, in the kernel's numbers (include/linux/sched/prio.h).
pub const NOT_REAL_TIME: i32 = 100;

/// The maps by which the programs are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Maps {
    pub slots: i32,
    pub cpus: i32,
    pub records: i32,
    pub threads: i32,
    pub saved: i32,
    pub config: i32,
    /// Maps of S, if it is recorded.
    pub switched: Option<SwitchedMaps>,
}

/// The maps of S.
#[derive(Clone, Copy, Debug)]
pub struct SwitchedMaps {
    pub records: i32,
    pub threads: i32,
}

/// Kind of a timer: that of a sleep, of which a thread has one at a time, or one that exists
/// independently of sleeps, as those of timerfd and POSIX timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    Sleep = 0,
    Standing = 1,
}

/// Addresses of the functions of timers that wake threads, with their kinds.
pub type Functions = Vec<(u64, TimerKind)>;

/// A program in the making.
pub(crate) struct Writer<'a> {
    pub code: Assembler,
    pub fields: &'a EventFields,
    pub maps: &'a Maps,
}

/// Register that holds the context throughout.
pub(crate) const CONTEXT: Reg = crate::assembler::R6;
/// The slot of the thread.
pub(crate) const SLOT: Reg = crate::assembler::R7;

/// The stack: the key of a look-up.
const KEY: i16 = -4;

impl<'a> Writer<'a> {
    /// Begins a program that saves the context; `R1` still holds it.
    pub fn new(fields: &'a EventFields, maps: &'a Maps) -> Writer<'a> {
        let mut code = Assembler::default();
        code.mov(CONTEXT, R1);
        Writer { code, fields, maps }
    }

    /// The end of all ways.
    pub fn finish(mut self, out: Label) -> Result<Vec<u64>, BadCode> {
        self.code.place(out);
        self.code.set(R0, 0);
        self.code.exit();
        self.code.finish()
    }

    /// A field of the event's record.
    pub fn field(&mut self, to: Reg, field: EventField) {
        self.code.load(field.width, to, CONTEXT, field.offset);
    }

    /// Loads a member of the target of an argument; destroys `through`.
    pub fn member(&mut self, to: Reg, through: Reg, argument: i16, width: Width, member: i16) {
        self.code.load(Width::B8, through, CONTEXT, argument);
        self.code.load(width, to, through, member);
    }

    /// The value of a map at `key`, or on to `missing`. Destroys `R0` to `R5`.
    pub fn look_up(&mut self, map: i32, key: Reg, to: Reg, missing: Label) {
        self.code.store(Width::B4, FP, KEY, key);
        self.code.map(R1, map);
        self.code.mov(R2, FP);
        self.code.alu_imm(Alu::Add, R2, KEY.into());
        self.code.call(Helper::MapLookup);
        self.code.jump_imm(Cond::Eq, R0, 0, missing);
        self.code.mov(to, R0);
    }

    /// Finds the slot of a thread id, which another thread may occupy.
    pub fn slot_at(&mut self, tid: Reg, missing: Label) {
        self.code.mov(R1, tid);
        self.code.alu_imm(Alu::And, R1, SLOT_MASK);
        self.look_up(self.maps.slots, R1, SLOT, missing);
    }

    /// The slot of a thread, or on to `missing`.
    pub fn slot_of(&mut self, tid: Reg, missing: Label) {
        self.slot_at(tid, missing);
        self.code.load(Width::B4, R1, SLOT, slot::TID);
        self.code.jump_reg_32(Cond::Ne, R1, tid, missing);
    }

    /// Loads the address of this CPU's values.
    pub fn this_cpu(&mut self, to: Reg, missing: Label) {
        self.code.call(Helper::SmpProcessorId);
        self.code.mov_32(R1, R0);
        self.look_up(self.maps.cpus, R1, to, missing);
    }

    /// A word of the configuration; destroys `through`.
    pub fn config(&mut self, to: Reg, through: Reg, width: Width, offset: i16) {
        self.code.map_value(through, self.maps.config);
        self.code.load(width, to, through, offset);
    }

    /// Adds one to a CPU's counter; destroys `R1`.
    pub fn count(&mut self, cpu: Reg, count: CountedEvent) {
        self.code.load(Width::B8, R1, cpu, count.offset());
        self.code.alu_imm(Alu::Add, R1, 1);
        self.code.store(Width::B8, cpu, count.offset(), R1);
    }

    /// The thread that runs, in the lower half of `R0`.
    pub fn current_tid(&mut self, to: Reg) {
        self.code.call(Helper::CurrentPidTgid);
        self.code.mov_32(to, R0);
    }

    /// Stores the kernel stack, innermost first, at `place` in the target of `base`; the number of
    /// bytes is in `R0`, negative if there is no stack.
    pub fn stack_into(&mut self, base: Reg, place: i16, room: usize) {
        self.code.mov(R1, CONTEXT);
        self.code.mov(R2, base);
        self.code.alu_imm(Alu::Add, R2, place.into());
        self.code.set(R3, room as i32);
        self.code.set(crate::assembler::R4, 0);
        self.code.call(Helper::GetStack);
    }
}

/// Counts suspends, and stores the time of the last start or end: no latency may span one.
pub fn suspended(fields: &EventFields, maps: &Maps) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let out = w.code.label();
    w.code.call(Helper::KtimeGetNs);
    w.code.map_value(R2, maps.config);
    w.code.store(Width::B8, R2, config::RESUMED, R0);
    w.code.load(Width::B4, R1, R2, config::SUSPENDS);
    w.code.alu_imm(Alu::Add, R1, 1);
    w.code.store(Width::B4, R2, config::SUSPENDS, R1);
    w.finish(out)
}
