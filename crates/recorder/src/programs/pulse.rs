//! A periodic timer on a CPU where nothing is measured. If its interrupt is late together with that
//! of a measured CPU, all CPUs stood still: a virtual machine that is stopped from outside accounts
//! no steal time.
//!
//! A pulse that interrupts the idle thread or a program is better evidence than one that interrupts
//! a function of the kernel: that may have had interrupts off, as the stopper and the holder of a
//! lock do on two CPUs at once.

use super::{Maps, Writer};
use crate::assembler::{Alu, BadCode, Cond, FP, Helper, R0, R1, R2, R3, R7, R8, R9, Reg, Width};
use crate::fields::EventFields;
use crate::layout::{LATE_PULSES, config, late_pulse};

/// Its period: a stop of twice as long is seen wherever it begins.
pub const PERIOD: u64 = 10_000_000;
/// The least lateness that is recorded, in nanoseconds.
const MIN_LATE: i32 = 1_000_000;

const NOW: Reg = R7;
const SHARED: Reg = R8;
const LATE: Reg = R9;
/// Stack offsets: room for one address, and whether a function of the kernel was interrupted.
const ROOM: i16 = -16;
const IN_KERNEL: i16 = -24;

/// The program.
pub fn pulsed(fields: &EventFields, maps: &Maps) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let (out, interruptible) = (w.code.label(), w.code.label());
    w.code.call(Helper::KtimeGetNs);
    w.code.mov(NOW, R0);
    w.code.map_value(SHARED, maps.config);
    w.code.load(Width::B8, R1, SHARED, config::PULSED);
    w.code.store(Width::B8, SHARED, config::PULSED, NOW);
    w.code.jump_imm(Cond::Eq, R1, 0, out);
    w.code.mov(LATE, NOW);
    w.code.alu(Alu::Sub, LATE, R1);
    w.code.alu_imm(Alu::Sub, LATE, PERIOD as i32);
    w.code.jump_imm(Cond::SLe, LATE, MIN_LATE, out);
    w.code.store_imm(Width::B8, FP, IN_KERNEL, 0);
    w.code.call(Helper::CurrentPidTgid);
    w.code.mov_32(R1, R0);
    w.code.jump_imm(Cond::Eq, R1, 0, interruptible);
    w.stack_into(FP, ROOM, 8);
    // An error may be any place.
    w.code.jump_imm(Cond::Eq, R0, 0, interruptible);
    w.code.store_imm(Width::B8, FP, IN_KERNEL, 1);
    w.code.place(interruptible);
    let at = |nth: usize, member: i16| config::LATE_PULSES + (nth * late_pulse::SIZE) as i16 + member;
    w.code.set(R1, 0);
    w.code.load(Width::B8, R2, SHARED, at(0, late_pulse::LATE));
    for nth in 1..LATE_PULSES {
        let larger = w.code.label();
        w.code.load(Width::B8, R3, SHARED, at(nth, late_pulse::LATE));
        w.code.jump_reg(Cond::Ge, R3, R2, larger);
        w.code.mov(R2, R3);
        w.code.set(R1, (nth * late_pulse::SIZE) as i32);
        w.code.place(larger);
    }
    w.code.jump_reg(Cond::SLe, LATE, R2, out);
    // So that the verifier sees that it is within the map.
    w.code.alu_imm(Alu::And, R1, ((LATE_PULSES - 1) * late_pulse::SIZE) as i32);
    w.code.alu(Alu::Add, SHARED, R1);
    // The reader skips an entry that is half written.
    w.code.store_imm(Width::B8, SHARED, at(0, late_pulse::LATE), 0);
    w.code.store(Width::B8, SHARED, at(0, late_pulse::CAME), NOW);
    w.code.load(Width::B8, R1, FP, IN_KERNEL);
    w.code.store(Width::B8, SHARED, at(0, late_pulse::IN_KERNEL), R1);
    w.code.store(Width::B8, SHARED, at(0, late_pulse::LATE), LATE);
    w.finish(out)
}
