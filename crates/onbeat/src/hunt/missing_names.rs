//! Reasons why kernel functions have no names on a machine.

use trace::symbols::NoNames;

/// What the names of a machine lack, for a note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingNames {
    /// Why there are no names at all.
    pub names: Option<NoNames>,
    /// Lines of the kernel's list that were not understood.
    pub skipped: u64,
    /// The code cannot be read (errno, 0 where it is no core file): only names show where
    /// interrupts are re-enabled.
    pub code: Option<i32>,
}

impl MissingNames {
    /// What cannot be stated for want of names or code.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        match self.names {
            None => {}
            Some(NoNames::Hidden) => remarks.push(
                "the kernel hides its addresses, so functions have no names: sysctl kernel.kptr_restrict=1 \
                lets root see them"
                    .to_owned(),
            ),
            Some(NoNames::TooMany) => remarks.push(
                "the kernel lists more functions than are read: they \
            have no names"
                    .to_owned(),
            ),
            Some(NoNames::Empty) => remarks.push(
                "the kernel has no list of its functions \
            (CONFIG_KALLSYMS): they have no names"
                    .to_owned(),
            ),
        }
        if self.skipped > 0 {
            remarks
                .push(format!("{} lines of the kernel's list of functions could not be read", self.skipped));
        }
        if let Some(errno) = self.code {
            let why = match errno {
                0 => "it is no core file".to_owned(),
                errno => std::io::Error::from_raw_os_error(errno).to_string(),
            };
            remarks.push(format!(
                "the kernel's code cannot be read through /proc/kcore ({why}): where interrupts came on \
                again is told by the names of functions alone"
            ));
        }
        remarks
    }
}
