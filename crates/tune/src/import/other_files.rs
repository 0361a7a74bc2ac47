//! Files that users mistake for kernel settings: their kinds, and alternatives to importing them.

use super::assignment::{assignment, is_below_root};

/// Kind of file that is not imported.
struct OtherFile {
    /// Name of the kind: `NAME is WORDS`.
    what: &'static str,
    instead: &'static str,
    /// Prefixes of assigned names.
    names: &'static [&'static str],
    /// Prefixes of lines that are not assignments.
    lines: &'static [&'static str],
}

const GRUB: &str = "`onbeat audit --copy` judges the kernel's command line and writes its words";
const CONFIGURATION: &str =
    "merge it into the kernel's configuration: `onbeat tune export DIR` writes such a fragment as kernel.cfg";

/// Folders of `/sys` that `/proc/sys` does not have.
const SYSFS_FOLDERS: &[&str] = &["devices/", "class/", "module/", "block/", "bus/"];

const OTHERS: &[OtherFile] = &[
    OtherFile {
        what: "a script",
        instead: "scripts are not run: see what it sets, and set that",
        names: &[],
        lines: &["#!", "sysctl ", "sudo ", "echo ", "printf ", "tee ", "cpupower ", "chrt ", "taskset "],
    },
    OtherFile {
        what: "a boot loader's configuration",
        instead: GRUB,
        names: &[
            "GRUB_",
            "bootargs",
            "setenv bootargs",
            "extra_args",
            "extraargs",
            // The options of a loader entry, not those of a module.
            "options root",
            "options ro ",
            "options rw ",
            "options quiet ",
            "options console",
            "options isolcpus",
            "options nohz_full",
            "options rcu_nocbs",
        ],
        lines: &[
            "menuentry ",
            "APPEND ",
            "append ",
            "LABEL ",
            "label ",
            "loader/",
            "set default",
            "linux ",
            "linux\t",
            "linux16 ",
            "linuxefi ",
            "title ",
            "sort-key ",
            "machine-id ",
        ],
    },
    OtherFile {
        what: "the command line of a kernel",
        instead: GRUB,
        names: &["BOOT_IMAGE", "root", "console", "isolcpus", "nohz_full", "rcu_nocbs", "quiet "],
        lines: &["quiet ", "ro ", "rw ", "console=", "isolcpus="],
    },
    OtherFile {
        what: "a kernel configuration fragment",
        instead: CONFIGURATION,
        names: &["CONFIG_"],
        lines: &["# CONFIG_"],
    },
    OtherFile {
        what: "irqbalance's variables",
        instead: "irqbalance reads them itself; `onbeat tune plan irq-affinity` plans where interrupts go",
        names: &["IRQBALANCE_"],
        lines: &[],
    },
    OtherFile {
        what: "the configuration of rtirq",
        instead: "rtirq sets priorities of threads by it at boot; `onbeat tune plan` says which are wrong",
        names: &["RTIRQ_"],
        lines: &[],
    },
    OtherFile {
        what: "the configuration of a program for CPU frequencies",
        instead: "`onbeat tune plan cpufreq-governor` plans the governor",
        names: &[
            "GOVERNOR",
            "MIN_SPEED",
            "MAX_SPEED",
            "CPUPOWER_",
            "CPU_SCALING_",
            "CPU_DEFAULT_GOVERNOR",
            "TLP_",
            "START_OPTS",
            "governor",
        ],
        lines: &[],
    },
    OtherFile {
        what: "a file of sysfsutils",
        instead: "write its lines as `w! /sys/PATH - - - - VALUE` into a file of tmpfiles.d, and give that",
        names: SYSFS_FOLDERS,
        lines: &["mode ", "owner "],
    },
    OtherFile {
        what: "a file of modprobe.d, options of kernel modules",
        instead: "they take effect when a module is loaded: leave them there",
        names: &[],
        lines: &["options ", "blacklist ", "install ", "alias ", "softdep "],
    },
    OtherFile {
        what: "a file of udev rules",
        instead: "udev applies them when devices appear: leave them there",
        names: &["SUBSYSTEM", "KERNEL", "ACTION", "ATTR{", "ATTRS{", "DRIVER", "ENV{"],
        lines: &[],
    },
    OtherFile {
        what: "a file of limits.d, limits of users",
        instead: "pam_limits applies them at login; `onbeat audit` judges those of a program",
        names: &[],
        lines: &["@", "* ", "root "],
    },
    OtherFile {
        what: "variables of a tuned profile",
        instead: "give the profile that includes them, with --root if it is elsewhere",
        names: &["isolated_cores", "isolate_managed_irq", "no_balance_cores", "netdev_queue_count"],
        lines: &[],
    },
    OtherFile {
        what: "tuned's configuration",
        instead: "give a profile: its name, folder or tuned.conf",
        names: &["daemon", "dynamic_tuning", "sleep_interval", "default_instance_priority", "profile_dirs"],
        lines: &[],
    },
    OtherFile {
        what: "a unit or configuration of systemd",
        instead: "`onbeat isolate create LIST` isolates CPUs, `onbeat tune plan` plans the rest",
        names: &[],
        lines: &[
            "[Unit]",
            "[Service]",
            "[Install]",
            "[Slice]",
            "[Scope]",
            "[Manager]",
            "[Socket]",
            "[Timer]",
            "[Match]",
            "[Link]",
            "[Network]",
            "[Journal]",
            "[Login]",
            "[Mount]",
        ],
    },
];

