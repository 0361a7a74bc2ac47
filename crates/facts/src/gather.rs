//! Reading the facts through `host`: which files, in which order, and what to do without them.
//!
//! Nothing here interprets a text; the parsers next to it do.

mod kernel;

use std::collections::BTreeMap;

use super::boot_texts::{BootTexts, ignores_boot_loader};
use super::line::{
    parse_cpus, parse_i64, parse_line, parse_some_cpus, parse_strings, parse_u64, parse_word, parse_words,
};
use super::{Facts, cgroup, cmdline, cpuinfo, limits, power, preempt, sched, topology, virt, whole};
use host::MachineFiles;
use model::fact::{Fact, errno_name};
use model::units::{Cpu, CpuSet};

/// Limit of listed troubles; further ones are counted. One cause can refuse a file per CPU.
const TROUBLES_LIMIT: usize = 40;

/// Reads all facts of a machine from a few dozen small files; never while measuring.
pub fn gather(host: &MachineFiles) -> Facts {
    gather_with(host, &BootTexts::default())
}

/// Like [`gather`], with a configuration in place of the machine's; for a stopped machine its texts
/// take the place of what its kernel would state.
pub fn gather_with(host: &MachineFiles, texts: &BootTexts) -> Facts {
    let mut reader = Reader { host, texts, troubles: Vec::new(), dropped: 0 };
    let release = reader.release();
    let version = reader.read("/proc/sys/kernel/version", parse_line);
    let cmdline = reader.cmdline();
    let (kconfig, own_kconfig) = reader.kconfig(release.known(), version.known());
    let is_built_in = kconfig.known().is_some_and(ignores_boot_loader);
    let cmdline = cmdline.map(|line| cmdline::Cmdline { is_built_in, ..line });
    // The model of a kernel that is not running is the one that it was built to start with.
    let no_parameter = cmdline::Cmdline::default();
    let evidence = preempt::Evidence {
        release: release.known().map(String::as_str),
        version: version.known().map(String::as_str),
        realtime: reader.read("/sys/kernel/realtime", parse_i64).known().copied(),
        selected: reader.read("/sys/kernel/debug/sched/preempt", preempt::parse_selected).known().copied(),
        cmdline: cmdline.known().or((cmdline == Fact::NotRunning).then_some(&no_parameter)),
        kconfig: kconfig.known(),
        own_kconfig,
    };
    let (preempt, realtime) = (preempt::judge(&evidence), preempt::is_realtime(&evidence));
    let present = reader.read("/sys/devices/system/cpu/present", parse_cpus);
    let online = reader.read("/sys/devices/system/cpu/online", |text| {
        parse_some_cpus(text).and_then(|online| topology::among(online, present.known()))
    });
    let cpus = online.known().cloned().unwrap_or_default();
    let cpuinfo = reader.read("/proc/cpuinfo", |text| Ok(cpuinfo::parse_cpuinfo(text)));
    let board = reader.read("/proc/device-tree/model", parse_line);
    let clocksources = reader.read(&clocksource("available_clocksource"), parse_words);
    let virtualization = reader.virtualization(&cpuinfo, &clocksources);
    let (cgroup_rt_runtime_us, cpu_stat) = reader.cgroup();
    let mut facts = Facts {
        machine: reader.machine(kconfig.known(), cpuinfo.known()),
        isolated: reader.read("/sys/devices/system/cpu/isolated", parse_cpus),
        nohz_full: reader.read("/sys/devices/system/cpu/nohz_full", parse_cpus),
        siblings: reader.siblings(&cpus),
        core_types: reader.core_types(&cpus),
        model: model(&cpuinfo, &board),
        cpu_flags: cpuinfo
            .then(|info| if info.flags.is_empty() { Fact::Absent } else { Fact::Known(info.flags.clone()) }),
        clocksource: reader.read(&clocksource("current_clocksource"), parse_word),
        rt_runtime_us: reader.read("/proc/sys/kernel/sched_rt_runtime_us", parse_i64),
        rt_period_us: reader.read("/proc/sys/kernel/sched_rt_period_us", parse_i64),
        fair_servers: reader.fair_servers(),
        cpufreq_driver: reader.policies("scaling_driver"),
        governors: reader.policies("scaling_governor"),
        cpuidle_driver: reader.read("/sys/devices/system/cpu/cpuidle/current_driver", parse_word),
        idle_states: reader.idle_states(&cpus),
        idle_exit_us: reader.idle_exit_us(&cpus),
        limits: reader.read("/proc/self/limits", limits::parse_limits),
        capabilities: reader.read("/proc/self/status", limits::parse_capabilities),
        troubles: Vec::new(),
        release,
        version,
        cmdline,
        kconfig,
        preempt,
        realtime,
        online,
        present,
        clocksources,
        virtualization,
        cgroup_rt_runtime_us,
        cpu_stat,
    };
    facts.troubles = reader.troubles();
    facts
}

