//! A pair of UNIX stream sockets.

use super::IpcKind;
use host::ipc::socket_pair;

pub const KIND: IpcKind = IpcKind {
    name: "socket",
    aliases: &["unix"],
    doc: "a pair of UNIX stream sockets: write of one byte until read returns",
    open: |_| Ok(Box::new(socket_pair()?)),
};