/// Files recognized by name alone.
const BY_NAME: &[(&str, &str, &str)] = &[
    ("grub", "a boot loader's configuration", GRUB),
    ("cmdline.txt", "the command line of a kernel", GRUB),
    ("extlinux.conf", "a boot loader's configuration", GRUB),
    ("grub.cfg", "a boot loader's configuration", GRUB),
];

/// Kind of a file that is not importable, and an alternative; none for one that may be importable.
pub fn other_file(name: &str, text: &str) -> Option<(&'static str, &'static str)> {
    if let Some((_, what, instead)) = BY_NAME.iter().find(|(own, ..)| *own == name) {
        return Some((what, instead));
    }
    let is_one = |other: &&OtherFile| {
        text.lines().map(str::trim).any(|line| {
            let name = line.split_once('=').map(|(name, _)| name.trim().trim_start_matches("export "));
            // A whole name, or a prefix if it ends in a separator.
            let is_named = |start: &&str| {
                let is_start = start.ends_with(['_', '/', '{', ' ']);
                name.is_some_and(|name| name == *start || is_start && name.starts_with(start))
            };
            other.names.iter().any(is_named) || other.lines.iter().any(|start| line.starts_with(start))
        })
    };
    if has_sysctl(text) {
        return None;
    }
    if let Some(other) = OTHERS.iter().find(is_one) {
        return Some((other.what, other.instead));
    }
    if name == ".env" || name.ends_with(".env") {
        let instead = "they apply to programs that are started with them, not to the kernel";
        return Some(("a file of environment variables", instead));
    }
    let mut assignments = text.lines().filter(|line| assignment(line).is_ok_and(|found| found.is_some()));
    assignments.next().map(|_| {
        (
            "not a file of sysctl.d: none of its names is a sysctl",
            "sysctl names look like kernel.sched_rt_runtime_us",
        )
    })
}

/// True for a text with a name of a sysctl. Next to paths below `/sys`, another path counts as one,
/// too.
fn has_sysctl(text: &str) -> bool {
    let written = |line: &str| line.split('=').next().unwrap_or("").trim().to_owned();
    let of_sysfs = |line: &str| SYSFS_FOLDERS.iter().any(|folder| written(line).starts_with(folder));
    let paths = !text.lines().any(of_sysfs);
    let is_sysctl = |line: &str| {
        let found = assignment(line).ok().flatten();
        found.is_some_and(|found| is_below_root(&found.name)) && (paths || !written(line).contains('/'))
    };
    text.lines().any(is_sysctl)
}

