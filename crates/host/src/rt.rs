//! Real-time calls as thin safe functions: pinning, policy, locked memory, signals, the thread's CPU.
//!
//! They need no fake: the measuring loop runs without privilege under SCHED_OTHER. Scheduling calls
//! are raw system calls, because musl's wrappers are stubs that fail with ENOSYS.

#![allow(unsafe_code)]

use std::io;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::OnceLock;

use model::units::{Cpu, CpuSet};
use model::vocabulary::Policy;

mod place;
mod signals;

pub use place::{CpuReader, current_cpu};
pub use signals::*;

/// The CPUs that the calling thread may run on.
pub fn affinity() -> io::Result<CpuSet> {
    let mut mask = [0u64; model::units::CPU_LIMIT as usize / 64];
    // SAFETY: the kernel writes at most the given number of bytes into the array.
    let bytes = check(unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, mem::size_of_val(&mask), mask.as_mut_ptr())
    } as libc::c_int)?;
    let bits = (0..bytes as u32 * 8).filter(|n| mask[*n as usize / 64] >> (n % 64) & 1 == 1);
    Ok(bits.map(Cpu).collect())
}

/// Lets the calling thread run on these CPUs only.
pub fn pin(cpus: &CpuSet) -> io::Result<()> {
    let mut mask = [0u64; model::units::CPU_LIMIT as usize / 64];
    for Cpu(n) in cpus.iter() {
        if let Some(word) = mask.get_mut(n as usize / 64) {
            *word |= 1 << (n % 64);
        }
    }
    // SAFETY: the kernel reads the given number of bytes from the array.
    check(unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, mem::size_of_val(&mask), mask.as_ptr()) }
        as libc::c_int)
    .map(drop)
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
    }
}

/// Gives the calling thread a policy and priority, and reads back that it took effect.
///
/// What else it was started with stays: its nice value and the flag that children do not inherit, either of which only a
/// privileged thread may take back (sched(7), user_check_sched_setscheduler in kernel/sched/syscalls.c). A thread that has
/// the policy already is left alone.
pub fn set_policy(policy: Policy, priority: u32) -> io::Result<()> {
    let has = scheduling()?;
    if (has.sched_policy, has.sched_priority) == (number_of(policy), priority) {
        return Ok(());
    }
    let wanted = SchedAttr {
        size: mem::size_of::<SchedAttr>() as u32,
        sched_policy: number_of(policy),
        sched_flags: has.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64,
        // Not from sched_getattr(2), which gives that of a real-time thread as 0.
        sched_nice: nice()?,
        sched_priority: priority,
        ..Default::default()
    };
    // SAFETY: the structure carries its own size, and the kernel only reads it.
    let set = check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &wanted, 0) } as libc::c_int);
    match set {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => set_scheduler(&wanted)?,
        other => drop(other?),
    }
    let got = scheduling()?;
    if (got.sched_policy, got.sched_priority) != (wanted.sched_policy, priority) {
        return Err(io::Error::other("the kernel reports another policy than the one it accepted"));
    }
    Ok(())
}

/// The older call, for where the newer is not (before Linux 3.14, gVisor).
fn set_scheduler(wanted: &SchedAttr) -> io::Result<()> {
    let reset = if wanted.sched_flags == 0 { 0 } else { libc::SCHED_RESET_ON_FORK as u32 };
    // SAFETY: struct sched_param is one int, and the kernel only reads it.
    let set = unsafe {
        let policy = wanted.sched_policy | reset;
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &(wanted.sched_priority as libc::c_int))
    };
    check(set as libc::c_int).map(drop)
}

/// Has the calling thread go before no real-time thread and no other thread of its nice value.
///
/// A policy that gives way to SCHED_OTHER stays: to leave SCHED_IDLE takes privilege.
pub fn give_way() -> io::Result<()> {
    match scheduling()?.sched_policy as libc::c_int {
        libc::SCHED_BATCH | libc::SCHED_IDLE => Ok(()),
        _ => set_policy(Policy::Other, 0),
    }
}

/// The calling thread's nice value.
pub fn nice() -> io::Result<i32> {
    Ok(rustix::process::getpriority_process(None)?)
}

fn scheduling() -> io::Result<SchedAttr> {
    let mut has = SchedAttr::default();
    let size = mem::size_of::<SchedAttr>();
    // SAFETY: the kernel writes at most `size` bytes into the structure.
    match check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &mut has, size, 0) } as libc::c_int) {
        Ok(_) => Ok(has),
        // Under a filter that denies the call the kernel's text still tells.
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

/// Sets the slack of the calling thread's timers to 1 ns; SCHED_OTHER has 50 us otherwise (prctl(2)).
pub fn set_least_timer_slack() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?)
}

/// Counters of the calling thread, from getrusage(RUSAGE_THREAD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Voluntary context switches: one per sleep.
    pub voluntary_switches: u64,
    /// Involuntary ones: somebody took the CPU.
    pub involuntary_switches: u64,
}

