//! Pipe, and the hand-over that it shares with eventfds and sockets.

use std::io;

use super::{Handover, IpcKind};
use host::ipc::{Descriptors, pipe};

pub const KIND: IpcKind = IpcKind {
    name: "pipe",
    aliases: &[],
    doc: "a pipe: write of one byte until read returns",
    open: |_| Ok(Box::new(pipe()?)),
};

impl Handover for Descriptors {
    fn release(&self) -> io::Result<()> {
        self.write()
    }

    fn acquire(&self) -> io::Result<()> {
        self.read()
    }
}
