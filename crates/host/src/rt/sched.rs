//! CPUs, policy and priority of the calling thread.
//!
//! Raw system calls: musl's wrappers are stubs that fail with ENOSYS, and rustix's set of CPUs ends
//! at 1024.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::ptr;

use super::errno::check;
use super::signal::counts_overruns;
use model::reservation::Reservation;
use model::units::{CPU_LIMIT, Cpu, CpuSet};
use model::vocabulary::Policy;

/// CPUs that the calling thread may run on.
pub fn affinity() -> io::Result<CpuSet> {
    affinity_of(0)
}

/// CPUs that a thread may run on; 0 is the calling one.
pub fn affinity_of(tid: u32) -> io::Result<CpuSet> {
    let mut mask = [0u64; CPU_LIMIT as usize / 64];
    let size = mem::size_of_val(&mask);
    // SAFETY: the kernel writes at most `size` bytes, which is what the array has.
    let bytes = check(unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, size, mask.as_mut_ptr()) })?;
    let bits = (0..bytes as u32 * 8).filter(|n| mask[*n as usize / 64] >> (n % 64) & 1 == 1);
    Ok(bits.map(Cpu).collect())
}

/// Restricts the calling thread to these CPUs.
pub fn pin(cpus: &CpuSet) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// Restricts a thread to these CPUs; 0 is the calling one.
pub fn set_affinity_of(tid: u32, cpus: &CpuSet) -> io::Result<()> {
    let mut mask = [0u64; CPU_LIMIT as usize / 64];
    for Cpu(n) in cpus.iter() {
        if let Some(word) = mask.get_mut(n as usize / 64) {
            *word |= 1 << (n % 64);
        }
    }
    let size = mem::size_of_val(&mask);
    // SAFETY: the kernel reads `size` bytes, which is what the array has.
    check(unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, size, mask.as_ptr()) }).map(drop)
}

/// `struct sched_attr` as of its first version; the kernel accepts every size it knows.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    sched_policy: u32,
    sched_flags: u64,
    sched_nice: i32,
    sched_priority: u32,
    sched_runtime: u64,
    sched_deadline: u64,
    sched_period: u64,
}

fn number_of(policy: Policy) -> u32 {
    match policy {
        Policy::Fifo => libc::SCHED_FIFO as u32,
        Policy::Rr => libc::SCHED_RR as u32,
        Policy::Other => libc::SCHED_OTHER as u32,
        Policy::Deadline => libc::SCHED_DEADLINE as u32,
    }
}

/// Sets the policy and priority of the calling thread, and verifies that they took effect.
///
/// Its nice value and SCHED_FLAG_RESET_ON_FORK are preserved: only a privileged thread may restore
/// either of them (sched(7), user_check_sched_setscheduler in kernel/sched/syscalls.c). Nothing is
/// set if the thread has them already.
pub fn set_policy(policy: Policy, priority: u32) -> io::Result<()> {
    let has = scheduling()?;
    if (has.sched_policy, has.sched_priority) == (number_of(policy), priority) {
        return Ok(());
    }
    let wanted = SchedAttr {
        size: mem::size_of::<SchedAttr>() as u32,
        sched_policy: number_of(policy),
        sched_flags: has.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64,
        // Not from sched_getattr(2), which reports 0 for a real-time thread.
        sched_nice: nice()?,
        sched_priority: priority,
        ..Default::default()
    };
    match set_scheduling(&wanted) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => set_scheduler(&wanted)?,
        other => other?,
    }
    let got = scheduling()?;
    if (got.sched_policy, got.sched_priority) != (wanted.sched_policy, priority) {
        return Err(io::Error::other("the kernel reports another policy than the one it accepted"));
    }
    Ok(())
}

/// Makes the calling thread one of SCHED_DEADLINE; the kernel reports its overruns if they are
/// counted.
///
/// # Errors
/// EPERM: without CAP_SYS_NICE, or if the thread may not run on all CPUs of its partition. EBUSY:
/// the other threads leave too little time (sched(7), Documentation/scheduler/sched-deadline.rst).
pub fn set_reservation(of: &Reservation) -> io::Result<()> {
    set_scheduling(&SchedAttr {
        size: mem::size_of::<SchedAttr>() as u32,
        sched_policy: number_of(Policy::Deadline),
        sched_flags: if counts_overruns() { libc::SCHED_FLAG_DL_OVERRUN as u64 } else { 0 },
        sched_runtime: of.runtime.0 as u64,
        sched_deadline: of.deadline.0 as u64,
        sched_period: of.period.0 as u64,
        ..Default::default()
    })
}

