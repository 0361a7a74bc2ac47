//! Options of the kernel's configuration as a fragment, and the lines for Yocto to use it.

use super::cmdline::joined;
use super::{KernelOption, Lasting, commented};

const HEAD: &str = "\
# A fragment of a kernel configuration. In a kernel's source:
#   scripts/kconfig/merge_config.sh -m .config kernel.cfg && make olddefconfig
# Then see that each line is in .config: options that others need or exclude are changed in silence.

";

/// Options that Kconfig drops without another one, with that and an option that suffices instead
/// (kernel/rcu/Kconfig, kernel/Kconfig.preempt).
const NEEDS: [(&str, &str, &str); 3] = [
    ("PREEMPT_RT", "EXPERT", ""),
    ("RCU_BOOST", "RCU_EXPERT", "PREEMPT_RT"),
    ("RCU_NOCB_CPU", "RCU_EXPERT", "NO_HZ_FULL"),
];

/// Fragment, with the options that these depend on; none without options.
pub fn fragment(options: &[KernelOption]) -> Option<String> {
    let is_set = |name: &str| options.iter().any(|option| option.option == name && option.value == "y");
    let mut whole: Vec<KernelOption> = Vec::new();
    for option in options {
        let needed = NEEDS
            .iter()
            .find(|(name, _, enough)| *name == option.option && option.value == "y" && !is_set(enough));
        if let Some((name, needed, _)) = needed.filter(|(_, needed, _)| !is_set(needed)) {
            let why = format!("CONFIG_{name} needs it");
            if !whole.iter().any(|other| other.option == *needed) {
                whole.push(KernelOption { option: (*needed).to_owned(), why, ..option.clone() });
            }
        }
        whole.push(option.clone());
    }
    let lines = whole.iter().map(|option| (&*option.rule, option.why.clone(), line(option)));
    (!options.is_empty()).then(|| HEAD.to_owned() + &commented(lines))
}

fn line(option: &KernelOption) -> String {
    match option.value.as_str() {
        "n" => format!("# CONFIG_{} is not set", option.option),
        value => format!("CONFIG_{}={value}", option.option),
    }
}

/// Lines for a Yocto layer; none if there is nothing for it.
pub fn yocto(lasting: &Lasting, is_built_in: bool) -> Option<String> {
    let mut page = String::new();
    if !lasting.options.is_empty() {
        page += "\
# In the kernel's .bbappend, with kernel.cfg as files/onbeat.cfg beside it. A recipe that inherits
# kernel-yocto merges the fragment.
FILESEXTRAPATHS:prepend := \"${THISDIR}/files:\"
SRC_URI += \"file://onbeat.cfg\"
";
    }
    let (added, removed) = (joined(&lasting.words, true), joined(&lasting.words, false));
    if !lasting.words.is_empty() && !page.is_empty() {
        page.push('\n');
    }
    if !added.is_empty() && is_built_in {
        page += &format!("# To be added to CONFIG_CMDLINE in the kernel's configuration: {added}\n");
    } else if !added.is_empty() {
        page += &format!(
            "\
# In the machine's configuration. APPEND is that of grub-efi, syslinux and systemd-boot images; others
# have a variable of their own: UBOOT_EXTLINUX_KERNEL_ARGS, KERNEL_CMDLINE_EXTRA, meta-raspberrypi's CMDLINE;
# an image made by wic takes them after bootloader --append in its .wks file.
APPEND:append = \" {}\"
",
            added.replace('"', "\\\"")
        );
    }
    if !removed.is_empty() {
        page += &format!("# To be taken out of what the layers put there: {removed}\n");
    }
    (!page.is_empty()).then_some(page)
}