fn clocksource(file: &str) -> String {
    format!("/sys/devices/system/clocksource/clocksource0/{file}")
}

fn model(cpuinfo: &Fact<cpuinfo::CpuInfo>, board: &Fact<String>) -> Fact<String> {
    let board = board.known().map_or("", String::as_str);
    cpuinfo.clone().map(|info| cpuinfo::model_name(&info, board))
}

/// Reads files and notes those that are refused or malformed; absent ones are not noted.
struct Reader<'a> {
    host: &'a MachineFiles,
    texts: &'a BootTexts,
    troubles: Vec<String>,
    dropped: u64,
}

impl Reader<'_> {
    fn read<T>(&mut self, path: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Fact<T> {
        let fact = whole::text(self.host, path).parse(|text| parse(&text));
        self.noted(path, fact)
    }

    fn noted<T>(&mut self, path: &str, fact: Fact<T>) -> Fact<T> {
        let reason = match &fact {
            Fact::Known(_) | Fact::Absent | Fact::NotRunning => return fact,
            Fact::Refused(errno) => format!("refused: {}", errno_name(*errno)),
            Fact::NotCaptured => "not in this capture".to_owned(),
            // The messages of `host` begin with the path.
            Fact::Malformed(what) => what.strip_prefix(path).unwrap_or(what).trim_start().to_owned(),
        };
        let failure = format!("{path}: {reason}");
        if self.troubles.contains(&failure) {
            // A directory that is listed twice.
        } else if self.troubles.len() < TROUBLES_LIMIT {
            self.troubles.push(failure);
        } else {
            self.dropped += 1;
        }
        fact
    }

    /// Ends the reading, so that no failure of a later read can be lost.
    fn troubles(mut self) -> Vec<String> {
        if self.dropped > 0 {
            self.troubles.push(format!("and {} more", self.dropped));
        }
        self.troubles
    }

    /// The first path that exists decides.
    fn first<T>(&mut self, paths: &[String], mut parse: impl FnMut(&str) -> Result<T, String>) -> Fact<T> {
        for path in paths {
            match self.read(path, &mut parse) {
                Fact::Absent => {}
                fact => return fact,
            }
        }
        Fact::Absent
    }

    fn siblings(&mut self, online: &CpuSet) -> Fact<Vec<CpuSet>> {
        let (mut found, mut outcome) = (Vec::new(), Fact::Absent);
        for cpu in online.iter() {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
            // The second is the older name of the first (before 5.3).
            let paths = [format!("{dir}/core_cpus_list"), format!("{dir}/thread_siblings_list")];
            match self.first(&paths, parse_cpus) {
                Fact::Known(core) => found.push(core),
                Fact::Absent => {}
                failure => outcome = failure.map(|core| vec![core]),
            }
        }
        if found.is_empty() { outcome } else { Fact::Known(()).parse(|()| topology::shared_cores(found)) }
    }

    fn core_types(&mut self, online: &CpuSet) -> BTreeMap<Cpu, String> {
        let mut hybrid = Vec::new();
        for (source, name) in topology::HYBRID {
            let cpus = self.read(&format!("/sys/devices/{source}/cpus"), parse_cpus);
            hybrid.extend(cpus.known().map(|cpus| (name, cpus.clone())));
        }
        let mut capacities = BTreeMap::new();
        for cpu in online.iter() {
            let capacity = self.read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), parse_u64);
            capacities.extend(capacity.known().map(|&capacity| (cpu, capacity)));
        }
        topology::core_types(online, &hybrid, &capacities)
    }

    fn virtualization(
        &mut self,
        cpuinfo: &Fact<cpuinfo::CpuInfo>,
        clocksources: &Fact<Vec<String>>,
    ) -> String {
        let hypervisor = self.read("/sys/hypervisor/type", parse_word);
        let vendor = self.read("/sys/class/dmi/id/sys_vendor", parse_line);
        let product = self.read("/sys/class/dmi/id/product_name", parse_line);
        let board = self.read("/proc/device-tree/compatible", parse_strings);
        let board_hypervisor = self.read("/proc/device-tree/hypervisor/compatible", parse_strings);
        virt::judge(&virt::VirtEvidence {
            cpuinfo: cpuinfo.known(),
            hypervisor: hypervisor.known().map(String::as_str),
            vendor: vendor.known().map(String::as_str),
            product: product.known().map(String::as_str),
            clocksources: clocksources.known().map_or(&[], Vec::as_slice),
            board: board.known().map(Vec::as_slice),
            board_hypervisor: board_hypervisor.known().map(Vec::as_slice),
        })
    }

    fn cgroup(&mut self) -> (Fact<i64>, Fact<cgroup::CpuStat>) {
        let groups = self.read("/proc/self/cgroup", cgroup::parse_cgroups);
        let Some(known) = groups.known() else {
            return (groups.clone().then(|_| Fact::Absent), groups.then(|_| Fact::Absent));
        };
        let rt_runtime = self.first(&known.v1_paths("cpu.rt_runtime_us"), parse_i64);
        // If both versions are mounted, the one that has the controller has the quota.
        let paths = [known.v1_paths("cpu.stat"), known.v2_paths("cpu.stat")].concat();
        for path in paths {
            let stat = self.read(&path, cgroup::parse_cpu_stat);
            if stat != Fact::Absent {
                return (rt_runtime, stat.map(|stat| cgroup::CpuStat { path, ..stat }));
            }
        }
        (rt_runtime, Fact::Absent)
    }

    fn fair_servers(&mut self) -> Fact<Vec<sched::FairServer>> {
        const DIR: &str = "/sys/kernel/debug/sched/fair_server";
        let names = self.host.list(DIR);
        self.noted(DIR, names).map(|names| {
            let mut servers = Vec::new();
            for name in power::in_order(&names, "cpu") {
                let runtime = self.read(&format!("{DIR}/{name}/runtime"), parse_u64);
                let period = self.read(&format!("{DIR}/{name}/period"), parse_u64);
                let cpu = topology::numbered(&name, "cpu").and_then(|number| Cpu::try_from(number).ok());
                if let (Some(cpu), Some(&runtime_ns), Some(&period_ns)) =
                    (cpu, runtime.known(), period.known())
                {
                    servers.push(sched::FairServer { cpu, runtime_ns, period_ns });
                }
            }
            servers
        })
    }

    fn policies(&mut self, file: &str) -> Fact<Vec<String>> {
        const DIR: &str = "/sys/devices/system/cpu/cpufreq";
        let names = self.host.list(DIR);
        self.noted(DIR, names).map(|names| {
            let mut values = Vec::new();
            for policy in power::in_order(&names, "policy") {
                values.extend(self.read(&format!("{DIR}/{policy}/{file}"), parse_word).known().cloned());
            }
            power::distinct(values)
        })
    }

    fn idle_states(&mut self, online: &CpuSet) -> Fact<Vec<String>> {
        self.of_idle_states(online, "name", parse_line)
    }

    fn idle_exit_us(&mut self, online: &CpuSet) -> Fact<Vec<u64>> {
        self.of_idle_states(online, "latency", parse_u64)
    }

    /// Values of the first online CPU's states: CPU 0 may be offline.
    fn of_idle_states<T: Clone>(
        &mut self,
        online: &CpuSet,
        file: &str,
        parse: impl Fn(&str) -> Result<T, String> + Copy,
    ) -> Fact<Vec<T>> {
        let first = online.iter().next().unwrap_or_default();
        let dir = format!("/sys/devices/system/cpu/cpu{first}/cpuidle");
        let names = self.host.list(&dir);
        self.noted(&dir, names).map(|names| {
            let mut values = Vec::new();
            for state in power::in_order(&names, "state") {
                values.extend(self.read(&format!("{dir}/{state}/{file}"), parse).known().cloned());
            }
            values
        })
    }
}
