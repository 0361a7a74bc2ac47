//! tuned profiles on fake machines, with the results of tuned 2.27's own loader.

use host::MachineFiles;
use host::access::Access;
use model::error::Result;
use model::plan::PlanDocument;
use rules::fixture::Machine;

use super::places::{ProfilePlaces, ProfileSearch};
use crate::import::{Documents, ImportRequest, ImportTarget, import};

/// Machine with four CPUs and these files of profiles.
struct Bench {
    machine: Machine,
}

impl Bench {
    fn new(edits: &str, profiles: &[(&str, &str)]) -> Bench {
        let mut machine = Machine::base();
        machine.edit(&format!("{SETTINGS}\n{edits}"));
        for (path, text) in profiles {
            machine.answers.insert((*path).to_owned(), Access::File(text.as_bytes().to_vec()));
        }
        Bench { machine }
    }

    fn import(&self, name: &str, given: &[(&str, &str)], partial: bool) -> Result<PlanDocument> {
        let files = MachineFiles::in_memory(self.machine.answers.clone());
        let survey = self.machine.read();
        let places = ProfilePlaces::of_machine(&files);
        let ProfileSearch::Found(file) = places.find(name, &[]) else { panic!("no profile {name}") };
        let documents = Documents { files: Vec::new(), profiles: Some((vec![file], places)) };
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let request = ImportRequest { given: given.collect(), partial };
        import(&documents, &request, ImportTarget { files: &files, survey: &survey }, "")
    }

    /// `KEY VALUE` of each change, sorted, and the omitted parts.
    fn plan(&self, name: &str) -> (Vec<String>, Vec<String>) {
        let plan = self.import(name, &[], false).unwrap_or_else(|failure| panic!("{failure}"));
        change_lines(&plan)
    }

    fn refusal(&self, name: &str) -> String {
        match self.import(name, &[], false) {
            Ok(plan) => panic!("a plan: {:?}", change_lines(&plan)),
            Err(failure) => {
                assert_eq!(failure.exit, model::error::Exit::Usage);
                failure.message
            }
        }
    }
}

fn change_lines(plan: &PlanDocument) -> (Vec<String>, Vec<String>) {
    let changes = plan.changes.iter();
    let mut changes: Vec<String> =
        changes.map(|change| format!("{} {}", change.setting.key, change.setting.wanted)).collect();
    changes.sort();
    let left = plan.left_out.iter().map(|left| format!("{}: {}", left.rule, left.why));
    (changes, left.collect())
}

#[test]
fn scripts_of_all_profiles_are_named() {
    let own = "[main]\ninclude=basic\n[script]\nscript=${i:PROFILE_DIR}/own.sh\n";
    let files = [
        ("/usr/lib/tuned/basic/tuned.conf", "[script]\nscript=script.sh\n"),
        ("/etc/tuned/profiles/own/tuned.conf", own),
    ];
    let scripts = "/usr/lib/tuned/basic/script.sh /etc/tuned/profiles/own/own.sh";
    assert_eq!(
        Bench::new("", &files).plan("own").1,
        [format!("[script] script = {scripts}: a script is not run")]
    );
}

/// Machine with a single profile, in the user's folder.
fn one(edits: &str, text: &str) -> Bench {
    Bench::new(edits, &[("/etc/tuned/profiles/own/tuned.conf", text)])
}

const SETTINGS: &str = "
    /sys/devices/system/cpu/online: 0-3
    /proc/sys/vm/stat_interval: 1
    /proc/sys/vm/swappiness: 60
    /proc/sys/kernel/hung_task_timeout_secs: 120
    /proc/sys/kernel/sched_rt_runtime_us: 950000
    /sys/kernel/mm/transparent_hugepage/enabled: [always] madvise never
    /sys/devices/virtual/workqueue/cpumask: f
    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: performance
    /sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors: performance schedutil
    /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor: performance
    /sys/devices/system/cpu/cpu1/cpufreq/scaling_available_governors: performance schedutil
    /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor: schedutil
    /sys/devices/system/cpu/cpu2/cpufreq/scaling_available_governors: performance schedutil
    /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor: schedutil
    /sys/devices/system/cpu/cpu3/cpufreq/scaling_available_governors: performance powersave schedutil";

const BASIC: &str = "
[main]
summary=low latency
[sysctl]
vm.swappiness=10
vm.stat_interval = 10   # seconds
[cpu]
governor=conservative|performance
force_latency=1
[vm]
transparent_hugepages=never
";

