//! What lasts as long as a descriptor is held open.

use std::io;

use model::fact::Fact;

/// The value that a holder keeps.
pub fn held_value(_name: &str) -> Fact<String> {
    Fact::Absent
}

/// Has a holder keep a value, or ends it.
pub fn set(_name: &str, _value: Option<&str>) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}
