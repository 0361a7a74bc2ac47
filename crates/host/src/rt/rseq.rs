//! CPU that a thread runs on, in one load.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::{mem, ptr};

use model::units::Cpu;

/// `struct rseq`, as far as the kernel needs it (rseq(2), include/uapi/linux/rseq.h).
///
/// The kernel writes to it at any time: every field is atomic, so that shared references are sound.
#[repr(C, align(32))]
struct RseqArea {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    rseq_cs: AtomicU64,
    flags: AtomicU32,
    rest: [AtomicU32; 3],
}

/// Reads the CPU that a thread runs on in one load, from memory that the kernel keeps up to date.
///
/// Without it (kernels before 4.18, or a C library that has registered its own), each read is a
/// call into the vDSO, and a system call on machines other than x86-64. It stays with the thread
/// that created it: the pointer makes it neither `Send` nor `Sync`.
pub struct CpuReader {
    area: Option<&'static RseqArea>,
    _own_thread: PhantomData<*const ()>,
}

const RSEQ_SIGNATURE: u32 = 0x5305_3053;
const RSEQ_UNREGISTER: libc::c_int = 1;

impl CpuReader {
    /// Registers an area for the calling thread.
    pub fn new() -> CpuReader {
        let [cpu_id_start, flags] = [const { AtomicU32::new(0) }; 2];
        let (cpu_id, rest) = (AtomicU32::new(u32::MAX), [const { AtomicU32::new(0) }; 3]);
        let area = RseqArea { cpu_id_start, cpu_id, rseq_cs: AtomicU64::new(0), flags, rest };
        // Leaked: 32 bytes per measuring thread, which the kernel may write as long as the thread
        // lives.
        let area: &'static RseqArea = Box::leak(Box::new(area));
        CpuReader { area: rseq(area, 0).then_some(area), _own_thread: PhantomData }
    }

    /// CPU that this thread runs on right now.
    #[inline(always)]
    pub fn current(&self) -> Cpu {
        match self.area {
            Some(area) => Cpu(area.cpu_id.load(Relaxed)),
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
    /// Unregisters the area: a thread can have only one at a time.
    fn drop(&mut self) {
        self.area.take().map(|area| rseq(area, RSEQ_UNREGISTER));
    }
}

fn rseq(area: &'static RseqArea, flags: libc::c_int) -> bool {
    let size = mem::size_of::<RseqArea>();
    // SAFETY: the area has the size and alignment that rseq(2) requires, is never freed, and all of
    // it is atomic.
    unsafe { libc::syscall(libc::SYS_rseq, ptr::from_ref(area), size, flags, RSEQ_SIGNATURE) == 0 }
}

/// CPU that the calling thread runs on right now.
#[inline(always)]
pub fn current_cpu() -> Cpu {
    #[cfg(target_arch = "x86_64")]
    let cpu = rustix::thread::sched_getcpu();
    // SAFETY: the function takes nothing and only reads; rustix makes it a system call on other
    // machines.
    #[cfg(not(target_arch = "x86_64"))]
    let cpu = unsafe { libc::sched_getcpu() };
    Cpu(cpu as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ambiguous for a type that is `Send`, so that the test would not compile for one.
    trait NotSend<A> {
        fn stays() {}
    }
    impl<T: ?Sized> NotSend<()> for T {}
    struct IsSend;
    impl<T: ?Sized + Send> NotSend<IsSend> for T {}

    #[test]
    fn it_gives_the_cpu_and_stays_with_its_thread() {
        <CpuReader as NotSend<_>>::stays();
        let only: model::units::CpuSet = [current_cpu()].into_iter().collect();
        std::thread::spawn(move || {
            crate::rt::pin(&only).expect("a cpu that this process runs on");
            // The second one of a thread is not registered, and works as well.
            let (first, second) = (CpuReader::new(), CpuReader::new());
            assert!(only.contains(first.current()) && only.contains(second.current()));
            drop((first, second));
            assert!(only.contains(CpuReader::new().current()));
        })
        .join()
        .expect("no panic");
    }
}
