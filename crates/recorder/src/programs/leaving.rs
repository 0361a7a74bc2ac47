//! The first half of sched_switch: a real-time thread leaves its CPU. It sleeps, was preempted, or
//! has ended.

use super::{CONTEXT, NOT_REAL_TIME, SLOT, Writer};
use crate::assembler::{Alu, Cond, FP, Helper, Label, R0, R1, R2, R3, R4, R5, R8, R9, Reg, Width};
use crate::fields::EventFields;
use crate::layout::{CountedEvent, SERIES, config, cpu, maximum, record, slot};

/// TASK_DEAD of a thread's state; EXIT_DEAD and EXIT_ZOMBIE as a record shows it
/// (include/linux/sched.h, include/trace/events/sched.h).
const DEAD: i32 = 0x80;
pub(crate) const SHOWN_DEAD: i32 = 0x30;
/// Mask of the states in a record; the bits above mark a preempted thread.
pub(crate) const SHOWN_STATES: i32 = 0xff;
/// PF_KTHREAD of include/linux/sched.h.
const KERNEL_THREAD: i32 = 0x0020_0000;
/// BPF_F_USER_STACK.
const USER_STACK: i32 = 1 << 8;

const TID: Reg = R8;
/// Stack offsets: this CPU's values, and room for one address.
const CPU: i16 = -24;
const ROOM: i16 = -32;

/// Side of a switch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Previous,
    Next,
}

