//! Attachment of a program to its event.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::call::{Attributes, Command, bpf_open};
use super::program::{Attached, Program};

/// PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_TRACEPOINT, PERF_FLAG_FD_CLOEXEC, and
/// _IOW('$', 8, __u32), _IO('$', 0).
const PERF_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const PERF_TRACEPOINT: u32 = 2;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
const SET_BPF: u64 = 0x4004_2408;
const ENABLE: u64 = 0x2400;

#[repr(C)]
struct RawOpen {
    name: u64,
    program: u32,
    padding: u32,
}

// SAFETY: the name is null: what a program of this type runs at is in the program.
unsafe impl Attributes for RawOpen {}

/// `struct perf_event_attr` in its second size.
#[repr(C)]
#[derive(Default)]
struct PerfAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    rest: [u64; 6],
}

/// Attachment of a program to its event; dropping it detaches the program.
pub struct Link {
    _descriptor: OwnedFd,
}

impl Link {
    /// Attaches the program on all CPUs, a pulse on `cpu` only. `cpu` must be online: the perf
    /// event is opened on it, even for a program that runs on all CPUs.
    pub fn new(program: &Program, cpu: u32) -> io::Result<Link> {
        let descriptor = match program.attached() {
            Attached::RawTracepoint(_) => {
                let mut open = RawOpen { name: 0, program: program.number() as u32, padding: 0 };
                bpf_open(Command::RawTracepointOpen, &mut open)?
            }
            Attached::Event(event) => {
                let of = PerfAttributes {
                    kind: PERF_TRACEPOINT,
                    config: event.into(),
                    ..PerfAttributes::default()
                };
                at_event(of, cpu, program.number())?
            }
            Attached::Pulse(period) => {
                let of = PerfAttributes {
                    kind: PERF_SOFTWARE,
                    config: CPU_CLOCK,
                    sample_period: period,
                    ..PerfAttributes::default()
                };
                at_event(of, cpu, program.number())?
            }
        };
        Ok(Link { _descriptor: descriptor })
    }
}

fn at_event(event: PerfAttributes, cpu: u32, program: i32) -> io::Result<OwnedFd> {
    let attributes = PerfAttributes { size: size_of::<PerfAttributes>() as u32, ..event };
    // SAFETY: the structure is plain data and contains its size.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &attributes,
            -1 as libc::pid_t,
            cpu as libc::c_int,
            -1 as libc::c_int,
            CLOSE_ON_EXEC,
        )
    };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just created by the kernel, and owned by nothing else.
    let descriptor = unsafe { OwnedFd::from_raw_fd(opened as i32) };
    for (request, argument) in [(SET_BPF, program), (ENABLE, 0)] {
        // SAFETY: both take a number.
        if unsafe { libc::ioctl(descriptor.as_raw_fd(), request as _, argument) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(descriptor)
}
