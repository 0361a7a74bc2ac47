//! Futex: a word that one thread changes and another waits on, like a mutex without priority
//! inheritance.

use std::io;

use super::{Handover, IpcKind};
use host::ipc::FutexWord;

pub const KIND: IpcKind = IpcKind {
    name: "futex",
    aliases: &["mutex", "ptsematest"],
    doc: "a futex: FUTEX_WAKE until FUTEX_WAIT returns, the calls of a contended pthread mutex",
    open: |_| Ok(Box::new(PlainFutex(FutexWord::default()))),
};

struct PlainFutex(FutexWord);

impl Handover for PlainFutex {
    fn release(&self) -> io::Result<()> {
        self.0.set(1);
        Ok(())
    }

    fn acquire(&self) -> io::Result<()> {
        self.0.wait_while(0)
    }

    fn done(&self) -> io::Result<()> {
        self.0.put(0);
        Ok(())
    }
}