const CHILD: &str = "
[main]
include=basic
[variables]
include=/etc/tuned/child-variables.conf
shown=\\\\${isolated}
isolated = ${isolated}
assert=${f:assertion_non_equal:isolated is set:${isolated}:${shown}}
other_mask=${f:cpulist2hex_invert:${isolated}}
[sysctl]
vm.swappiness=>30
vm.stat_interval=20
[sysfs]
/sys/devices/virtual/workqueue/cpumask=${other_mask}
[bootloader]
cmdline_child=+isolcpus=${isolated}
[script]
script=${i:PROFILE_DIR}/script.sh
";

const CHILD_FILES: &[(&str, &str)] = &[
    ("/usr/lib/tuned/basic/tuned.conf", BASIC),
    ("/etc/tuned/profiles/child/tuned.conf", CHILD),
    ("/etc/tuned/child-variables.conf", "# CPUs\nisolated=2-3\n"),
];

#[test]
fn a_profile_is_merged_with_what_it_includes() {
    let (changes, left) = Bench::new("", CHILD_FILES).plan("child");
    assert_eq!(
        changes,
        [
            "hold:cpu_dma_latency 1",
            "sysctl:vm.stat_interval 20",
            "sysfs:devices/system/cpu/cpu2/cpufreq/scaling_governor performance",
            "sysfs:devices/system/cpu/cpu3/cpufreq/scaling_governor performance",
            "sysfs:devices/virtual/workqueue/cpumask 3",
            "sysfs:kernel/mm/transparent_hugepage/enabled never",
        ],
        "60 is more than 30 already"
    );
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].starts_with("[bootloader] cmdline = isolcpus=2-3: "), "{left:?}");
    assert_eq!(left[1], "[script] script = /etc/tuned/profiles/child/script.sh: a script is not run");
}

#[test]
fn a_variable_without_a_value_fails_its_assertion() {
    let bench = Bench::new("", &CHILD_FILES[..2]);
    let refusal = bench.refusal("child");
    assert!(
        refusal.ends_with("it asserts 'isolated is set': pass its variables with --set NAME=VALUE"),
        "{refusal}"
    );
    let plan = bench.import("child", &[("isolated", "1")], false).unwrap();
    let (changes, left) = change_lines(&plan);
    assert!(changes.contains(&"sysfs:devices/virtual/workqueue/cpumask d".to_owned()), "{changes:?}");
    assert!(
        left[0].starts_with("variables of /etc/tuned/child-variables.conf: the file does not exist"),
        "{left:?}"
    );
}

#[test]
fn an_assertion_about_the_machine_refuses() {
    let text =
        "[variables]\nx=${f:assertion:CPUs are online:${f:cpulist_unpack:2,9}:${f:cpulist_online:2,9}}\n";
    assert!(one("", text).refusal("own").contains("it asserts 'CPUs are online'"));
}

#[test]
fn variables_come_first_where_they_are_to() {
    let base = "[variables]\nmask=${f:cpulist2hex_invert:${cores}}\n\
                [sysfs]\n/sys/devices/virtual/workqueue/cpumask=${mask}\n";
    let own = |prepend: &str| {
        format!(
            "[main]\ninclude=base\n[variables]\n{prepend}cores=2-3\nn=5\n[sysctl]\nvm.stat_interval=${{n}}\n"
        )
    };
    let bench = |own: &str| {
        let files = [("/usr/lib/tuned/profiles/base/tuned.conf", base), ("/etc/tuned/own/tuned.conf", own)];
        Bench::new("", &files).plan("own").0
    };
    let wanted = ["sysctl:vm.stat_interval 5", "sysfs:devices/virtual/workqueue/cpumask 3"];
    assert_eq!(bench(&own("prepend=true\n")), wanted);
    // Otherwise they are defined after the included ones: a list without a value is empty.
    assert_eq!(bench(&own("")), wanted[..1]);
}

