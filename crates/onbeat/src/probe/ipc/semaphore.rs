//! A System V semaphore.

use std::io;

use super::{Handover, IpcKind};
use host::ipc::Semaphore;

pub const KIND: IpcKind = IpcKind {
    name: "semaphore",
    aliases: &["semop", "svsematest"],
    doc: "a System V semaphore: semop by 1 until semop by -1 returns",
    open: |setup| Ok(Box::new(Semaphore::new(setup.own_namespace)?)),
};

impl Handover for Semaphore {
    fn release(&self) -> io::Result<()> {
        self.post()
    }

    fn acquire(&self) -> io::Result<()> {
        self.take()
    }
}
