//! Laptop mode: writes held back until the disk turns anyway.

use crate::rules::case::{Case, absent};
use crate::rules::judgement::{Judged, Judgement, Severity};
use crate::rules::{Evidence, Examples, Knob, Lasts, Slice, Source};

pub static KNOB: Knob = Knob {
    id: "laptop-mode",
    title: "laptop mode",
    what: "Holds writes back so that a disk can stand still, and writes all that has gathered some seconds after the disk was read. Tools that save power set \
           vm.laptop_mode; the kernel starts with 0.",
    why: "all changed data goes to disk at once after a read, a burst that keeps storage, its interrupts and memory busy",
    tell: "vm.laptop_mode, which was taken out of the kernel after 6.19.",
    cost: "Disks that turn get less rest.",
    wanted: "0",
    fix: "echo 0 >/proc/sys/vm/laptop_mode, and stop what sets it",
    severity: Severity::Info,
    evidence: Evidence::Documented,
    contested: "",
    lasts: Lasts::Runtime,
    sources: &[Source {
        title: "kernel 6.12: laptop mode",
        url: "https://www.kernel.org/doc/html/v6.12/admin-guide/laptops/laptop-mode.html",
    }],
    cures: &[Slice::Workqueue],
    after: &[],
    conflicts: &[],
    reads: &[PATH],
    facts: &["/proc/sys/kernel/osrelease"],
    programs: &[],
    judge,
    examples: Examples {
        fires: "/proc/sys/vm/laptop_mode: 5",
        silent: "/proc/sys/vm/laptop_mode: 0",
        unknown: "/proc/sys/vm/laptop_mode refused",
    },
};

const PATH: &str = "/proc/sys/vm/laptop_mode";

fn judge(case: &Case) -> Judged {
    match case.number_if_there(PATH)? {
        Some(seconds) => Ok(Judgement::fail_if(seconds != 0, seconds.to_string())),
        None if case.series()? >= (7, 0) => {
            Err(Judgement::not_applicable("it was taken out of the kernel after 6.19"))
        }
        None => Err(absent(PATH)),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::rules::fixture::check;

    #[test]
    fn newer_kernels_have_none() {
        check(&KNOB, "", "pass 0");
        check(&KNOB, "/proc/sys/vm/laptop_mode: 2", "fail info 2");
        check(&KNOB, "/proc/sys/vm/laptop_mode absent", "unknown");
        check(&KNOB, "/proc/sys/vm/laptop_mode absent\n/proc/sys/kernel/osrelease: 7.1.0", "not-applicable");
    }
}
