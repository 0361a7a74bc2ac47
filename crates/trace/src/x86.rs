//! Length of x86-64 instructions: the part of the instruction set to which the kernel's C code
//! compiles.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and
//! appendix A. Vector extensions (VEX, EVEX) are unknown: no code that uses them switches
//! interrupts.

/// Bytes after an opcode: true with a ModRM byte, and the length of an immediate.
struct Shape {
    modrm: bool,
    immediate: usize,
}

/// Length of the first instruction of the bytes; none if it is unknown or truncated.
pub fn length(code: &[u8]) -> Option<usize> {
    let is_prefix = |b: &u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let prefixes = code.iter().take(15).take_while(|b| is_prefix(b)).count();
    let short = code[..prefixes].contains(&0x66);
    let mut at = prefixes;
    let wide = match *code.get(at)? {
        rex @ 0x40..=0x4f => {
            at += 1;
            rex & 8 != 0
        }
        _ => false,
    };
    let operand = if short && !wide { 2 } else { 4 };
    let opcode = *code.get(at)?;
    at += 1;
    let shape = match opcode {
        0x0f => {
            let second = *code.get(at)?;
            at += 1;
            if matches!(second, 0x38 | 0x3a) {
                at += 1;
            }
            // VMREAD; with one of these prefixes EXTRQ and INSERTQ of SSE4a, which have immediates.
            if second == 0x78 && (short || code[..prefixes].contains(&0xf2)) {
                return None;
            }
            two_bytes(second)?
        }
        0xa0..=0xa3 => {
            Shape { modrm: false, immediate: if code[..prefixes].contains(&0x67) { 4 } else { 8 } }
        }
        0xb8..=0xbf if wide => Shape { modrm: false, immediate: 8 },
        // TEST is the one of its group with an immediate.
        0xf6 | 0xf7 if code.get(at)? & 0x38 < 0x10 => {
            Shape { modrm: true, immediate: if opcode == 0xf6 { 1 } else { operand } }
        }
        _ => one_byte(opcode, operand)?,
    };
    if shape.modrm {
        at += address_length(code.get(at..)?)?;
    }
    let end = at + shape.immediate;
    (end <= code.len().min(15)).then_some(end)
}

/// Shape of an opcode of one byte; `operand` is the length of an immediate that follows the operand
/// size.
fn one_byte(opcode: u8, operand: usize) -> Option<Shape> {
    let (modrm, immediate) = match opcode {
        0x00..=0x3f => match opcode & 7 {
            0..=3 => (true, 0),
            4 => (false, 1),
            5 => (false, operand),
            _ => return None,
        },
        0x63 | 0x84..=0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe | 0xff => (true, 0),
        0x50..=0x5f | 0x6c..=0x6f | 0x90..=0x99 | 0x9b..=0x9f | 0xa4..=0xa7 | 0xaa..=0xaf => (false, 0),
        0xc3 | 0xc9 | 0xcb | 0xcc | 0xcf | 0xd7 | 0xec..=0xef | 0xf1 | 0xf4 | 0xf5 | 0xf8..=0xfd => {
            (false, 0)
        }
        0x68 | 0xa9 | 0xb8..=0xbf => (false, operand),
        0x69 | 0x81 | 0xc7 => (true, operand),
        0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe0..=0xe7 | 0xeb => (false, 1),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => (true, 1),
        0xc2 | 0xca => (false, 2),
        0xc8 => (false, 3),
        // A prefix for the operand size does not shorten them.
        0xe8 | 0xe9 => (false, 4),
        _ => return None,
    };
    Some(Shape { modrm, immediate })
}

/// Shape of an opcode after 0x0f; of those of three bytes by the second.
fn two_bytes(opcode: u8) -> Option<Shape> {
    let (modrm, immediate) = match opcode {
        0x05..=0x09 | 0x0b | 0x30..=0x35 | 0x37 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf => {
            (false, 0)
        }
        // Control and debug registers: the byte similar to a ModRM never has an address.
        0x20..=0x23 => (false, 1),
        0x80..=0x8f => (false, 4),
        0x3a | 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => (true, 1),
        0x04
        | 0x0a
        | 0x0c
        | 0x0e
        | 0x0f
        | 0x24..=0x27
        | 0x36
        | 0x39
        | 0x3b..=0x3f
        | 0x7a
        | 0x7b
        | 0xa6
        | 0xa7 => {
            return None;
        }
        _ => (true, 0),
    };
    Some(Shape { modrm, immediate })
}

/// Length of ModRM, SIB and displacement.
fn address_length(bytes: &[u8]) -> Option<usize> {
    let modrm = *bytes.first()?;
    let (mode, register) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return Some(1);
    }
    let sib = register == 4;
    let base = if sib { *bytes.get(1)? & 7 } else { register };
    let displacement = match mode {
        0 if base == 5 => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    Some(1 + usize::from(sib) + displacement)
}

