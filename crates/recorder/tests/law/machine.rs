//! A machine that runs the programs: their instructions, the kernel's functions that they call, and
//! memory that ends at the bounds of a program's permitted accesses.

/// Addresses of the memory regions.
pub const CONTEXT: u64 = 1 << 32;
const STACK: u64 = 2 << 32;
const MAPS: u64 = 16 << 32;
pub const KERNEL: u64 = 64 << 32;

/// The kernel as a program sees it.
pub struct Kernel {
    pub now: u64,
    pub cpu: u64,
    /// Running process (upper half) and thread, true for a kernel thread, and its task.
    pub current: u64,
    pub kernel_thread: bool,
    /// True if a program's own code was interrupted.
    pub in_program: bool,
    pub task: u64,
    /// Maps by their number, from 1 on: the size of a value, and all bytes.
    pub maps: Vec<(usize, Vec<u8>)>,
    /// Kernel memory that programs by types may read.
    pub memory: Vec<u8>,
}

/// One run of a program.
struct Run<'a> {
    kernel: &'a mut Kernel,
    context: &'a [u8],
    stack: Vec<u8>,
    registers: [u64; 11],
}

impl Kernel {
    /// Runs a program to its end.
    pub fn run(&mut self, code: &[u64], context: &[u8]) {
        let mut run =
            Run { kernel: self, context, stack: vec![0xaa; 512], registers: [0xdead_dead_dead; 11] };
        run.registers[1] = CONTEXT;
        run.registers[10] = STACK + 512;
        let mut at = 0;
        while let Some(next) = run.step(code, at) {
            at = next;
        }
    }

    pub fn value(&mut self, map: usize, entry: usize) -> &mut [u8] {
        let (size, bytes) = &mut self.maps[map - 1];
        &mut bytes[entry * *size..(entry + 1) * *size]
    }

    pub fn long(&mut self, map: usize, entry: usize, at: i16) -> u64 {
        u64::from_ne_bytes(self.value(map, entry)[at as usize..][..8].try_into().unwrap())
    }

    pub fn short(&mut self, map: usize, entry: usize, at: i16) -> u32 {
        u32::from_ne_bytes(self.value(map, entry)[at as usize..][..4].try_into().unwrap())
    }

    pub fn set_short(&mut self, map: usize, entry: usize, at: i16, to: u32) {
        self.value(map, entry)[at as usize..][..4].copy_from_slice(&to.to_ne_bytes());
    }
}

