//! Machines to read from: the running one, a directory tree of another, a capture, or fixed
//! answers.
//!
//! They differ only in where an access is answered, which callers cannot see. Private data is
//! masked here, on every path of access, so that a live machine and its capture read the same.

mod copy;
mod source;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::access::{Access, AccessRecorder, mask_names, no_file, redact};
use super::beneath::Links;
use super::read_budget::{ReadBudget, bytes_of};
use model::fact::Fact;
use source::{AccessSource, names_below};

/// Limit of a file in bytes; kernel files that onbeat reads are shorter, longer ones are refused.
pub const READ_LIMIT: u64 = 16 << 20;

/// Limit of names in a directory; a machine with more processes cannot be distinguished from a
/// malicious listing.
pub const NAMES_LIMIT: usize = 200_000;

/// Accesses by path: the state of a machine as it was read.
pub type Accesses = BTreeMap<String, Access>;

/// Machine to read from.
pub struct MachineFiles {
    source: Rc<AccessSource>,
    recorder: Option<AccessRecorder>,
    budget: ReadBudget,
    /// Original names by masked path.
    masked: Rc<RefCell<BTreeMap<String, String>>>,
}

impl MachineFiles {
    /// The machine that this process runs on.
    pub fn live() -> MachineFiles {
        MachineFiles::of(AccessSource::Live)
    }

    /// A directory tree of a machine, written by hand or copied. An absolute link starts at the
    /// tree's root, and no link leads out of it.
    pub fn tree(root: impl Into<PathBuf>) -> MachineFiles {
        MachineFiles::of(AccessSource::Tree(root.into(), Links::Rebased))
    }

    /// A folder of documents, such as a bundle; a link that leads out of it is refused.
    pub fn folder(root: impl Into<PathBuf>) -> MachineFiles {
        MachineFiles::of(AccessSource::Tree(root.into(), Links::Beneath))
    }

    /// A capture: its files under `host/` in its folder, and its notes of refusals, absences, lists
    /// and links.
    ///
    /// Anything in neither files nor notes was not captured: a later version may read more than an
    /// earlier one has captured.
    pub fn captured(bundle: impl Into<PathBuf>, noted: Accesses) -> MachineFiles {
        MachineFiles::of(AccessSource::Captured(bundle.into(), noted))
    }

    /// Fixed answers, for tests; a path without one is absent.
    pub fn in_memory(answers: Accesses) -> MachineFiles {
        MachineFiles::of(AccessSource::Memory(answers))
    }

    /// A machine that does not run: its root file system, or none if only single texts of it are
    /// known.
    pub fn stopped(root: Option<PathBuf>) -> MachineFiles {
        MachineFiles::of(AccessSource::Stopped(root))
    }

    fn of(source: AccessSource) -> MachineFiles {
        MachineFiles {
            source: Rc::new(source),
            recorder: None,
            budget: ReadBudget::default(),
            masked: Rc::default(),
        }
    }

    /// Limits the total of bytes read, listed or followed; further accesses are refused with EFBIG.
    /// For machines described by others.
    pub fn within(mut self, bytes: u64) -> MachineFiles {
        self.budget = ReadBudget::of(bytes);
        self
    }

    /// True if the limit of bytes is used up: all further accesses are refused.
    pub fn is_spent(&self) -> bool {
        self.budget.left() == 0
    }

    /// Records each access from here on; see [`MachineFiles::recorded`].
    pub fn recording(mut self) -> MachineFiles {
        self.recorder = Some(AccessRecorder::default());
        self
    }

    /// Accesses so far, if they are recorded.
    pub fn recorded(&self) -> Option<&AccessRecorder> {
        self.recorder.as_ref()
    }

    /// The same machine without a recorder, for data that must not go into a bundle unchanged.
    pub fn unrecorded(&self) -> MachineFiles {
        MachineFiles {
            source: self.source.clone(),
            recorder: None,
            budget: self.budget.clone(),
            masked: self.masked.clone(),
        }
    }

    /// Records an answer in place of one that was read without recording: the part that may go into
    /// a bundle.
    pub fn record_as(&self, path: &str, seen: Access) {
        if let Some(recorder) = &self.recorder {
            recorder.record_as(path, seen);
        }
    }

    /// True for the running machine.
    pub fn is_live(&self) -> bool {
        matches!(*self.source, AccessSource::Live)
    }

    /// True for a machine that does not run and has no files of a running kernel.
    pub fn is_stopped(&self) -> bool {
        matches!(*self.source, AccessSource::Stopped(_))
    }

