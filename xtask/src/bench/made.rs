//! A synthetic tree of a large machine for audits, with any number of CPUs, interrupts and threads.

use std::fs;
use std::path::Path;

use crate::tools::Result;

/// Kernel threads of each CPU, and true for those bound to it: the names of a kernel with
/// nohz_full.
const PER_CPU: [(&str, bool, u32); 6] = [
    ("cpuhp", true, 0),
    ("migration", true, 99),
    ("ksoftirqd", true, 0),
    ("idle_inject", true, 50),
    ("rcuop", false, 0),
    ("kworker", true, 0),
];

/// Threads of each process.
const THREADS: u32 = 4;

/// Writes the tree below `dir`: the files of the readers of interrupts, threads and control groups.
///
/// At most half of the threads are the kernel's, [`PER_CPU`] of them per CPU; the others are
/// processes of four, of which one in a hundred has a real-time thread. Half of the interrupts may
/// be handled on any CPU, half are queues with one CPU each.
pub fn write(dir: &Path, cpus: u32, irqs: u32, threads: u32) -> Result<()> {
    let tree = Tree { dir, all: if cpus > 1 { format!("0-{}", cpus - 1) } else { "0".to_owned() } };
    tree.machine(cpus)?;
    (0..irqs).try_for_each(|n| tree.irq(n, cpus))?;
    let kernel = (threads / 2).min(cpus * PER_CPU.len() as u32);
    (0..kernel).try_for_each(|n| tree.kernel_thread(n))?;
    let mut left = threads - kernel;
    let mut process = 0;
    while left > 0 {
        let count = left.min(THREADS);
        tree.process(process, count)?;
        process += 1;
        left -= count;
    }
    tree.groups(cpus)
}

struct Tree<'a> {
    dir: &'a Path,
    /// All CPUs as a list.
    all: String,
}

