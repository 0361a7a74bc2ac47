//! BPF instructions from typed parts: registers, widths, labels.
//!
//! All jumps go forward, so one pass over the code finds the simple faults that the verifier would
//! refuse: unreachable code, an end without `exit`, a read of an unset register, a jump out of
//! range. Source: Documentation/bpf/standardization/instruction-set.rst.

use std::fmt;

pub use crate::instructions::{
    Alu, Cond, FP, HELPERS, Helper, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, Reg, Width,
};

/// A place that is jumped to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// Faults that make code an invalid program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadCode {
    /// The label of this jump was never placed, or before the jump.
    JumpNowhere(usize),
    /// A label was placed twice.
    PlacedTwice,
    /// A jump further than 16 bits.
    TooFar(usize),
    /// No way leads to this instruction.
    Unreachable(usize),
    /// The last instruction is followed by nothing.
    NoExit,
    /// A register is read that holds nothing here.
    Unset(usize, Reg),
    /// The frame pointer is written.
    WritesFramePointer(usize),
    /// A place outside the 512 bytes of the stack.
    OutsideStack(usize),
}

impl fmt::Display for BadCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

const LOAD_MEMORY: u8 = 0x61;
const STORE_NUMBER: u8 = 0x62;
const STORE_REGISTER: u8 = 0x63;
const LOAD_WIDE: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;
const JUMP_32: u8 = 0x06;
const MOV_32: u8 = 0xbc;
/// Flag in the class's bits: the second operand is a register.
const BY_REGISTER: u8 = 0x08;
/// Source field of a wide load: a map (`BPF_PSEUDO_MAP_FD`), or a value within a map.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;

#[derive(Clone, Copy, Debug)]
struct Insn {
    code: u8,
    to: Reg,
    from: Reg,
    offset: i16,
    number: i32,
    /// Upper half of a wide load, which occupies a second slot.
    upper: Option<i32>,
    target: Option<Label>,
}

/// Code under construction.
#[derive(Default)]
pub struct Assembler {
    code: Vec<Insn>,
    /// Positions of the labels, in instructions.
    labels: Vec<Option<usize>>,
    placed_twice: bool,
}