    /// True if reading this file calls a running kernel, which may have an effect: a tree can be
    /// the running machine itself.
    pub fn asks_the_kernel(&self, path: &str) -> bool {
        match &*self.source {
            AccessSource::Live => true,
            AccessSource::Tree(..) => self.source.is_proc(&self.real(path)),
            AccessSource::Captured(..) | AccessSource::Memory(_) | AccessSource::Stopped(_) => false,
        }
    }

    /// Reads a whole file by its absolute path on that machine, without its private parts.
    ///
    /// Ignores the sizes that the kernel reports for pseudo-files; files longer than [`READ_LIMIT`]
    /// are refused with EFBIG, and only plain files are read.
    pub fn read(&self, path: &str) -> Fact<Vec<u8>> {
        self.read_at_most(path, READ_LIMIT)
    }

    /// Like [`MachineFiles::read`], with a lower limit, for short files.
    pub fn read_at_most(&self, path: &str, limit: u64) -> Fact<Vec<u8>> {
        if self.is_spent() {
            return Fact::Refused(libc::EFBIG);
        }
        let limit = limit.min(self.budget.left());
        let fact = match self.source.answer(path) {
            Some(Access::File(bytes)) => Fact::Known(bytes.clone()),
            Some(other) => no_file(other),
            None => self.source.read(&self.real(path), limit),
        };
        let fact = fact.then(|bytes| {
            if bytes.len() as u64 > limit {
                Fact::Refused(libc::EFBIG)
            } else {
                Fact::Known(redact(path, bytes))
            }
        });
        self.budget.spend(fact.known().map_or(0, Vec::len));
        self.record(path, &fact, |bytes| Access::File(bytes.clone()));
        fact
    }

    /// Like [`MachineFiles::read`], but unmasked and unrecorded: for documents, which were masked
    /// when they were written and are identified by their digests.
    pub fn read_as_it_is(&self, path: &str, limit: u64) -> Fact<Vec<u8>> {
        let fact = match self.source.answer(path) {
            Some(Access::File(bytes)) => Fact::Known(bytes.clone()),
            Some(other) => no_file(other),
            None => self.source.read(&self.real(path), limit),
        };
        fact.then(
            |bytes| if bytes.len() as u64 > limit { Fact::Refused(libc::EFBIG) } else { Fact::Known(bytes) },
        )
    }

    /// Part of a file, unrecorded; shorter than requested at the end of the file.
    pub fn read_part(&self, path: &str, from: u64, length: usize) -> Fact<Vec<u8>> {
        match self.source.answer(path) {
            Some(Access::File(bytes)) => {
                let rest = bytes.get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default();
                Fact::Known(rest[..length.min(rest.len())].to_vec())
            }
            Some(other) => no_file(other),
            None => self.source.read_part(&self.real(path), from, length),
        }
    }

    /// Length of a plain file in bytes, from its metadata.
    pub fn size(&self, path: &str) -> Fact<u64> {
        match self.source.answer(path) {
            Some(Access::File(bytes)) => Fact::Known(bytes.len() as u64),
            Some(other) => no_file(other),
            None => self.source.size(&self.real(path)),
        }
    }

