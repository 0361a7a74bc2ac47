//! An eventfd.

use super::IpcKind;
use host::ipc::eventfd;

pub const KIND: IpcKind = IpcKind {
    name: "eventfd",
    aliases: &[],
    doc: "an eventfd: write until read returns",
    open: |_| Ok(Box::new(eventfd()?)),
};