impl Writer<'_> {
    /// The priority of a thread of the switch, in 32 bits.
    pub(super) fn priority(&mut self, to: Reg, through: Reg, side: Side) {
        match (self.fields, side) {
            (EventFields::Format(format), Side::Previous) => self.field(to, format.previous_prio),
            (EventFields::Format(format), Side::Next) => self.field(to, format.next_prio),
            (EventFields::Types(types), _) => {
                self.member(to, through, types.argument(side), Width::B4, types.prio);
            }
        }
    }

    pub(super) fn tid(&mut self, to: Reg, through: Reg, side: Side) {
        match (self.fields, side) {
            (EventFields::Format(format), Side::Previous) => self.field(to, format.previous_tid),
            (EventFields::Format(format), Side::Next) => self.field(to, format.next_tid),
            (EventFields::Types(types), _) => {
                self.member(to, through, types.argument(side), Width::B4, types.tid)
            }
        }
    }

    /// Handles the thread that leaves; continues at `next`.
    pub(super) fn leaving(&mut self, next: Label) {
        let (ours, free, sleeps, ended) =
            (self.code.label(), self.code.label(), self.code.label(), self.code.label());
        self.priority(R1, R2, Side::Previous);
        self.code.jump_imm_32(Cond::SGe, R1, NOT_REAL_TIME, next);
        self.tid(TID, R2, Side::Previous);
        self.slot_at(TID, next);
        self.code.load(Width::B4, R1, SLOT, slot::TID);
        self.code.jump_reg_32(Cond::Eq, R1, TID, ours);
        self.code.jump_imm_32(Cond::Eq, R1, 0, free);
        self.code.jump(next);
        self.code.place(free);
        self.claim(Side::Previous, next);
        self.code.place(ours);
        self.kind_by_stack();
        self.state(sleeps, ended);
        self.preempted(next);
        self.code.place(ended);
        self.code.store_imm(Width::B4, SLOT, slot::TID, 0);
        let gone = self.code.label();
        self.this_cpu(R9, gone);
        self.count(R9, CountedEvent::Ended);
        self.code.place(gone);
        self.code.jump(next);
        self.code.place(sleeps);
        self.unseen(next);
        self.code.store_imm(Width::B4, SLOT, slot::SLEPT, 1);
        self.sleeps_in(next);
    }

    /// Claims a free slot for a thread of the switch if all threads are recorded.
    pub(super) fn claim(&mut self, side: Side, unwanted: Label) {
        self.config(R1, R2, Width::B4, config::CLAIM);
        self.code.jump_imm(Cond::Eq, R1, 0, unwanted);
        for offset in (0..slot::SIZE as i16).step_by(8) {
            self.code.store_imm(Width::B8, SLOT, offset, 0);
        }
        self.code.store_imm(Width::B8, SLOT, slot::LATE, -1);
        match self.fields {
            // Set when it leaves its CPU: see `kind_by_stack`.
            EventFields::Format(_) => self.code.store_imm(Width::B4, SLOT, slot::KIND, slot::UNKNOWN),
            EventFields::Types(types) => {
                let user = self.code.label();
                self.member(R1, R2, types.argument(side), Width::B4, types.flags);
                self.code.jump_imm(Cond::Set, R1, KERNEL_THREAD, user);
                let done = self.code.label();
                self.code.jump(done);
                self.code.place(user);
                self.code.store_imm(Width::B4, SLOT, slot::KIND, slot::KERNEL);
                self.code.place(done);
            }
        }
        self.code.store(Width::B4, SLOT, slot::TID, TID);
    }

    /// Determines the kind of the leaving thread, which a record does not contain: it still runs,
    /// and a kernel thread has no user stack.
    fn kind_by_stack(&mut self) {
        if let EventFields::Types(_) = self.fields {
            return;
        }
        let (known, user) = (self.code.label(), self.code.label());
        self.code.load(Width::B4, R1, SLOT, slot::KIND);
        self.code.jump_imm_32(Cond::Ne, R1, slot::UNKNOWN, known);
        self.code.store_imm(Width::B4, SLOT, slot::KIND, slot::USER);
        self.code.mov(R1, CONTEXT);
        self.code.mov(R2, FP);
        self.code.alu_imm(Alu::Add, R2, ROOM.into());
        self.code.set(R3, 8);
        self.code.set(R4, USER_STACK);
        self.code.call(Helper::GetStack);
        self.code.jump_imm(Cond::SGt, R0, 0, user);
        self.code.store_imm(Width::B4, SLOT, slot::KIND, slot::KERNEL);
        self.code.place(user);
        self.code.place(known);
    }

    /// Continues at `sleeps` or `ended`, or below if it was preempted.
    fn state(&mut self, sleeps: Label, ended: Label) {
        let runnable = self.code.label();
        match self.fields {
            EventFields::Format(format) => {
                self.field(R1, format.previous_state);
                self.code.jump_imm(Cond::Set, R1, SHOWN_DEAD, ended);
                self.code.jump_imm(Cond::Set, R1, SHOWN_STATES, sleeps);
            }
            EventFields::Types(types) => {
                self.code.load(Width::B8, R1, CONTEXT, types.preempted);
                self.code.jump_imm(Cond::Ne, R1, 0, runnable);
                match (types.state, types.task_state) {
                    (Some(state), _) => self.code.load(Width::B8, R1, CONTEXT, state),
                    (None, Some((member, width))) => self.member(R1, R5, types.previous, width, member),
                    (None, None) => self.code.set(R1, 0),
                }
                self.code.jump_imm(Cond::Set, R1, DEAD, ended);
                self.code.jump_imm(Cond::Ne, R1, 0, sleeps);
            }
        }
        self.code.place(runnable);
    }

    /// Handles a preempted thread: a waking that found it running counts as early.
    fn preempted(&mut self, next: Label) {
        self.unseen(next);
        self.code.load(Width::B8, R1, SLOT, slot::WAKE);
        self.code.jump_imm(Cond::Eq, R1, 0, next);
        self.code.store_imm(Width::B8, SLOT, slot::WAKE, 0);
        self.this_cpu(R9, next);
        self.count(R9, CountedEvent::Early);
        self.code.jump(next);
    }

    /// Handles a thread that slept and ran again without an event: that waking is over.
    fn unseen(&mut self, next: Label) {
        let seen = self.code.label();
        self.code.load(Width::B4, R1, SLOT, slot::SLEPT);
        self.code.jump_imm(Cond::Eq, R1, 0, seen);
        self.code.store_imm(Width::B4, SLOT, slot::SLEPT, 0);
        self.code.store_imm(Width::B8, SLOT, slot::WAKE, 0);
        self.this_cpu(R9, next);
        self.count(R9, CountedEvent::Unwoken);
        self.code.place(seen);
    }

    /// Stores the stack of a victim that sleeps again with the maxima of that victim.
    fn sleeps_in(&mut self, next: Label) {
        let done = self.code.label();
        self.code.load(Width::B4, R8, SLOT, slot::PENDING);
        self.code.jump_imm(Cond::Eq, R8, 0, next);
        self.code.store_imm(Width::B4, SLOT, slot::PENDING, 0);
        self.code.alu_imm(Alu::Sub, R8, 1);
        self.this_cpu(R9, next);
        self.code.store(Width::B8, FP, CPU, R9);
        // Set before the epoch is read: the reader waits after a flip until no CPU is busy.
        self.code.store_imm(Width::B4, R9, cpu::BUSY, 1);
        self.config(R1, R2, Width::B4, config::EPOCH);
        self.code.load(Width::B4, R2, SLOT, slot::PENDING_EPOCH);
        self.code.jump_reg_32(Cond::Ne, R1, R2, done);
        self.look_up(self.maps.records, R8, R9, done);
        self.code.load(Width::B8, R8, SLOT, slot::PENDING_TIME);
        for series in 0..SERIES {
            let other = self.code.label();
            let at = |member: i16| (record::MAXIMA + series * maximum::SIZE) as i16 + member;
            self.code.load(Width::B8, R1, R9, at(maximum::TIME));
            self.code.jump_reg(Cond::Ne, R1, R8, other);
            self.stack_into(R9, at(maximum::SLEEP), maximum::SLEEP_ROOM);
            self.code.store(Width::B4, R9, at(maximum::SLEEP_BYTES), R0);
            self.code.call(Helper::CurrentPidTgid);
            self.code.alu_imm(Alu::Rsh, R0, 32);
            self.code.store(Width::B4, R9, at(maximum::VICTIM_PROCESS), R0);
            self.code.place(other);
        }
        self.code.place(done);
        self.code.load(Width::B8, R1, FP, CPU);
        self.code.store_imm(Width::B4, R1, cpu::BUSY, 0);
    }
}

impl crate::fields::ByTypes {
    fn argument(&self, side: Side) -> i16 {
        match side {
            Side::Previous => self.previous,
            Side::Next => self.next,
        }
    }
}