/// The counters of the calling thread so far.
pub fn thread_usage() -> Usage {
    let usage = rusage(libc::RUSAGE_THREAD);
    Usage {
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

fn rusage(who: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: all zeros is a value of the structure, and the kernel writes nothing beyond it.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Touches the stack below the caller, so that the loop's frames are there before they are needed.
#[inline(never)]
pub fn touch_stack() {
    let mut pages = [0u8; 32 << 10];
    for byte in pages.iter_mut().step_by(4096) {
        // SAFETY: the write is to a byte of our own array; volatile, or the compiler would drop it.
        unsafe { ptr::write_volatile(byte, 1) };
    }
    std::hint::black_box(&pages);
}

/// Locks the pages of a value into memory; they stay locked until they are unmapped.
///
/// A value without bytes has none: for an empty range next to address 0 the kernel says ENOMEM.
pub fn lock_pages<T: ?Sized>(value: &T) -> io::Result<()> {
    if mem::size_of_val(value) == 0 {
        return Ok(());
    }
    // SAFETY: the range is that of a live value; locking changes no content.
    Ok(unsafe { rustix::mm::mlock(ptr::from_ref(value) as *mut _, mem::size_of_val(value)) }?)
}

/// Keeps in memory what is mapped and touched by now, and what of it is touched later.
///
/// Not MCL_FUTURE, which would fill in every later mapping whole, thread stacks and all (mlockall(2)).
pub fn lock_touched() -> io::Result<()> {
    use rustix::mm::MlockAllFlags;
    Ok(rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)?)
}

/// Unlocks what is locked, and lets go of the program's code and constants, which come back from the page cache as they
/// are needed: what only a part of the run needed that is over takes no memory for the rest of it, and is not locked.
///
/// Unmapping interrupts the CPUs that run threads of the process: never while samples count. A debug build keeps its
/// code, in which a debugger may have set breakpoints.
pub fn forget_code() {
    static UNTOUCHED: OnceLock<bool> = OnceLock::new();
    // SAFETY: every ELF linker gives these two (end(3)); only their addresses are taken.
    unsafe extern "C" {
        #[link_name = "__executable_start"]
        static START: u8;
        #[link_name = "etext"]
        static END: u8;
    }
    if cfg!(debug_assertions) {
        return;
    }
    let (start, end) = (&raw const START as usize, &raw const END as usize);
    // Locked pages are not let go (madvise(2)).
    let _ = rustix::mm::munlockall();
    let smaps = || std::fs::read("/proc/self/smaps").unwrap_or_default();
    if !*UNTOUCHED.get_or_init(|| is_as_in_its_file(&String::from_utf8_lossy(&smaps()), start, end)) {
        return;
    }
    // SAFETY: what lies between the two was looked at: it is mapped from a file, may not be written, and no page of it was:
    // each comes back as it was.
    let _ = unsafe { rustix::mm::madvise(start as *mut _, end - start, rustix::mm::Advice::LinuxDontNeed) };
}

/// Whether all that lies between two addresses is mapped from files, may not be written and never was, by
/// /proc/PID/smaps (proc_pid_smaps(5)): a page that was written is counted as anonymous. Pure.
fn is_as_in_its_file(smaps: &str, start: usize, end: usize) -> bool {
    let mut reached = start;
    let mut within = false;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(number) = first.strip_suffix(':').map(|_| words.next()) {
            if within && first == "Anonymous:" && number != Some("0") {
                return false;
            }
            continue;
        }
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        let Some((from, to)) = first.split_once('-').and_then(|(a, b)| number(a).zip(number(b))) else {
            return false;
        };
        within = from < end && to > start;
        if !within {
            continue;
        }
        let (access, inode) = (words.next().unwrap_or_default(), words.nth(2).unwrap_or_default());
        if from > reached || access.contains('w') || !access.ends_with('p') || inode == "0" {
            return false;
        }
        reached = to;
    }
    start < end && reached >= end
}

/// Has the allocator keep what it is given back: unmapping memory of a process interrupts every CPU
/// that runs one of its threads (TLB shootdown), the measured ones among them.
pub fn keep_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers; called before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, libc::c_int::MAX);
        // Some versions refuse so large a threshold: then no block is mapped by itself at all.
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// CLOCK_MONOTONIC by the C library's function.
#[cfg(target_env = "musl")]
#[inline(always)]
pub fn musl_monotonic() -> model::units::Nanos {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the clock exists on every Linux, so that the call fills the structure.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    // Widened where the C library has 32 bits.
    #[allow(clippy::unnecessary_cast)]
    model::units::Nanos(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64)
}

/// What a clock shows; none where a filter of system calls refuses it. rustix's function would panic.
pub fn clock_time(clock: libc::clockid_t) -> Option<model::units::Nanos> {
    clock_value(|time| clock::time(clock, time))
}

/// The resolution of a clock; none where a filter of system calls refuses it.
pub fn clock_resolution(clock: libc::clockid_t) -> Option<model::units::Nanos> {
    clock_value(|time| clock::resolution(clock, time))
}

fn clock_value(call: impl FnOnce(&mut clock::Time) -> libc::c_long) -> Option<model::units::Nanos> {
    let mut time = clock::Time { tv_sec: 0, tv_nsec: 0 };
    check(call(&mut time) as libc::c_int).ok()?;
    Some(model::units::Nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec))
}

