//! sched_exit_tp: a thread has finished the switch to it: S, and T + W + S if there is a T.
//!
//! sched_switch leaves the wake-up in the CPU's values. The kernel may skip either program, so that
//! these may be of an earlier switch: they count only if they are of this thread, and the thread
//! has left no CPU since.

use super::counting::RECORD;
use super::{CONTEXT, Maps, NOT_REAL_TIME, SwitchedMaps, Writer};
use crate::assembler::{Alu, BadCode, Cond, FP, Helper, Label, R0, R1, R2, R3, R7, R8, Reg, Width};
use crate::fields::{ByTypes, EventFields, ExitFields};
use crate::layout::{CountedEvent, config, cpu, maximum, record, switched};

/// The thread, and this CPU's values.
const TASK: Reg = R7;
const CPU: Reg = R8;
/// Stack offsets: the time after the switch and the time of the switch; S and T + W + S, negative
/// without T; the row of each; the epoch.
const NOW: i16 = -16;
const SWITCHED: i16 = -24;
const VALUES: [i16; switched::SERIES] = [-32, -40];
const ROWS: [i16; switched::SERIES] = [-48, -56];
const EPOCH: i16 = -64;
/// Indices of the two series.
pub const SWITCH: usize = 0;
pub const WHOLE: usize = 1;

/// The program; it does nothing unless S is recorded.
pub fn gone_on(fields: &EventFields, maps: &Maps) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let out = w.code.label();
    let (EventFields::Types(types), Some(to)) = (fields, maps.switched) else { return w.finish(out) };
    let Ok(exit) = &types.exit else { return w.finish(out) };
    // Without a switch the thread did not wait for it.
    w.code.load(Width::B8, R1, CONTEXT, exit.is_switch);
    w.code.jump_imm(Cond::Eq, R1, 0, out);
    w.code.call(Helper::CurrentTaskBtf);
    w.code.mov(TASK, R0);
    w.code.load(Width::B4, R1, TASK, types.prio);
    w.code.jump_imm_32(Cond::SGe, R1, NOT_REAL_TIME, out);
    w.code.call(Helper::KtimeGetNs);
    w.code.store(Width::B8, FP, NOW, R0);
    w.this_cpu(CPU, out);
    w.recorded_wakeup(types, exit, out);
    w.count_switch(types, to);
    w.finish(out)
}