impl Run<'_> {
    /// Readable memory.
    fn bytes(&self, address: u64, length: usize) -> &[u8] {
        let (region, at) = (address >> 32, (address & 0xffff_ffff) as usize);
        let bytes = match region {
            1 => self.context,
            2 => &self.stack,
            64 => &self.kernel.memory,
            map => &self.kernel.maps[map as usize - 17].1,
        };
        &bytes[at..at + length]
    }

    /// Writable memory: the stack and the maps.
    fn bytes_mut(&mut self, address: u64, length: usize) -> &mut [u8] {
        let (region, at) = (address >> 32, (address & 0xffff_ffff) as usize);
        let bytes = match region {
            2 => &mut self.stack,
            map => &mut self.kernel.maps[map as usize - 17].1,
        };
        &mut bytes[at..at + length]
    }

    fn read(&self, address: u64, length: usize) -> u64 {
        assert_eq!(address % length as u64, 0, "an aligned load");
        let mut eight = [0; 8];
        eight[..length].copy_from_slice(self.bytes(address, length));
        u64::from_le_bytes(eight)
    }

    fn write(&mut self, address: u64, length: usize, value: u64) {
        assert_eq!(address % length as u64, 0, "an aligned store");
        self.bytes_mut(address, length).copy_from_slice(&value.to_le_bytes()[..length]);
    }

    /// Executes the instruction at `at`; returns the next position.
    fn step(&mut self, code: &[u64], at: usize) -> Option<usize> {
        let word = code[at];
        let (op, to, from) = (word as u8, (word >> 8 & 15) as usize, (word >> 12 & 15) as usize);
        let (offset, number) = ((word >> 16) as i16, (word >> 32) as i32);
        let length = [4, 2, 1, 8][usize::from(op >> 3 & 3)];
        let place = |base: u64| base.wrapping_add(offset as i64 as u64);
        let operand = if op & 8 != 0 { self.registers[from] } else { number as i64 as u64 };
        match op {
            0x95 => return None,
            0x85 => self.call(number),
            0x18 => {
                let upper = code[at + 1] >> 32;
                self.registers[to] = match from {
                    0 => u64::from(number as u32) | upper << 32,
                    1 => number as u64,
                    _ => MAPS + ((number as u64) << 32),
                };
                return Some(at + 2);
            }
            _ => match op & 7 {
                1 => self.registers[to] = self.read(place(self.registers[from]), length),
                2 => self.write(place(self.registers[to]), length, number as i64 as u64),
                3 => self.write(place(self.registers[to]), length, self.registers[from]),
                5 | 6 => {
                    let wide = op & 7 == 5;
                    let jumps = op == 5 || holds(op, self.registers[to], operand, wide);
                    return Some((at as i64 + 1 + if jumps { i64::from(offset) } else { 0 }) as usize);
                }
                4 => self.registers[to] = operand & 0xffff_ffff,
                _ => self.registers[to] = computed(op, self.registers[to], operand),
            },
        }
        Some(at + 1)
    }

    fn call(&mut self, helper: i32) {
        let [_, a, b, c, d, ..] = self.registers;
        let result = match helper {
            1 => {
                let key = self.read(b, 4) as usize;
                let (size, bytes) = &self.kernel.maps[a as usize - 1];
                if (key + 1) * size <= bytes.len() { MAPS + (a << 32) + (key * size) as u64 } else { 0 }
            }
            5 => self.kernel.now,
            8 => self.kernel.cpu,
            14 => self.kernel.current,
            16 => {
                self.bytes_mut(a, b as usize).fill(b'c');
                0
            }
            67 => {
                let user = d & 0x100 != 0;
                let fill = if user {
                    8 * u64::from(!self.kernel.kernel_thread)
                } else {
                    16.min(c) * u64::from(!self.kernel.in_program)
                };
                self.bytes_mut(b, c as usize)[..fill as usize].fill(7);
                fill
            }
            113 => {
                let found = self.bytes(c, b as usize).to_vec();
                self.bytes_mut(a, b as usize).copy_from_slice(&found);
                0
            }
            158 => self.kernel.task,
            other => panic!("no such function: {other}"),
        };
        self.registers[0] = result;
        // A call leaves these registers undefined.
        self.registers[1..6].fill(0xdead_dead_dead);
    }
}

fn holds(op: u8, a: u64, b: u64, wide: bool) -> bool {
    let (a, b) = if wide { (a, b) } else { (a & 0xffff_ffff, b & 0xffff_ffff) };
    let signed = |x: u64| if wide { x as i64 } else { i64::from(x as i32) };
    match op & 0xf0 {
        0x10 => a == b,
        0x20 => a > b,
        0x30 => a >= b,
        0x40 => a & b != 0,
        0x50 => a != b,
        0x60 => signed(a) > signed(b),
        0x70 => signed(a) >= signed(b),
        0xa0 => a < b,
        0xb0 => a <= b,
        0xc0 => signed(a) < signed(b),
        _ => signed(a) <= signed(b),
    }
}

fn computed(op: u8, a: u64, b: u64) -> u64 {
    match op & 0xf0 {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a << (b & 63),
        0x70 => a >> (b & 63),
        0xa0 => a ^ b,
        0xb0 => b,
        0xc0 => ((a as i64) >> (b & 63)) as u64,
        other => panic!("no such operation: {other:#x}"),
    }
}
