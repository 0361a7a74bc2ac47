//! sched_switch: a thread leaves its CPU, another gets it: W.

use super::counting::{RECORD, VALUES};
use super::leaving::Side;
use super::maxima::{INDEX, NOW};
use super::{CONTEXT, Maps, NOT_REAL_TIME, SLOT, Writer};
use crate::assembler::{Alu, BadCode, Cond, FP, Helper, Label, R0, R1, R2, R3, R4, R5, R8, R9, Reg, Width};
use crate::fields::EventFields;
use crate::layout::{BOTH, CountedEvent, TIMER, WAKEUP, config, cpu, slot};

/// The thread that gets the CPU; later, its waking time.
const TID: Reg = R8;
const WAKE: Reg = R8;
/// Address of this CPU's values until a record is needed; then it is on the stack.
const CPU: Reg = R9;
const KEPT_CPU: i16 = -72;
const EPOCH: i16 = -88;

/// The program.
pub fn switched(fields: &EventFields, maps: &Maps) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let (out, next) = (w.code.label(), w.code.label());
    w.leaving(next);
    w.code.place(next);
    w.arriving(out);
    w.finish(out)
}

impl Writer<'_> {
    fn arriving(&mut self, out: Label) {
        let (ours, other_thread, woken) = (self.code.label(), self.code.label(), self.code.label());
        self.gets_the_cpu(out);
        self.slot_at(TID, out);
        self.code.load(Width::B4, R1, SLOT, slot::TID);
        self.code.jump_reg_32(Cond::Eq, R1, TID, ours);
        self.code.jump_imm_32(Cond::Ne, R1, 0, other_thread);
        self.claim(Side::Next, out);
        self.code.jump(out);
        self.code.place(other_thread);
        self.config(R1, R2, Width::B4, config::CLAIM);
        self.code.jump_imm(Cond::Eq, R1, 0, out);
        self.count(CPU, CountedEvent::Collisions);
        self.code.jump(out);
        self.code.place(ours);
        if self.maps.switched.is_some() {
            self.code.store_imm(Width::B8, CPU, cpu::SWITCHED, 0);
        }
        self.code.load(Width::B8, WAKE, SLOT, slot::WAKE);
        self.code.jump_imm(Cond::Ne, WAKE, 0, woken);
        // It was preempted and resumes; or it slept, and its waking was not seen.
        let unseen = self.code.label();
        self.code.load(Width::B4, R1, SLOT, slot::SLEPT);
        self.code.jump_imm(Cond::Eq, R1, 0, out);
        self.code.jump(unseen);
        self.code.place(woken);
        self.known_kind(unseen);
        self.measure(out);
        self.keep();
        self.code.jump(out);
        self.code.place(unseen);
        self.code.store_imm(Width::B8, SLOT, slot::WAKE, 0);
        self.code.store_imm(Width::B4, SLOT, slot::SLEPT, 0);
        self.count(CPU, CountedEvent::Unwoken);
    }

    /// Stores the time at which the next thread got the CPU; goes to `out` if it is not real-time.
    fn gets_the_cpu(&mut self, out: Label) {
        let noted = self.code.label();
        self.priority(R1, R2, Side::Next);
        self.code.jump_imm_32(Cond::SLt, R1, NOT_REAL_TIME, noted);
        self.priority(R1, R2, Side::Previous);
        self.code.jump_imm_32(Cond::SGe, R1, NOT_REAL_TIME, out);
        self.code.place(noted);
        self.this_cpu(CPU, out);
        self.code.call(Helper::KtimeGetNs);
        self.code.store(Width::B8, FP, NOW, R0);
        self.begin_piece(TID, out);
    }

    /// Continues at `unknown` if the thread's kind is unknown: a record shows it when the thread
    /// leaves, so not before the first time since it has its slot.
    fn known_kind(&mut self, unknown: Label) {
        if let EventFields::Format(_) = self.fields {
            self.code.load(Width::B4, R1, SLOT, slot::KIND);
            self.code.jump_imm_32(Cond::Eq, R1, slot::UNKNOWN, unknown);
        }
    }

    /// T, W and T + W on the stack, or on to `out`.
    fn measure(&mut self, out: Label) {
        let (awake, slept) = (self.code.label(), self.code.label());
        let (counted, untimed) = (self.code.label(), self.code.label());
        self.code.store_imm(Width::B8, SLOT, slot::WAKE, 0);
        self.code.load(Width::B8, R0, FP, NOW);
        self.code.alu(Alu::Sub, R0, WAKE);
        self.code.store(Width::B8, FP, VALUES[WAKEUP], R0);
        self.config(R1, R2, Width::B8, config::RESUMED);
        self.code.jump_reg(Cond::Ge, WAKE, R1, awake);
        self.code.store_imm(Width::B4, SLOT, slot::SLEPT, 0);
        self.count(CPU, CountedEvent::Suspended);
        self.code.jump(out);
        self.code.place(awake);
        self.code.load(Width::B4, R1, SLOT, slot::SLEPT);
        self.code.jump_imm(Cond::Ne, R1, 0, slept);
        self.count(CPU, CountedEvent::Preempted);
        self.code.jump(counted);
        self.code.place(slept);
        self.code.load(Width::B4, R1, SLOT, slot::RECORDED);
        self.code.alu_imm(Alu::Add, R1, 1);
        self.code.store(Width::B4, SLOT, slot::RECORDED, R1);
        self.code.place(counted);
        self.code.store_imm(Width::B4, SLOT, slot::SLEPT, 0);
        self.count(CPU, CountedEvent::Recorded);
        self.code.load(Width::B8, R1, SLOT, slot::LATE);
        self.code.store(Width::B8, FP, VALUES[TIMER], R1);
        self.code.jump_imm(Cond::SLt, R1, 0, untimed);
        self.code.load(Width::B8, R2, FP, VALUES[WAKEUP]);
        self.code.alu(Alu::Add, R1, R2);
        self.code.place(untimed);
        self.code.store(Width::B8, FP, VALUES[BOTH], R1);
        self.held();
    }

    /// Counts into the record of this CPU and class, and into that of the thread, if it has one.
    fn keep(&mut self) {
        let (done, unchosen) = (self.code.label(), self.code.label());
        self.code.store(Width::B8, FP, KEPT_CPU, CPU);
        // Set before the epoch is read: the reader waits after a flip until no CPU is busy.
        self.code.store_imm(Width::B4, CPU, cpu::BUSY, 1);
        self.config(R1, R2, Width::B4, config::EPOCH);
        if self.maps.switched.is_some() {
            self.code.store(Width::B4, CPU, cpu::SWITCHED_EPOCH, R1);
        }
        self.code.alu_imm(Alu::And, R1, 1);
        self.code.store(Width::B8, FP, EPOCH, R1);
        self.record_index();
        self.code.store(Width::B8, FP, INDEX, R1);
        self.note_switch();
        self.look_up(self.maps.records, R1, RECORD, done);
        self.find_rows();
        self.count_rows();
        self.keep_maxima(true);
        self.code.load(Width::B8, CPU, FP, KEPT_CPU);
        self.keep_release();
        self.code.load(Width::B4, R1, SLOT, slot::THREAD);
        self.code.jump_imm(Cond::Eq, R1, 0, unchosen);
        self.code.alu_imm(Alu::Sub, R1, 1);
        self.code.alu_imm(Alu::Lsh, R1, 1);
        self.code.load(Width::B8, R2, FP, EPOCH);
        self.code.alu(Alu::Add, R1, R2);
        self.look_up(self.maps.threads, R1, RECORD, unchosen);
        self.count_rows();
        self.keep_maxima(false);
        self.code.place(unchosen);
        self.code.place(done);
        self.code.load(Width::B8, CPU, FP, KEPT_CPU);
        self.code.store_imm(Width::B4, CPU, cpu::BUSY, 0);
        if self.maps.switched.is_some() {
            self.code.call(Helper::KtimeGetNs);
            self.code.store(Width::B8, CPU, cpu::SWITCHED_FROM, R0);
        }
    }

    /// `record::of_cpu`, in `R1`, for the epoch in `R1`.
    fn record_index(&mut self) {
        let classed = self.code.label();
        self.code.call(Helper::SmpProcessorId);
        self.code.mov_32(R4, R0);
        self.code.load(Width::B8, R1, FP, EPOCH);
        self.code.alu_imm(Alu::Lsh, R4, 1);
        self.code.alu(Alu::Add, R1, R4);
        self.code.alu_imm(Alu::Mul, R1, 3);
        self.code.set(R5, 0);
        self.priority(R2, R3, Side::Previous);
        self.priority(R3, R4, Side::Next);
        // Smaller numbers are higher priorities. A thread of lower priority, or none: the wait is
        // the kernel's.
        self.code.jump_reg_32(Cond::SGt, R2, R3, classed);
        self.code.set(R5, 1);
        self.code.jump_reg_32(Cond::Eq, R2, R3, classed);
        self.code.set(R5, 2);
        self.code.place(classed);
        self.code.alu(Alu::Add, R1, R5);
        self.code.alu_imm(Alu::Lsh, R1, 1);
        self.code.load(Width::B4, R2, SLOT, slot::KIND);
        self.code.alu_imm(Alu::And, R2, 1);
        self.code.alu(Alu::Add, R1, R2);
        if self.maps.switched.is_some() {
            self.code.alu_imm(Alu::Lsh, R5, 1);
            self.code.alu(Alu::Add, R5, R2);
            self.code.store(Width::B4, CPU, cpu::SWITCHED_CLASS, R5);
        }
    }

    /// Stores the values of this wake-up that the program of S needs. The record's index is in
    /// `R1`, before and afterwards.
    fn note_switch(&mut self) {
        let (Some(_), EventFields::Types(types)) = (self.maps.switched, self.fields) else { return };
        let Ok(exit) = &types.exit else { return };
        self.code.store(Width::B4, CPU, cpu::SWITCHED_RECORD, R1);
        for (from, to) in
            [(NOW, cpu::SWITCHED), (VALUES[TIMER], cpu::SWITCHED_LATE), (VALUES[WAKEUP], cpu::SWITCHED_WAIT)]
        {
            self.code.load(Width::B8, R1, FP, from);
            self.code.store(Width::B8, CPU, to, R1);
        }
        for (from, to) in [(slot::TID, cpu::SWITCHED_TID), (slot::THREAD, cpu::SWITCHED_THREAD)] {
            self.code.load(Width::B4, R1, SLOT, from);
            self.code.store(Width::B4, CPU, to, R1);
        }
        self.code.load(Width::B8, R2, CONTEXT, types.next);
        self.code.load(Width::B8, R1, R2, exit.slept);
        self.code.load(Width::B8, R2, R2, exit.preempted);
        self.code.alu(Alu::Add, R1, R2);
        self.code.store(Width::B8, CPU, cpu::SWITCHED_LEFT, R1);
        self.code.load(Width::B8, R1, FP, INDEX);
    }
}
