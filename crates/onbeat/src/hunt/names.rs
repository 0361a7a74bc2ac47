//! Names of the running kernel.

use super::missing_names::MissingNames;
use host::kernel_text::KernelText;
use host::{self, MachineFiles};
use model::fact::Fact;
use trace::names::{Names, ReadCode};
use trace::symbols::{self, NoNames, Symbols};

/// Names of this machine, and their gaps; takes some tens of milliseconds.
pub fn names_of_this_machine(printk_formats: &str) -> (Names, MissingNames) {
    let mut missing = MissingNames::default();
    // Not through a host that records its reads: the addresses are not stored.
    let symbols = match MachineFiles::live().read_at_most("/proc/kallsyms", symbols::READ_LIMIT) {
        Fact::Known(bytes) => Symbols::parse(&bytes),
        Fact::Refused(libc::EFBIG) => Err(NoNames::TooMany),
        _ => Err(NoNames::Empty),
    };
    let symbols = symbols.map_err(|why| missing.names = Some(why)).ok();
    missing.skipped = symbols.as_ref().map_or(0, Symbols::skipped);
    let text = KernelText::open().map_err(|error| missing.code = Some(error.raw_os_error().unwrap_or(0)));
    let read = text.ok().map(|text| -> ReadCode { Box::new(move |at, into| text.read(at, into).is_ok()) });
    (Names::new(symbols, printk_formats, &host::machine(), read), missing)
}
