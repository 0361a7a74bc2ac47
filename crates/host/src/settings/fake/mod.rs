//! Kernel made of tables, for tests: its settings are in memory, and the effects of a value are
//! data ([`Reaction`]). [`machines`] has those that the tests of the writer use, modelled on the
//! behaviour of Debian's kernels 6.1-rt and 6.12-rt.
//!
//! [`MemoryStore`] is the journal's disk, and [`Countdown`] simulates the end of the process at any
//! step of the two.

mod files;
mod groups;
mod interrupts;
mod machines;
mod memory_store;
mod threads;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use model::fact::Fact;
use model::setting::{Comparison, Key, PRESENT, Setting, TaskSetting};
use model::units::{Cpu, CpuSet};

use super::{GroupProcess, Kernel};
use files::Files;
pub use files::{Reaction, Row};
pub use groups::FakeGroup;
use groups::Groups;
use interrupts::Interrupts;
pub use interrupts::{FakeIrq, IrqKind};
pub use machines::{DEBIAN_6_1_RT, DEBIAN_6_12_RT, FakeMachine};
pub use memory_store::{AppendFailure, MemoryStore};
use threads::Threads;
pub use threads::{FakeThread, ThreadKind};

/// Result of a write; the error is the kernel's error number.
type Written = Result<(), i32>;

/// Differences between kernels that are not in the tables.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Number of CPUs, all online.
    pub cpus: u32,
    /// True with `cpuset.cpus.exclusive`, which allows remote partitions (since 6.7).
    pub exclusive: bool,
    /// True if requested masks are restored when the CPUs return (since 6.2).
    pub remembers_masks: bool,
    /// File with the mask of unbound workqueues that follows partitions (since 6.7).
    pub workqueues_follow: Option<&'static str>,
}

impl Traits {
    fn all(self) -> CpuSet {
        (0..self.cpus).map(Cpu).collect()
    }
}

/// Kernel in memory.
#[derive(Clone, Debug)]
pub struct FakeKernel {
    traits: Traits,
    /// In a cell, because reading changes some of them.
    files: RefCell<Files>,
    interrupts: Interrupts,
    threads: Threads,
    groups: Groups,
    holds: BTreeMap<String, String>,
    /// Keys to which writes fail for now, with the error numbers.
    refused: BTreeMap<Key, i32>,
}

/// Key to try on a fake machine: a setting without a wanted value yet, and values for it, some of
/// which the kernel refuses.
#[derive(Clone, Debug)]
pub struct Choice {
    pub setting: Setting,
    pub values: Vec<String>,
}

impl FakeKernel {
    /// Creates a machine in its state after the boot.
    pub fn boot(machine: &FakeMachine) -> FakeKernel {
        FakeKernel {
            traits: machine.traits,
            files: RefCell::new(Files::new(machine.files)),
            interrupts: Interrupts::new(machine.irqs),
            threads: Threads::new(machine.threads, machine.traits),
            groups: Groups::new(machine.groups, machine.traits),
            holds: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Creates a machine with these files, each of which accepts any value.
    pub fn of_files(cpus: u32, files: impl IntoIterator<Item = (Key, String)>) -> FakeKernel {
        let traits = Traits { cpus, exclusive: true, remembers_masks: true, workqueues_follow: None };
        let nothing = FakeMachine { traits, files: &[], irqs: &[], threads: &[], groups: &[] };
        let kernel = FakeKernel::boot(&nothing);
        kernel.files.borrow_mut().add(files);
        kernel
    }

    /// All values, also those that no read shows; taking it has no side effects.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let mut all = self.files.borrow().snapshot();
        all.extend(self.interrupts.snapshot());
        all.extend(self.threads.snapshot());
        all.extend(self.groups.snapshot());
        all.extend(
            self.holds.iter().map(|(name, value)| (Key::Hold(name.clone()).to_string(), value.clone())),
        );
        all
    }

    /// Reads all files, as another program might, which changes some.
    pub fn look(&self) {
        self.files.borrow_mut().look();
    }

    /// Makes writes to this key fail with an error number until called without one.
    pub fn refuse(&mut self, key: &Key, errno: Option<i32>) {
        match errno {
            Some(errno) => self.refused.insert(key.clone(), errno),
            None => self.refused.remove(key),
        };
    }

    /// Starts a thread that inherits the mask and group of another.
    pub fn start_thread(&mut self, tid: u32, parent: u32) {
        self.threads.start(tid, parent);
    }

    /// Ends a thread.
    pub fn end_thread(&mut self, tid: u32) {
        self.threads.end(tid);
    }

    /// Raises an interrupt, which moves it to its new CPUs.
    pub fn interrupt(&mut self, irq: u32) {
        self.interrupts.occur(irq);
    }

    /// Every key with values to try.
    pub fn choices(&self) -> Vec<Choice> {
        let mut all = self.files.borrow().choices();
        all.extend(self.interrupts.choices(&self.threads));
        all.extend(self.threads.choices());
        all.extend(self.groups.choices(self.traits));
        let hold = Setting::new(Key::Hold("cpu_dma_latency".to_owned()), "");
        all.push(Choice { setting: hold, values: vec!["0".to_owned(), "20".to_owned()] });
        all
    }

    fn write_group(&mut self, key: &Key, value: Option<&str>) -> Written {
        let before = self.groups.isolated();
        let parts = |groups: &Groups| groups.effective_of_all();
        let effective_before = parts(&self.groups);
        let occupied = |path: &str| self.threads.is_in(path);
        match (key, value) {
            (Key::Group(path), Some(_)) => self.groups.make(path)?,
            (Key::Group(path), None) => self.groups.remove(path, occupied)?,
            (Key::GroupFile(file), Some(value)) => self.groups.write(file, value)?,
            _ => return Err(libc::EINVAL),
        }
        let after = self.groups.isolated();
        self.threads.follow_isolated(&before, &after);
        self.threads.follow_groups(&effective_before, &parts(&self.groups));
        if let (Some(key), true) = (self.traits.workqueues_follow, before != after) {
            self.files.get_mut().follow_isolated(key, self.traits.all(), &after);
        }
        Ok(())
    }

    fn write_task(&mut self, tid: u32, start: u64, what: TaskSetting, value: &str) -> Written {
        let groups = &self.groups;
        let thread = self.threads.find_mut(tid, start).ok_or(libc::ESRCH)?;
        match what {
            TaskSetting::Affinity => {
                let allowed = groups.effective(&thread.group);
                thread.set_affinity(value, &allowed, self.traits)
            }
            TaskSetting::Policy => thread.set_policy(value),
            TaskSetting::Group => {
                let path = value.strip_prefix('/').ok_or(libc::EINVAL)?.to_owned();
                if !groups.exists(&path) {
                    return Err(libc::ENOENT);
                }
                thread.enter(path.clone(), &groups.effective(&path), self.traits)
            }
        }
    }

    fn try_write(&mut self, key: &Key, value: Option<&str>) -> Written {
        match (key, value) {
            (Key::Group(_) | Key::GroupFile(_), value) => self.write_group(key, value),
            (Key::Hold(name), Some(value)) => {
                self.holds.insert(name.clone(), value.to_owned());
                Ok(())
            }
            (Key::Hold(name), None) => self.holds.remove(name).map(drop).ok_or(libc::ENOENT),
            (Key::Task { tid, start, what }, Some(value)) => self.write_task(*tid, *start, *what, value),
            (Key::Irq(number) | Key::IrqEffective(number), Some(value)) => {
                let cpus = self.interrupts.write(*number, value, self.traits)?;
                self.threads.follow_interrupt(*number, &cpus);
                Ok(())
            }
            (_, Some(value)) => self.files.get_mut().write(key, value),
            (_, None) => Err(libc::EINVAL),
        }
    }
}

impl Kernel for FakeKernel {
    fn read(&self, key: &Key) -> Fact<String> {
        let known = |value: Option<String>| value.map_or(Fact::Absent, Fact::Known);
        match key {
            Key::Group(path) => known(self.groups.exists(path).then(|| PRESENT.to_owned())),
            Key::GroupFile(file) => known(self.groups.read(file)),
            Key::Hold(name) => known(self.holds.get(name).cloned()),
            Key::Irq(number) => known(self.interrupts.read(*number)),
            Key::IrqEffective(number) => known(self.interrupts.effective(*number)),
            Key::Task { tid, start, what } => {
                known(self.threads.find(*tid, *start).map(|thread| thread.read(*what)))
            }
            _ => self.files.borrow_mut().read(key),
        }
    }

