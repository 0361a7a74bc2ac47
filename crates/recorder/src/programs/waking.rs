//! sched_waking: a recorded thread is woken; T, if its timer did it.

use super::{Maps, NOT_REAL_TIME, SLOT, Writer};
use crate::assembler::{Alu, BadCode, Cond, FP, Helper, Label, R0, R1, R2, R3, R8, R9, Reg, Width};
use crate::fields::EventFields;
use crate::layout::{CountedEvent, config, cpu, maximum, saved, slot};

/// The time of the waking, and this CPU's values.
const NOW: Reg = R8;
const CPU: Reg = R9;
/// Stack offsets of T, and of the key of a saved stack.
const LATE: i16 = -16;
const PLACE: i16 = -24;

/// The program.
pub fn woken(fields: &EventFields, maps: &Maps) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let (out, awake, matched) = (w.code.label(), w.code.label(), w.code.label());
    match fields {
        EventFields::Format(format) => w.field(R1, format.waking_prio),
        EventFields::Types(types) => w.member(R1, R2, 0, Width::B4, types.prio),
    }
    w.code.jump_imm_32(Cond::SGe, R1, NOT_REAL_TIME, out);
    match fields {
        EventFields::Format(format) => w.field(R8, format.waking_tid),
        EventFields::Types(types) => w.member(R8, R2, 0, Width::B4, types.tid),
    }
    w.slot_of(R8, out);
    w.this_cpu(CPU, out);
    w.code.call(Helper::KtimeGetNs);
    w.code.mov(NOW, R0);
    // A waking without a switch since was one of a thread that had not slept.
    w.code.load(Width::B8, R1, SLOT, slot::WAKE);
    w.code.jump_imm(Cond::Eq, R1, 0, awake);
    w.count(CPU, CountedEvent::Early);
    w.code.place(awake);
    w.code.store(Width::B8, SLOT, slot::WAKE, NOW);
    w.code.store_imm(Width::B8, SLOT, slot::LATE, -1);
    w.code.store_imm(Width::B4, SLOT, slot::STACK, 0);
    w.timer_of_sleep(matched);
    w.match_timer(1, matched, out);
    w.code.place(matched);
    w.note_late(out);
    w.finish(out)
}

