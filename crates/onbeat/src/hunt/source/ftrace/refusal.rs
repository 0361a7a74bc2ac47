//! Errors for machines that do not support a hunt, with the alternative.

use host::tracefs::NotHere;
use model::error::{Exit, Failure, run_with};

/// Error for a machine without tracing, with the alternative.
pub fn refusal(why: NotHere) -> Failure {
    let instead = "`onbeat measure` works without, and `onbeat doctor` lists what else does";
    let error = |errno: i32| std::io::Error::from_raw_os_error(errno);
    match why {
        NotHere::NoTracefs => {
            Failure::not_supported(format!("this kernel has no event tracing (CONFIG_FTRACE): {instead}"))
        }
        NotHere::NotMounted => {
            Failure::not_supported("tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing")
        }
        NotHere::NotPermitted(errno) => Failure::not_permitted(format!(
            "tracefs is not permitted here ({}): {}, and without kernel lockdown; {instead}",
            error(errno),
            run_with("CAP_SYS_ADMIN")
        )),
        NotHere::Failed(errno) => {
            Failure::of_call("cannot open tracefs", &error(errno), Exit::NotSupported, instead)
        }
    }
}