#[test]
fn includes_are_looked_for_in_order() {
    let sysctl = |value: &str| format!("[sysctl]\nvm.stat_interval={value}\n");
    let own = "[main]\ninclude=own; a ,b,-gone\n[sysctl]\nvm.swappiness=1\n";
    let (system, a, b, old_b) = (sysctl("7"), sysctl("8"), "[main]\ninclude=a\n", sysctl("9"));
    let files = [
        ("/etc/tuned/profiles/own/tuned.conf", own),
        ("/usr/lib/tuned/profiles/own/tuned.conf", &*system),
        ("/etc/tuned/a/tuned.conf", &*a),
        ("/etc/tuned/b/tuned.conf", b),
        ("/usr/lib/tuned/b/tuned.conf", &*old_b),
    ];
    // The user's profile includes the system's of its name; each file counts once.
    assert_eq!(Bench::new("", &files).plan("own").0, ["sysctl:vm.stat_interval 8", "sysctl:vm.swappiness 1"]);
    // tuned's configuration may list other folders.
    let mut other = files.to_vec();
    other.push((
        "/etc/tuned/tuned-main.conf",
        "daemon = 1\nprofile_dirs = /usr/lib/tuned,/etc/tuned/profiles\n",
    ));
    let refusal = Bench::new("", &other).refusal("own");
    assert!(
        refusal.contains("include a: no such profile in /etc/tuned/profiles, /usr/lib/tuned: "),
        "{refusal}"
    );
}

#[test]
fn a_circle_of_includes_is_refused_by_name() {
    let files = [
        ("/etc/tuned/a/tuned.conf", "[main]\ninclude=b\n[sysctl]\nvm.swappiness=1\n"),
        ("/etc/tuned/b/tuned.conf", "[main]\ninclude=c\n"),
        ("/etc/tuned/c/tuned.conf", "[main]\ninclude=-b\n"),
    ];
    let refusal = Bench::new("", &files).refusal("a");
    assert!(refusal.contains("in a circle, 'b -> c -> b': remove one include="), "{refusal}");
    let own = [("/etc/tuned/a/tuned.conf", "[main]\ninclude=a\n[sysctl]\nvm.swappiness=1\n")];
    assert_eq!(Bench::new("", &own).plan("a").0, ["sysctl:vm.swappiness 1"]);
}

#[test]
fn the_name_of_an_include_is_evaluated() {
    let own = "[main]\ninclude=${f:regex_search_ternary:a:a:base:other}\n";
    let files = [
        ("/etc/tuned/own/tuned.conf", own),
        ("/etc/tuned/base/tuned.conf", "[sysctl]\nvm.stat_interval=7\n"),
    ];
    assert_eq!(Bench::new("", &files).plan("own").0, ["sysctl:vm.stat_interval 7"]);
    let refusal = one("", "[main]\ninclude=${f:exec:cat:/etc/x}\n").refusal("own");
    assert!(
        refusal.contains("include (the output of cat /etc/x): its value comes from a command"),
        "{refusal}"
    );
}

