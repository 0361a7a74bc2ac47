//! A kernel made up of tables, for tests: what is set of it is in memory, and what a kernel makes
//! of a value is data ([`Reaction`]). [`machines`] has those that the tests of the writer use, made
//! after what Debian's kernels 6.1-rt and 6.12-rt were seen to do.
//!
//! [`MemoryStore`] is the journal's disk, and [`Countdown`] ends the process, as it were, at any
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

/// What a write did not do: the kernel's error number.
type Written = Result<(), i32>;

/// How the kernels differ where no table says it.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// How many CPUs there are, all online.
    pub cpus: u32,
    /// `cpuset.cpus.exclusive`, and with it partitions in groups that are none (from 6.7).
    pub exclusive: bool,
    /// Masks that were asked for come back with the CPUs (from 6.2).
    pub remembers_masks: bool,
    /// The mask of unbound workqueues follows partitions by itself (from 6.7).
    pub workqueues_follow: Option<&'static str>,
}

impl Traits {
    fn all(self) -> CpuSet {
        (0..self.cpus).map(Cpu).collect()
    }
}

/// A kernel in memory.
#[derive(Clone, Debug)]
pub struct FakeKernel {
    traits: Traits,
    /// Reading changes some of them.
    files: RefCell<Files>,
    interrupts: Interrupts,
    threads: Threads,
    groups: Groups,
    holds: BTreeMap<String, String>,
}

/// A key that can be tried on a made-up machine: a setting whose wanted value is still open, and
/// values for it, some of which the kernel refuses.
#[derive(Clone, Debug)]
pub struct Choice {
    pub setting: Setting,
    pub values: Vec<String>,
}

impl FakeKernel {
    /// A machine as it is after its boot.
    pub fn boot(machine: &FakeMachine) -> FakeKernel {
        FakeKernel {
            traits: machine.traits,
            files: RefCell::new(Files::new(machine.files)),
            interrupts: Interrupts::new(machine.irqs),
            threads: Threads::new(machine.threads, machine.traits),
            groups: Groups::new(machine.groups, machine.traits),
            holds: BTreeMap::new(),
        }
    }

    /// A machine with these files, each of which takes any value.
    pub fn of_files(cpus: u32, files: impl IntoIterator<Item = (Key, String)>) -> FakeKernel {
        let traits = Traits { cpus, exclusive: true, remembers_masks: true, workqueues_follow: None };
        let nothing = FakeMachine { traits, files: &[], irqs: &[], threads: &[], groups: &[] };
        let kernel = FakeKernel::boot(&nothing);
        kernel.files.borrow_mut().add(files);
        kernel
    }

    /// All that is set, what no read shows included; no read has an effect here.
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

    /// A thread is started by another, whose mask and group it has.
    pub fn start_thread(&mut self, tid: u32, parent: u32) {
        self.threads.start(tid, parent);
    }

    /// A thread ends.
    pub fn end_thread(&mut self, tid: u32) {
        self.threads.end(tid);
    }

    /// An interrupt comes, and goes to the CPUs that it was given.
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
        self.try_write(key, value).map_err(io::Error::from_raw_os_error)
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

/// What a panic carries that stands for the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash;

/// Counts what the kernel and the disk are asked for, and ends the process at one of these steps.
#[derive(Clone, Debug, Default)]
pub struct Countdown(Rc<Cell<Option<u32>>>);

impl Countdown {
    /// Ends the process after so many steps; none lets it go on.
    pub fn set(&self, steps: Option<u32>) {
        self.0.set(steps);
    }

    /// One step; a crash is a panic with [`Crash`], of which no hook is told.
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

/// A kernel whose user may end before and after each write.
pub struct Crashing<'a> {
    pub kernel: &'a mut FakeKernel,
    pub countdown: Countdown,
    /// How often it was written to.
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

/// A setting that is open yet, read back in this way.
fn open_setting(key: Key, readback: Comparison) -> Setting {
    Setting { readback, ..Setting::new(key, "") }
}