impl Writer<'_> {
    /// Handles the timer of the sleep, which ends with the sleep whether it fired or not. Continues
    /// at `matched` with T on the stack.
    fn timer_of_sleep(&mut self, matched: Label) {
        let (not, late) = (self.code.label(), self.code.label());
        self.match_timer(0, matched, late);
        // If it had expired and was not seen to fire, that is counted: by CLOCK_MONOTONIC, from
        // which the other clocks are far ahead.
        self.code.place(late);
        self.code.load(Width::B8, R1, SLOT, slot::TIMERS[0]);
        self.code.jump_imm(Cond::Eq, R1, 0, not);
        self.code.store_imm(Width::B8, SLOT, slot::TIMERS[0], 0);
        self.code.load(Width::B8, R1, SLOT, slot::EXPIRIES[0]);
        self.code.jump_reg(Cond::SLt, NOW, R1, not);
        self.count(CPU, CountedEvent::Unmatched);
        self.code.place(not);
    }

    /// Branches to `matched` if a kind's timer is the one that fired here last, after its expiry.
    fn match_timer(&mut self, kind: usize, matched: Label, not: Label) {
        let same = self.code.label();
        self.code.load(Width::B8, R1, SLOT, slot::TIMERS[kind]);
        self.code.jump_imm(Cond::Eq, R1, 0, not);
        self.code.load(Width::B8, R2, CPU, cpu::TIMERS[kind]);
        self.code.jump_reg(Cond::Ne, R1, R2, not);
        self.code.load(Width::B8, R1, CPU, cpu::FIRED[kind]);
        self.code.load(Width::B8, R2, SLOT, slot::EXPIRIES[kind]);
        self.code.jump_reg(Cond::SLt, R1, R2, not);
        // The timer is used up: the same memory may hold another one next.
        self.code.store_imm(Width::B8, SLOT, slot::TIMERS[kind], 0);
        self.config(R1, R3, Width::B4, config::SUSPENDS);
        self.code.load(Width::B4, R3, SLOT, slot::SUSPENDS[kind]);
        self.code.jump_reg_32(Cond::Eq, R1, R3, same);
        self.count(CPU, CountedEvent::Suspended);
        self.code.jump(not);
        self.code.place(same);
        // T = the timer's clock now - expiry.
        self.code.load(Width::B8, R1, CPU, cpu::SHIFTS[kind]);
        self.code.alu(Alu::Add, R1, NOW);
        self.code.alu(Alu::Sub, R1, R2);
        self.code.store(Width::B8, FP, LATE, R1);
        self.code.jump_imm(Cond::SGe, R1, 0, matched);
        if kind == 1 {
            self.code.jump(not);
        }
    }

    /// Stores T and the interrupted thread; the stack only if no T of this epoch was larger on this
    /// CPU.
    fn note_late(&mut self, out: Label) {
        let current = self.code.label();
        self.code.load(Width::B8, R1, FP, LATE);
        self.code.store(Width::B8, SLOT, slot::LATE, R1);
        self.code.call(Helper::CurrentPidTgid);
        self.code.store(Width::B8, SLOT, slot::INTERRUPTED, R0);
        match self.fields {
            EventFields::Types(types) => {
                self.code.call(Helper::CurrentTaskBtf);
                self.code.load(Width::B4, R1, R0, types.prio);
                self.code.store(Width::B4, SLOT, slot::INTERRUPTED_PRIO, R1);
            }
            EventFields::Format(_) => self.code.store_imm(Width::B4, SLOT, slot::INTERRUPTED_PRIO, i32::MIN),
        }
        self.config(R1, R2, Width::B4, config::EPOCH);
        self.code.load(Width::B4, R2, CPU, cpu::LATEST_EPOCH);
        self.code.jump_reg_32(Cond::Eq, R1, R2, current);
        self.code.store(Width::B4, CPU, cpu::LATEST_EPOCH, R1);
        self.code.store_imm(Width::B8, CPU, cpu::LATEST, 0);
        self.code.place(current);
        self.code.load(Width::B8, R1, FP, LATE);
        self.code.load(Width::B8, R2, CPU, cpu::LATEST);
        self.code.jump_reg(Cond::SLe, R1, R2, out);
        self.code.store(Width::B8, CPU, cpu::LATEST, R1);
        self.save_stack(out);
    }

    fn save_stack(&mut self, out: Label) {
        self.code.call(Helper::SmpProcessorId);
        self.code.mov_32(R1, R0);
        self.code.alu_imm(Alu::Mul, R1, saved::PER_CPU as i32);
        self.code.load(Width::B4, R2, CPU, cpu::NEXT_STACK);
        self.code.alu_imm(Alu::And, R2, saved::PER_CPU as i32 - 1);
        self.code.alu(Alu::Add, R1, R2);
        self.code.store(Width::B8, FP, PLACE, R1);
        self.code.alu_imm(Alu::Add, R2, 1);
        self.code.store(Width::B4, CPU, cpu::NEXT_STACK, R2);
        self.look_up(self.maps.saved, R1, R9, out);
        self.code.load(Width::B8, R1, FP, PLACE);
        self.code.alu_imm(Alu::Add, R1, 1);
        self.code.store(Width::B4, SLOT, slot::STACK, R1);
        self.code.store(Width::B8, R9, saved::WAKE, NOW);
        self.code.load(Width::B4, R1, SLOT, slot::TID);
        self.code.store(Width::B4, R9, saved::TID, R1);
        self.code.mov(R1, R9);
        self.code.alu_imm(Alu::Add, R1, saved::COMM.into());
        self.code.set(R2, 16);
        self.code.call(Helper::CurrentComm);
        self.stack_into(R9, saved::STACK, maximum::STACK_ROOM);
        self.code.store(Width::B4, R9, saved::BYTES, R0);
    }
}
