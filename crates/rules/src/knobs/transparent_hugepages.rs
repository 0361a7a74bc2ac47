//! Transparent huge pages: memory that the kernel collapses in the background.

use super::sources::TRANSPARENT_HUGEPAGES;
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::choice::parse_choice;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "transparent-hugepages",
    title: "transparent huge pages",
    description: "The kernel provides huge pages, at page faults and later by khugepaged, which merges small \
                  pages: to every program (always), to those that request them by madvise(2), or to none.",
    rationale: "a page fault may have to compact and clear 2 MiB of memory, and khugepaged unmaps and copies \
                memory in use, which interrupts every CPU that runs the program",
    detection: "The setting for all sizes, and those of single sizes where the kernel has them: these apply \
                to anonymous memory, and the setting for all sizes applies if one inherits it, and to files; \
                shmem_enabled applies to shared memory. PREEMPT_RT kernels cannot have transparent huge \
                pages. With the profile kvm-host madvise fails too: QEMU uses it for the memory of guests.",
    side_effects: "More TLB misses in programs with much memory. Programs that benefit can request huge \
                   pages by madvise(2), or use hugetlbfs.",
    wanted: "madvise or never",
    fix: || {
        Remedy::from(Change::write(ALL, "madvise"))
            .persist(Change::cmdline_add("transparent_hugepage=madvise"))
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    disputed: "programs that touch much memory are faster with them and, once all is locked and \
               faulted in, see little of them: `onbeat measure` with always and with madvise, and \
               `onbeat compare` the two",
    persistence: Persistence::Runtime,
    sets: ALL,
    sources: &[Source { title: "kernel: transparent hugepage support, sysfs", url: TRANSPARENT_HUGEPAGES }],
    cures: &[SliceKind::PageFault, SliceKind::Ipi, SliceKind::LockContention],
    reads: &[ALL, OF_SIZES, SHARED, SHARED_OF_SIZES],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/version"],
    judge,
    examples: Examples {
        fires: "/sys/kernel/mm/transparent_hugepage/enabled: [always] madvise never",
        silent: "/sys/kernel/mm/transparent_hugepage/enabled: always [madvise] never",
        unknown: "/sys/kernel/mm/transparent_hugepage/enabled refused",
    },
    ..Knob::DEFAULT
};

const ALL: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const OF_SIZES: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled";
/// Setting for shared memory: memfd_create(2), shared anonymous mappings, System V segments.
const SHARED: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
const SHARED_OF_SIZES: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-*/shmem_enabled";

fn judge(machine: &MachineView) -> Judged {
    let Some(all) = machine.parsed(ALL, parse_chosen)? else {
        if machine.is_built_for_rt() {
            return Err(Judgement::not_applicable("PREEMPT_RT kernels do not have them"));
        }
        if machine.kconfig()?.is_yes("TRANSPARENT_HUGEPAGE") {
            return Err(Judgement::unknown(format!(
                "{ALL} is missing, although the kernel has TRANSPARENT_HUGEPAGE"
            )));
        }
        return Err(Judgement::not_applicable("the kernel has no TRANSPARENT_HUGEPAGE"));
    };
    if machine.has_profile(Profile::KvmHost) && all != "never" {
        return Ok(of_host(&all));
    }
    Judgement::all([whole(machine, all), sizes(machine), shared(machine), shared_sizes(machine)])
}

/// Judges the setting for all sizes, or its remaining effect if no size inherits it
/// (`thp_vma_allowable_orders()` of include/linux/huge_mm.h).
fn whole(machine: &MachineView, all: String) -> Judged {
    let sizes = machine.each(OF_SIZES, parse_chosen)?;
    let is_inherited = sizes.is_empty() || sizes.iter().any(|(_, chosen)| chosen == "inherit");
    if all != "always" || is_inherited {
        return Ok(Judgement::fail_if(all == "always", all));
    }
    // It makes khugepaged merge the text of programs (`file_thp_enabled()` in mm/huge_memory.c):
    // with the option, which 7.3 removed because it always does.
    let for_files = match machine.kconfig()?.get("READ_ONLY_THP_FOR_FS") {
        OptionValue::Absent if machine.series()? >= (7, 3) => true,
        OptionValue::Absent if machine.series()? > (6, 12) => {
            return Err(Judgement::unknown("whether files get huge pages depends on the kernel's release"));
        }
        option => option == OptionValue::Yes,
    };
    if for_files {
        return Ok(Judgement::fail("always, for files only").severity(Severity::Low));
    }
    Ok(Judgement::pass("always, which no size inherits"))
}

