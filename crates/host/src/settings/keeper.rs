//! The process that undoes an entry by itself.

use std::io;

use crate::keeper;

/// Starts `onbeat tune hold ID`, and waits until nothing that happens to this process reaches it.
pub fn start_keeper(id: &str) -> io::Result<()> {
    keeper::start(&["tune", "hold", id])
}
