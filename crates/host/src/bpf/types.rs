//! The kernel's type information (BTF).

use std::fs::File;
use std::io::{self, Read};

use crate::work::Mapping;

/// Limit of its size; kernels with debugging options have some 15 MB.
const LIMIT: u64 = 64 << 20;

/// Bytes of `/sys/kernel/btf/vmlinux`, in a mapping: a heap might not return the memory.
pub struct KernelTypes {
    memory: Mapping,
    length: usize,
}

impl KernelTypes {
    pub fn read() -> io::Result<KernelTypes> {
        let mut file = File::open("/sys/kernel/btf/vmlinux")?;
        let size = file.metadata()?.len();
        if size == 0 || size > LIMIT {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let mut memory = Mapping::new(size as usize)?;
        let length = size as usize;
        file.read_exact(&mut memory.bytes()[..length])?;
        Ok(KernelTypes { memory, length })
    }

    pub fn bytes(&mut self) -> &[u8] {
        &self.memory.bytes()[..self.length]
    }
}
