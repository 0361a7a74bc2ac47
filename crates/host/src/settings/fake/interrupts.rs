//! Interrupts of the fake kernel, each with its allowed CPUs.

use std::collections::BTreeMap;

use model::setting::{Comparison, Key, Setting};
use model::units::CpuSet;

use super::threads::Threads;
use super::{Choice, Traits, open_setting};

/// Reaction of an interrupt to a new affinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrqKind {
    /// It moves to its new CPU at once.
    Movable,
    /// It moves to its new CPU at its next occurrence.
    Idle,
    /// The kernel manages its affinity, and refuses changes with this error number.
    Managed(i32),
}

/// Interrupt of a fake machine.
#[derive(Clone, Copy, Debug)]
pub struct FakeIrq {
    pub number: u32,
    /// Allowed CPUs, as a list.
    pub cpus: &'static str,
    pub kind: IrqKind,
}

#[derive(Clone, Debug)]
struct Irq {
    kind: IrqKind,
    cpus: CpuSet,
    effective: CpuSet,
}

#[derive(Clone, Debug)]
pub(super) struct Interrupts(BTreeMap<u32, Irq>);

/// CPU that a kernel selects of several.
fn first(cpus: &CpuSet) -> CpuSet {
    cpus.iter().take(1).collect()
}

impl Interrupts {
    pub fn new(irqs: &[FakeIrq]) -> Interrupts {
        let irq = |irq: &FakeIrq| {
            let cpus = CpuSet::parse(irq.cpus).unwrap_or_else(|error| panic!("{error}"));
            (irq.number, Irq { kind: irq.kind, effective: first(&cpus), cpus })
        };
        Interrupts(irqs.iter().map(irq).collect())
    }

    pub fn snapshot(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(number, irq)| (Key::Irq(*number).to_string(), irq.cpus.to_string())).collect()
    }

    pub fn choices(&self, threads: &Threads) -> Vec<Choice> {
        let choice = |number: &u32| Choice {
            setting: Setting {
                optional: true,
                partners: threads.of_interrupt(*number),
                ..open_setting(Key::Irq(*number), Comparison::Pending)
            },
            values: ["0-1", "0,1", "3", "", "9", "x"].map(str::to_owned).to_vec(),
        };
        self.0.keys().map(choice).collect()
    }

    pub fn read(&self, number: u32) -> Option<String> {
        self.0.get(&number).map(|irq| irq.cpus.to_string())
    }

    pub fn effective(&self, number: u32) -> Option<String> {
        self.0.get(&number).map(|irq| irq.effective.to_string())
    }

    /// Sets the affinity; returns the CPUs to which its thread moves as well.
    pub fn write(&mut self, number: u32, value: &str, traits: Traits) -> Result<CpuSet, i32> {
        let irq = self.0.get_mut(&number).ok_or(libc::ENOENT)?;
        let cpus = CpuSet::parse(value).map_err(|_| libc::EINVAL)?;
        match irq.kind {
            _ if cpus.is_empty() => return Err(libc::EINVAL),
            _ if !cpus.without(&traits.all()).is_empty() => return Err(libc::EOVERFLOW),
            IrqKind::Managed(errno) => return Err(errno),
            IrqKind::Movable => irq.effective = first(&cpus),
            IrqKind::Idle => {}
        }
        irq.cpus = cpus.clone();
        Ok(cpus)
    }

    pub fn occur(&mut self, number: u32) {
        if let Some(irq) = self.0.get_mut(&number) {
            irq.effective = first(&irq.cpus);
        }
    }
}
