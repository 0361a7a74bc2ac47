//! Lines of GPIO chips by the character device, and those of a simulated chip.
//!
//! Source: include/uapi/linux/gpio.h (version 2), Documentation/admin-guide/gpio/gpio-sim.rst.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use model::units::Nanos;

/// GPIO_V2_GET_LINE_IOCTL and GPIO_V2_LINE_SET_VALUES_IOCTL: `_IOWR(0xb4, 7, 592)` and
/// `_IOWR(0xb4, 15, 16)`.
const GET_LINE: libc::c_ulong = call(7, size_of::<LineRequest>());
const SET_VALUES: libc::c_ulong = call(15, size_of::<LineValues>());

/// GPIO_V2_LINE_FLAG_INPUT, OUTPUT and EDGE_RISING.
const INPUT: u64 = 1 << 2;
const OUTPUT: u64 = 1 << 3;
const RISING: u64 = 1 << 4;

/// Size of `struct gpio_v2_line_event`, which starts with its time stamp.
const EVENT: usize = 48;

/// Number of a call that reads and writes a structure of that size.
const fn call(number: usize, size: usize) -> libc::c_ulong {
    (3 << 30 | size << 16 | 0xb4 << 8 | number) as libc::c_ulong
}

/// `struct gpio_v2_line_request`, with its configuration.
#[repr(C)]
struct LineRequest {
    offsets: [u32; 64],
    consumer: [u8; 32],
    flags: u64,
    attributes: u32,
    config_padding: [u32; 5],
    /// Ten attributes of 24 bytes, which are not used.
    unused: [u64; 30],
    lines: u32,
    buffer_size: u32,
    padding: [u32; 5],
    descriptor: i32,
}

/// `struct gpio_v2_line_values`.
#[repr(C)]
struct LineValues {
    bits: u64,
    mask: u64,
}

/// Name of the handler of a line's interrupt.
pub const CONSUMER: &str = "onbeat-gpio";

/// True if this kernel has any GPIO chip.
pub fn has_chips() -> bool {
    std::fs::read_dir("/sys/bus/gpio/devices").is_ok_and(|mut chips| chips.next().is_some())
}

/// Requested line.
fn request(chip: &str, line: u32, flags: u64) -> io::Result<OwnedFd> {
    let device = OpenOptions::new().read(true).write(true).open(format!("/dev/{chip}"))?;
    let mut wanted = LineRequest {
        offsets: [0; 64],
        consumer: [0; 32],
        flags,
        attributes: 0,
        config_padding: [0; 5],
        unused: [0; 30],
        lines: 1,
        buffer_size: 0,
        padding: [0; 5],
        descriptor: -1,
    };
    wanted.offsets[0] = line;
    wanted.consumer.iter_mut().zip(CONSUMER.bytes()).for_each(|(to, from)| *to = from);
    // SAFETY: the kernel reads and writes the structure that belongs to the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), GET_LINE as _, &raw mut wanted) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded: the descriptor is new, and of this function alone.
    Ok(unsafe { OwnedFd::from_raw_fd(wanted.descriptor) })
}

/// Line that is written.
pub enum GpioOutput {
    /// Line of a chip.
    Line(OwnedFd),
    /// Pull of a simulated chip's line.
    Pull(File),
}

impl GpioOutput {
    /// Requests a line of a chip, as a low output.
    pub fn line(chip: &str, line: u32) -> io::Result<GpioOutput> {
        Ok(GpioOutput::Line(request(chip, line, OUTPUT)?))
    }

    /// Opens the pull of a simulated chip's line; an error if the chip is not a simulated one.
    pub fn pull(chip: &str, line: u32) -> io::Result<GpioOutput> {
        let path = PathBuf::from(format!("/sys/bus/gpio/devices/{chip}/sim_gpio{line}/pull"));
        let output = GpioOutput::Pull(OpenOptions::new().write(true).open(path)?);
        output.set(false).map(|()| output)
    }

    /// Sets the line.
    pub fn set(&self, high: bool) -> io::Result<()> {
        match self {
            GpioOutput::Pull(file) => {
                let mut file: &File = file;
                file.write_all(if high { b"pull-up" } else { b"pull-down" })
            }
            GpioOutput::Line(line) => {
                let mut values = LineValues { bits: u64::from(high), mask: 1 };
                // SAFETY: the kernel reads the structure that belongs to the call.
                match unsafe { libc::ioctl(line.as_raw_fd(), SET_VALUES as _, &raw mut values) } {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            }
        }
    }
}

/// Line whose rising edges are awaited.
pub struct GpioInput(File);

impl GpioInput {
    /// Requests a line of a chip.
    pub fn line(chip: &str, line: u32) -> io::Result<GpioInput> {
        Ok(GpioInput(File::from(request(chip, line, INPUT | RISING)?)))
    }

    /// Waits for an edge, at most that long, and returns the kernel's time stamp of it; none if
    /// there was no edge.
    ///
    /// # Errors
    /// `Interrupted` by a signal, or a failed call.
    pub fn wait(&mut self, at_most: Nanos) -> io::Result<Option<Nanos>> {
        let limit = Timespec { tv_sec: at_most.0 / 1_000_000_000, tv_nsec: at_most.0 % 1_000_000_000 };
        let mut polled = [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
        if poll(&mut polled, Some(&limit))? == 0 {
            return Ok(None);
        }
        let mut event = [0; EVENT];
        self.0.read_exact(&mut event)?;
        let stamp = event.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok(Some(Nanos(stamp as i64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_kernel_s() {
        assert_eq!((size_of::<LineRequest>(), size_of::<LineValues>()), (592, 16));
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!((GET_LINE, SET_VALUES), (0xc250_b407, 0xc010_b40f));
        }
    }

    #[test]
    fn a_chip_that_does_not_exist_is_an_error() {
        assert!(GpioOutput::line("gpiochip-none", 0).is_err());
        assert!(GpioOutput::pull("gpiochip-none", 0).is_err());
        assert!(GpioInput::line("gpiochip-none", 0).is_err());
    }
}