#[cfg(test)]
mod tests {
    use super::other_file;

    #[test]
    fn files_of_other_programs_are_named() {
        for (name, text, what) in [
            ("grub", "GRUB_TIMEOUT=5\n", "a boot loader's configuration"),
            ("extlinux.conf", "timeout 3\n", "a boot loader's configuration"),
            ("x", "menuentry 'Debian' {\n  linux /vmlinuz root=UUID=1\n}\n", "a boot loader's configuration"),
            ("x.cfg", "\tlinux /vmlinuz isolcpus=2-3\n", "a boot loader's configuration"),
            ("x.conf", "title x\noptions isolcpus=2-3\n", "a boot loader's configuration"),
            ("x.conf", "options root=/dev/sda1 quiet\n", "a boot loader's configuration"),
            ("x.conf", "sysctl -w vm.stat_interval=10\necho 10 > /proc/sys/vm/swappiness\n", "a script"),
            ("cmdline.txt", "console=ttyS0 quiet\n", "the command line of a kernel"),
            ("cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda isolcpus=2\n", "the command line of a kernel"),
            ("rt.cfg", "CONFIG_PREEMPT_RT=y\n", "a kernel configuration fragment"),
            ("off.cfg", "# CONFIG_NO_HZ_FULL is not set\n", "a kernel configuration fragment"),
            ("irqbalance", "#x\nIRQBALANCE_BANNED_CPULIST=1\n", "irqbalance's variables"),
            ("rtirq.conf", "RTIRQ_NAME_LIST=\"snd usb\"\n", "the configuration of rtirq"),
            ("cpufrequtils", "ENABLE=\"true\"\nGOVERNOR=\"performance\"\n", "for CPU frequencies"),
            ("tlp.conf", "CPU_SCALING_GOVERNOR_ON_AC=performance\n", "for CPU frequencies"),
            ("sysfs.conf", "devices/system/cpu/cpu0/cpufreq/scaling_governor = performance\n", "sysfsutils"),
            ("sysfs.conf", "kernel/mm/ksm/run = 0\nmodule/kvm/parameters/halt_poll_ns = 0\n", "sysfsutils"),
            ("rt.conf", "options snd_usb_audio nrpacks=1\n", "modprobe.d"),
            ("99-rt.rules", "KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\"\n", "udev"),
            ("99-rt.conf", "@realtime - rtprio 99\n", "limits.d"),
            ("realtime-variables.conf", "isolated_cores=2-3\n", "variables of a tuned profile"),
            ("tuned-main.conf", "daemon = 1\ndynamic_tuning = 0\n", "tuned's configuration"),
            ("set.sh", "#!/bin/sh\necho 1 > /sys/x\nGOVERNOR=performance\n", "a script"),
            ("rt.service", "[Unit]\nDescription=x\n[Service]\nCPUAffinity=2\n", "systemd"),
            (".env", "CPUS=2-3\n", "environment variables"),
            ("prod.env", "export CPUS=2-3\n", "environment variables"),
            ("x.conf", "FOO=1\nbar = 2\n", "none of its names is a sysctl"),
        ] {
            let found = other_file(name, text).map(|(found, _)| found);
            assert!(found.is_some_and(|found| found.contains(what)), "{name}: {found:?}");
        }
    }

    #[test]
    fn sysctls_and_texts_without_names_are_not() {
        for text in [
            "kernel.sched_rt_runtime_us=-1\n",
            "-net.ipv4.conf.*.rp_filter\n",
            "FOO=1\nvm/swappiness = 10\n",
            "devices/x = 1\nvm.swappiness = 10\n",
            "/proc/sys/vm/swappiness=1\n",
            "",
            "# a comment\n",
        ] {
            assert_eq!(other_file("x.conf", text), None, "{text}");
        }
    }
}
