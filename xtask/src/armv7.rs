//! A run on a 32-bit board, by QEMU's user emulation: instructions and the sizes of the kernel's
//! structures are the board's; this machine's kernel does the rest, including real-time policies,
//! timers, affinity and locked memory. Restartable sequences are not emulated (rseq(2) gives
//! ENOSYS), so that `getcpu` replaces them.

use std::path::Path;
use std::time::Duration;

use crate::tools::{Result, Tool, on_path, root, target};

/// The target: 32 bits with hardware floating point, as on a Raspberry Pi 2 or a BeagleBone.
pub const TRIPLE: &str = "armv7-unknown-linux-gnueabihf";

const LINKER: &str = "arm-linux-gnueabihf-gcc";

/// The emulator's name here, if it and the linker are there: distributions package either of two.
pub fn emulator() -> Result<&'static str> {
    if !on_path(LINKER) {
        return Err(format!("no {LINKER} on the PATH"));
    }
    ["qemu-arm-static", "qemu-arm"]
        .into_iter()
        .find(|name| on_path(name))
        .ok_or("no qemu-arm on the PATH".to_string())
}

/// Builds `onbeat` with its C library inside, and has it measure for a second with each way to
/// sleep.
pub fn measure(emulator: &str) -> Result<()> {
    Tool::new("cargo")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .args(["build", "--quiet", "--package", "onbeat", "--target", TRIPLE])
        .env("CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER", LINKER)
        .env("CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUSTFLAGS", "-C target-feature=+crt-static")
        // Unoptimised it has more than the 16 MiB over which a branch of Thumb-2 reaches, and ends
        // before main().
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .dir(&root())
        .show()?;
    let binary = target(TRIPLE)?.join("debug/onbeat");
    ["nanosleep", "futex", "timerfd", "signal"].into_iter().try_for_each(|wake| {
        measure_by(emulator, &binary, wake).map_err(|why| format!("--wake {wake}: {why}"))
    })
}

fn measure_by(emulator: &str, binary: &Path, wake: &str) -> Result<()> {
    let text = Tool::new(emulator)
        .args([binary.to_str().ok_or("a path that is not UTF-8")?])
        .args(["measure", "-D", "1s", "--wake", wake, "--json", "-"])
        .within(Duration::from_secs(60))
        .text()?;
    let run: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    judge(&run)
}

/// Each CPU woke, and no wake-up is unaccounted for.
fn judge(run: &serde_json::Value) -> Result<()> {
    let cpus = run["cpus"].as_array().filter(|cpus| !cpus.is_empty()).ok_or("no CPU was measured")?;
    for cpu in cpus {
        let [cycles, missed, scheduled] = ["cycles", "missed", "scheduled"].map(|key| cpu[key].as_u64());
        match (cycles, missed, scheduled) {
            (Some(cycles), Some(missed), Some(all)) if cycles > 0 && cycles + missed == all => {}
            _ => return Err(format!("{cycles:?} cycles and {missed:?} missed of {scheduled:?} scheduled")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_lost_a_wake_up_fails() {
        let run = |cycles, missed| {
            judge(&serde_json::json!({"cpus": [{"cycles": cycles, "missed": missed, "scheduled": 1000}]}))
        };
        assert!(run(999, 1).is_ok() && run(1000, 0).is_ok());
        assert!(run(999, 0).is_err() && run(0, 1000).is_err());
        assert!(judge(&serde_json::json!({"cpus": []})).is_err() && judge(&serde_json::json!({})).is_err());
    }
}
