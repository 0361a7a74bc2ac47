//! Reasons that no recorder is available, in one line each.

use std::io;

use host::MachineFiles;
use host::bpf::Refused;
use host::tracefs::NotHere;
use model::error::{Exit, Failure, Result, reason, run_with};
use model::fact::Fact;

/// CAP_PERFMON and CAP_BPF of include/uapi/linux/capability.h; CAP_SYS_ADMIN includes both.
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// A map was not made.
pub fn no_map(error: &io::Error) -> Failure {
    let what = "the kernel refuses a map for the recorder's programs";
    match error.raw_os_error() {
        Some(libc_errno::EPERM) => not_permitted(what, error, BPF, "CAP_BPF"),
        Some(libc_errno::ENOSYS) => {
            Failure::not_supported(format!("{what} ({error}): it is built without CONFIG_BPF_SYSCALL"))
        }
        Some(libc_errno::EINVAL) => {
            Failure::not_supported(format!("{what} ({error}): it needs Linux 5.5 or later"))
        }
        _ => Failure::of_call(what, error, Exit::NotSupported, "see the kernel's log (dmesg)"),
    }
}

/// A program was not loaded.
pub fn no_program(name: &str, refused: &Refused) -> Failure {
    let what = format!("the kernel refuses the recorder's program {name}");
    let error = &refused.error;
    match error.raw_os_error() {
        Some(libc_errno::EPERM) => not_permitted(&what, error, PERFMON, "CAP_PERFMON"),
        _ if !refused.log.is_empty() => {
            Failure::not_supported(format!("{what} ({error}); its verifier says: {}", one_line(&refused.log)))
        }
        _ => Failure::of_call(what, error, Exit::NotSupported, "this kernel lacks a feature that it uses"),
    }
}

/// Architectures whose compiler inserts the number of the CPU (`bpf_jit_inlines_helper_call()`).
const CPU_BY_COMPILER: [&str; 2] = ["aarch64", "riscv64"];

/// Refuses a kernel that interprets programs instead of compiling them, if these get no CPU number:
/// Linux 6.12 counts all on CPU 0 (`do_misc_fixups()` of kernel/bpf/verifier.c), 7.3 does not load
/// them, and 6.1 leaves nothing to the compiler.
pub fn refuse_interpreted(machine: &str, version: Option<(u32, u32)>) -> Result<()> {
    if !CPU_BY_COMPILER.contains(&machine) || version.is_some_and(|version| version <= (6, 1)) {
        return Ok(());
    }
    Err(Failure::not_supported(
        "the kernel interprets the recorder's programs, which gives them a wrong CPU number here: run \
         `sysctl net.core.bpf_jit_enable=1`",
    ))
}

/// A program was not put to its event.
pub fn no_link(name: &str, error: &io::Error) -> Failure {
    let what = format!("the kernel does not run the recorder's program at {name}");
    match error.raw_os_error() {
        Some(libc_errno::EPERM | libc_errno::EACCES) => not_permitted(&what, error, PERFMON, "CAP_PERFMON"),
        Some(libc_errno::EEXIST) => Failure::not_supported(format!(
            "{what} ({error}): too many programs are attached there, end some"
        )),
        _ => Failure::of_call(
            what,
            error,
            Exit::NotSupported,
            "it needs CONFIG_BPF_EVENTS and CONFIG_PERF_EVENTS",
        ),
    }
}

/// Failure without tracefs.
pub fn no_tracing(why: NotHere) -> Failure {
    match why {
        NotHere::NoTracefs => Failure::not_supported("the kernel was built without tracing (CONFIG_FTRACE)"),
        NotHere::NotMounted => {
            Failure::not_supported("tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing")
        }
        NotHere::NotPermitted(_) => Failure::not_permitted(
            "tracefs cannot be read: run with CAP_DAC_READ_SEARCH, a unit without ProtectKernelTunables",
        ),
        NotHere::Failed(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            Failure::not_supported(format!("tracefs cannot be read ({error})"))
        }
    }
}

/// Failure to create a private tracing instance.
pub fn no_instance(error: &io::Error) -> Failure {
    let what = "the kernel refuses a tracing instance for the recorder";
    match error.raw_os_error() {
        Some(libc_errno::EPERM | libc_errno::EACCES) => {
            Failure::not_permitted(format!("{what} ({}): {}", reason(error), run_with("CAP_DAC_OVERRIDE")))
        }
        _ => Failure::of_call(what, error, Exit::NotSupported, "see the kernel's log (dmesg)"),
    }
}

/// An event was not let in.
pub fn no_event(name: &str, error: &io::Error) -> Failure {
    let what = format!("the event {name} cannot be recorded");
    Failure::of_call(what, error, Exit::NotSupported, "it needs CONFIG_EVENT_TRACING")
}

/// Failure for want of a capability, or the other mechanism that forbids it.
fn not_permitted(what: &str, error: &io::Error, capability: u32, name: &str) -> Failure {
    let held = capabilities();
    let has = |bit: u32| held.is_some_and(|held| held >> bit & 1 == 1);
    let remedy = if held.is_none() || !(has(capability) || has(SYS_ADMIN)) {
        run_with(name)
    } else if is_locked_down() {
        "the kernel is locked down to keep its memory confidential (/sys/kernel/security/lockdown)".to_owned()
    } else {
        format!("{name} is present, so a system call filter or a security module refuses it")
    };
    Failure::not_permitted(format!("{what} ({}): {remedy}", reason(error)))
}

/// The effective capabilities of this thread.
fn capabilities() -> Option<u64> {
    let Fact::Known(status) = MachineFiles::live().read_text("/proc/thread-self/status") else { return None };
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn is_locked_down() -> bool {
    let text = MachineFiles::live().read_text("/sys/kernel/security/lockdown");
    text.known().is_some_and(|text| text.contains("[confidentiality]"))
}

/// A message of the kernel as one line, with its length limited.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// The error numbers in question, the same on all of Linux's architectures that onbeat runs on.
mod libc_errno {
    pub const EPERM: i32 = 1;
    pub const EACCES: i32 = 13;
    pub const EEXIST: i32 = 17;
    pub const EINVAL: i32 = 22;
    pub const ENOSYS: i32 = 38;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreted_programs_are_refused_where_the_compiler_has_the_cpu() {
        for (machine, version, is_accepted) in [
            ("riscv64", Some((6, 12)), false),
            ("aarch64", None, false),
            ("riscv64", Some((6, 1)), true),
            ("x86_64", Some((6, 12)), true),
        ] {
            assert_eq!(refuse_interpreted(machine, version).is_ok(), is_accepted, "{machine} {version:?}");
        }
    }

    #[test]
    fn refusals_are_one_line_with_a_remedy() {
        for errno in [1, 7, 12, 13, 17, 22, 38] {
            let error = || io::Error::from_raw_os_error(errno);
            let refused = |log: &str| Refused { error: error(), log: log.to_owned() };
            for failure in [
                no_map(&error()),
                no_program("a", &refused("")),
                no_program("a", &refused("R1 is bad\nline")),
                no_link("a", &error()),
                no_instance(&error()),
                no_event("a", &error()),
            ] {
                assert!(
                    !failure.message.contains('\n') && failure.message.contains("): ")
                        || failure.message.contains("); ")
                );
                assert!(failure.exit != Exit::Ok && !failure.message.ends_with(": "), "{failure}");
            }
        }
        assert_eq!(no_map(&io::Error::from_raw_os_error(38)).exit, Exit::NotSupported);
        assert_eq!(no_map(&io::Error::from_raw_os_error(1)).exit, Exit::NotPermitted);
    }
}
