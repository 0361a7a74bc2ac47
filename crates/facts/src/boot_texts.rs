//! A kernel before it boots: its configuration and its command line, as files of a file system.
//!
//! Sources: file-hierarchy(7) and the distributions' packages for the places of configurations, and
//! those of [`super::boot_cmdline`] for the command line.

use std::fmt;

use super::boot_cmdline::{
    BootVariables, parse_cmdline_txt, parse_extlinux, parse_grub_defaults, parse_grub_environment,
};
use super::boot_entries::{BootEntry, default_entry, parse_boot_entry, parse_default_entry};
use super::cmdline::{Cmdline, parse_cmdline};
use super::kconfig::{KCONFIG_LIMIT, Kconfig, OptionValue};
use super::kconfig_file::{KconfigFile, KconfigRefusal, read_kconfig_file};
use host::MachineFiles;
use host::access::redact;
use model::fact::Fact;

/// Paths of configurations, best first: `*` stands for any folder name or end of a file name.
const CONFIGS: [&[&str]; 3] = [
    &["/boot/config-*", "/boot/config", "/boot/config.gz", "/config-*", "/.config", "/config", "/config.gz"],
    &["/usr/lib/modules/*/config", "/lib/modules/*/config", "/usr/lib/modules/*/build/.config"],
    &["/usr/src/linux*/.config"],
];

/// Folders with entries of the Boot Loader Specification.
const ENTRIES: [&str; 3] = ["/boot/loader/entries", "/loader/entries", "/boot/efi/loader/entries"];

/// The text of a Raspberry Pi's firmware.
const RASPBERRY_PI: [&str; 3] = ["/boot/firmware/cmdline.txt", "/boot/cmdline.txt", "/cmdline.txt"];

/// Folders with unified kernel images.
const IMAGES: [&str; 3] = ["/boot/EFI/Linux", "/EFI/Linux", "/boot/efi/EFI/Linux"];

/// The file of systemd-boot beside a folder of entries.
const LOADER: &str = "loader.conf";

/// GRUB's environment.
const GRUB_ENVIRONMENT: [&str; 3] = ["/boot/grub2/grubenv", "/boot/grub/grubenv", "/grub2/grubenv"];

/// Limits of a boot loader's text in bytes and of the files read in a folder.
const TEXT_LIMIT: u64 = 256 << 10;
const FILES_LIMIT: usize = 64;

/// Known texts of a kernel that is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootTexts {
    /// Its configuration.
    pub kconfig: Option<Kconfig>,
    /// Its future command line.
    pub cmdline: Fact<Cmdline>,
}

impl Default for BootTexts {
    fn default() -> BootTexts {
        BootTexts { kconfig: None, cmdline: Fact::NotRunning }
    }
}

/// Texts in a file system about its kernel, and the files that hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundTexts {
    pub kconfig: Option<(String, KconfigFile)>,
    /// Source of the command line, and the line.
    pub cmdline: Option<(String, Fact<String>)>,
}

/// Reason why the configuration of a file system is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSearchError {
    /// Several that differ, each of which may be the one that is booted.
    Several(Vec<String>),
    /// The first unusable one, if none can be used.
    Refused(String, KconfigRefusal),
}

impl fmt::Display for ConfigSearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigSearchError::Several(paths) => write!(
                f,
                "it contains {} kernel configurations ({}): select one with --kconfig FILE",
                paths.len(),
                paths.join(", ")
            ),
            ConfigSearchError::Refused(path, why) => write!(f, "{path}: {why}"),
        }
    }
}

/// True for the file system of a running machine, or a copy with files of /proc or /sys.
pub fn is_running(tree: &MachineFiles) -> bool {
    let has = |dir| tree.list_as_it_is(dir).known().is_some_and(|names| !names.is_empty());
    has("/proc") || has("/sys")
}

/// True for the file system of a whole system, rather than only some of its texts.
pub fn is_system(tree: &MachineFiles) -> bool {
    let marks = ["/etc/os-release", "/usr/lib/os-release", "/etc/passwd"];
    marks.iter().any(|path| tree.size(path).known().is_some())
}