impl Assembler {
    fn push(&mut self, code: u8, to: Reg, from: Reg, offset: i16, number: i32) {
        self.code.push(Insn { code, to, from, offset, number, upper: None, target: None });
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label is here.
    pub fn place(&mut self, label: Label) {
        self.placed_twice |= self.labels[label.0].replace(self.code.len()).is_some();
    }

    pub fn alu(&mut self, operation: Alu, to: Reg, from: Reg) {
        self.push(0x07 | BY_REGISTER | operation as u8, to, from, 0, 0);
    }

    /// Operation with a number, which is sign-extended.
    pub fn alu_imm(&mut self, operation: Alu, to: Reg, number: i32) {
        self.push(0x07 | operation as u8, to, R0, 0, number);
    }

    pub fn mov(&mut self, to: Reg, from: Reg) {
        self.alu(Alu::Mov, to, from);
    }

    pub fn set(&mut self, to: Reg, number: i32) {
        self.alu_imm(Alu::Mov, to, number);
    }

    /// The lower 32 bits alone.
    pub fn mov_32(&mut self, to: Reg, from: Reg) {
        self.push(MOV_32, to, from, 0, 0);
    }

    fn wide(&mut self, to: Reg, kind: u8, lower: i32, upper: i32) {
        self.push(LOAD_WIDE, to, Reg(kind), 0, lower);
        if let Some(last) = self.code.last_mut() {
            last.upper = Some(upper);
        }
    }

    /// Any 64 bits.
    pub fn set_wide(&mut self, to: Reg, number: u64) {
        self.wide(to, 0, number as i32, (number >> 32) as i32);
    }

    /// A map, by its descriptor.
    pub fn map(&mut self, to: Reg, descriptor: i32) {
        self.wide(to, MAP, descriptor, 0);
    }

    /// The address of the only value of a map.
    pub fn map_value(&mut self, to: Reg, descriptor: i32) {
        self.wide(to, MAP_VALUE, descriptor, 0);
    }

    pub fn load(&mut self, width: Width, to: Reg, from: Reg, offset: i16) {
        self.push(LOAD_MEMORY | width as u8, to, from, offset, 0);
    }

    pub fn store(&mut self, width: Width, to: Reg, offset: i16, from: Reg) {
        self.push(STORE_REGISTER | width as u8, to, from, offset, 0);
    }

    pub fn store_imm(&mut self, width: Width, to: Reg, offset: i16, number: i32) {
        self.push(STORE_NUMBER | width as u8, to, R0, offset, number);
    }

    pub fn call(&mut self, helper: Helper) {
        self.push(CALL, R0, R0, 0, helper as i32);
    }

    pub fn exit(&mut self) {
        self.push(EXIT, R0, R0, 0, 0);
    }

    fn aimed(&mut self, label: Label) {
        if let Some(last) = self.code.last_mut() {
            last.target = Some(label);
        }
    }

    pub fn jump(&mut self, label: Label) {
        self.push(JUMP, R0, R0, 0, 0);
        self.aimed(label);
    }

    /// Compares 64 bits with a sign-extended number.
    pub fn jump_imm(&mut self, condition: Cond, register: Reg, number: i32, label: Label) {
        self.push(JUMP | condition as u8, register, R0, 0, number);
        self.aimed(label);
    }

    pub fn jump_reg(&mut self, condition: Cond, a: Reg, b: Reg, label: Label) {
        self.push(JUMP | BY_REGISTER | condition as u8, a, b, 0, 0);
        self.aimed(label);
    }

    /// Compares the lower 32 bits, signed if the condition is signed.
    pub fn jump_imm_32(&mut self, condition: Cond, register: Reg, number: i32, label: Label) {
        self.push(JUMP_32 | condition as u8, register, R0, 0, number);
        self.aimed(label);
    }

    pub fn jump_reg_32(&mut self, condition: Cond, a: Reg, b: Reg, label: Label) {
        self.push(JUMP_32 | BY_REGISTER | condition as u8, a, b, 0, 0);
        self.aimed(label);
    }

    /// Returns the program's words, or the fault that makes it invalid.
    pub fn finish(&self) -> Result<Vec<u64>, BadCode> {
        if self.placed_twice {
            return Err(BadCode::PlacedTwice);
        }
        self.check()?;
        // Position of each instruction, in words.
        let mut begins = Vec::with_capacity(self.code.len() + 1);
        let mut word = 0;
        for insn in &self.code {
            begins.push(word);
            word += 1 + usize::from(insn.upper.is_some());
        }
        let mut words = Vec::with_capacity(word);
        for (at, insn) in self.code.iter().enumerate() {
            let offset = match insn.target {
                None => insn.offset,
                Some(label) => {
                    let distance = begins[self.target(at, label)?] - begins[at] - 1;
                    i16::try_from(distance).map_err(|_| BadCode::TooFar(at))?
                }
            };
            words.push(encode(insn.code, insn.to, insn.from, offset, insn.number));
            words.extend(insn.upper.map(|upper| encode(0, R0, R0, 0, upper)));
        }
        Ok(words)
    }

    fn target(&self, at: usize, label: Label) -> Result<usize, BadCode> {
        self.labels[label.0]
            .filter(|target| *target > at && *target < self.code.len())
            .ok_or(BadCode::JumpNowhere(at))
    }

    /// Walks the code once with the set of registers that hold something on every way here.
    fn check(&self) -> Result<(), BadCode> {
        let mut ways: Vec<Option<u16>> = vec![None; self.code.len()];
        let meet = |way: &mut Option<u16>, set: u16| *way = Some(way.map_or(set, |other| other & set));
        if let Some(first) = ways.first_mut() {
            *first = Some(bit(R1) | bit(FP));
        }
        for (at, insn) in self.code.iter().enumerate() {
            let set = ways[at].ok_or(BadCode::Unreachable(at))?;
            let after = insn.effect(at, set)?;
            if let Some(label) = insn.target {
                meet(&mut ways[self.target(at, label)?], after);
            }
            if !matches!(insn.code, EXIT | JUMP) {
                meet(ways.get_mut(at + 1).ok_or(BadCode::NoExit)?, after);
            }
        }
        if self.code.is_empty() { Err(BadCode::NoExit) } else { Ok(()) }
    }
}

impl Insn {
    /// Checks that the registers read are set; returns the registers set afterwards.
    fn effect(&self, at: usize, set: u16) -> Result<u16, BadCode> {
        let (reads, writes): (Vec<Reg>, Option<Reg>) = match self.code {
            EXIT => (vec![R0], None),
            JUMP => (vec![], None),
            CALL => return self.call_effect(at, set),
            LOAD_WIDE => (vec![], Some(self.to)),
            code => match code & 0x07 {
                0x01 => (vec![self.from], Some(self.to)),
                0x02 => (vec![self.to], None),
                0x03 => (vec![self.to, self.from], None),
                0x05 | 0x06 if code & BY_REGISTER == 0 => (vec![self.to], None),
                0x05 | 0x06 => (vec![self.to, self.from], None),
                _ => {
                    let moves = code & 0xf0 == Alu::Mov as u8;
                    let second = (code & BY_REGISTER != 0).then_some(self.from);
                    ((!moves).then_some(self.to).into_iter().chain(second).collect(), Some(self.to))
                }
            },
        };
        if let Some(register) = reads.into_iter().find(|register| set & bit(*register) == 0) {
            return Err(BadCode::Unset(at, register));
        }
        if writes == Some(FP) {
            return Err(BadCode::WritesFramePointer(at));
        }
        let place = match self.code & 0x07 {
            0x01 => Some(self.from),
            0x02 | 0x03 => Some(self.to),
            _ => None,
        };
        if place == Some(FP) && !(-512..0).contains(&self.offset) {
            return Err(BadCode::OutsideStack(at));
        }
        Ok(set | writes.map_or(0, bit))
    }

