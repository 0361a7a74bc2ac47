//! Parts of instructions: registers, widths, operations, conditions, helper functions of the
//! kernel.
//!
//! Source: Documentation/bpf/standardization/instruction-set.rst, include/uapi/linux/bpf.h.

/// A register. `R0` is a call's result, `R1` to `R5` its arguments, which it destroys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reg(pub(crate) u8);

pub const R0: Reg = Reg(0);
pub const R1: Reg = Reg(1);
pub const R2: Reg = Reg(2);
pub const R3: Reg = Reg(3);
pub const R4: Reg = Reg(4);
pub const R5: Reg = Reg(5);
pub const R6: Reg = Reg(6);
pub const R7: Reg = Reg(7);
pub const R8: Reg = Reg(8);
pub const R9: Reg = Reg(9);
/// The end of the stack, 512 bytes below which are the program's. Never written.
pub const FP: Reg = Reg(10);

/// Number of bytes moved by a load or store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    B1 = 0x10,
    B2 = 0x08,
    B4 = 0x00,
    B8 = 0x18,
}

impl Width {
    pub fn of(bytes: usize) -> Option<Width> {
        match bytes {
            1 => Some(Width::B1),
            2 => Some(Width::B2),
            4 => Some(Width::B4),
            8 => Some(Width::B8),
            _ => None,
        }
    }
}

/// Operations on 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    Xor = 0xa0,
    Mov = 0xb0,
    Arsh = 0xc0,
}

/// Conditions of jumps; those with an S compare signed numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cond {
    Eq = 0x10,
    Gt = 0x20,
    Ge = 0x30,
    Set = 0x40,
    Ne = 0x50,
    SGt = 0x60,
    SGe = 0x70,
    Lt = 0xa0,
    Le = 0xb0,
    SLt = 0xc0,
    SLe = 0xd0,
}

/// The kernel's functions in use, of `enum bpf_func_id`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Helper {
    MapLookup = 1,
    KtimeGetNs = 5,
    SmpProcessorId = 8,
    CurrentPidTgid = 14,
    CurrentComm = 16,
    GetStack = 67,
    ProbeReadKernel = 113,
    CurrentTaskBtf = 158,
}

impl Helper {
    /// Number of arguments, passed in `R1` to `R5`.
    pub fn arguments(self) -> u8 {
        match self {
            Helper::KtimeGetNs | Helper::SmpProcessorId | Helper::CurrentPidTgid | Helper::CurrentTaskBtf => {
                0
            }
            Helper::MapLookup | Helper::CurrentComm => 2,
            Helper::ProbeReadKernel => 3,
            Helper::GetStack => 4,
        }
    }
}

/// All helper functions.
pub const HELPERS: [Helper; 8] = [
    Helper::MapLookup,
    Helper::KtimeGetNs,
    Helper::SmpProcessorId,
    Helper::CurrentPidTgid,
    Helper::CurrentComm,
    Helper::GetStack,
    Helper::ProbeReadKernel,
    Helper::CurrentTaskBtf,
];