/// The only configuration of a file system; those in /boot take precedence.
pub fn find_kconfig(tree: &MachineFiles) -> Result<Option<(String, KconfigFile)>, ConfigSearchError> {
    let mut refused = None;
    for patterns in CONFIGS {
        let mut found: Vec<(String, KconfigFile)> = Vec::new();
        for path in patterns.iter().flat_map(|pattern| matching(tree, pattern)).take(FILES_LIMIT) {
            let Fact::Known(bytes) = tree.read_as_it_is(&path, KCONFIG_LIMIT) else { continue };
            match read_kconfig_file(&bytes) {
                // A second name of the same file adds nothing.
                Ok(file) if found.iter().any(|(_, known)| known.config == file.config) => {}
                Ok(file) => found.push((path, file)),
                Err(why) => refused = refused.or(Some(ConfigSearchError::Refused(path, why))),
            }
        }
        if found.len() > 1 {
            return Err(ConfigSearchError::Several(found.into_iter().map(|(path, _)| path).collect()));
        }
        if let Some(found) = found.pop() {
            return Ok(Some(found));
        }
    }
    refused.map_or(Ok(None), Err)
}

/// Possible paths of a pattern; a `*` stands in one component.
fn matching(tree: &MachineFiles, pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![pattern.to_owned()] };
    let (dir, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let names = tree.list_as_it_is(if dir.is_empty() { "/" } else { dir });
    let names = names.known().map_or(&[][..], Vec::as_slice).iter();
    names.filter(|name| name.starts_with(prefix)).map(|name| format!("{dir}/{name}{after}")).collect()
}

