//! A POSIX message queue.

use std::io;

use super::{Handover, IpcKind};
use host::ipc::MessageQueue;

pub const KIND: IpcKind = IpcKind {
    name: "mqueue",
    aliases: &["mq", "pmqtest"],
    doc: "a POSIX message queue: mq_send until mq_receive returns, 8 bytes",
    open: |_| Ok(Box::new(MessageQueue::new()?)),
};

impl Handover for MessageQueue {
    fn release(&self) -> io::Result<()> {
        self.send()
    }

    fn acquire(&self) -> io::Result<()> {
        self.receive()
    }
}
