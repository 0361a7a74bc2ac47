//! BPF programs: loading them, and their statistics.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::call::{Attributes, Command, bpf, bpf_open, name_of};

/// BPF_PROG_TYPE_TRACEPOINT, BPF_PROG_TYPE_PERF_EVENT, BPF_PROG_TYPE_TRACING and BPF_TRACE_RAW_TP.
const TRACEPOINT: u32 = 5;
const PERF_EVENT: u32 = 7;
const TRACING: u32 = 26;
const TRACE_RAW_TP: u32 = 23;

/// Limit of the verifier's log, in bytes; the kernel takes no buffer below 128 bytes.
const LOG_LIMIT: usize = 1 << 20;

/// Helpers for stacks and clocks require the GPL (kernel/bpf/helpers.c).
const LICENCE: &[u8] = b"GPL\0";

/// Event that a program runs at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// A trace event, by number; the program reads its record.
    Event(u32),
    /// A raw tracepoint, by the BTF number of the type of its arguments.
    RawTracepoint(u32),
    /// A periodic timer on one CPU, by its period in nanoseconds.
    Pulse(u64),
}

/// Reason for which a program was not loaded.
#[derive(Debug)]
pub struct Refused {
    pub error: io::Error,
    /// Last lines of the verifier's log; empty if it wrote none.
    pub log: String,
}

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instructions: u32,
    code: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
    btf: u32,
    function_info_size: u32,
    function_info: u64,
    function_infos: u32,
    line_info_size: u32,
    line_info: u64,
    line_infos: u32,
    attach_btf_id: u32,
}

// SAFETY: `load` points at code, licence and log that outlive the call, with their lengths.
unsafe impl Attributes for Load {}

#[repr(C)]
struct InfoOf {
    descriptor: u32,
    length: u32,
    info: u64,
}

// SAFETY: `counts` points at a buffer of that length.
unsafe impl Attributes for InfoOf {}

/// `struct bpf_prog_info` up to `verified_insns`, in words of 8 bytes.
const INFO_WORDS: usize = 28;

/// Statistics of a program from the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramCounts {
    /// Events for which it did not run, because it or another program was already running on that
    /// CPU; `None` on kernels that do not count them.
    pub missed: Option<u64>,
    /// Size of the machine code in bytes; 0 if interpreted, or if this user may not read it.
    pub machine_code: u32,
}

/// Loaded program.
pub struct Program {
    descriptor: OwnedFd,
    attached: Attached,
}

impl Program {
    /// Loads the program after the verifier has checked it.
    pub fn load(name: &str, attached: Attached, code: &[u64]) -> Result<Program, Refused> {
        let quiet = load(name, attached, code, &mut []);
        let error = match quiet {
            Ok(descriptor) => return Ok(Program { descriptor, attached }),
            Err(error) => error,
        };
        // Only a refused program has a log worth its buffer.
        let mut log = vec![0u8; LOG_LIMIT];
        match load(name, attached, code, &mut log) {
            Ok(descriptor) => Ok(Program { descriptor, attached }),
            Err(_) => Err(Refused { error, log: last_lines(&log) }),
        }
    }

    pub(super) fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    pub(super) fn attached(&self) -> Attached {
        self.attached
    }

    /// Statistics since the program was loaded.
    pub fn counts(&self) -> io::Result<ProgramCounts> {
        let mut info = [0u64; INFO_WORDS];
        let mut attributes = InfoOf {
            descriptor: self.number() as u32,
            length: size_of_val(&info) as u32,
            info: info.as_mut_ptr() as u64,
        };
        bpf(Command::ObjectInfo, &mut attributes)?;
        // recursion_misses lies at 208 (Linux 5.12); `length` is what the kernel has written.
        let missed = (attributes.length >= 216).then_some(info[26]);
        let machine_code =
            if cfg!(target_endian = "little") { info[2] as u32 } else { (info[2] >> 32) as u32 };
        Ok(ProgramCounts { missed, machine_code })
    }
}

fn load(name: &str, attached: Attached, code: &[u64], log: &mut [u8]) -> io::Result<OwnedFd> {
    let (kind, expected_attach_type, attach_btf_id) = match attached {
        Attached::Event(_) => (TRACEPOINT, 0, 0),
        Attached::RawTracepoint(id) => (TRACING, TRACE_RAW_TP, id),
        Attached::Pulse(_) => (PERF_EVENT, 0, 0),
    };
    let logged = !log.is_empty();
    let mut attributes = Load {
        kind,
        instructions: u32::try_from(code.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?,
        code: code.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        log_level: logged.into(),
        log_size: log.len() as u32,
        log: if logged { log.as_mut_ptr() as u64 } else { 0 },
        name: name_of(name),
        expected_attach_type,
        attach_btf_id,
        ..Load::default()
    };
    bpf_open(Command::ProgramLoad, &mut attributes)
}

/// Last lines of the log, without the one that counts instructions.
fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("processed "))
        .collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_log_the_last_lines_count() {
        let log = b"0: R1=ctx()\n0: (85) call x\n1: (95) exit\nR0 !read_ok\nprocessed 2 insns\n\0\0\0";
        assert_eq!(last_lines(log), "0: (85) call x; 1: (95) exit; R0 !read_ok");
        assert_eq!(last_lines(b""), "");
    }

    #[test]
    fn the_structures_lie_as_the_kernel_reads_them() {
        assert_eq!(std::mem::offset_of!(Load, name), 48);
        assert_eq!(std::mem::offset_of!(Load, expected_attach_type), 68);
        assert_eq!(std::mem::offset_of!(Load, attach_btf_id), 108);
    }
}
