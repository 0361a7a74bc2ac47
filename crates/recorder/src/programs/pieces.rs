//! The real-time threads that had this CPU last, piece by piece, and the part of a wait in which
//! the previous one had it.
//!
//! A 1 kHz loop cuts a longer run of another thread into pieces, and the time since the last switch
//! is only the last of them.

use super::leaving::Side;
use super::maxima::{HELD, NOW};
use super::{NOT_REAL_TIME, Writer};
use crate::assembler::{Alu, Cond, FP, Label, R0, R1, R2, R3, R4, R5, R8, R9, Reg, Width};
use crate::layout::{PIECES, cpu, piece};

/// Address of this CPU's values.
const CPU: Reg = R9;
/// Waking time of the thread that gets the CPU.
const WAKE: Reg = R8;

impl Writer<'_> {
    /// Begins a piece of the next thread, or one without a thread if that is not real-time. The
    /// last piece loses its thread if another one leaves the CPU: a switch was not seen. `R0` holds
    /// the time; `tid` gets the next thread's id; continues at `out` if it is not real-time.
    pub(super) fn begin_piece(&mut self, tid: Reg, out: Label) {
        let (seen, real_time) = (self.code.label(), self.code.label());
        self.tid(R2, R3, Side::Previous);
        self.code.load(Width::B4, R4, CPU, cpu::PIECE);
        self.piece(R1, R4);
        self.code.load(Width::B4, R3, R1, cpu::PIECES + piece::TID);
        self.code.jump_reg_32(Cond::Eq, R2, R3, seen);
        self.code.store_imm(Width::B4, R1, cpu::PIECES + piece::TID, 0);
        self.code.place(seen);
        self.code.alu_imm(Alu::Add, R4, 1);
        self.code.store(Width::B4, CPU, cpu::PIECE, R4);
        self.piece(R1, R4);
        self.code.store(Width::B8, R1, cpu::PIECES + piece::SINCE, R0);
        self.code.store_imm(Width::B4, R1, cpu::PIECES + piece::TID, 0);
        self.priority(R2, R3, Side::Next);
        self.code.jump_imm_32(Cond::SLt, R2, NOT_REAL_TIME, real_time);
        self.code.jump(out);
        self.code.place(real_time);
        self.tid(tid, R2, Side::Next);
        self.code.store(Width::B4, R1, cpu::PIECES + piece::TID, tid);
    }

    /// Stores the sum of the previous thread's pieces since the waking, plus 1, on the stack; 0 if
    /// its last piece was not seen. The next thread's piece has begun already.
    pub(super) fn held(&mut self) {
        let (unknown, done) = (self.code.label(), self.code.label());
        self.code.store_imm(Width::B8, FP, HELD, 0);
        self.tid(R3, R2, Side::Previous);
        self.code.load(Width::B4, R5, CPU, cpu::PIECE);
        self.code.alu_imm(Alu::Sub, R5, 1);
        self.piece(R1, R5);
        self.code.load(Width::B4, R1, R1, cpu::PIECES + piece::TID);
        self.code.jump_imm_32(Cond::Eq, R1, 0, unknown);
        self.code.jump_reg_32(Cond::Ne, R1, R3, unknown);
        self.code.set(R0, 1);
        self.code.load(Width::B8, R4, FP, NOW);
        for _ in 1..PIECES {
            let (other, whole) = (self.code.label(), self.code.label());
            self.piece(R1, R5);
            self.code.load(Width::B8, R2, R1, cpu::PIECES + piece::SINCE);
            self.code.jump_imm(Cond::Eq, R2, 0, done);
            self.code.load(Width::B4, R1, R1, cpu::PIECES + piece::TID);
            self.code.jump_reg_32(Cond::Ne, R1, R3, other);
            self.code.alu(Alu::Add, R0, R4);
            self.code.jump_reg(Cond::Ge, R2, WAKE, whole);
            self.code.alu(Alu::Sub, R0, WAKE);
            self.code.jump(done);
            self.code.place(whole);
            self.code.alu(Alu::Sub, R0, R2);
            self.code.place(other);
            self.code.jump_reg(Cond::Le, R2, WAKE, done);
            self.code.mov(R4, R2);
            self.code.alu_imm(Alu::Sub, R5, 1);
        }
        self.code.place(done);
        self.code.store(Width::B8, FP, HELD, R0);
        self.code.place(unknown);
    }

    /// Computes the address of a numbered piece, without the common offset.
    fn piece(&mut self, to: Reg, number: Reg) {
        self.code.mov(to, number);
        self.code.alu_imm(Alu::And, to, PIECES as i32 - 1);
        self.code.alu_imm(Alu::Mul, to, piece::SIZE as i32);
        self.code.alu(Alu::Add, to, CPU);
    }
}
