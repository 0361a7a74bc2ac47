//! The recorder: what was read of a machine, refusals included, so that it can be read again elsewhere.
//!
//! A capture lists what the code really read, never what somebody thought it would read.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Fact;

/// What came of one access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file's content.
    File(Vec<u8>),
    /// A directory's names.
    List(Vec<String>),
    /// It is not there.
    Absent,
    /// The error number of the refusal.
    Refused(i32),
}

/// Accesses by path; a path read twice is kept as it was the first time.
#[derive(Default)]
pub struct Recorder {
    seen: RefCell<BTreeMap<String, Seen>>,
}

impl Recorder {
    pub(super) fn note_read(&self, path: &str, fact: &Fact<Vec<u8>>) {
        let seen = match fact {
            Fact::Known(bytes) => Seen::File(bytes.clone()),
            Fact::Absent => Seen::Absent,
            Fact::Refused(errno) => Seen::Refused(*errno),
            Fact::Malformed(_) => Seen::Refused(libc::EFBIG),
        };
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(seen);
    }

    pub(super) fn note_list(&self, path: &str, fact: &Fact<Vec<String>>) {
        let seen = match fact {
            Fact::Known(names) => Seen::List(names.clone()),
            Fact::Refused(errno) => Seen::Refused(*errno),
            Fact::Absent | Fact::Malformed(_) => Seen::Absent,
        };
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(seen);
    }

    /// The accesses so far, by path.
    pub fn accesses(&self) -> BTreeMap<String, Seen> {
        self.seen.borrow().clone()
    }
}
