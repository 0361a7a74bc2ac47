//! Process of a load, from its arguments to its work.

use std::path::PathBuf;

use host::work::{Counters, Joined, LoadGroup, join, say_refused};
use model::error::{Exit, Failure, Result};
use model::units::CpuSet;

use crate::load::LoadTask;
use crate::spec;

/// Parameters that the starter passes to a process.
pub struct Orders {
    /// PID of the starter.
    pub starter: u32,
    /// Index of its counter.
    pub counter: usize,
    pub cpus: CpuSet,
    /// Control group.
    pub group: Option<PathBuf>,
    /// Folder of its files.
    pub folder: PathBuf,
    /// Load, with its count.
    pub spec: String,
}

impl Orders {
    /// Arguments of this program.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "load".to_owned(),
            format!("--work={}", self.counter),
            format!("--starter={}", self.starter),
            format!("--load-cpus={}", self.cpus),
            format!("--folder={}", self.folder.display()),
        ];
        arguments.extend(self.group.iter().map(|group| format!("--cage={}", group.display())));
        arguments.extend(["--".to_owned(), self.spec.clone()]);
        arguments
    }
}

/// Works until it is killed; reports an error that stops it to the starter.
pub fn work(orders: Orders) -> Result<Exit> {
    let specs = spec::parse(&[&orders.spec]).map_err(Failure::usage)?;
    let [spec] = specs.as_slice() else { return Err(Failure::usage("a process has one load")) };
    let worked = || {
        let counters = Counters::inherited()?;
        let counter = counters.get(orders.counter).ok_or_else(|| std::io::Error::other("no such counter"))?;
        join(&Joined {
            starter: orders.starter,
            room: &LoadGroup { group: orders.group.clone() },
            cpus: &orders.cpus,
            name: spec.load.name,
        })?;
        let wanted = spec.wanted(orders.cpus.len());
        let mut work = LoadTask::new(&wanted, orders.folder.clone(), orders.cpus.clone(), counter);
        (spec.load.run)(&mut work)
    };
    let Err(error) = worked();
    say_refused(&error);
    Err(Failure::of_call(format!("the load {spec} stopped"), &error, Exit::Internal, "try another"))
}
