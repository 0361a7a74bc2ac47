//! Errors for machines that do not support a hunt, with the alternative.

use host::tracefs::NotHere;
use model::error::{Exit, Failure, run_with};

/// Error for a machine without tracing, with the alternative.
pub fn refusal(why: NotHere) -> Failure {
    let instead = "`onbeat measure` works without";
    let error = |errno: i32| std::io::Error::from_raw_os_error(errno);
    match why {
        NotHere::NoTracefs => {
            Failure::not_supported(format!("this kernel has no event tracing (CONFIG_FTRACE): {instead}"))
        }
        NotHere::NotMounted => Failure::not_supported(
            "tracefs is not mounted, and kernels before 5.2 mount it in sight only: mount -t tracefs nodev \
            /sys/kernel/tracing",
        ),
        NotHere::NotPermitted(errno) => Failure::not_permitted(format!(
            "tracefs may not be used here ({}): {}, and outside of lockdown; {instead}",
            error(errno),
            run_with("CAP_SYS_ADMIN")
        )),
        NotHere::Failed(errno) => {
            Failure::of_call("tracefs cannot be opened", &error(errno), Exit::NotSupported, instead)
        }
    }
}
