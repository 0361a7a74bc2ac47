//! Reasons why kernel functions have no names on a machine.

use trace::symbols::NoNames;

/// Gaps in a machine's kernel names, for notes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingNames {
    /// Reason for the absence of all names, if they are absent.
    pub names: Option<NoNames>,
    /// Number of lines of the kernel's list that could not be parsed.
    pub skipped: u64,
    /// Error of reading the code (errno, 0 if it is not a core file): only names show where
    /// interrupts are re-enabled then.
    pub code: Option<i32>,
}

impl MissingNames {
    /// Notes on what cannot be stated without names or code.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        match self.names {
            None => {}
            Some(NoNames::Hidden) => remarks.push(
                "the kernel hides its addresses, so functions have no names: set sysctl \
                 kernel.kptr_restrict=1 to show them to root"
                    .to_owned(),
            ),
            Some(NoNames::TooMany) => remarks
                .push("the kernel lists more functions than onbeat reads: they have no names".to_owned()),
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
                0 => "it is not a core file".to_owned(),
                errno => std::io::Error::from_raw_os_error(errno).to_string(),
            };
            remarks.push(format!(
                "cannot read the kernel's code through /proc/kcore ({why}): stacks show function names \
                 without the line that re-enabled interrupts"
            ));
        }
        remarks
    }
}
