//! Counting a wake-up into the histograms of a record.

use super::Writer;
use crate::assembler::{Alu, Cond, FP, R1, R2, R3, R4, R5, R9, Reg, Width};
use crate::layout::{BEYOND, LARGEST, SERIES, TIMER, WAKEUP, histogram};

/// The record that is counted into.
pub(super) const RECORD: Reg = R9;
/// Stack offsets of T, W, T + W, and of each one's row in bytes. T is negative if absent.
pub(super) const VALUES: [i16; SERIES] = [-24, -32, -40];
const ROWS: [i16; SERIES] = [-48, -56, -64];
/// Minima are stored as their distance from here, so that zero means none.
pub const LEAST_FROM: u64 = 1 << 62;

impl Writer<'_> {
    /// Calls `one` for each series; skips those with T if absent.
    pub(super) fn each_series(&mut self, mut one: impl FnMut(&mut Self, usize)) {
        one(self, WAKEUP);
        let untimed = self.code.label();
        self.code.load(Width::B8, R1, FP, VALUES[TIMER]);
        self.code.jump_imm(Cond::SLt, R1, 0, untimed);
        one(self, TIMER);
        one(self, crate::layout::BOTH);
        self.code.place(untimed);
    }

    /// The rows of all values.
    pub(super) fn find_rows(&mut self) {
        self.each_series(|w, series| w.find_row(VALUES[series], ROWS[series]));
    }

    /// Computes the row of a value, both on the stack, as `model::rows::row_of` does; the logarithm
    /// takes six steps without a jump, so that the verifier follows one path instead of 64.
    pub(super) fn find_row(&mut self, value: i16, row: i16) {
        let (early, beyond, done) = (self.code.label(), self.code.label(), self.code.label());
        self.code.load(Width::B8, R3, FP, value);
        self.code.jump_imm(Cond::SLt, R3, 0, early);
        self.code.set_wide(R2, LARGEST);
        self.code.jump_reg(Cond::Gt, R3, R2, beyond);
        self.code.mov(R2, R3);
        self.code.alu_imm(Alu::Or, R2, 32);
        self.code.set(R4, 0);
        for bit in (0..6).rev() {
            let largest = (1u64 << (1u32 << bit)) - 1;
            self.code.set_wide(R5, largest);
            self.code.alu(Alu::Sub, R5, R2);
            self.code.alu_imm(Alu::Rsh, R5, 63);
            self.code.alu_imm(Alu::Lsh, R5, bit);
            self.code.alu(Alu::Rsh, R2, R5);
            self.code.alu(Alu::Add, R4, R5);
        }
        self.code.alu_imm(Alu::Sub, R4, 5);
        self.code.alu_imm(Alu::And, R4, 63);
        self.code.mov(R1, R3);
        self.code.alu(Alu::Rsh, R1, R4);
        self.code.alu_imm(Alu::Lsh, R4, 5);
        self.code.alu(Alu::Add, R1, R4);
        self.code.alu_imm(Alu::Add, R1, 1);
        self.code.jump(done);
        self.code.place(early);
        self.code.set(R1, 0);
        self.code.jump(done);
        self.code.place(beyond);
        self.code.set(R1, BEYOND as i32);
        self.code.place(done);
        self.code.alu_imm(Alu::Lsh, R1, 2);
        self.code.store(Width::B8, FP, row, R1);
    }

    /// Adds one to the record's histograms.
    pub(super) fn count_rows(&mut self) {
        self.each_series(|w, series| w.count_row(VALUES[series], ROWS[series], series));
    }

    /// Adds one to a series' histogram of the record.
    pub(super) fn count_row(&mut self, value: i16, row: i16, series: usize) {
        let (outside, larger) = (self.code.label(), self.code.label());
        let at = |member: i16| (series * histogram::SIZE) as i16 + member;
        self.code.load(Width::B8, R1, FP, row);
        self.code.jump_imm(Cond::Gt, R1, BEYOND as i32 * 4, outside);
        self.code.mov(R2, RECORD);
        self.code.alu(Alu::Add, R2, R1);
        self.code.load(Width::B4, R3, R2, at(histogram::ROWS));
        self.code.alu_imm(Alu::Add, R3, 1);
        self.code.store(Width::B4, R2, at(histogram::ROWS), R3);
        self.code.load(Width::B8, R3, FP, value);
        self.code.load(Width::B8, R2, RECORD, at(histogram::SUM));
        self.code.alu(Alu::Add, R2, R3);
        self.code.store(Width::B8, RECORD, at(histogram::SUM), R2);
        self.code.set_wide(R2, LEAST_FROM);
        self.code.alu(Alu::Sub, R2, R3);
        self.code.load(Width::B8, R3, RECORD, at(histogram::LEAST));
        self.code.jump_reg(Cond::Le, R2, R3, larger);
        self.code.store(Width::B8, RECORD, at(histogram::LEAST), R2);
        self.code.place(larger);
        self.code.place(outside);
    }
}