/// Judges the setting for shared memory (`shmem_huge_global_enabled()` of mm/shmem.c).
fn shared(machine: &MachineView) -> Judged {
    if !machine.is_captured(SHARED) {
        return Ok(Judgement::pass(""));
    }
    let chosen = machine.parsed(SHARED, parse_shared)?.unwrap_or_default();
    if !is_shared(&chosen) {
        return Ok(Judgement::pass(""));
    }
    Ok(Judgement::fail(format!("{chosen} for shared memory"))
        .severity(Severity::Low)
        .fix(Change::write(SHARED, "never")))
}

fn shared_sizes(machine: &MachineView) -> Judged {
    if !machine.is_captured(SHARED_OF_SIZES) {
        return Ok(Judgement::pass(""));
    }
    // For shared memory as a whole these two override the sizes (`shmem_allowable_huge_orders()`).
    let whole = machine.parsed(SHARED, parse_shared).ok().flatten().unwrap_or_default();
    if whole == "deny" || whole == "force" {
        return Ok(Judgement::pass(""));
    }
    let found = machine.each(SHARED_OF_SIZES, parse_shared)?;
    let named: Vec<&str> = found
        .iter()
        .filter(|(_, chosen)| is_shared(chosen))
        .filter_map(|(names, _)| names.first().map(String::as_str))
        .collect();
    if named.is_empty() {
        return Ok(Judgement::pass(""));
    }
    let paths = named.iter().map(|size| SHARED_OF_SIZES.replacen('*', size, 1)).collect();
    let pattern = "/sys/kernel/mm/transparent_hugepage/hugepages-SIZE/shmem_enabled";
    let sizes = truncate_list(&named);
    Ok(Judgement::fail(format!("shared memory in {sizes}"))
        .severity(Severity::Low)
        .fix(Change::each(paths, pattern, &sizes, "never")))
}

/// True for the words that give huge pages to memory that does not request them.
fn is_shared(chosen: &str) -> bool {
    matches!(chosen, "always" | "within_size" | "force")
}

/// Word in brackets of `always within_size advise [never] deny force`.
fn parse_shared(text: &str) -> Result<String, String> {
    let choice = parse_choice(text)?;
    match choice.selected.as_str() {
        "always" | "within_size" | "advise" | "never" | "deny" | "force" | "inherit"
            if choice.offered.len() > 1 =>
        {
            Ok(choice.selected)
        }
        _ => {
            Err("expected always, within_size, advise, never, deny, force or inherit in brackets".to_owned())
        }
    }
}

/// Judges a host of real-time guests, whose QEMU requests them.
fn of_host(all: &str) -> Judgement {
    let judged = match all {
        "madvise" => Judgement::fail("madvise, which QEMU uses").severity(Severity::Low),
        other => Judgement::fail(other),
    };
    let never =
        Remedy::from(Change::write(ALL, "never")).persist(Change::cmdline_add("transparent_hugepage=never"));
    judged
        .wanted("never, and the guest's memory from hugetlbfs")
        .because(
            "QEMU requests huge pages for all memory of a guest: khugepaged and compaction move pages that \
             the guest uses, which stops its CPUs during the remapping",
        )
        .fix(never.note("give guests huge pages from hugetlbfs (<hugepages/> and <locked/> in libvirt)"))
}

/// Judges sizes with a separate setting; `inherit` means the global one.
fn sizes(machine: &MachineView) -> Judged {
    let sizes = machine.each(OF_SIZES, parse_chosen)?;
    let always = sizes.iter().filter(|(_, chosen)| chosen == "always");
    let named: Vec<&str> = always.filter_map(|(names, _)| names.first()).map(String::as_str).collect();
    let path = |size: &&str| OF_SIZES.replacen('*', size, 1);
    let never = Change::each(
        named.iter().map(path).collect(),
        "/sys/kernel/mm/transparent_hugepage/hugepages-SIZE/enabled",
        &truncate_list(&named),
        "never",
    );
    match named.as_slice() {
        [] => Ok(Judgement::pass("")),
        [first] => Ok(Judgement::fail(format!("always for {first:.20}")).fix(never)),
        [first, more @ ..] => {
            Ok(Judgement::fail(format!("always for {first:.20} and {} more", more.len())).fix(never))
        }
    }
}