/// The C library's calls, which go through the vDSO.
#[cfg(target_pointer_width = "64")]
mod clock {
    pub use libc::timespec as Time;

    pub fn time(clock: libc::clockid_t, time: &mut Time) -> libc::c_long {
        // SAFETY: the call writes the structure that it is given, or fails.
        libc::c_long::from(unsafe { libc::clock_gettime(clock, time) })
    }

    pub fn resolution(clock: libc::clockid_t, time: &mut Time) -> libc::c_long {
        // SAFETY: the call writes the structure that it is given, or fails.
        libc::c_long::from(unsafe { libc::clock_getres(clock, time) })
    }
}

/// The kernel's calls with 64 bits for the seconds (Linux 5.1): a C library of 32 bits may have seconds that end in 2038.
#[cfg(target_pointer_width = "32")]
mod clock {
    /// Their numbers are the same on every machine (include/uapi/asm-generic/unistd.h).
    const GETTIME: libc::c_long = 403;
    const GETRES: libc::c_long = 406;

    /// `struct __kernel_timespec`.
    #[repr(C)]
    pub struct Time {
        pub tv_sec: i64,
        pub tv_nsec: i64,
    }

    pub fn time(clock: libc::clockid_t, time: &mut Time) -> libc::c_long {
        // SAFETY: the call writes the structure that it is given, or fails.
        unsafe { libc::syscall(GETTIME, clock, std::ptr::from_mut(time)) }
    }

    pub fn resolution(clock: libc::clockid_t, time: &mut Time) -> libc::c_long {
        // SAFETY: the call writes the structure that it is given, or fails.
        unsafe { libc::syscall(GETRES, clock, std::ptr::from_mut(time)) }
    }
}

/// The calling thread's id.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
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
    fn a_clock_that_cannot_be_read_is_none() {
        assert!(clock_time(libc::CLOCK_THREAD_CPUTIME_ID).is_some_and(|time| time.0 > 0));
        assert!(clock_resolution(libc::CLOCK_MONOTONIC).is_some_and(|time| time.0 > 0));
        assert_eq!((clock_time(15), clock_resolution(15)), (None, None), "no such clock");
    }

    #[test]
    fn what_has_no_bytes_needs_no_lock() {
        lock_pages::<[u64]>(&[]).expect("nothing to lock");
        lock_pages(&()).expect("nothing to lock");
    }

    #[test]
    fn a_policy_that_is_there_already_keeps_the_nice_value() {
        std::thread::spawn(|| {
            let nicer = nice().expect("a nice value").max(5);
            rustix::process::setpriority_process(None, nicer).expect("a thread may always be nicer");
            set_policy(Policy::Other, 0).expect("SCHED_OTHER");
            give_way().expect("SCHED_OTHER");
            assert_eq!(nice().expect("a nice value"), nicer);
            // SCHED_BATCH gives way already, and is left for SCHED_OTHER with the same nice value.
            let batch =
                SchedAttr { sched_policy: libc::SCHED_BATCH as u32, sched_nice: nicer, ..Default::default() };
            let batch = SchedAttr { size: mem::size_of::<SchedAttr>() as u32, ..batch };
            // SAFETY: the structure carries its own size, and the kernel only reads it.
            let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &batch, 0) };
            assert_eq!(set, 0);
            give_way().expect("nothing to do");
            assert_eq!(scheduling().expect("its policy").sched_policy, libc::SCHED_BATCH as u32);
            set_policy(Policy::Other, 0).expect("SCHED_OTHER");
            assert_eq!(nice().expect("a nice value"), nicer);
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn only_code_that_nobody_wrote_to_is_forgotten() {
        let smaps = |access: &str, inode: u32, anonymous: u32| {
            format!(
                "1000-2000 r--p 00000000 08:01 7 /bin/onbeat\nRss: 4 kB\nAnonymous: 0 kB\nVmFlags: rd mr\n\
                 2000-9000 {access} 00001000 08:01 {inode} /bin/onbeat\nAnonymous: {anonymous} kB\n\
                 9000-a000 rw-p 00008000 08:01 7 /bin/onbeat\nAnonymous: 4 kB\n"
            )
        };
        let good = smaps("r-xp", 7, 0);
        assert!(is_as_in_its_file(&good, 0x1000, 0x8123) && is_as_in_its_file(&good, 0x2000, 0x9000));
        for (access, inode, anonymous) in [("rwxp", 7, 0), ("r-xs", 7, 0), ("r-xp", 0, 0), ("r-xp", 7, 4)] {
            assert!(!is_as_in_its_file(&smaps(access, inode, anonymous), 0x1000, 0x8123));
        }
        assert!(!is_as_in_its_file(&good, 0x1000, 0x9001), "written data");
        assert!(!is_as_in_its_file(&good, 0xf00, 0x2000), "a gap");
        assert!(!is_as_in_its_file("", 0x1000, 0x2000) && !is_as_in_its_file("nonsense", 1, 2));
    }
}
