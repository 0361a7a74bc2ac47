//! Real-time calls as thin safe functions: pinning, policy, locked memory, signals, the thread's CPU.
//!
//! They need no fake: the measuring loop runs without privilege under SCHED_OTHER. Scheduling calls
//! are raw system calls, because musl's wrappers are stubs that fail with ENOSYS.

#![allow(unsafe_code)]

use std::io;
use std::mem::{self, MaybeUninit};
use std::ptr;

use rustix::thread::Pid;

use super::clock::{monotonic, timespec_of};
use crate::units::{Cpu, CpuSet, Nanos, Policy};

/// A POSIX timer whose signal goes to this thread, which waits for it with sigwaitinfo.
pub struct SignalTimer {
    timer: libc::timer_t,
    set: libc::sigset_t,
    signal: libc::c_int,
}

impl SignalTimer {
    /// Makes a timer for the calling thread and blocks its signal there.
    pub fn new() -> io::Result<SignalTimer> {
        let signal = libc::SIGRTMIN();
        let set = signal_set(&[signal]);
        mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: sigevent is plain data for which all zeros is a value; the kernel reads it during the call only.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = thread_id() as _;
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both pointers are to locals that outlive the call.
        check(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) })?;
        Ok(SignalTimer { timer, set, signal })
    }

    /// Arms the timer and waits for its signal; false if another signal came first.
    #[inline(always)]
    pub fn sleep_until(&self, instant: Nanos) -> bool {
        let time = timespec_of(instant);
        let value = libc::timespec { tv_sec: time.tv_sec as _, tv_nsec: time.tv_nsec as _ };
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let once = libc::itimerspec { it_interval: none, it_value: value };
        // SAFETY: the timer is ours until drop; the pointers are to locals, and a null old value is allowed.
        let armed = unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &once, ptr::null_mut()) };
        armed == 0 && wait_for(&self.set, None) == self.signal
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer was made by timer_create and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// `struct rseq`, as far as the kernel needs it (rseq(2), include/uapi/linux/rseq.h).
#[repr(C, align(32))]
struct RseqArea {
    cpu_id_start: u32,
    cpu_id: u32,
    rseq_cs: u64,
    flags: u32,
    rest: [u32; 3],
}

/// Tells a thread which CPU it runs on in one load, from memory that the kernel keeps up to date for it.
///
/// glibc from 2.35 on has registered such memory itself; then its own function is used. Where there is
/// none (old kernels), asking is a call into the vDSO, and on arm64 a system call.
pub struct CpuReader(Option<Box<RseqArea>>);

const RSEQ_SIGNATURE: u32 = 0x5305_3053;
const RSEQ_UNREGISTER: libc::c_int = 1;

impl CpuReader {
    /// Registers the memory for the calling thread, which alone may use the reader.
    pub fn new() -> CpuReader {
        let area = RseqArea { cpu_id_start: 0, cpu_id: u32::MAX, rseq_cs: 0, flags: 0, rest: [0; 3] };
        let area = Box::new(area);
        let registered = rseq(&area, 0);
        CpuReader(registered.then_some(area))
    }

    /// The CPU that this thread runs on right now.
    #[inline(always)]
    pub fn current(&self) -> Cpu {
        match &self.0 {
            // SAFETY: the area is alive and aligned; volatile, because the kernel writes it.
            Some(area) => Cpu(unsafe { ptr::read_volatile(&area.cpu_id) }),
            None => current_cpu(),
        }
    }
}

impl Default for CpuReader {
    fn default() -> CpuReader {
        CpuReader::new()
    }
}

impl Drop for CpuReader {
    fn drop(&mut self) {
        if let Some(area) = self.0.take().filter(|area| !rseq(area, RSEQ_UNREGISTER)) {
            // Still written by the kernel: it must outlive the thread.
            Box::leak(area);
        }
    }
}

fn rseq(area: &RseqArea, flags: libc::c_int) -> bool {
    let size = mem::size_of::<RseqArea>();
    // SAFETY: the area has the size and alignment that rseq(2) asks for, and its box keeps its place until
    // it is unregistered.
    unsafe { libc::syscall(libc::SYS_rseq, ptr::from_ref(area), size, flags, RSEQ_SIGNATURE) == 0 }
}

/// The CPU that the calling thread runs on right now.
#[inline(always)]
pub fn current_cpu() -> Cpu {
    #[cfg(target_arch = "x86_64")]
    let cpu = rustix::thread::sched_getcpu();
    // SAFETY: the function takes nothing and only reads; rustix makes it a system call on other machines.
    #[cfg(not(target_arch = "x86_64"))]
    let cpu = unsafe { libc::sched_getcpu() };
    Cpu(cpu as u32)
}

/// The CPUs that the calling thread may run on.
pub fn affinity() -> io::Result<CpuSet> {
    let mut mask = [0u64; crate::units::CPU_LIMIT as usize / 64];
    // SAFETY: the kernel writes at most the given number of bytes into the array.
    let bytes = check(unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, mem::size_of_val(&mask), mask.as_mut_ptr())
    } as libc::c_int)?;
    let bits = (0..bytes as u32 * 8).filter(|n| mask[*n as usize / 64] >> (n % 64) & 1 == 1);
    Ok(bits.map(Cpu).collect())
}