#[test]
fn what_cannot_be_read_refuses_unless_the_rest_is_asked_for() {
    for (text, what) in [
        ("[main]\ninclude=none\n", "own, include none: no such profile in "),
        ("[sysctl]\nvm.swappiness=${x}\n", "[sysctl] vm.swappiness: its variable x has no value: pass --set"),
        ("[sysctl]\nvm.swappiness=${f:exec:nproc}\n", "its value comes from a command, which is not run"),
        ("[sysctl]\nvm.swappiness=${f:s2kb:x}\n", "s2kb has no value for such arguments"),
        ("[sysctl]\nvm.swappiness=${f:nosuch:1}\n", "nosuch is not a tuned function"),
        ("[sysctl]\nvm.swappiness\n", "own, line 2: it is not an option of a section"),
        ("[DEFAULT]\na=1\n", "[DEFAULT]: options for all sections are not read"),
        ("[variables]\na=${f:assertion:b:${f:exec:c}:d}\n", "the assertion b: "),
        (
            "[x]\ntype=sysctl\ncpuinfo_regex=(?=a)\nvm.swappiness=1\n",
            "[x]: the expression '(?=a)' is not supported",
        ),
        ("[x]\ntype=cpu\ndevices=${f:exec:a}\ngovernor=performance\n", "[x] devices: "),
    ] {
        let bench = one("", &format!("{text}\n[sysfs]\n/sys/devices/virtual/workqueue/cpumask=1\n"));
        let refusal = bench.refusal("own");
        assert!(refusal.starts_with("a part of it cannot be read (") && refusal.contains(what), "{refusal}");
        assert!(refusal.ends_with("): --partial plans the rest"), "{refusal}");
        let (changes, left) = change_lines(&bench.import("own", &[], true).unwrap());
        assert_eq!(changes, ["sysfs:devices/virtual/workqueue/cpumask 1"]);
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

#[test]
fn sections_are_merged_by_their_own_rules() {
    let base = "[a]\ntype=sysctl\nvm.stat_interval=2\nvm.swappiness=3\n\
                [b]\ntype=sysctl\nkernel.hung_task_timeout_secs=4\n\
                [sysctl]\nkernel.sched_rt_runtime_us=5\nvm.swappiness=9\n";
    let with = |own: &str| {
        let own = format!("[main]\ninclude=base\n{own}");
        let files = [("/etc/tuned/base/tuned.conf", base), ("/etc/tuned/own/tuned.conf", own.as_str())];
        let (changes, _) = Bench::new("", &files).plan("own");
        changes.iter().map(|change| change.replace("sysctl:", "")).collect::<Vec<_>>().join(", ")
    };
    let (hung, rt) = ("kernel.hung_task_timeout_secs", "kernel.sched_rt_runtime_us");
    assert_eq!(with(""), format!("{hung} 4, {rt} 5, vm.stat_interval 2, vm.swappiness 9"));
    // The last value counts: sections with a higher priority come later.
    let found = with("[a]\ntype=sysctl\npriority=5\n");
    assert_eq!(found, format!("{hung} 4, {rt} 5, vm.stat_interval 2, vm.swappiness 3"));
    let found = with("[a]\ntype=sysctl\nreplace=1\nvm.stat_interval=7\n");
    assert_eq!(found, format!("{hung} 4, {rt} 5, vm.stat_interval 7, vm.swappiness 9"));
    // A conditional value is compared with that of an earlier section, and replaces an unreadable
    // one.
    let found = with(
        "[a]\ntype=sysctl\npriority=5\nvm.swappiness=>12\nvm.stat_interval=3\n[sysctl]\nvm.stat_interval=${x}\n",
    );
    assert_eq!(found, format!("{hung} 4, {rt} 5, vm.stat_interval 3, vm.swappiness 12"));
    // A repeated section without a type uses the plugin of its name.
    assert_eq!(with("[a]\nvm.stat_interval=7\n"), format!("{hung} 4, {rt} 5, vm.swappiness 9"));
    assert_eq!(
        with("[sysctl]\ndrop=vm.swappiness, x\n"),
        format!("{hung} 4, {rt} 5, vm.stat_interval 2, vm.swappiness 3")
    );
    // tuned does not accept `yes` as true.
    assert_eq!(
        with("[b]\ntype=sysctl\nenabled=yes\n"),
        format!("{rt} 5, vm.stat_interval 2, vm.swappiness 9")
    );
    let both = with("[b]\ntype=sysctl\nenabled=true\n[a]\ntype=sysctl\nenabled=false\n");
    assert_eq!(both, format!("{hung} 4, {rt} 5, vm.swappiness 9"));
}

#[test]
fn a_comparison_with_a_value_that_cannot_be_read_leaves_out_this_value_alone() {
    let profile = "[sysctl]\nnet.core.somaxconn=>2048\nvm.stat_interval=9\n";
    for edit in ["/proc/sys/net/core/somaxconn refused", "/proc/sys/net/core/somaxconn absent"] {
        let (changes, left) = one(edit, profile).plan("own");
        assert_eq!(changes, ["sysctl:vm.stat_interval 9"], "{edit}");
        assert!(left.len() == 1 && left[0].starts_with("sysctl:net.core.somaxconn"), "{left:?}");
    }
    let refused = one("/proc/sys/net/core/somaxconn: many", profile).refusal("own");
    assert!(refused.contains("not compared with a number"), "{refused}");
}

#[test]
fn conditions_of_sections_are_decided() {
    let text = "[variables]\npart=AuthenticAMD\n\
                [x]\ntype=sysctl\nuname_regex=aarch64\nvm.stat_interval=2\n\
                [y]\ntype=sysctl\nuname_regex=^Linux .* x86_64$\nvm.stat_interval=3\n\
                [z]\ntype=sysctl\ncpuinfo_regex=vendor_id\\s+:\\s+(${part})\nvm.swappiness=4\n";
    let mut bench = one("", text);
    bench.machine.edit("/proc/sys/kernel/arch: x86_64");
    let cpuinfo = Access::File(b"processor\t: 0\nvendor_id\t: AuthenticAMD\n".to_vec());
    bench.machine.answers.insert("/proc/cpuinfo".to_owned(), cpuinfo);
    assert_eq!(bench.plan("own").0, ["sysctl:vm.stat_interval 3", "sysctl:vm.swappiness 4"]);
}

#[test]
fn cpus_are_for_the_first_section_that_names_them() {
    let governor =
        |cpu: u32, to: &str| format!("sysfs:devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor {to}");
    let text = "[variables]\ncores=3\n\
                [cpu]\ngovernor=performance\npriority=2\n\
                [rt]\ntype=cpu\ndevices=${f:cpulist2devs:${cores}}\ngovernor=powersave\n";
    assert_eq!(one("", text).plan("own").0, [governor(2, "performance"), governor(3, "powersave")]);
    let text = "[rt]\ntype=cpu\ndevices=!cpu2\ngovernor=performance\nforce_latency=cstate.id_no_zero:0|cstate.id:1|5\n";
    let states = "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency: 0\n\
                  /sys/devices/system/cpu/cpu0/cpuidle/state1/latency: 2";
    let wanted = ["hold:cpu_dma_latency 2".to_owned(), governor(3, "performance")];
    assert_eq!(one(states, text).plan("own").0, wanted);
}

#[test]
fn words_of_the_command_line_are_in_one() {
    let text = "[variables]\ncores=2-3\nmanaged=Y\n\
                prefix=${f:regex_search_ternary:${managed}:\\b[y,Y,1,t,T]\\b:managed_irq,domain,:}\n\
                [bootloader]\ncmdline_own=+isolcpus=${prefix}${cores} nosoftlockup quiet\n\
                cmdline_more=-quiet\ncmdline_last=+skew_tick=1\nskip_grub_config=true\n";
    let (_, left) = one("", text).plan("own");
    let words = "[bootloader] cmdline = isolcpus=managed_irq,domain,2-3 nosoftlockup skew_tick=1: ";
    assert!(left[0].starts_with(words), "{left:?}");
    assert_eq!(left[1], "[bootloader] skip_grub_config = true: no boot loader is edited");
}

#[test]
fn threads_of_the_scheduler_are_named_and_its_files_planned() {
    let text = "[variables]\nn=5\n[scheduler]\ngroup.rcuc=0:f:4:*:^\\[rcuc\nisolated_cores=2\n\
                sched_migration_cost_ns=${n}000000\nsched_latency_ns=1\n";
    let (changes, left) = one("/sys/kernel/debug/sched/migration_cost_ns: 500000", text).plan("own");
    assert_eq!(changes, ["sysfs:kernel/debug/sched/migration_cost_ns 5000000"]);
    let rcuc = "[scheduler] group.rcuc = 0:f:4:*:^\\[rcuc: threads that '^\\[rcuc' matches get SCHED_FIFO, priority 4";
    assert_eq!(left[0], rcuc);
    assert!(left[1].starts_with("[scheduler] isolated_cores = 2: it moves threads away"), "{left:?}");
    assert_eq!(left[2], "[scheduler] sched_latency_ns: this kernel has no such file");
}

#[test]
fn lines_are_continued_where_they_are_indented_more() {
    let text = "[sysctl]\n  vm.swappiness = 1\n  vm.stat_interval=2 # a\n# b\n; c\n\n\
                [scheduler]\nps_blacklist=a;\n  b\n\n  c\n";
    let (changes, left) = one("", text).plan("own");
    assert_eq!(changes, ["sysctl:vm.stat_interval 2", "sysctl:vm.swappiness 1"]);
    assert!(left[0].starts_with("[scheduler] ps_blacklist = a;"), "{left:?}");
}

#[test]
fn nothing_is_written_but_what_tuned_writes() {
    let text = "[sysfs]\n/proc/sys/vm/swappiness=1\n/sys/kernel/../../etc/x=1\n\
                [sysctl]\nvm/swappiness=1\nvm.stat_interval=\"4\"\n";
    let bench = one("", text);
    assert!(bench.refusal("own").contains("its path leads somewhere else"));
    let (changes, left) = change_lines(&bench.import("own", &[], true).unwrap());
    assert_eq!(changes, ["sysctl:vm.stat_interval 4"]);
    assert_eq!(left.len(), 3, "{left:?}");
}
