//! A signal to a thread.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{Handover, IpcKind};
use host::ipc::ThreadSignal;

pub const KIND: IpcKind = IpcKind {
    name: "signal",
    aliases: &["sigwait", "sigwaittest"],
    doc: "a real-time signal to a thread: tgkill until sigwaitinfo returns",
    open: |_| Ok(Box::new(SignalToThread { signal: ThreadSignal::new(), acquirer: AtomicU32::new(0) })),
};

struct SignalToThread {
    signal: ThreadSignal,
    acquirer: AtomicU32,
}

impl Handover for SignalToThread {
    fn attach_acquirer(&self, thread: u32) -> io::Result<()> {
        self.acquirer.store(thread, Relaxed);
        self.signal.block()
    }

    fn release(&self) -> io::Result<()> {
        self.signal.send(self.acquirer.load(Relaxed))
    }

    fn acquire(&self) -> io::Result<()> {
        self.signal.wait()
    }
}
