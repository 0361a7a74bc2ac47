//! SCHED_DEADLINE for a measuring thread, and the reasons for which the kernel refuses it.

use std::io;
use std::thread;

use crate::plan::{CpuPlan, MeasurePlan};
use host::{capabilities, rt};
use model::error::{Exit, Failure, Result, reason, run_with};
use model::reservation::Reservation;
use model::text::several;
use model::units::{Cpu, CpuSet, Nanos};

/// Stack size of the thread that tries it.
const STACK: usize = 64 << 10;

/// A thousandth of a CPU, to try it.
pub const LITTLE: Reservation =
    Reservation { runtime: Nanos(10_000), deadline: Nanos(10_000_000), period: Nanos(10_000_000) };

/// Makes the calling thread one of SCHED_DEADLINE.
pub fn reserve(plan: &MeasurePlan, own: &CpuPlan, wanted: &Reservation) -> Result<()> {
    let bound = (own.thread == 0).then_some(own.cpu);
    rt::set_reservation(wanted).map_err(|error| why_refused(&plan.measured(), bound, wanted, &error))
}

/// Outcome of SCHED_DEADLINE for a thread with these CPUs, tried on one that ends at once.
pub fn try_reservation(cpus: &CpuSet, wanted: &Reservation) -> io::Result<()> {
    let (cpus, wanted) = (cpus.clone(), *wanted);
    let main = move || rt::pin(&cpus).and_then(|()| rt::set_reservation(&wanted));
    let tried = thread::Builder::new().name("onbeat/try".into()).stack_size(STACK).spawn(main)?;
    tried.join().unwrap_or_else(|_| Err(io::Error::from_raw_os_error(libc::EIO)))
}

/// Refusal of SCHED_DEADLINE in words, for a thread that is bound to a CPU or not.
///
/// The order of the checks is that of `__sched_setscheduler()` in kernel/sched/syscalls.c: the
/// parameters, the privilege, the CPUs, the bandwidth.
pub fn why_refused(cpus: &CpuSet, bound: Option<Cpu>, wanted: &Reservation, error: &io::Error) -> Failure {
    let Reservation { runtime, deadline, period } = *wanted;
    let privileged = capabilities::has(capabilities::SYS_NICE);
    let words = match (error.raw_os_error(), bound) {
        (Some(libc::EPERM), _) if !privileged => run_with("CAP_SYS_NICE"),
        (Some(libc::EPERM), Some(cpu)) => format!(
            "the kernel accepts a thread of one CPU only in a partition of that CPU alone; give it one \
             (`onbeat isolate create {cpu}`) and put `onbeat isolate run -c {cpu} --` before `onbeat`, or \
             omit -a in `onbeat probe deadline`"
        ),
        (Some(libc::EPERM), None) => format!(
            "the kernel accepts only threads that may run on all CPUs of their partition, and this process \
             may run on {cpus} only; start onbeat without taskset, in the root partition"
        ),
        (Some(libc::EBUSY), _) => format!(
            "{} with {runtime} in each {period} are more than the kernel admits: all SCHED_DEADLINE threads \
             and the fair servers together get at most sched_rt_runtime_us in each sched_rt_period_us of a \
             CPU, usually 95 %; give a shorter runtime, a longer period, or fewer CPUs",
            several(cpus.len() as u64, "thread", "threads")
        ),
        (Some(libc::EINVAL), _) => format!(
            "the kernel does not accept a runtime of {runtime}, a deadline of {deadline} and a period of \
             {period}; choose a period between sched_deadline_period_min_us and _max_us (sysctl)"
        ),
        (Some(libc::ENOSYS), _) => "this kernel has no sched_setattr(2); choose -p N for SCHED_FIFO".into(),
        _ => "choose -p N for SCHED_FIFO, or run without a system call filter".into(),
    };
    let exit = match error.raw_os_error() {
        Some(libc::EPERM | libc::EBUSY) => Exit::NotPermitted,
        Some(libc::EINVAL) => Exit::Usage,
        _ => Exit::NotSupported,
    };
    let on = bound.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    Failure { exit, message: format!("cannot set SCHED_DEADLINE{on} ({}): {words}", reason(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_cause_and_its_exit_code() {
        let cpus = CpuSet::parse("0-3").unwrap();
        let wanted = Reservation::parse("1ms:2ms").unwrap();
        let refused = |number, bound| {
            let failure = why_refused(&cpus, bound, &wanted, &io::Error::from_raw_os_error(number));
            (failure.exit, failure.message)
        };
        let (exit, words) = refused(libc::EBUSY, None);
        assert!(exit == Exit::NotPermitted && words.contains("4 threads with 1 ms in each 2 ms"), "{words}");
        assert_eq!(refused(libc::EINVAL, None).0, Exit::Usage);
        assert_eq!(refused(libc::ENOSYS, Some(Cpu(1))).0, Exit::NotSupported);
        let (exit, words) = refused(libc::EPERM, Some(Cpu(1)));
        assert_eq!(exit, Exit::NotPermitted);
        assert!(words.contains("isolate create 1") || words.contains("CAP_SYS_NICE"), "{words}");
    }
}