    /// Reads a whole file as text; malformed if it is not UTF-8.
    pub fn read_text(&self, path: &str) -> Fact<String> {
        self.read(path)
            .parse(|bytes| String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text")))
    }

    /// Names in a directory, sorted, with addresses in them masked.
    pub fn list(&self, path: &str) -> Fact<Vec<String>> {
        if self.is_spent() {
            return Fact::Refused(libc::EFBIG);
        }
        let fact = self.list_as_it_is(path).map(|names| self.without_addresses(path, names));
        self.record(path, &fact, |names| Access::List(names.clone()));
        fact
    }

    /// Like [`MachineFiles::list`], but unmasked and unrecorded: for folders of documents, where a
    /// digest or the name of a board can look like an address.
    pub fn list_as_it_is(&self, path: &str) -> Fact<Vec<String>> {
        if self.is_spent() {
            return Fact::Refused(libc::EFBIG);
        }
        let fact = match (self.source.answer(path), &*self.source) {
            (Some(Access::List(names)), _) => Fact::Known(names.clone()),
            (Some(other), _) => no_file(other),
            (None, AccessSource::Captured(..)) => Fact::NotCaptured,
            (None, AccessSource::Memory(answers)) => names_below(answers, path),
            _ => self.source.list(&self.real(path)),
        };
        self.budget.spend(fact.known().map_or(0, |names| bytes_of(names)));
        fact
    }

    /// Last component of a symbolic link's target, such as the name of a driver.
    pub fn link(&self, path: &str) -> Fact<String> {
        if self.is_spent() {
            return Fact::Refused(libc::EFBIG);
        }
        let fact = match (self.source.answer(path), &*self.source) {
            (Some(Access::Link(name)), _) => Fact::Known(name.clone()),
            (Some(other), _) => no_file(other),
            (None, AccessSource::Captured(..)) => Fact::NotCaptured,
            (None, AccessSource::Memory(_)) => Fact::Absent,
            _ => self.source.link_target(&self.real(path)).map(|target| last_part(&target)),
        };
        self.budget.spend(fact.known().map_or(0, String::len));
        self.record(path, &fact, |name| Access::Link(name.clone()));
        fact
    }

    /// Whole target of a symbolic link. Never recorded, because such paths are private.
    pub fn link_path(&self, path: &str) -> Fact<String> {
        match (self.source.answer(path), &*self.source) {
            (Some(Access::Link(target)), _) => Fact::Known(target.clone()),
            (Some(other), _) => no_file(other),
            (None, AccessSource::Captured(..)) => Fact::NotCaptured,
            (None, AccessSource::Memory(_)) => Fact::Absent,
            _ => self.source.link_target(&self.real(path)),
        }
    }

    fn record<T>(&self, path: &str, fact: &Fact<T>, seen: impl FnOnce(&T) -> Access) {
        let Some(recorder) = &self.recorder else { return };
        recorder.record(path, Access::of(fact, seen));
    }

    /// Masks MAC addresses in interface names by a number, and remembers the original for later
    /// reads.
    fn without_addresses(&self, dir: &str, names: Vec<String>) -> Vec<String> {
        let shown = mask_names(&names);
        // Same form as the paths of files below it.
        let dir = dir.strip_suffix("/.").unwrap_or(dir).trim_end_matches('/');
        for (shown, name) in shown.iter().zip(&names).filter(|(shown, name)| shown != name) {
            self.masked.borrow_mut().insert(format!("{dir}/{shown}"), name.clone());
        }
        shown
    }

    /// Path on the machine, with the original of a name that [`MachineFiles::list`] masked.
    fn real(&self, path: &str) -> String {
        let masked = self.masked.borrow();
        if masked.is_empty() {
            return path.to_owned();
        }
        let (mut shown, mut real) = (String::new(), String::new());
        for part in path.split('/').skip(1) {
            shown = format!("{shown}/{part}");
            real = format!("{real}/{}", masked.get(&shown).map_or(part, String::as_str));
        }
        real
    }
}

fn last_part(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn file(text: &str) -> Access {
        Access::File(text.as_bytes().to_vec())
    }

    #[test]
    fn a_machine_of_answers_lists_what_its_paths_imply() {
        let answers = [
            ("/a/b/c", file("1")),
            ("/a/d", Access::Refused(13)),
            ("/ab", file("")),
            ("/a/gone", Access::Absent),
        ];
        let host = MachineFiles::in_memory(answers.map(|(path, seen)| (path.to_owned(), seen)).into());
        assert_eq!(host.list("/a"), Fact::Known(vec!["b".into(), "d".into()]));
        assert_eq!(host.list("/x"), Fact::Absent);
        assert_eq!(host.read("/a/b/c"), Fact::Known(b"1".to_vec()));
        assert_eq!((host.read("/a/d"), host.read("/x")), (Fact::Refused(13), Fact::Absent));
    }

    #[test]
    fn what_a_capture_lacks_is_refused_and_not_absent() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("host/proc")).unwrap();
        fs::write(dir.path().join("host/proc/version"), "x").unwrap();
        let noted = [("/proc/none", Access::Absent), ("/sys", Access::List(vec!["a".into()]))];
        let noted = noted.map(|(path, seen)| (path.to_owned(), seen)).into();
        let host = MachineFiles::captured(dir.path(), noted);
        assert_eq!(host.read("/proc/version"), Fact::Known(b"x".to_vec()));
        assert_eq!((host.read("/proc/none"), host.read("/proc/new")), (Fact::Absent, Fact::NotCaptured));
        assert_eq!(
            (host.list("/sys"), host.list("/proc")),
            (Fact::Known(vec!["a".into()]), Fact::NotCaptured)
        );
    }

    #[test]
    fn beyond_its_budget_a_machine_answers_nothing() {
        let long = "x".repeat(10_000);
        let names: Vec<String> = (0..100).map(|number| format!("cpu{number}")).collect();
        let answers = [
            ("/a", file(&long)),
            ("/b", file("1")),
            ("/c", Access::List(names)),
            ("/d", Access::Link("e1000e".into())),
        ];
        let answers: Accesses = answers.map(|(path, seen)| (path.to_owned(), seen)).into();
        let machine = |bytes| MachineFiles::in_memory(answers.clone()).within(bytes);
        let too_much = libc::EFBIG;
        // A file longer than the remaining budget is refused, shorter ones are read.
        let host = machine(9_000);
        assert_eq!(
            (host.read("/a"), host.read_text("/b")),
            (Fact::Refused(too_much), Fact::Known("1".into()))
        );
        let host = machine(12_000);
        assert_eq!(host.read("/a").known().map(Vec::len), Some(10_000));
        assert!(!host.is_spent());
        // A name counts more than its letters; clones of the machine share the budget.
        assert_eq!(host.unrecorded().list("/c").known().map(Vec::len), Some(100));
        assert!(host.is_spent());
        assert_eq!((host.read("/b"), host.list("/c")), (Fact::Refused(too_much), Fact::Refused(too_much)));
        assert_eq!(host.link("/d"), Fact::Refused(too_much));
        // Absent files count as well, so that the number of accesses is bounded.
        let host = machine(10_000);
        assert!(
            (0..40).all(|number| host.read(&format!("/none/{number}")) == Fact::Absent || host.is_spent())
        );
        assert!(host.is_spent());
        assert!(!MachineFiles::in_memory(answers).is_spent());
    }

    #[test]
    fn interfaces_called_by_their_address_are_found_by_another_name() {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("net");
        fs::create_dir_all(net.join("enx001122aabbcc")).unwrap();
        fs::write(net.join("enx001122aabbcc/mtu"), "1500").unwrap();
        for (root, listed, below) in
            [(dir.path(), "/net", "/net"), (dir.path(), "/net/.", "/net"), (&net, "/", ""), (&net, "/.", "")]
        {
            let host = MachineFiles::tree(root).recording();
            let names = host.list(listed).known().cloned().unwrap();
            assert_eq!(names, ["enx-address-1"]);
            let mtu = host.read(&format!("{below}/enx-address-1/mtu"));
            assert_eq!(mtu, Fact::Known(b"1500".to_vec()), "{listed}");
            assert!(!format!("{:?}", host.recorded().unwrap().accesses()).contains("1122aa"));
        }
    }

    #[test]
    fn documents_are_read_as_they_are_where_that_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let text = b"at ffffffff81000000 of enx001122aabbcc";
        fs::write(dir.path().join("x"), text).unwrap();
        let limit = text.len() as u64;
        let made_up = MachineFiles::in_memory([("/x".to_owned(), Access::File(text.to_vec()))].into());
        for host in [MachineFiles::folder(dir.path()), made_up] {
            assert_ne!(host.read("/x"), Fact::Known(text.to_vec()));
            assert_eq!(host.read_as_it_is("/x", limit), Fact::Known(text.to_vec()));
            assert_eq!(host.read_as_it_is("/x", limit - 1), Fact::Refused(libc::EFBIG));
            assert_eq!(host.read_as_it_is("/none", limit), Fact::Absent);
        }
    }

    #[test]
    fn folders_of_documents_are_listed_as_they_are_where_that_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (board, piece) = ("enx001122aabbcc", "0ffff0123456789abcd");
        fs::create_dir(dir.path().join(board)).unwrap();
        fs::write(dir.path().join(board).join(piece), "x").unwrap();
        let files = MachineFiles::folder(dir.path()).recording();
        assert_eq!(files.list_as_it_is("/."), Fact::Known(vec![board.into()]));
        assert_eq!(files.list_as_it_is(&format!("/{board}/.")), Fact::Known(vec![piece.into()]));
        assert!(files.recorded().unwrap().paths().is_empty());
        // Other machines stay masked.
        assert_eq!(files.list("/."), Fact::Known(vec!["enx-address-1".into()]));
    }

    #[test]
    fn a_recorded_machine_reads_the_same_again() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "1").unwrap();
        std::os::unix::fs::symlink("../drivers/nvme", dir.path().join("driver")).unwrap();
        let ask = |host: &MachineFiles| {
            let files = (host.read("/a"), host.read("/none"), host.list("/"));
            format!("{files:?} {:?} {:?}", host.link("/driver"), host.link("/no-link"))
        };
        assert_eq!(MachineFiles::tree(dir.path()).list("/").known().map(Vec::len), Some(2));
        let first = MachineFiles::tree(dir.path()).recording();
        let told = ask(&first);
        assert!(told.contains("Known(\"nvme\")"), "{told}");
        let again = MachineFiles::in_memory(first.recorded().unwrap().accesses());
        assert_eq!(ask(&again), told);
    }
}
