//! contended_release: a thread releases a lock that others wait for. The holder of a lock is in no
//! event of its waiters, so the last release is stored, and a maximum that follows it on another
//! CPU keeps it.
//!
//! Only a release right before the end of a wait is evidence, and only if no other thread released
//! a lock then; the reader decides on both. One word has the CPU and time of the last release, so
//! that two CPUs never write to the same entry.

use super::counting::VALUES;
use super::maxima::NOW;
use super::{Maps, SLOT, Writer};
use crate::assembler::{Alu, BadCode, Cond, FP, Helper, R0, R1, R2, R3, R7, R8, R9, Reg, Width};
use crate::fields::EventFields;
use crate::layout::{BOTH, RELEASED_CPU, config, cpu, release, slot};

const TIME: Reg = R7;
const CPU: Reg = R8;
/// The word of this release; later, the values of the CPU of the maximum.
const WORD: Reg = R9;
/// Stack offsets: the last word, and the one before it.
const LAST: i16 = -104;
const BEFORE: i16 = -112;

/// The program.
pub fn released(fields: &EventFields, maps: &Maps) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let (out, other, same) = (w.code.label(), w.code.label(), w.code.label());
    let at = |member: i16| cpu::RELEASE + member;
    w.this_cpu(CPU, out);
    w.code.call(Helper::KtimeGetNs);
    w.code.mov(TIME, R0);
    w.code.mov(WORD, R0);
    w.code.alu_imm(Alu::And, WORD, !RELEASED_CPU);
    w.code.call(Helper::SmpProcessorId);
    w.code.alu_imm(Alu::And, R0, RELEASED_CPU);
    w.code.alu(Alu::Or, WORD, R0);
    w.code.map_value(R2, maps.config);
    w.code.load(Width::B8, R3, R2, config::RELEASED);
    w.code.mov(R1, R3);
    w.code.alu_imm(Alu::And, R1, RELEASED_CPU);
    w.code.jump_reg(Cond::Ne, R1, R0, other);
    w.code.store(Width::B8, FP, LAST, R3);
    w.code.call(Helper::CurrentPidTgid);
    w.code.mov_32(R0, R0);
    w.code.load(Width::B4, R1, CPU, at(release::TID));
    w.code.load(Width::B8, R3, FP, LAST);
    w.code.map_value(R2, maps.config);
    w.code.jump_reg_32(Cond::Eq, R0, R1, same);
    w.code.place(other);
    w.code.store(Width::B8, R2, config::RELEASED_BEFORE, R3);
    w.code.place(same);
    // The reader skips an entry that is half written.
    w.code.store_imm(Width::B8, CPU, at(release::TIME), 0);
    w.code.call(Helper::CurrentPidTgid);
    w.code.store(Width::B4, CPU, at(release::TID), R0);
    w.code.mov(R1, CPU);
    w.code.alu_imm(Alu::Add, R1, at(release::COMM).into());
    w.code.set(R2, 16);
    w.code.call(Helper::CurrentComm);
    w.stack_into(CPU, at(release::STACK), release::STACK_ROOM);
    w.code.store(Width::B4, CPU, at(release::BYTES), R0);
    w.code.store(Width::B8, CPU, at(release::TIME), TIME);
    w.code.map_value(R2, maps.config);
    w.code.store(Width::B8, R2, config::RELEASED, WORD);
    w.finish(out)
}

impl Writer<'_> {
    /// Keeps the last release of another CPU with a maximum that was stored now, unless a larger
    /// one of this epoch has one. The CPU's values are in `R9`, before and afterwards; destroys
    /// `R8`.
    pub(super) fn keep_release(&mut self) {
        let (none, newer, done) = (self.code.label(), self.code.label(), self.code.label());
        self.code.load(Width::B8, R1, SLOT, slot::PENDING_TIME);
        self.code.load(Width::B8, R8, FP, NOW);
        self.code.jump_reg(Cond::Ne, R1, R8, done);
        self.code.map_value(R2, self.maps.config);
        self.code.load(Width::B8, R1, R2, config::RELEASED);
        self.code.load(Width::B8, R3, R2, config::RELEASED_BEFORE);
        self.code.store(Width::B8, FP, LAST, R1);
        self.code.store(Width::B8, FP, BEFORE, R3);
        // Within the latency of a wake-up with T: without its timer's stack no lock is seen.
        self.code.alu(Alu::Sub, R8, R1);
        self.code.load(Width::B8, R3, FP, VALUES[BOTH]);
        self.code.jump_imm(Cond::SLt, R3, 0, done);
        self.code.jump_reg(Cond::Gt, R8, R3, done);
        self.code.load(Width::B4, R1, R2, config::EPOCH);
        self.code.load(Width::B8, R2, R9, cpu::FREED_EPOCH);
        self.code.jump_reg(Cond::Ne, R1, R2, newer);
        self.code.load(Width::B8, R2, R9, cpu::FREED_VALUE);
        self.code.jump_reg(Cond::SGt, R2, R3, done);
        self.code.place(newer);
        self.code.store_imm(Width::B8, R9, cpu::FREED, 0);
        self.code.store(Width::B8, R9, cpu::FREED_EPOCH, R1);
        self.code.store(Width::B8, R9, cpu::FREED_VALUE, R3);
        self.code.call(Helper::SmpProcessorId);
        self.code.load(Width::B8, R1, FP, LAST);
        self.code.alu_imm(Alu::And, R1, RELEASED_CPU);
        self.code.jump_reg(Cond::Eq, R1, R0, none);
        self.look_up(self.maps.cpus, R1, R8, none);
        self.copy(R8, cpu::RELEASE, cpu::FREED_RELEASE, release::SIZE as i16);
        self.code.load(Width::B8, R1, R9, cpu::FREED_RELEASE + release::TIME);
        self.code.alu_imm(Alu::And, R1, !RELEASED_CPU);
        self.code.load(Width::B8, R2, FP, LAST);
        self.code.alu_imm(Alu::And, R2, !RELEASED_CPU);
        self.code.jump_reg(Cond::Ne, R1, R2, none);
        self.code.load(Width::B8, R1, FP, BEFORE);
        self.code.alu_imm(Alu::And, R1, !RELEASED_CPU);
        self.code.store(Width::B8, R9, cpu::FREED_OTHER, R1);
        self.code.load(Width::B8, R1, FP, NOW);
        self.code.store(Width::B8, R9, cpu::FREED, R1);
        self.code.place(none);
        self.code.place(done);
    }
}
