//! Unknown as a judgement: the reason why a text is unknown, and the remedy.

use crate::judgement::{Judgement, UnknownCause};
use facts::Fact;
use model::error::run_with;
use model::fact::errno_name;

/// Name of the configuration in messages.
pub const KCONFIG: &str = "the kernel's configuration";

/// The unknown judgement for a text that does not exist.
pub fn unknown_absent(what: &str) -> Judgement {
    Judgement::unknown(format!("{what} is not there"))
}

/// Capability that reading a text takes.
fn capability_for(what: &str) -> &'static str {
    match what {
        _ if what.contains("kmsg") || what.contains("kallsyms") => "CAP_SYSLOG",
        _ if what.starts_with("/proc/") && what[6..].starts_with(|c: char| c.is_ascii_digit()) => {
            "CAP_SYS_PTRACE"
        }
        "/proc" => "CAP_SYS_PTRACE",
        _ => "CAP_DAC_READ_SEARCH",
    }
}

/// The unknown judgement for a text that was refused or malformed, with a remedy.
pub fn unknown_from<T>(what: &str, fact: &Fact<T>) -> Judgement {
    let cause = match fact {
        // A file, which the user can name for a stopped machine.
        Fact::NotRunning if what == KCONFIG => UnknownCause::NotGiven,
        Fact::NotRunning => UnknownCause::NotRunning,
        Fact::Absent | Fact::Known(_) => UnknownCause::Undecided,
        Fact::Refused(_) | Fact::Malformed(_) | Fact::NotCaptured => UnknownCause::Unreadable,
    };
    let reason = match fact {
        Fact::NotRunning if what == "/proc/cmdline" => {
            "needs the running kernel, or a boot loader's text with its command line".to_owned()
        }
        Fact::NotRunning if what == KCONFIG => {
            "needs the kernel's configuration: pass it with --kconfig FILE".to_owned()
        }
        Fact::NotRunning if what.starts_with("/etc/") => {
            format!("needs the whole file system: {what} is missing")
        }
        Fact::NotRunning => format!("needs the running kernel: only it has {what}"),
        Fact::Refused(errno @ (libc::EACCES | libc::EPERM)) => {
            format!("{what} may not be read ({}): {}", errno_name(*errno), run_with(capability_for(what)))
        }
        Fact::NotCaptured => format!("{what} is not in this capture: take a new one"),
        Fact::Refused(errno) => format!("{what} cannot be read ({})", errno_name(*errno)),
        Fact::Malformed(why) => format!("{what} cannot be parsed: {why}"),
        Fact::Absent | Fact::Known(_) => format!("{what} is not there"),
    };
    Judgement::unknown(reason).cause(cause)
}