/// Word in brackets of `always [madvise] never`.
fn parse_chosen(text: &str) -> Result<String, String> {
    let choice = parse_choice(text)?;
    match choice.selected.as_str() {
        "always" | "madvise" | "never" | "inherit" if choice.offered.len() > 1 => Ok(choice.selected),
        _ => Err("expected always, madvise, never or inherit in brackets".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const NEVER: &str = "/sys/kernel/mm/transparent_hugepage/enabled: always madvise [never]";

    #[test]
    fn all_sizes_count() {
        let size = |size: &str, chosen: &str| {
            format!(
                "/sys/kernel/mm/transparent_hugepage/hugepages-{size}/enabled: {chosen} madvise \
                 never\n"
            )
        };
        check(&KNOB, NEVER, "pass never");
        check(&KNOB, &format!("{NEVER}\n--profile kvm-host"), "pass never");
        let asked = "/sys/kernel/mm/transparent_hugepage/enabled: always [madvise] never";
        check(&KNOB, asked, "pass madvise");
        let of_host = format!("{asked}\n--profile kvm-host");
        check(&KNOB, &of_host, "fail low madvise, which QEMU uses");
        check(&KNOB, &format!("{NEVER}\n{}", size("2048kB", "always [inherit]")), "pass never");
        check(
            &KNOB,
            &format!("{NEVER}\n{}", size("64kB", "[always] inherit")),
            "fail medium always for 64kB",
        );
        let both = size("64kB", "[always]") + &size("128kB", "[always]");
        check(&KNOB, &format!("{NEVER}\n{both}"), "fail medium always for 128kB and 1 more");
        check(
            &KNOB,
            &format!("{NEVER}\n/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled refused"),
            "unknown",
        );
        let of = |size: &str| {
            let dir = "/sys/kernel/mm/transparent_hugepage";
            format!("{dir}/enabled: [always] madvise never\n{dir}/hugepages-64kB/enabled: {size}")
        };
        check(&KNOB, &of("always [inherit] madvise never"), "fail medium always");
        let alone = of("always inherit madvise [never]");
        check(&KNOB, &alone, "pass always, which no size inherits");
        let files = "fail low always, for files only";
        check(&KNOB, &format!("{alone}\nCONFIG_READ_ONLY_THP_FOR_FS=y"), files);
        let newer = |series: &str, option: &str| {
            let head = format!(
                "# Automatically generated file; DO NOT EDIT.\n| # Linux/x86 {series}.1 Kernel Configuration"
            );
            let end = "| CONFIG_TRANSPARENT_HUGEPAGE=y\n| # Kernel hacking";
            let config = format!("/boot/config-{series}.1:\n| {head}\n{option}\n{end}");
            format!("{alone}\n/proc/sys/kernel/osrelease: {series}.1\n{config}")
        };
        check(&KNOB, &newer("7.3", ""), files);
        check(&KNOB, &newer("6.18", ""), "unknown");
        let without = newer("6.18", "| # CONFIG_READ_ONLY_THP_FOR_FS is not set");
        check(&KNOB, &without, "pass always, which no size inherits");
        for odd in ["always", "always [sometimes] never"] {
            check(&KNOB, &format!("/sys/kernel/mm/transparent_hugepage/enabled: {odd}"), "unknown");
        }
    }

    #[test]
    fn shared_memory_has_settings_of_its_own() {
        let shared = |of: &str, chosen: &str| {
            let words = "always within_size advise never deny force inherit";
            let words = words.replace(chosen, &format!("[{chosen}]"));
            format!("{NEVER}\n/sys/kernel/mm/transparent_hugepage/{of}shmem_enabled: {words}")
        };
        for word in ["never", "advise", "deny"] {
            check(&KNOB, &shared("", word), "pass never");
        }
        for word in ["always", "within_size", "force"] {
            check(&KNOB, &shared("", word), &format!("fail low {word} for shared memory"));
        }
        check(&KNOB, &shared("hugepages-64kB/", "inherit"), "pass never");
        let of_size = shared("hugepages-64kB/", "always");
        check(&KNOB, &of_size, "fail low shared memory in 64kB");
        let denied = shared("", "deny").replacen(NEVER, "", 1);
        check(&KNOB, &format!("{of_size}{denied}"), "pass never");
        check(&KNOB, &shared("", "sometimes"), "unknown");
    }

    #[test]
    fn only_kernels_that_have_them() {
        check(&KNOB, "", "not-applicable PREEMPT_RT kernels do not have them");
        let other = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\nCONFIG_PREEMPT_RT=n\n\
                     CONFIG_TRANSPARENT_HUGEPAGE";
        check(&KNOB, &format!("{other}=n"), "not-applicable the kernel has no TRANSPARENT_HUGEPAGE");
        check(&KNOB, &format!("{other}=y"), "unknown");
    }
}