    fn write(&mut self, key: &Key, value: Option<&str>) -> io::Result<()> {
        let refused = self.refused.get(key).copied();
        let written = refused.map_or_else(|| self.try_write(key, value), Err);
        written.map_err(io::Error::from_raw_os_error)
    }

    fn effective_affinity(&self, irq: u32) -> Fact<String> {
        self.interrupts.effective(irq).map_or(Fact::Absent, Fact::Known)
    }

    fn affinities(&self) -> Vec<(Key, String)> {
        self.threads.affinities()
    }

    fn groups_below(&self, group: &str) -> Vec<String> {
        self.groups.below(group.trim_matches('/'))
    }

    fn processes_in(&self, group: &str) -> Vec<GroupProcess> {
        self.threads.processes_in(group.trim_matches('/'))
    }
}

/// Payload of a panic that simulates the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash;

/// Counts calls of the kernel and the disk, and ends the process at a chosen one.
#[derive(Clone, Debug, Default)]
pub struct Countdown(Rc<Cell<Option<u32>>>);

impl Countdown {
    /// Ends the process after this many steps; never if none.
    pub fn set(&self, steps: Option<u32>) {
        self.0.set(steps);
    }

    /// Counts a step; a crash is a panic with [`Crash`] that bypasses the panic hook.
    pub fn step(&self) {
        match self.0.get() {
            None => {}
            Some(0) => {
                self.0.set(None);
                std::panic::resume_unwind(Box::new(Crash));
            }
            Some(left) => self.0.set(Some(left - 1)),
        }
    }
}

/// Kernel whose user may end before and after each write.
pub struct Crashing<'a> {
    pub kernel: &'a mut FakeKernel,
    pub countdown: Countdown,
    /// Number of writes.
    pub writes: u32,
}

impl Kernel for Crashing<'_> {
    fn read(&self, key: &Key) -> Fact<String> {
        self.kernel.read(key)
    }

    fn write(&mut self, key: &Key, value: Option<&str>) -> io::Result<()> {
        self.countdown.step();
        self.writes += 1;
        let written = self.kernel.write(key, value);
        self.countdown.step();
        written
    }

    fn effective_affinity(&self, irq: u32) -> Fact<String> {
        self.kernel.effective_affinity(irq)
    }

    fn affinities(&self) -> Vec<(Key, String)> {
        self.kernel.affinities()
    }

    fn groups_below(&self, group: &str) -> Vec<String> {
        self.kernel.groups_below(group)
    }

    fn processes_in(&self, group: &str) -> Vec<GroupProcess> {
        self.kernel.processes_in(group)
    }
}

/// Setting without a wanted value yet, with this kind of readback.
fn open_setting(key: Key, readback: Comparison) -> Setting {
    Setting { readback, ..Setting::new(key, "") }
}