/// Command line that a file system's boot loader hands to the kernel: from the first file that has
/// one.
pub fn find_cmdline(tree: &MachineFiles) -> Option<(String, Fact<String>)> {
    let read = |path: &str| {
        let bytes = tree.read_as_it_is(path, TEXT_LIMIT);
        bytes.known().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let single = |paths: &[&str], parse: fn(&str) -> Option<String>| {
        paths.iter().find_map(|path| Some(((*path).to_owned(), Fact::Known(parse(&read(path)?)?))))
    };
    single(&RASPBERRY_PI, parse_cmdline_txt)
        .or_else(|| single(&["/boot/extlinux/extlinux.conf", "/extlinux/extlinux.conf"], parse_extlinux))
        .or_else(|| loader_entries(tree, &read))
        .or_else(|| single(&["/etc/kernel/cmdline"], parse_cmdline_txt))
        .or_else(|| grub_defaults(tree, &read))
}

/// The entry of the Boot Loader Specification that is booted, or the line common to all of them.
fn loader_entries(
    tree: &MachineFiles,
    read: &dyn Fn(&str) -> Option<String>,
) -> Option<(String, Fact<String>)> {
    let variables = GRUB_ENVIRONMENT.iter().find_map(|path| read(path));
    let variables = variables.map_or_else(BootVariables::new, |text| parse_grub_environment(&text));
    let paths = ENTRIES.iter().flat_map(|dir| matching(tree, &format!("{dir}/*"))).take(FILES_LIMIT);
    let entries = paths.filter_map(|path| parse_boot_entry(&path, &read(&path)?, &variables));
    let entries: Vec<BootEntry> = entries.filter(|entry| !entry.id.contains("rescue")).collect();
    // With its file systemd-boot starts them.
    let loader = ENTRIES.iter().find_map(|dir| read(&format!("{}/{LOADER}", dir.strip_suffix("/entries")?)));
    let saved = variables.get("saved_entry").map(|name| name.to_ascii_lowercase());
    let chosen = match (saved, loader.as_deref().map(parse_default_entry)) {
        (Some(saved), _) => entries.iter().find(|entry| entry.id == saved),
        (None, Some(Some(pattern))) if !has_images(tree) => default_entry(&entries, &pattern),
        (None, _) => None,
    };
    let first = chosen.or(entries.first())?;
    let line = if chosen.is_some() || entries.iter().all(|entry| entry.line == first.line) {
        Fact::Known(first.line.clone())
    } else {
        Fact::Malformed(format!("{} boot entries have different parameters", entries.len()))
    };
    Some((first.path.clone(), line))
}

/// True if there are kernels with a command line of their own, which are entries too.
fn has_images(tree: &MachineFiles) -> bool {
    let names = IMAGES.iter().flat_map(|dir| matching(tree, &format!("{dir}/*")));
    names.into_iter().any(|path| path.to_ascii_lowercase().ends_with(".efi"))
}

fn grub_defaults(
    tree: &MachineFiles,
    read: &dyn Fn(&str) -> Option<String>,
) -> Option<(String, Fact<String>)> {
    const MAIN: &str = "/etc/default/grub";
    let mut more = matching(tree, "/etc/default/grub.d/*");
    more.retain(|path| path.ends_with(".cfg"));
    let paths = std::iter::once(MAIN.to_owned()).chain(more).take(FILES_LIMIT);
    let texts: Vec<String> = paths.filter_map(|path| read(&path)).collect();
    let line = parse_grub_defaults(texts.iter().map(String::as_str))?;
    Some((MAIN.to_owned(), line.map_or_else(Fact::Malformed, Fact::Known)))
}

impl FoundTexts {
    /// Texts of the kernel as it will see them: a built-in command line is combined with the
    /// loader's (`CONFIG_CMDLINE`).
    pub fn texts(&self) -> BootTexts {
        let kconfig = self.kconfig.as_ref().map(|(_, file)| file.config.clone());
        let handed = self.cmdline.as_ref().map_or(Fact::NotRunning, |(_, line)| line.clone());
        let whole = match kconfig.as_ref().and_then(built_in) {
            Some(BuiltIn::Forced(line)) => Fact::Known(line),
            Some(BuiltIn::Before(line)) => handed.map(|handed| format!("{line} {handed}")),
            Some(BuiltIn::After(line)) => handed.map(|handed| format!("{handed} {line}")),
            None => handed,
        };
        let cmdline = whole.parse(|line| {
            let public = redact("/proc/cmdline", line.into_bytes());
            parse_cmdline(&String::from_utf8_lossy(&public))
        });
        let is_without_efi =
            self.cmdline.as_ref().is_some_and(|(path, _)| RASPBERRY_PI.contains(&path.as_str()));
        BootTexts { kconfig, cmdline: cmdline.map(|line| Cmdline { is_without_efi, ..line }) }
    }
}

/// Words that are built into a kernel, whatever its boot loader adds; empty if the configuration
/// has none.
pub fn built_in_words(config: &Kconfig) -> Cmdline {
    let line = match built_in(config) {
        Some(BuiltIn::Forced(line) | BuiltIn::Before(line) | BuiltIn::After(line)) => line,
        None => String::new(),
    };
    parse_cmdline(&line).unwrap_or_default()
}

/// True for a kernel that ignores its boot loader's command line: both options need a built-in one
/// (arch/x86/Kconfig, arch/arm64/Kconfig).
pub fn ignores_boot_loader(config: &Kconfig) -> bool {
    ["CMDLINE_FORCE", "CMDLINE_OVERRIDE"].iter().any(|name| config.is_yes(name))
}

/// Combination of a built-in command line with the boot loader's.
enum BuiltIn {
    /// The loader's is ignored.
    Forced(String),
    Before(String),
    After(String),
}

/// The `CONFIG_CMDLINE` of a configuration, if it is used with the loader's or in its place; none
/// if it only replaces a missing one.
fn built_in(config: &Kconfig) -> Option<BuiltIn> {
    let OptionValue::Value(line) = config.get("CMDLINE") else { return None };
    let line = line.replace("\\\"", "\"").replace("\\\\", "\\");
    let is_any = |names: &[&str]| names.iter().any(|name| config.is_yes(name));
    if ignores_boot_loader(config) {
        Some(BuiltIn::Forced(line))
    } else if is_any(&["CMDLINE_EXTEND"]) {
        Some(BuiltIn::After(line))
    } else {
        // x86 puts it first whenever it has one (`setup_arch()` of arch/x86/kernel/setup.c).
        let is_x86 = is_any(&["X86"]) || matches!(config.machine().as_deref(), Some("x86_64" | "i686"));
        is_any(&["CMDLINE_BOOL"]).then_some(BuiltIn::Before(line)).filter(|_| is_x86)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;
    use proptest::prelude::*;

    const RT: &str = "# Linux/x86 6.12.0 Kernel Configuration\nCONFIG_X86=y\nCONFIG_PREEMPT_RT=y\n";
    const DESKTOP: &str = "# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_PREEMPT=y\n";

    fn tree(files: &[(&str, &str)]) -> MachineFiles {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), Access::File(text.as_bytes().to_vec()));
        MachineFiles::in_memory(files.iter().map(file).collect())
    }

    fn config_of(files: &[(&str, &str)]) -> String {
        match find_kconfig(&tree(files)) {
            Ok(found) => found.map_or("none".to_owned(), |(path, _)| path),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_only_configuration_is_the_kernels() {
        for path in [
            "/boot/config-6.12.0-yocto",
            "/config-6.12.0",
            "/.config",
            "/usr/lib/modules/6.12.0/config",
            "/lib/modules/6.12.0/config",
            "/usr/lib/modules/6.12.0/build/.config",
            "/usr/src/linux-headers-6.12.0/.config",
            "/boot/config.gz",
        ] {
            assert_eq!(config_of(&[(path, RT)]), path);
        }
        assert_eq!(config_of(&[("/etc/passwd", "root")]), "none");
        // The same text under two names, and a better place.
        assert_eq!(config_of(&[("/boot/config-6.12", RT), ("/boot/config", RT)]), "/boot/config-6.12");
        assert_eq!(
            config_of(&[("/boot/config-6.12", RT), ("/lib/modules/6.1/config", DESKTOP)]),
            "/boot/config-6.12"
        );
        assert_eq!(
            config_of(&[("/boot/config-6.12", RT), ("/boot/config-6.1", DESKTOP)]),
            "it contains 2 kernel configurations (/boot/config-6.1, /boot/config-6.12): select one with \
             --kconfig FILE"
        );
        // Another program's file of that name is ignored, unless it is the only one.
        let busybox = "# Busybox version: 1.36.1\nCONFIG_ASH=y\n";
        assert_eq!(config_of(&[("/.config", busybox), ("/boot/config-6.12", RT)]), "/boot/config-6.12");
        assert!(config_of(&[("/.config", busybox)]).starts_with("/.config: its heading is 'Busybox"));
    }

    fn line_of(files: &[(&str, &str)]) -> String {
        find_cmdline(&tree(files)).map_or("none".to_owned(), |(path, line)| match line {
            Fact::Known(line) => format!("{path}: {line}"),
            other => format!("{path}: {other:?}"),
        })
    }

    #[test]
    fn the_boot_loaders_own_text_goes_first() {
        let grub = ("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"a\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"b\"\n");
        assert_eq!(line_of(&[grub]), "/etc/default/grub: a b");
        let more = ("/etc/default/grub.d/50-x.cfg", "GRUB_CMDLINE_LINUX_DEFAULT=c\n");
        assert_eq!(line_of(&[grub, more]), "/etc/default/grub: a c");
        assert_eq!(line_of(&[more]), "/etc/default/grub: c");
        let kernel = ("/etc/kernel/cmdline", "k\n");
        assert_eq!(line_of(&[grub, kernel]), "/etc/kernel/cmdline: k");
        let entry = ("/boot/loader/entries/1-6.12.conf", "options e\n");
        let rescue = ("/boot/loader/entries/1-0-rescue.conf", "options r\n");
        assert_eq!(line_of(&[kernel, entry, rescue]), "/boot/loader/entries/1-6.12.conf: e");
        let other = ("/boot/loader/entries/2-6.1.conf", "options f\n");
        assert!(line_of(&[entry, other]).contains("2 boot entries have different parameters"));
        let saved = ("/boot/grub2/grubenv", "saved_entry=2-6.1\n");
        assert_eq!(line_of(&[entry, other, saved]), "/boot/loader/entries/2-6.1.conf: f");
        let loader = ("/boot/loader/loader.conf", "timeout 3\ndefault 2-6.1.conf\n");
        assert_eq!(line_of(&[entry, other, loader]), "/boot/loader/entries/2-6.1.conf: f");
        let pattern = ("/boot/loader/loader.conf", "default 1-*\n");
        let newer = ("/boot/loader/entries/1-6.9.conf", "options g\n");
        assert_eq!(line_of(&[entry, newer, pattern]), "/boot/loader/entries/1-6.12.conf: e");
        let image = ("/boot/EFI/Linux/1-6.13.efi", "MZ");
        let unread = line_of(&[entry, newer, pattern, image]);
        assert!(unread.contains("2 boot entries have different parameters"), "{unread}");
        // Without a default the newest of the menu is started; which one was saved, is not known.
        let plain = ("/boot/loader/loader.conf", "timeout 3\n");
        assert_eq!(line_of(&[entry, other, plain]), "/boot/loader/entries/2-6.1.conf: f");
        let saved = ("/boot/loader/loader.conf", "default @saved\n");
        assert!(line_of(&[entry, other, saved]).contains("2 boot entries have different parameters"));
        let extlinux = ("/boot/extlinux/extlinux.conf", "label l\nappend x\n");
        assert_eq!(line_of(&[entry, extlinux]), "/boot/extlinux/extlinux.conf: x");
        assert_eq!(
            line_of(&[extlinux, ("/boot/firmware/cmdline.txt", "p\n")]),
            "/boot/firmware/cmdline.txt: p"
        );
        assert_eq!(line_of(&[("/etc/passwd", "")]), "none");
    }

    #[test]
    fn a_command_line_that_is_built_in_is_a_part_of_it() {
        let line = |options: &str, handed: Option<&str>| {
            let config = format!("{RT}CONFIG_CMDLINE=\"a=\\\"b c\\\"\"\n{options}");
            let kconfig = Some(("/boot/config".to_owned(), read_kconfig_file(config.as_bytes()).unwrap()));
            let cmdline = handed.map(|line| ("/cmdline.txt".to_owned(), Fact::Known(line.to_owned())));
            FoundTexts { kconfig, cmdline }.texts().cmdline.map(|line| line.text)
        };
        let known = |text: &str| Fact::Known(text.to_owned());
        assert_eq!(line("CONFIG_CMDLINE_FORCE=y\n", Some("q")), known("a=\"b c\""));
        assert_eq!(line("CONFIG_CMDLINE_OVERRIDE=y\n", None), known("a=\"b c\""));
        assert_eq!(line("CONFIG_CMDLINE_EXTEND=y\n", Some("q")), known("q a=\"b c\""));
        assert_eq!(line("CONFIG_CMDLINE_BOOL=y\n", Some("q")), known("a=\"b c\" q"));
        assert_eq!(line("CONFIG_CMDLINE_FROM_BOOTLOADER=y\n", Some("q")), known("q"));
        assert_eq!(line("CONFIG_CMDLINE_BOOL=y\n", None), Fact::NotRunning);
        let starts_efi = |path: &str| {
            let cmdline = Some((path.to_owned(), Fact::Known("q".to_owned())));
            let texts = FoundTexts { kconfig: None, cmdline }.texts();
            texts.cmdline.known().is_some_and(|line| !line.is_without_efi)
        };
        assert!(!starts_efi("/boot/firmware/cmdline.txt") && starts_efi("/etc/kernel/cmdline"));
        let words = |options: &str| {
            let config = format!("{RT}CONFIG_CMDLINE=\"a b=1\"\n{options}");
            built_in_words(&read_kconfig_file(config.as_bytes()).unwrap().config).text
        };
        assert_eq!([words("CONFIG_CMDLINE_BOOL=y\n"), words("CONFIG_CMDLINE_EXTEND=y\n")], ["a b=1"; 2]);
        assert_eq!([words("CONFIG_CMDLINE_FROM_BOOTLOADER=y\n"), words("")], [""; 2]);
    }

    #[test]
    fn a_running_machine_is_known_by_what_its_kernel_says() {
        assert!(is_running(&tree(&[("/proc/version", "x")])) && is_running(&tree(&[("/sys/kernel/x", "x")])));
        assert!(!is_running(&tree(&[("/etc/passwd", "x")])) && is_system(&tree(&[("/etc/passwd", "x")])));
        assert!(!is_system(&tree(&[("/etc/default/grub", "x")])));
    }

    proptest! {
        #[test]
        fn the_search_is_total(files in proptest::collection::btree_map(
            "(/boot|/etc|/loader)?/(config(-[a-z])?|\\.config|entries/[a-z]\\.conf|cmdline.txt|default/grub)",
            "(# Linux/x86 6.1 Kernel Configuration\n|CONFIG_PREEMPT=y\n|options a\n|\\PC{0,9}\n){0,4}",
            0..6,
        )) {
            let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let tree = tree(&files);
            let _ = find_kconfig(&tree);
            let _ = find_cmdline(&tree);
        }
    }
}