impl Writer<'_> {
    /// S and T + W + S on the stack, or on to `out`.
    fn recorded_wakeup(&mut self, types: &ByTypes, exit: &ExitFields, out: Label) {
        let (awake, timed, done) = (self.code.label(), self.code.label(), self.code.label());
        self.code.load(Width::B8, R1, CPU, cpu::SWITCHED);
        self.code.jump_imm(Cond::Eq, R1, 0, out);
        self.code.store_imm(Width::B8, CPU, cpu::SWITCHED, 0);
        self.code.store(Width::B8, FP, SWITCHED, R1);
        self.code.load(Width::B4, R2, TASK, types.tid);
        self.code.load(Width::B4, R3, CPU, cpu::SWITCHED_TID);
        self.code.jump_reg_32(Cond::Ne, R2, R3, out);
        self.code.load(Width::B8, R2, TASK, exit.slept);
        self.code.load(Width::B8, R3, TASK, exit.preempted);
        self.code.alu(Alu::Add, R2, R3);
        self.code.load(Width::B8, R3, CPU, cpu::SWITCHED_LEFT);
        self.code.jump_reg(Cond::Ne, R2, R3, out);
        self.config(R2, R3, Width::B8, config::RESUMED);
        self.code.jump_reg(Cond::Ge, R1, R2, awake);
        self.count(CPU, CountedEvent::Suspended);
        self.code.jump(out);
        self.code.place(awake);
        self.code.load(Width::B8, R2, FP, NOW);
        self.code.load(Width::B8, R1, CPU, cpu::SWITCHED_FROM);
        self.code.alu(Alu::Sub, R2, R1);
        self.code.store(Width::B8, FP, VALUES[SWITCH], R2);
        self.code.load(Width::B8, R1, CPU, cpu::SWITCHED_LATE);
        self.code.jump_imm(Cond::SGe, R1, 0, timed);
        self.code.store_imm(Width::B8, FP, VALUES[WHOLE], -1);
        self.code.jump(done);
        self.code.place(timed);
        self.code.alu(Alu::Add, R1, R2);
        self.code.load(Width::B8, R2, CPU, cpu::SWITCHED_WAIT);
        self.code.alu(Alu::Add, R1, R2);
        self.code.store(Width::B8, FP, VALUES[WHOLE], R1);
        self.code.place(done);
    }

    fn each_value(&mut self, one: impl Fn(&mut Self, usize)) {
        let untimed = self.code.label();
        one(self, SWITCH);
        self.code.load(Width::B8, R1, FP, VALUES[WHOLE]);
        self.code.jump_imm(Cond::SLt, R1, 0, untimed);
        one(self, WHOLE);
        self.code.place(untimed);
    }

    /// Counts into the record of this CPU and, if the thread has one, that of the thread, and
    /// updates the maxima that consist of this wake-up.
    fn count_switch(&mut self, types: &ByTypes, to: SwitchedMaps) {
        let (done, unchosen) = (self.code.label(), self.code.label());
        // Set before the epoch is read: the reader waits after a flip until no CPU is busy.
        self.code.store_imm(Width::B4, CPU, cpu::BUSY, 1);
        self.config(R1, R2, Width::B4, config::EPOCH);
        self.code.store(Width::B8, FP, EPOCH, R1);
        self.each_value(|w, series| w.find_row(VALUES[series], ROWS[series]));
        self.switched_index();
        self.look_up(to.records, R1, RECORD, done);
        self.each_value(|w, series| {
            let other = w.code.label();
            if series == WHOLE {
                // A holder of the same or a higher priority is the application's responsibility.
                w.code.load(Width::B4, R1, CPU, cpu::SWITCHED_CLASS);
                w.code.jump_imm(Cond::Gt, R1, 1, other);
            }
            w.count_row(VALUES[series], ROWS[series], series);
            w.keep_largest(types, series);
            w.code.place(other);
        });
        self.code.load(Width::B4, R1, CPU, cpu::SWITCHED_THREAD);
        self.code.jump_imm(Cond::Eq, R1, 0, unchosen);
        self.code.alu_imm(Alu::Sub, R1, 1);
        self.code.alu_imm(Alu::Lsh, R1, 1);
        self.code.load(Width::B8, R2, FP, EPOCH);
        self.code.alu_imm(Alu::And, R2, 1);
        self.code.alu(Alu::Add, R1, R2);
        self.look_up(to.threads, R1, RECORD, unchosen);
        self.each_value(|w, series| {
            w.count_row(VALUES[series], ROWS[series], series);
            w.keep_largest(types, series);
        });
        self.code.place(unchosen);
        self.tell_maxima(done);
        self.code.place(done);
        self.code.store_imm(Width::B4, CPU, cpu::BUSY, 0);
    }

    /// `switched::of_cpu`, in `R1`.
    fn switched_index(&mut self) {
        self.code.call(Helper::SmpProcessorId);
        self.code.mov_32(R1, R0);
        self.code.alu_imm(Alu::Lsh, R1, 1);
        self.code.load(Width::B8, R2, FP, EPOCH);
        self.code.alu_imm(Alu::And, R2, 1);
        self.code.alu(Alu::Add, R1, R2);
        self.code.alu_imm(Alu::Lsh, R1, 1);
        self.code.load(Width::B4, R2, CPU, cpu::SWITCHED_CLASS);
        self.code.alu_imm(Alu::And, R2, 1);
        self.code.alu(Alu::Add, R1, R2);
    }

    fn keep_largest(&mut self, types: &ByTypes, series: usize) {
        let base = (switched::MAXIMA + series * switched::LARGEST) as i16;
        let smaller = self.code.label();
        self.code.load(Width::B8, R1, FP, VALUES[series]);
        self.code.load(Width::B8, R2, RECORD, base + switched::VALUE);
        self.code.jump_reg(Cond::SLe, R1, R2, smaller);
        self.code.store(Width::B8, RECORD, base + switched::VALUE, R1);
        for (from, place, to) in [
            (CPU, cpu::SWITCHED_LATE, switched::LATE),
            (CPU, cpu::SWITCHED_WAIT, switched::WAIT),
            (FP, VALUES[SWITCH], switched::SWITCH),
            (FP, SWITCHED, switched::TIME),
        ] {
            self.code.load(Width::B8, R1, from, place);
            self.code.store(Width::B8, RECORD, base + to, R1);
        }
        self.code.load(Width::B4, R1, TASK, types.tid);
        self.code.store(Width::B4, RECORD, base + switched::VICTIM, R1);
        self.code.load(Width::B4, R1, TASK, types.prio);
        self.code.store(Width::B4, RECORD, base + switched::VICTIM_PRIO, R1);
        self.code.load(Width::B4, R1, TASK, types.process);
        self.code.store(Width::B4, RECORD, base + switched::VICTIM_PROCESS, R1);
        self.code.load(Width::B4, R1, CPU, cpu::SWITCHED_CLASS);
        self.code.alu_imm(Alu::Rsh, R1, 1);
        self.code.store(Width::B4, RECORD, base + switched::HOLDER, R1);
        self.code.mov(R1, RECORD);
        self.code.alu_imm(Alu::Add, R1, (base + switched::VICTIM_COMM).into());
        self.code.set(R2, 16);
        self.code.call(Helper::CurrentComm);
        self.code.place(smaller);
    }

    /// S to those maxima of sched_switch that are this wake-up.
    fn tell_maxima(&mut self, done: Label) {
        // Maxima of another epoch are being read.
        self.code.load(Width::B8, R1, FP, EPOCH);
        self.code.load(Width::B4, R2, CPU, cpu::SWITCHED_EPOCH);
        self.code.jump_reg_32(Cond::Ne, R1, R2, done);
        self.code.load(Width::B4, R1, CPU, cpu::SWITCHED_RECORD);
        self.look_up(self.maps.records, R1, RECORD, done);
        self.code.load(Width::B8, R2, FP, SWITCHED);
        self.code.load(Width::B8, R3, FP, VALUES[SWITCH]);
        self.code.alu_imm(Alu::Add, R3, 1);
        for series in 0..crate::layout::SERIES {
            let other = self.code.label();
            let base = (record::MAXIMA + series * maximum::SIZE) as i16;
            self.code.load(Width::B8, R1, RECORD, base + maximum::TIME);
            self.code.jump_reg(Cond::Ne, R1, R2, other);
            self.code.store(Width::B8, RECORD, base + maximum::SWITCH_TIME, R3);
            self.code.place(other);
        }
    }
}