impl Tree<'_> {
    fn file(&self, path: &str, line: &str) -> Result<()> {
        let path = self.dir.join(path);
        let written = fs::create_dir_all(path.parent().unwrap_or(self.dir))
            .and_then(|()| fs::write(&path, format!("{line}\n")));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn machine(&self, cpus: u32) -> Result<()> {
        self.file("proc/sys/kernel/osrelease", "6.12.9-rt")?;
        self.file("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority")?;
        for (file, line) in
            [("online", self.all.as_str()), ("present", &self.all), ("isolated", ""), ("nohz_full", "")]
        {
            self.file(&format!("sys/devices/system/cpu/{file}"), line)?;
        }
        for cpu in 0..cpus {
            let core = format!("{},{}", cpu & !1, cpu | 1);
            self.file(&format!("sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"), &core)?;
        }
        Ok(())
    }

    fn irq(&self, n: u32, cpus: u32) -> Result<()> {
        let number = n + 24;
        let (queue, target) = (n % 2 == 1, (n / 2 % cpus).to_string());
        let allowed = if queue { target.as_str() } else { &self.all };
        self.file(&format!("proc/irq/{number}/smp_affinity_list"), allowed)?;
        self.file(&format!("proc/irq/{number}/effective_affinity_list"), &target)?;
        self.file(&format!("sys/kernel/irq/{number}/actions"), &format!("nvme{}q{}", n / cpus, n % cpus))?;
        self.file(&format!("sys/kernel/irq/{number}/chip_name"), "PCI-MSIX-0000:01:00.0")?;
        let managed = if queue { "\n            IRQD_AFFINITY_MANAGED" } else { "" };
        self.file(
            &format!("sys/kernel/debug/irq/irqs/{number}"),
            &format!("dstate:   0x37609200{managed}\nnode:     0"),
        )
    }

    fn kernel_thread(&self, n: u32) -> Result<()> {
        let (cpu, pid) = (n / PER_CPU.len() as u32, n + 2);
        let (name, bound, priority) = PER_CPU[n as usize % PER_CPU.len()];
        let flags = 0x0020_8040 | if bound { 0x0400_0000 } else { 0 };
        let own = cpu.to_string();
        let allowed = if bound { own.as_str() } else { &self.all };
        self.thread(&format!("proc/{pid}"), pid, &format!("{name}/{cpu}"), flags, 1, priority, allowed)
    }

    fn process(&self, n: u32, threads: u32) -> Result<()> {
        let pid = 100_000 + n * THREADS;
        let name = if n % 50 == 7 { "irqbalance".to_owned() } else { format!("program-{n}") };
        self.thread(&format!("proc/{pid}"), pid, &name, 0, threads, 0, &self.all)?;
        for tid in pid..pid + threads {
            let priority = if tid > pid && tid % 100 == 1 { 80 } else { 0 };
            self.thread(&format!("proc/{pid}/task/{tid}"), tid, &name, 0, threads, priority, &self.all)?;
        }
        Ok(())
    }

    /// A real-time priority makes it SCHED_FIFO.
    #[expect(clippy::too_many_arguments, reason = "one for each field of the line that differs")]
    fn thread(
        &self,
        dir: &str,
        number: u32,
        name: &str,
        flags: u32,
        threads: u32,
        priority: u32,
        allowed: &str,
    ) -> Result<()> {
        let policy = u32::from(priority > 0);
        let stat = format!(
            "{number} ({name}) S 1 1 1 0 -1 {flags} 123 0 4 0 31 12 0 0 20 0 {threads} 0 555 22048768 1405 \
             18446744073709551615 1 1 0 0 0 0 0 4096 1256 0 0 0 17 3 {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0"
        );
        self.file(&format!("{dir}/stat"), &stat)?;
        // The lines before are there for their length: about as much as the kernel prints.
        let before = "VmPeak:\t   21532 kB\n".repeat(45);
        self.file(
            &format!("{dir}/status"),
            &format!("Name:\t{name}\n{before}Cpus_allowed_list:\t{allowed}\nMems_allowed_list:\t0"),
        )
    }

    fn groups(&self, cpus: u32) -> Result<()> {
        const ROOT: &str = "sys/fs/cgroup";
        self.file(&format!("{ROOT}/cgroup.controllers"), "cpuset cpu io memory pids")?;
        self.file(&format!("{ROOT}/cpuset.cpus.isolated"), "")?;
        let services = (0..cpus).map(|n| format!("system.slice/service-{n}.service"));
        for group in
            ["system.slice", "user.slice", "init.scope"].map(str::to_owned).into_iter().chain(services)
        {
            for (file, line) in [
                ("cpuset.cpus", ""),
                ("cpuset.cpus.effective", self.all.as_str()),
                ("cpuset.cpus.partition", "member"),
                ("cpuset.mems", ""),
                ("cpu.max", "max 100000"),
            ] {
                self.file(&format!("{ROOT}/{group}/{file}"), line)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::{groups, irqs, threads};
    use host::MachineFiles;

    /// A directory that is removed with the test.
    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_readers_find_what_was_written() {
        let folder = Folder(std::env::temp_dir().join(format!("onbeat-made-{}", std::process::id())));
        write(&folder.0, 4, 10, 400).unwrap();
        let host = MachineFiles::tree(&folder.0);
        let found = irqs::read_irqs(&host).known().cloned().unwrap();
        assert_eq!(found.irqs.iter().filter(|irq| irq.managed == Some(true)).count(), 5);
        assert_eq!((found.irqs.len(), found.missed), (10, 0));
        let found = threads::read_threads(&host, &["irqbalance"]).known().cloned().unwrap();
        // 24 of the kernel's, of which 4 are workers; 376 in 94 processes, every 25th with a
        // real-time thread.
        assert_eq!((found.kernel.len(), found.realtime.len(), found.programs.len()), (20, 4, 1));
        assert!(found.complete);
        let found = groups::read_groups(&host).known().cloned().unwrap();
        assert_eq!((found.groups.len(), found.missed), (7, 0));
    }
}
