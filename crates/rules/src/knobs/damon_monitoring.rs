//! DAMON: a thread of the kernel that watches which memory is used.

use super::sources::DAMON_STAT;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::{require_complete, visible_threads};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::kbool::kbool;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "damon-monitoring",
    title: "memory access monitoring (DAMON)",
    description: "A thread kdamond.N samples which pages are used: it clears their accessed bits and later \
                  checks whether they were set again, every 5 ms to 10 s. From 6.17 on DAMON_STAT does that \
                  for all memory, and distributions enable it by default; DAMON_RECLAIM and DAMON_LRU_SORT \
                  act on the result.",
    rationale: "the thread wakes up to 200 times a second on any CPU that it may use, and takes locks of the \
                memory that it samples; reclaimed pages have to be faulted in again",
    detection: "The parameter `enabled` of damon_stat, damon_reclaim and damon_lru_sort, readable by root \
                only, and threads called kdamond, which can be started through sysfs as well.",
    side_effects: "Statistics of idle memory, or proactive reclaim, are no longer available.",
    wanted: "off",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "find what started it (/sys/kernel/mm/damon/admin/kdamonds), and write off to state there",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: STAT,
    sources: &[
        Source { title: "kernel: DAMON_STAT, monitoring accuracy and overhead", url: DAMON_STAT },
        Source {
            title: "kernel source: mm/damon/Kconfig, DAMON_STAT_ENABLED_DEFAULT",
            url: "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/mm/damon/Kconfig",
        },
    ],
    cures: &[SliceKind::Thread, SliceKind::PageFault, SliceKind::LockContention],
    reads: &[STAT, RECLAIM, SORT],
    facts: &["/boot/config-RELEASE", "/proc/PID/stat", "/proc/cmdline", "/sys/devices/system/cpu/online"],
    judge,
    examples: Examples {
        fires: "/sys/module/damon_stat/parameters/enabled: Y",
        silent: "/sys/module/damon_stat/parameters/enabled: N",
        unknown: "CONFIG_DAMON=y
                  /sys/module/damon_stat/parameters/enabled refused",
    },
    ..Knob::DEFAULT
};

const STAT: &str = "/sys/module/damon_stat/parameters/enabled";
const RECLAIM: &str = "/sys/module/damon_reclaim/parameters/enabled";
const SORT: &str = "/sys/module/damon_lru_sort/parameters/enabled";

const MODULES: [(&str, &str); 3] =
    [("damon_stat", STAT), ("damon_reclaim", RECLAIM), ("damon_lru_sort", SORT)];

/// Judges what a kernel starts by itself.
fn at_boot(machine: &MachineView) -> Judged {
    let (config, cmdline) = (machine.kconfig()?, machine.cmdline_or_built_in()?);
    let built = MODULES.iter().map(|(module, _)| *module).filter(|name| config.is_yes(&name.to_uppercase()));
    let is_on = |module: &&str| {
        let word = format!("{module}.enabled");
        let given = cmdline.in_effect(&word, |value| machine.truth(value)).map(|(_, is_on)| is_on);
        given.unwrap_or(config.is_yes(&format!("{}_ENABLED_DEFAULT", module.to_uppercase())))
    };
    let on: Vec<&str> = built.clone().filter(is_on).collect();
    if !on.is_empty() {
        let off = on.iter().map(|module| Change::cmdline_add(format!("{module}.enabled=N")));
        return Ok(Judgement::fail(truncate_list(&on)).fix(Remedy::of(off)));
    }
    if built.count() == 0 {
        return Ok(Judgement::pass("not built in"));
    }
    // The boot loader may switch one on.
    machine.cmdline()?;
    Ok(Judgement::pass("off"))
}

fn judge(machine: &MachineView) -> Judged {
    if machine.survey.is_stopped {
        return at_boot(machine);
    }
    // That there are no parameters counts only where the rest of sysfs can be seen.
    machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    let flag = |text: &str| kbool(text.trim(), None).ok_or_else(|| "expected Y or N".to_owned());
    let read = MODULES.map(|(module, path)| (module, path, machine.parsed(path, flag)));
    let on: Vec<(&str, &str)> =
        read.iter().filter(|one| matches!(one.2, Ok(Some(true)))).map(|one| (one.0, one.1)).collect();
    if !on.is_empty() {
        let off = Change::each(
            on.iter().map(|one| one.1.to_owned()).collect(),
            "/sys/module/NAME/parameters/enabled",
            &truncate_list(on.iter().map(|one| one.0)),
            "N",
        );
        let words = on.iter().map(|one| Change::cmdline_add(format!("{}.enabled=N", one.0)));
        let fix = words.fold(Remedy::from(off), Remedy::persist);
        return Ok(Judgement::fail(truncate_list(on.iter().map(|one| one.0))).fix(fix));
    }
    let threads = machine.survey.threads.known();
    let running = threads.map(|all| {
        let names = all.kernel.iter().map(|thread| thread.comm.as_str());
        truncate_list(names.filter(|name| name.starts_with("kdamond.")))
    });
    if let Some(names) = running.filter(|names| !names.is_empty()) {
        return Ok(Judgement::fail(format!("{names} runs")));
    }
    let built = read.iter().any(|one| !matches!(one.2, Ok(None)));
    match machine.kconfig() {
        Ok(config) if !config.is_yes("DAMON") => return Ok(Judgement::pass("not built in")),
        Ok(config) if MODULES.iter().any(|(module, _)| config.is_yes(&module.to_uppercase())) => {}
        _ if !built => return Ok(Judgement::pass("not built in")),
        _ => {}
    }
    for (.., flag) in read {
        flag?;
    }
    require_complete(visible_threads(machine)?)?;
    Ok(Judgement::pass("off"))
}

#[cfg(test)]
mod tests {
    use super::{KNOB, RECLAIM, STAT};
    use crate::edits::thread;
    use crate::fixture::{Machine, check};

    const BUILT: &str = "CONFIG_DAMON=y";

    #[test]
    fn each_module_has_its_switch() {
        check(&KNOB, "", "pass not built in");
        check(&KNOB, &format!("{BUILT}\n{STAT}: N\n{RECLAIM}: N"), "pass off");
        check(&KNOB, &format!("{STAT}: Y\n{RECLAIM}: N"), "fail low damon_stat");
        check(&KNOB, &format!("{STAT} refused\n{RECLAIM}: Y"), "fail low damon_reclaim");
        check(&KNOB, &format!("{BUILT}\n{STAT}: maybe"), "unknown");
        check(&KNOB, &format!("CONFIG_DAMON=n\n{STAT} refused"), "pass not built in");
        // A copy of sysfs by an ordinary user lacks the files.
        check(&KNOB, &format!("{BUILT}\nCONFIG_DAMON_STAT=y"), "pass off");
        check(&KNOB, BUILT, "pass not built in");
        let mut machine = Machine::base();
        machine.edit(&format!("{STAT}: Y\n/proc/sys/kernel/osrelease: 7.3.4"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains("damon_stat.enabled=N on the kernel's command line"), "{fix}");
    }

    #[test]
    fn a_thread_shows_what_the_switches_do_not() {
        let thread = thread!(90001, "kdamond.0", 2097152, 0, 0, "0-3");
        check(&KNOB, &format!("{STAT} refused\n{thread}"), "fail low kdamond.0 runs");
        let built = "CONFIG_DAMON=y\nCONFIG_DAMON_STAT=y";
        let hidden: String = (1..90).map(|pid| format!("\n/proc/{pid} absent")).collect();
        check(&KNOB, &format!("{built}{hidden}"), "unknown");
    }
}