fn set_scheduling(wanted: &SchedAttr) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the structure's size field states, which is its
    // size.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, ptr::from_ref(wanted), 0) }).map(drop)
}

/// Sets the policy by the older call, if the newer is missing (before Linux 3.14, gVisor).
fn set_scheduler(wanted: &SchedAttr) -> io::Result<()> {
    let reset = if wanted.sched_flags == 0 { 0 } else { libc::SCHED_RESET_ON_FORK as u32 };
    let (policy, priority) = (wanted.sched_policy | reset, wanted.sched_priority as libc::c_int);
    // SAFETY: struct sched_param is one int, which the kernel reads.
    check(unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, ptr::from_ref(&priority)) })
        .map(drop)
}

/// Removes the calling thread's real-time priority, if any.
///
/// SCHED_BATCH and SCHED_IDLE, which SCHED_OTHER preempts, stay: leaving SCHED_IDLE needs privilege
/// (sched(7)).
pub fn leave_real_time() -> io::Result<()> {
    match scheduling()?.sched_policy as libc::c_int {
        libc::SCHED_BATCH | libc::SCHED_IDLE => Ok(()),
        _ => set_policy(Policy::Other, 0),
    }
}

/// Lowers the nice value to -10 if permitted: the process that ends a load must get CPU time while
/// the load runs.
pub fn come_before_others() {
    const BEFORE: i32 = -10;
    if nice().is_ok_and(|nice| nice > BEFORE) {
        let _ = rustix::process::setpriority_process(None, BEFORE);
    }
}

/// Nice value of the calling thread.
pub fn nice() -> io::Result<i32> {
    Ok(rustix::process::getpriority_process(None)?)
}

fn scheduling() -> io::Result<SchedAttr> {
    let mut has = SchedAttr::default();
    let size = mem::size_of::<SchedAttr>();
    // SAFETY: the kernel writes at most `size` bytes, which is what the structure has.
    match check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, ptr::from_mut(&mut has), size, 0) }) {
        Ok(_) => Ok(has),
        // A filter of system calls may deny it; procfs has both fields as well.
        Err(error) => {
            let text = std::fs::read("/proc/thread-self/stat").unwrap_or_default();
            scheduling_in(&String::from_utf8_lossy(&text)).ok_or(error)
        }
    }
}

/// Policy and priority, fields 41 and 40 of proc_pid_stat(5).
fn scheduling_in(stat: &str) -> Option<SchedAttr> {
    let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace();
    let sched_priority = fields.nth(37)?.parse().ok()?;
    let sched_policy = fields.next()?.parse().ok()?;
    Some(SchedAttr { sched_policy, sched_priority, ..SchedAttr::default() })
}

/// Sets the timer slack of the calling thread to 1 ns; SCHED_OTHER has 50 us by default (prctl(2)).
pub fn set_minimum_timer_slack() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?)
}

/// ID of the calling thread.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_from_the_kernel_s_text() {
        let line = "7 (a) b) S 1 7 7 0 -1 64 1 0 0 0 5 6 0 0 -81 0 3 0 98 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 1 80 1 0 0 0";
        let found = scheduling_in(line).map(|has| (has.sched_policy, has.sched_priority));
        assert_eq!(found, Some((1, 80)));
        assert!(scheduling_in("7 (a) S 1").is_none() && scheduling_in("").is_none());
    }

    #[test]
    fn a_policy_that_is_there_already_keeps_the_nice_value() {
        std::thread::spawn(|| {
            let nicer = nice().expect("a nice value").max(5);
            rustix::process::setpriority_process(None, nicer).expect("a thread may always be nicer");
            set_policy(Policy::Other, 0).expect("SCHED_OTHER");
            leave_real_time().expect("SCHED_OTHER");
            assert_eq!(nice().expect("a nice value"), nicer);
            // SCHED_BATCH stays, and set_policy changes it to SCHED_OTHER with the same nice value.
            let batch =
                SchedAttr { sched_policy: libc::SCHED_BATCH as u32, sched_nice: nicer, ..Default::default() };
            let batch = SchedAttr { size: mem::size_of::<SchedAttr>() as u32, ..batch };
            set_scheduling(&batch).expect("SCHED_BATCH");
            leave_real_time().expect("nothing to do");
            assert_eq!(scheduling().expect("its policy").sched_policy, libc::SCHED_BATCH as u32);
            set_policy(Policy::Other, 0).expect("SCHED_OTHER");
            assert_eq!(nice().expect("a nice value"), nicer);
        })
        .join()
        .expect("no panic");
    }
}
