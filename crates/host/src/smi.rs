//! Counter of system management interrupts of a CPU: what firmware took.
//!
//! Source: MSR_SMI_COUNT (34H) of Intel's Software Developer's Manual, volume 4; msr(4).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use model::units::Cpu;

/// Number of the register.
const SMI_COUNT: u64 = 0x34;

/// Counter of one CPU, open for reads.
pub struct SmiCounter {
    file: File,
}

impl SmiCounter {
    /// Opens the counter.
    ///
    /// # Errors
    /// The processor has no such register, the module msr is not loaded, or the user may not read
    /// it.
    pub fn open(cpu: Cpu) -> io::Result<SmiCounter> {
        let counter = SmiCounter { file: File::open(format!("/dev/cpu/{cpu}/msr"))? };
        counter.read()?;
        Ok(counter)
    }

    /// Reads the count. The kernel interrupts the CPU for it.
    pub fn read(&self) -> io::Result<u32> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, SMI_COUNT)?;
        // The upper half is reserved.
        Ok(u64::from_ne_bytes(bytes) as u32)
    }
}
