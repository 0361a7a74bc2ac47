//! The largest wake-up of a record: its victim, the previous thread and their stacks.

use super::counting::{RECORD, VALUES};
use super::leaving::Side;
use super::{CONTEXT, SLOT, Writer};
use crate::assembler::{Alu, Cond, FP, Helper, R0, R1, R2, R3, R8, Reg, Width};
use crate::fields::EventFields;
use crate::layout::{TIMER, WAKEUP, config, maximum, record, saved, slot};

/// Stack offsets of further values.
pub(super) const NOW: i16 = -16;
pub(super) const INDEX: i16 = -80;
/// Part of W in which the previous thread had the CPU, plus 1; 0 if that was not seen.
pub(super) const HELD: i16 = -96;
/// Time of its waking.
const WAKE: Reg = R8;

impl Writer<'_> {
    /// Compares with the record's maxima, and replaces smaller ones. Those of a chosen thread have
    /// no stacks.
    pub(super) fn keep_maxima(&mut self, with_stacks: bool) {
        self.each_series(|w, series| w.keep_maximum(series, with_stacks));
    }

    fn keep_maximum(&mut self, series: usize, with_stacks: bool) {
        let size = if with_stacks { maximum::SIZE } else { maximum::SHORT };
        let base = (record::MAXIMA + series * size) as i16;
        let smaller = self.code.label();
        self.code.load(Width::B8, R1, FP, VALUES[series]);
        self.code.load(Width::B8, R2, RECORD, base + maximum::VALUE);
        self.code.jump_reg(Cond::SLe, R1, R2, smaller);
        self.code.store(Width::B8, RECORD, base + maximum::VALUE, R1);
        for (from, to) in [
            (VALUES[TIMER], maximum::LATE),
            (VALUES[WAKEUP], maximum::WAIT),
            (NOW, maximum::TIME),
            (HELD, maximum::HELD),
        ] {
            self.code.load(Width::B8, R1, FP, from);
            self.code.store(Width::B8, RECORD, base + to, R1);
        }
        self.threads(base);
        self.code.store_imm(Width::B8, RECORD, base + maximum::EXPIRY_BYTES, 0);
        self.code.store_imm(Width::B8, RECORD, base + maximum::SLEEP_BYTES, 0);
        self.code.store_imm(Width::B8, RECORD, base + maximum::SWITCH_TIME, 0);
        self.interrupted(base);
        if with_stacks {
            self.stacks(base);
            self.code.load(Width::B8, R1, FP, INDEX);
            self.code.alu_imm(Alu::Add, R1, 1);
            self.code.store(Width::B4, SLOT, slot::PENDING, R1);
            self.code.load(Width::B8, R1, FP, NOW);
            self.code.store(Width::B8, SLOT, slot::PENDING_TIME, R1);
            self.config(R1, R2, Width::B4, config::EPOCH);
            self.code.store(Width::B4, SLOT, slot::PENDING_EPOCH, R1);
        }
        self.code.place(smaller);
    }

    /// The two threads of the switch.
    fn threads(&mut self, base: i16) {
        self.tid(R1, R2, Side::Next);
        self.code.store(Width::B4, RECORD, base + maximum::VICTIM, R1);
        self.priority(R1, R2, Side::Next);
        self.code.store(Width::B4, RECORD, base + maximum::VICTIM_PRIO, R1);
        self.priority(R1, R2, Side::Previous);
        self.code.store(Width::B4, RECORD, base + maximum::PREVIOUS_PRIO, R1);
        // The previous thread is still the current one.
        self.code.call(Helper::CurrentPidTgid);
        self.code.store(Width::B8, RECORD, base + maximum::PREVIOUS, R0);
        self.comm(Side::Next, base + maximum::VICTIM_COMM);
        self.comm(Side::Previous, base + maximum::PREVIOUS_COMM);
    }

    fn comm(&mut self, side: Side, to: i16) {
        match (self.fields, side) {
            (EventFields::Format(format), Side::Previous) => self.copy(CONTEXT, format.previous_comm, to, 16),
            (EventFields::Format(format), Side::Next) => self.copy(CONTEXT, format.next_comm, to, 16),
            (EventFields::Types(types), _) => {
                let argument = if side == Side::Previous { types.previous } else { types.next };
                self.code.mov(R1, RECORD);
                self.code.alu_imm(Alu::Add, R1, to.into());
                self.code.set(R2, 16);
                self.code.load(Width::B8, R3, CONTEXT, argument);
                self.code.alu_imm(Alu::Add, R3, types.comm.into());
                self.code.call(Helper::ProbeReadKernel);
            }
        }
    }

    /// Copies into the record. The names in an event's record are aligned to 4 bytes alone on some
    /// kernels.
    pub(super) fn copy(&mut self, from: Reg, offset: i16, to: i16, bytes: i16) {
        let (width, step) = if offset % 8 == 0 { (Width::B8, 8) } else { (Width::B4, 4) };
        for at in (0..bytes).step_by(step) {
            self.code.load(width, R1, from, offset + at);
            self.code.store(width, RECORD, to + at, R1);
        }
    }

    fn interrupted(&mut self, base: i16) {
        let untimed = self.code.label();
        self.code.store_imm(Width::B8, RECORD, base + maximum::INTERRUPTED, 0);
        self.code.store_imm(Width::B4, RECORD, base + maximum::INTERRUPTED_PRIO, i32::MIN);
        self.code.store_imm(Width::B8, RECORD, base + maximum::INTERRUPTED_COMM, 0);
        self.code.store_imm(Width::B8, RECORD, base + maximum::INTERRUPTED_COMM + 8, 0);
        self.code.load(Width::B8, R1, FP, VALUES[TIMER]);
        self.code.jump_imm(Cond::SLt, R1, 0, untimed);
        self.code.load(Width::B8, R1, SLOT, slot::INTERRUPTED);
        self.code.store(Width::B8, RECORD, base + maximum::INTERRUPTED, R1);
        self.code.load(Width::B4, R1, SLOT, slot::INTERRUPTED_PRIO);
        self.code.store(Width::B4, RECORD, base + maximum::INTERRUPTED_PRIO, R1);
        self.code.place(untimed);
    }

    /// Stores the stack that the timer interrupted, if it was kept, and the one at the switch.
    fn stacks(&mut self, base: i16) {
        let none = self.code.label();
        self.code.load(Width::B4, R1, SLOT, slot::STACK);
        self.code.jump_imm(Cond::Eq, R1, 0, none);
        self.code.alu_imm(Alu::Sub, R1, 1);
        self.look_up(self.maps.saved, R1, R0, none);
        // Is it still that of this wake-up?
        self.code.load(Width::B8, R1, R0, saved::WAKE);
        self.code.jump_reg(Cond::Ne, R1, WAKE, none);
        self.code.load(Width::B4, R1, R0, saved::TID);
        self.code.load(Width::B4, R2, SLOT, slot::TID);
        self.code.jump_reg(Cond::Ne, R1, R2, none);
        self.copy(R0, saved::COMM, base + maximum::INTERRUPTED_COMM, 16);
        self.code.load(Width::B4, R1, R0, saved::BYTES);
        self.code.store(Width::B4, RECORD, base + maximum::EXPIRY_BYTES, R1);
        self.copy(R0, saved::STACK, base + maximum::EXPIRY, maximum::STACK_ROOM as i16);
        self.code.place(none);
        self.stack_into(RECORD, base + maximum::SWITCH, maximum::STACK_ROOM);
        self.code.store(Width::B4, RECORD, base + maximum::SWITCH_BYTES, R0);
    }
}
