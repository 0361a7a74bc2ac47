//! A timer is started, and fires.

use super::{CONTEXT, Functions, Maps, SLOT, TimerKind, Writer};
use crate::assembler::{Alu, BadCode, Cond, Helper, Label, R0, R1, R2, R3, R4, R7, R8, Reg, Width};
use crate::fields::{EventField, EventFields};
use crate::layout::{config, cpu, slot};

/// Upper bound for the difference between a CPU's clock and the time that its timers were compared
/// with, if both are CLOCK_MONOTONIC.
pub(crate) const ONE_PASS: i32 = 1 << 30;

impl Writer<'_> {
    /// Loads a value of a timer: from a field of its record, or from a member.
    fn of_timer(
        &mut self,
        to: Reg,
        through: Reg,
        by_format: impl Fn(&crate::fields::ByFormat) -> EventField,
        member: impl Fn(&crate::fields::ByTypes) -> i16,
    ) {
        match self.fields {
            EventFields::Format(format) => self.field(to, by_format(format)),
            EventFields::Types(types) => self.member(to, through, 0, Width::B8, member(types)),
        }
    }

    /// Branches by the kind of a timer; timers of other functions are ignored.
    fn by_kind(&mut self, functions: &Functions, function: Reg, out: Label) -> [Option<Label>; 2] {
        let mut labels = [None, None];
        for (address, kind) in functions {
            let label = *labels[*kind as usize].get_or_insert_with(|| self.code.label());
            self.code.set_wide(R2, *address);
            self.code.jump_reg(Cond::Eq, function, R2, label);
        }
        self.code.jump(out);
        labels
    }
}

const KINDS: [TimerKind; 2] = [TimerKind::Sleep, TimerKind::Standing];

/// hrtimer_start: a thread of ours sets a timer that will wake it.
pub fn started(fields: &EventFields, maps: &Maps, functions: &Functions) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let out = w.code.label();
    w.of_timer(R1, R2, |format| format.start_function, |types| types.function);
    let labels = w.by_kind(functions, R1, out);
    for (kind, label) in
        KINDS.into_iter().zip(labels).filter_map(|(kind, label)| Some((kind as usize, label?)))
    {
        w.code.place(label);
        w.current_tid(R8);
        w.slot_of(R8, out);
        match fields {
            EventFields::Format(format) => w.field(R1, format.start_timer),
            EventFields::Types(_) => w.code.load(Width::B8, R1, CONTEXT, 0),
        }
        w.code.store(Width::B8, SLOT, slot::TIMERS[kind], R1);
        w.of_timer(R1, R2, |format| format.start_expiry, |types| types.expiry);
        w.code.store(Width::B8, SLOT, slot::EXPIRIES[kind], R1);
        w.config(R1, R2, Width::B4, config::SUSPENDS);
        w.code.store(Width::B4, SLOT, slot::SUSPENDS[kind], R1);
        w.code.jump(out);
    }
    w.finish(out)
}

/// hrtimer_expire_entry: such a timer fires on this CPU. The thread that it wakes is not known yet.
///
/// The event's `now` is the time at which the interrupt began to look at its timers, not that of
/// this one: an earlier timer may have taken long. So the time is read from the clock, and shifted
/// by the distance of the timer's clock from CLOCK_MONOTONIC. That is a member of its base; a
/// record lacks it, but shows if it is zero, as long as no other clock is near.
pub fn fired(fields: &EventFields, maps: &Maps, functions: &Functions) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let out = w.code.label();
    w.of_timer(R1, R2, |format| format.expire_function, |types| types.function);
    let labels = w.by_kind(functions, R1, out);
    for (kind, label) in
        KINDS.into_iter().zip(labels).filter_map(|(kind, label)| Some((kind as usize, label?)))
    {
        w.code.place(label);
        w.this_cpu(R7, out);
        w.code.call(Helper::KtimeGetNs);
        w.code.mov(R8, R0);
        match fields {
            EventFields::Types(types) => {
                w.code.load(Width::B8, R1, CONTEXT, 0);
                w.code.load(Width::B8, R3, R1, types.base);
                w.code.load(Width::B8, R3, R3, types.clock_offset);
            }
            EventFields::Format(format) => {
                let (apart, zero) = (w.code.label(), w.code.label());
                w.field(R3, format.expire_now);
                w.code.alu(Alu::Sub, R3, R8);
                w.config(R1, R2, Width::B4, config::CLOCKS_APART);
                w.code.jump_imm(Cond::Eq, R1, 0, zero);
                w.code.mov(R4, R8);
                w.field(R1, format.expire_now);
                w.code.alu(Alu::Sub, R4, R1);
                w.code.jump_imm(Cond::Ge, R4, ONE_PASS, apart);
                w.code.set(R3, 0);
                w.code.place(apart);
                w.code.place(zero);
                w.field(R1, format.expire_timer);
            }
        }
        w.code.store(Width::B8, R7, cpu::TIMERS[kind], R1);
        w.code.store(Width::B8, R7, cpu::SHIFTS[kind], R3);
        w.code.alu(Alu::Add, R3, R8);
        w.code.store(Width::B8, R7, cpu::FIRED[kind], R3);
        w.code.jump(out);
    }
    w.finish(out)
}

/// Program of learning: stores the function of the timer with exactly this expiry.
pub fn learning(fields: &EventFields, maps: &Maps, expiries: &[u64]) -> Result<Vec<u64>, BadCode> {
    let mut w = Writer::new(fields, maps);
    let out = w.code.label();
    w.of_timer(R1, R2, |format| format.start_expiry, |types| types.expiry);
    for (nth, expiry) in (0..).zip(expiries) {
        let other = w.code.label();
        w.code.set_wide(R2, *expiry);
        w.code.jump_reg(Cond::Ne, R1, R2, other);
        w.current_tid(R7);
        w.of_timer(R3, R2, |format| format.start_function, |types| types.function);
        w.code.map_value(R2, maps.config);
        w.code.store(Width::B8, R2, config::LEARNED + 8 * nth, R3);
        w.code.store(Width::B4, R2, config::LEARNED_TIDS + 4 * nth, R7);
        w.code.jump(out);
        w.code.place(other);
    }
    w.finish(out)
}
