//! Lock with priority inheritance: a thread waits for it, and its owner hands it over.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{Handover, IpcKind};
use host::ipc::{FutexWord, PiFutex};

pub const KIND: IpcKind = IpcKind {
    name: "pi-mutex",
    aliases: &["pi", "pi-futex"],
    doc: "a mutex with priority inheritance: FUTEX_UNLOCK_PI until FUTEX_LOCK_PI returns",
    open: |_| Ok(Box::new(PiMutex::default())),
};

#[derive(Default)]
struct PiMutex {
    lock: PiFutex,
    /// 1 from its acquisition by the releaser until the acquirer returns it: the releaser must not
    /// take it again before the acquirer had it.
    lent: FutexWord,
    releaser: AtomicU32,
    acquirer: AtomicU32,
}

impl Handover for PiMutex {
    fn attach_releaser(&self, thread: u32) -> io::Result<()> {
        self.releaser.store(thread, Relaxed);
        Ok(())
    }

    fn attach_acquirer(&self, thread: u32) -> io::Result<()> {
        self.acquirer.store(thread, Relaxed);
        Ok(())
    }

    fn hold(&self) -> io::Result<()> {
        // A signal may end a wait early.
        while self.lent.wait_while(1).is_err() {}
        self.lent.put(1);
        self.lock.lock(self.releaser.load(Relaxed))
    }

    fn release(&self) -> io::Result<()> {
        self.lock.unlock(self.releaser.load(Relaxed))
    }

    fn acquire(&self) -> io::Result<()> {
        self.lock.lock(self.acquirer.load(Relaxed))
    }

    fn done(&self) -> io::Result<()> {
        self.lock.unlock(self.acquirer.load(Relaxed))?;
        self.lent.set(0);
        Ok(())
    }
}