/// Lets the calling thread run on these CPUs only.
pub fn pin(cpus: &CpuSet) -> io::Result<()> {
    let mut mask = [0u64; crate::units::CPU_LIMIT as usize / 64];
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
pub fn set_policy(policy: Policy, priority: u32) -> io::Result<()> {
    let size = mem::size_of::<SchedAttr>() as u32;
    let wanted =
        SchedAttr { size, sched_policy: number_of(policy), sched_priority: priority, ..Default::default() };
    // SAFETY: the structure carries its own size, and the kernel only reads it.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &wanted, 0) } as libc::c_int)?;
    let mut got = SchedAttr::default();
    // SAFETY: the kernel writes at most `size` bytes into the structure.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &mut got, size, 0) } as libc::c_int)?;
    if (got.sched_policy, got.sched_priority) != (wanted.sched_policy, priority) {
        return Err(io::Error::other("the kernel reports another policy than the one it accepted"));
    }
    Ok(())
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
pub fn lock_pages<T: ?Sized>(value: &T) -> io::Result<()> {
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
/// Unmapping interrupts the CPUs that run threads of the process: never while samples count.
pub fn forget_code() {
    // SAFETY: every ELF linker gives these two (end(3)); only their addresses are taken.
    unsafe extern "C" {
        #[link_name = "__executable_start"]
        static START: u8;
        #[link_name = "etext"]
        static END: u8;
    }
    let (start, end) = (&raw const START, &raw const END);
    // Locked pages are not let go (madvise(2)).
    let _ = rustix::mm::munlockall();
    // SAFETY: what lies between the two is mapped from the program's file and never written, relocated data being
    // elsewhere: a page comes back as it was.
    let _ = unsafe {
        let length = end as usize - start as usize;
        rustix::mm::madvise(start as *mut _, length, rustix::mm::Advice::LinuxDontNeed)
    };
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
pub fn musl_monotonic() -> Nanos {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the clock exists on every Linux, so that the call fills the structure.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    Nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

/// The calling thread's id.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}

/// What ended a wait of the housekeeping thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time came.
    Time,
    /// A measuring thread has something to say ([`tell`]).
    Told,
    /// SIGINT, SIGTERM or SIGHUP.
    Stop,
}

const STOP: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
const TELL: libc::c_int = libc::SIGUSR1;
const NUDGE: libc::c_int = libc::SIGUSR2;

/// Blocks the signals that [`wait_until`] waits for, in this thread and those it starts later.
///
/// Waiting for them instead of handling them leaves no code that runs at a signal's whim.
pub fn block_signals() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: sigaction is plain data for which all zeros is a value: no flags, so that a sleep ends with EINTR.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, which is safe at any point; a null old action is allowed.
    check(unsafe { libc::sigaction(NUDGE, &action, ptr::null_mut()) })?;
    mask(libc::SIG_BLOCK, &signal_set(&[STOP[0], STOP[1], STOP[2], TELL]))
}

/// Has a write beyond the limit of file sizes fail, as on a full disk, instead of ending the process.
pub fn survive_file_size_limit() {
    // SAFETY: ignoring a signal takes no handler, and the old disposition is of no interest.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Waits until an instant of CLOCK_MONOTONIC, a stop signal, or a word from a measuring thread.
pub fn wait_until(instant: Nanos) -> Woken {
    let set = signal_set(&[STOP[0], STOP[1], STOP[2], TELL]);
    loop {
        let left = Nanos((instant.0 - monotonic().0).max(0));
        match wait_for(&set, Some(left)) {
            TELL => return Woken::Told,
            signal if signal > 0 => return Woken::Stop,
            _ if monotonic() >= instant => return Woken::Time,
            _ => {}
        }
    }
}

/// Waits for a signal of the set; negative when the time is over or another signal came.
///
/// The system call itself, because musl's wrapper goes back to sleep after a signal.
#[inline(always)]
fn wait_for(set: &libc::sigset_t, timeout: Option<Nanos>) -> libc::c_int {
    let timeout = timeout.map(timespec_of);
    let timeout = timeout.map(|time| libc::timespec { tv_sec: time.tv_sec as _, tv_nsec: time.tv_nsec as _ });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    const KERNEL_SET_BYTES: usize = 8;
    // SAFETY: the set is initialised and larger than what the kernel reads of it; a null info and a null
    // time-out are allowed (rt_sigtimedwait(2)).
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigtimedwait,
            set,
            ptr::null_mut::<libc::siginfo_t>(),
            timeout,
            KERNEL_SET_BYTES,
        ) as libc::c_int
    }
}

/// Lets the stop signals end the process again, one that came meanwhile at once.
pub fn unblock_signals() {
    let _ = mask(libc::SIG_UNBLOCK, &signal_set(&STOP));
}

/// Wakes the housekeeping thread from [`wait_until`].
pub fn tell(thread: i32) {
    send(thread, TELL);
}

/// Ends a measuring thread's sleep early, so that it sees the stop flag.
pub fn nudge(thread: i32) {
    send(thread, NUDGE);
}

fn send(thread: i32, signal: libc::c_int) {
    let process = rustix::process::getpid().as_raw_pid();
    if Pid::from_raw(thread).is_some() {
        // SAFETY: tgkill takes integers; a thread that is gone gives ESRCH.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
    }
}

fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigemptyset initialises the set; the signals are valid numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

fn mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is initialised; a null old set is allowed.
    match unsafe { libc::pthread_sigmask(how, set, ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
