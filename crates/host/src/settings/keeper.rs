//! Process that undoes an entry automatically.

use std::io;

use crate::keeper;

/// Starts `onbeat tune hold ID`, and waits until it is independent of this process.
pub fn start_keeper(id: &str) -> io::Result<()> {
    keeper::start(&["tune", "hold", id])
}