    fn call_effect(&self, at: usize, set: u16) -> Result<u16, BadCode> {
        let arguments = HELPERS
            .iter()
            .find(|helper| **helper as i32 == self.number)
            .map_or(5, |helper| helper.arguments());
        match (1..=arguments).map(Reg).find(|register| set & bit(*register) == 0) {
            Some(register) => Err(BadCode::Unset(at, register)),
            None => Ok(set & !0b11_1110 | bit(R0)),
        }
    }
}

fn bit(register: Reg) -> u16 {
    1 << register.0
}

/// Encodes `struct bpf_insn` as a native-endian number; its two register fields swap sides with the
/// byte order.
fn encode(code: u8, to: Reg, from: Reg, offset: i16, number: i32) -> u64 {
    let (to, from) = (to.0, from.0);
    let registers = if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from };
    let mut bytes = [0u8; 8];
    bytes[0] = code;
    bytes[1] = registers;
    bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
    bytes[4..].copy_from_slice(&number.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(write: impl FnOnce(&mut Assembler)) -> Result<Vec<u64>, BadCode> {
        let mut code = Assembler::default();
        write(&mut code);
        code.finish()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn words_are_those_of_the_standard() {
        let words = finished(|a| {
            let out = a.label();
            a.load(Width::B4, R2, R1, 24);
            a.jump_imm_32(Cond::SGe, R2, 100, out);
            a.set_wide(R3, 0x1234_5678_9abc_def0);
            a.store(Width::B8, FP, -8, R3);
            a.place(out);
            a.set(R0, 0);
            a.exit();
        });
        let expected = [
            0x0000_0000_0018_1261,
            0x0000_0064_0003_0276,
            0x9abc_def0_0000_0318,
            0x1234_5678_0000_0000,
            0x0000_0000_fff8_3a7b,
            0x0000_0000_0000_00b7,
            0x0000_0000_0000_0095,
        ];
        assert_eq!(words.unwrap(), expected);
    }

    #[test]
    fn what_the_verifier_would_refuse_is_refused() {
        let out = |a: &mut Assembler| {
            a.set(R0, 0);
            a.exit();
        };
        assert_eq!(finished(|_| ()), Err(BadCode::NoExit));
        assert_eq!(finished(|a| a.set(R0, 0)), Err(BadCode::NoExit));
        assert_eq!(finished(|a| a.exit()), Err(BadCode::Unset(0, R0)));
        let twice = |a: &mut Assembler| {
            out(a);
            out(a);
        };
        assert_eq!(finished(twice), Err(BadCode::Unreachable(2)));
        let skipped = |a: &mut Assembler| {
            let end = a.label();
            a.jump(end);
            a.set(R2, 1);
            a.place(end);
            out(a);
        };
        assert_eq!(finished(skipped), Err(BadCode::Unreachable(1)));
        let nowhere = |a: &mut Assembler| {
            let end = a.label();
            a.jump_imm(Cond::Eq, R1, 0, end);
            out(a);
        };
        assert_eq!(finished(nowhere), Err(BadCode::JumpNowhere(0)));
        let back = |a: &mut Assembler| {
            let begin = a.label();
            a.place(begin);
            a.jump_imm(Cond::Eq, R1, 0, begin);
            out(a);
        };
        assert_eq!(finished(back), Err(BadCode::JumpNowhere(0)));
        let placed = |a: &mut Assembler| {
            let here = a.label();
            a.place(here);
            a.place(here);
            out(a);
        };
        assert_eq!(finished(placed), Err(BadCode::PlacedTwice));
        let frame = |a: &mut Assembler| {
            a.set(FP, 0);
            out(a);
        };
        assert_eq!(finished(frame), Err(BadCode::WritesFramePointer(0)));
        let stack = |a: &mut Assembler| {
            a.store_imm(Width::B8, FP, 0, 1);
            out(a);
        };
        assert_eq!(finished(stack), Err(BadCode::OutsideStack(0)));
    }

    #[test]
    fn a_register_has_to_be_set_on_every_way() {
        let one_way = |a: &mut Assembler| {
            let end = a.label();
            a.jump_imm(Cond::Eq, R1, 0, end);
            a.set(R0, 0);
            a.place(end);
            a.exit();
        };
        assert_eq!(finished(one_way), Err(BadCode::Unset(2, R0)));
        let destroyed = |a: &mut Assembler| {
            a.call(Helper::KtimeGetNs);
            a.mov(R2, R1);
            a.exit();
        };
        assert_eq!(finished(destroyed), Err(BadCode::Unset(1, R1)));
        let argument = |a: &mut Assembler| {
            a.call(Helper::MapLookup);
            a.exit();
        };
        assert_eq!(finished(argument), Err(BadCode::Unset(0, R2)));
    }

    #[test]
    fn a_jump_reaches_16_bits() {
        let far = |count: usize| {
            finished(|a| {
                let end = a.label();
                a.set(R0, 0);
                a.jump_imm(Cond::Eq, R1, 0, end);
                (0..count).for_each(|_| a.set(R0, 0));
                a.place(end);
                a.exit();
            })
        };
        assert!(far(32_767).is_ok());
        assert_eq!(far(32_768), Err(BadCode::TooFar(1)));
    }
}
