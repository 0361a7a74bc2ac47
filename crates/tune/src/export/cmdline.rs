//! Words for the kernel's command line, and the boot loaders' files for them.

use super::CmdlineWord;
use super::commented;

const HEAD: &str = "\
# Words for the kernel's command line: `+` is added, `-` is taken off. No boot loader is changed by this.
# Where they go:
#   GRUB          GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub or grub2-mkconfig
#   GRUB, BLS     grubby --update-kernel=ALL --args=\"WORDS\" --remove-args=\"WORDS\"
#   systemd-boot  /etc/kernel/cmdline, then kernel-install or a new unified image
#   U-Boot        the append line of extlinux.conf, or bootargs
#   Raspberry Pi  the one line of /boot/firmware/cmdline.txt
#   rpm-ostree    rpm-ostree kargs --append-if-missing=WORD --delete-if-present=WORD
# An entry in the loader's menu without them lets the machine start where they were wrong.

";

const BUILT_IN_HEAD: &str = "\
# Words for the command line that is built into the kernel: `+` is added, `-` is taken out. They go to
# CONFIG_CMDLINE of its configuration: this kernel ignores what its boot loader hands over.

";

/// File for the place from which the kernel takes its words; none without words.
pub fn render(words: &[CmdlineWord], is_built_in: bool) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    let sign = |word: &CmdlineWord| if word.added { '+' } else { '-' };
    let lines =
        words.iter().map(|word| (&*word.rule, word.why.clone(), format!("{} {}", sign(word), word.word)));
    let mut page = if is_built_in { BUILT_IN_HEAD } else { HEAD }.to_owned() + &commented(lines);
    for (added, heading) in [(true, "All to be added"), (false, "All to be taken off")] {
        let line = joined(words, added);
        if !line.is_empty() {
            page += &format!("\n# {heading}, on one line:\n# {line}\n");
        }
    }
    Some(page)
}

/// Words to add, or those to remove, on one line.
pub fn joined(words: &[CmdlineWord], added: bool) -> String {
    let wanted = words.iter().filter(|word| word.added == added);
    wanted.map(|word| word.word.as_str()).collect::<Vec<_>>().join(" ")
}