/// Last two instructions of code that starts at an instruction; none if it does not end with one.
pub fn last_two(code: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut rest, mut before, mut last): (&[u8], &[u8], &[u8]) = (code, &[], &[]);
    while !rest.is_empty() {
        let (instruction, after) = rest.split_at(length(rest)?);
        (before, last, rest) = (last, instruction, after);
    }
    Some((before, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn instructions_have_their_lengths() {
        let known: &[&[u8]] = &[
            &[0xfb],                                        // sti
            &[0x9d],                                        // popf
            &[0x90],                                        // nop
            &[0x66, 0x90],                                  // nop of 2
            &[0x0f, 0x1f, 0x00],                            // nop of 3
            &[0x0f, 0x1f, 0x40, 0x00],                      // nop of 4
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],                // nop of 5
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],          // nop of 6
            &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], // nop of 10
            &[0xf3, 0x0f, 0x1e, 0xfa],                      // endbr64
            &[0x41, 0x5c],                                  // pop %r12
            &[0x65, 0xff, 0x0d, 0x48, 0x11, 0xe1, 0x7e],    // decl %gs:(%rip)
            &[0x65, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], // mov %gs:0x28,%rax
            &[0x48, 0x8d, 0x64, 0x24, 0x08],                // lea 8(%rsp),%rsp
            &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],          // movabs
            &[0xb8, 1, 0, 0, 0],                            // mov $1,%eax
            &[0xf6, 0x43, 0x09, 0x02],                      // testb $2,9(%rbx)
            &[0xf7, 0xc6, 0x00, 0x02, 0x00, 0x00],          // test $0x200,%esi
            &[0xf7, 0xd8],                                  // neg %eax
            &[0x66, 0x81, 0x3d, 0, 0, 0, 0, 1, 2],          // cmpw $0x201,(%rip)
            &[0x0f, 0x84, 1, 0, 0, 0],                      // je
            &[0x0f, 0xba, 0x2b, 0x07],                      // btsl $7,(%rbx)
            &[0x66, 0xe8, 0, 0, 0, 0],                      // data16 call
            &[0xc9],                                        // leave
        ];
        for instruction in known {
            assert_eq!(length(instruction), Some(instruction.len()), "{instruction:x?}");
            assert_eq!(
                length(&instruction[..instruction.len() - 1]).filter(|&n| n == instruction.len()),
                None
            );
        }
        assert_eq!(length(&[0xc5, 0xf8, 0x77]), None); // vzeroupper
    }

    proptest! {
        #[test]
        fn any_code_is_survived(code in proptest::collection::vec(any::<u8>(), 0..64)) {
            let found = length(&code);
            prop_assert!(found.is_none_or(|length| (1..=15).contains(&length) && length <= code.len()));
            last_two(&code);
        }
    }

    /// Length by another disassembler; none for invalid instructions.
    fn reference(code: &[u8]) -> Option<usize> {
        let instruction = iced_x86::Decoder::new(64, code, 0).decode();
        (!instruction.is_invalid()).then_some(instruction.len())
    }

    /// Bytes as in real code: frequent prefixes, and both opcode maps equally often.
    fn code() -> impl Strategy<Value = Vec<u8>> {
        let prefix =
            proptest::sample::select(vec![0x26, 0x2e, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3]);
        let prefixes = proptest::collection::vec(prefix, 0..3);
        let rex = proptest::option::of(0x40..0x50u8);
        let map = proptest::sample::select(vec![vec![], vec![0x0f], vec![0x0f, 0x38], vec![0x0f, 0x3a]]);
        let rest = proptest::collection::vec(any::<u8>(), 16);
        (prefixes, rex, map, rest).prop_map(|(prefixes, rex, map, rest)| {
            prefixes.into_iter().chain(rex).chain(map).chain(rest).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]
        #[test]
        fn lengths_are_those_of_another_disassembler(code in code()) {
            if let (Some(own), Some(other)) = (length(&code), reference(&code)) {
                prop_assert_eq!(own, other, "{:02x?}", code);
            }
        }
    }

    #[test]
    fn each_opcode_has_the_length_of_another_disassembler() {
        for start in [&[][..], &[0x66], &[0xf2], &[0x48]] {
            for map in [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]] {
                for (opcode, modrm) in
                    (0..=255).flat_map(|opcode| (0..=255).step_by(3).map(move |modrm| (opcode, modrm)))
                {
                    let code = [start, map, &[opcode, modrm], &[0x25; 12]].concat();
                    if let (Some(own), Some(other)) = (length(&code), reference(&code)) {
                        assert_eq!(own, other, "{code:02x?}");
                    }
                }
            }
        }
    }
}
