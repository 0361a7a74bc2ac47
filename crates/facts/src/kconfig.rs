//! The configuration that a kernel was built with.
//!
//! Source: Documentation/kbuild/kconfig.rst; `/proc/config.gz` is CONFIG_IKCONFIG_PROC.
//! Distributions put the same text at `/boot/config-RELEASE` or `/lib/modules/RELEASE/config`.

use std::collections::BTreeMap;
use std::io::Read;

use super::line::excerpt;
use super::uname::series;
use model::text::several;

/// Configurations are about 300 KiB; a compressed one that grows beyond this is hostile.
pub const KCONFIG_LIMIT: u64 = 4 << 20;

/// The value of an option in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue<'a> {
    /// `y`
    Yes,
    /// `m`
    Module,
    /// `is not set`
    No,
    /// A number or a string, without its quotes.
    Value(&'a str),
    /// Not mentioned: this kernel does not know the option, or its dependencies are not met.
    Absent,
}

/// A configuration, stored as its text: a table of ten thousand options would take more memory than
/// a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kconfig {
    /// The version in the header, such as `6.12.9`; `""` without a header.
    pub version: String,
    /// Architecture in the header, in the build's notation: `x86`, `arm64`; `""` without one.
    arch: String,
    text: String,
}

impl Kconfig {
    /// Value of an option by its name, with or without `CONFIG_`.
    pub fn get(&self, name: &str) -> OptionValue<'_> {
        let name = name.strip_prefix("CONFIG_").unwrap_or(name);
        // The last line that sets it counts. The search is by name, because parsing all lines takes
        // ten times as long; and forwards, because only there does memchr compare in vectors.
        let named = format!("CONFIG_{name}");
        let places = memchr::memmem::find_iter(self.text.as_bytes(), &named);
        let lines = places.map(|at| self.line_around(at));
        let found = lines.filter_map(option).filter(|option| option.0 == name).last();
        match found.map(|option| option.1) {
            Some("y") => OptionValue::Yes,
            Some("m") => OptionValue::Module,
            Some("n") => OptionValue::No,
            Some(value) => {
                OptionValue::Value(value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value))
            }
            None => OptionValue::Absent,
        }
    }

    /// The configuration as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Release of a kernel built with it, as far as the configuration decides it.
    pub fn release(&self) -> Option<String> {
        let local = match self.get("LOCALVERSION") {
            OptionValue::Value(local) => local,
            _ => "",
        };
        (!self.version.is_empty()).then(|| format!("{}{local}", self.version))
    }

    /// Architecture as in `uname -m` of that kernel.
    pub fn machine(&self) -> Option<String> {
        let wide = self.is_yes("64BIT");
        let either = |long: &str, short: &str| Some(if wide { long.to_owned() } else { short.to_owned() });
        match self.arch.as_str() {
            "" => None,
            "x86" | "x86_64" | "i386" => either("x86_64", "i686"),
            "arm64" => Some("aarch64".to_owned()),
            "arm" => Some(self.arm_machine().to_owned()),
            "riscv" => either("riscv64", "riscv32"),
            "powerpc" if wide && self.is_yes("CPU_LITTLE_ENDIAN") => Some("ppc64le".to_owned()),
            "powerpc" => either("ppc64", "ppc"),
            "mips" => either("mips64", "mips"),
            "s390" => Some("s390x".to_owned()),
            "loongarch" => either("loongarch64", "loongarch32"),
            "sparc" => either("sparc64", "sparc"),
            other => Some(other.to_owned()),
        }
    }

    /// Architecture by the processors' options of `arch/arm/mm/Kconfig`.
    fn arm_machine(&self) -> &'static str {
        let versions =
            [("CPU_V7", "armv7l"), ("CPU_V7M", "armv7ml"), ("CPU_V6K", "armv6l"), ("CPU_V6", "armv6l")];
        versions.into_iter().find(|(option, _)| self.is_yes(option)).map_or("armv5tel", |(_, name)| name)
    }

    fn line_around(&self, at: usize) -> &str {
        let from = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let to = self.text[at..].find('\n').map_or(self.text.len(), |end| at + end);
        let line = &self.text[from..to];
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// All options in the text with their values; `n` for one that is not set.
    pub fn options(&self) -> BTreeMap<&str, &str> {
        self.text.lines().filter_map(option).collect()
    }

    /// True if an option is `y`.
    pub fn is_yes(&self, name: &str) -> bool {
        self.get(name) == OptionValue::Yes
    }

    /// Reason why the configuration cannot be that of this release; without a version in its header
    /// the other evidence decides.
    ///
    /// Guards against a file that belongs to another kernel. A third number of 0 is not
    /// significant: Debian calls 6.1.170 `6.1.0-50`. The running kernel's `own` copy needs no check
    /// of what the build may have changed afterwards.
    pub fn misfit(&self, release: &str, own: bool) -> Option<String> {
        if !self.version.is_empty() && !self.of_version(release) {
            return Some(format!(
                "it is for Linux {}, but the kernel is {}",
                excerpt(&self.version),
                excerpt(release)
            ));
        }
        if own {
            return None;
        }
        if let OptionValue::Value(local) = self.get("LOCALVERSION") {
            if !has_local(release, local) {
                return Some(format!(
                    "its LOCALVERSION is '{}', but the kernel is {}",
                    excerpt(local),
                    excerpt(release)
                ));
            }
        }
        match self.get("BUILD_SALT") {
            // Fedora and its relatives put the release there, so that builds differ (init/Kconfig).
            OptionValue::Value(salt) if series(salt).is_some() && salt != release => {
                Some(format!("its BUILD_SALT is '{}', but the kernel is {}", excerpt(salt), excerpt(release)))
            }
            _ => None,
        }
    }

    /// Third number of the header's version, which distributions leave unchanged.
    pub fn third_number(&self) -> Option<u32> {
        third(&self.version)
    }

    /// True if the header's version matches a version text, as far as the text is specific.
    fn of_version(&self, word: &str) -> bool {
        // Distributions keep the third number of a release at 0.
        let third_fits = match (third(&self.version), third(word)) {
            (Some(own), Some(other)) => other == 0 || own == other,
            _ => true,
        };
        series(&self.version) == series(word) && third_fits
    }

    /// True if the configuration can be that of this build string, in which some distributions
    /// state their version: `#1 SMP PREEMPT_RT Debian 6.12.117-1`.
    pub fn fits_build(&self, build: &str) -> bool {
        let own = series(&self.version);
        let versions = build.split_whitespace().filter(|word| third(word).is_some() && series(word) == own);
        own.is_none() || versions.into_iter().all(|word| self.of_version(word))
    }
}

/// True if a release has the suffix of its configuration: `setlocalversion` puts it after the
/// version and the `localversion*` files, and before LOCALVERSION= of the build and the state of
/// the tree (`-00012-g1a2b3c`, `+`).
fn has_local(release: &str, local: &str) -> bool {
    let numbers = release.splitn(3, '.').map(|part| part.bytes().take_while(u8::is_ascii_digit).count() + 1);
    let suffix = release.get(numbers.sum::<usize>() - 1..).unwrap_or_default();
    let is_part = |at: usize| suffix[at + local.len()..].starts_with(['-', '+']);
    suffix.starts_with(local)
        || suffix.ends_with(local)
        || local.starts_with('-') && suffix.match_indices(local).any(|(at, _)| is_part(at))
}

/// Third number of a version, or of a word that begins with one: 117 of `6.12.117-1~deb12u1`.
fn third(version: &str) -> Option<u32> {
    let rest = version.splitn(3, '.').nth(2)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Name and value of the option in a line; `n` for one that is "not set".
pub(super) fn option(line: &str) -> Option<(&str, &str)> {
    match line.strip_prefix("CONFIG_") {
        Some(option) => option.split_once('='),
        None => Some((line.strip_prefix("# CONFIG_")?.strip_suffix(" is not set")?, "n")),
    }
}

/// Reason why a configuration is incomplete, if it is: a missing option would read as not set.
///
/// The build writes a header (scripts/kconfig/confdata.c), which a list of some options lacks. Each
/// architecture's configuration closes with lib/Kconfig.debug, the section "Kernel hacking"; from
/// 5.5 on sections are closed by a line of their own.
pub(super) fn missing(text: &str) -> Option<&'static str> {
    if !text.lines().take(4).any(|line| line.starts_with("# Automatically generated")) {
        return Some("the configuration lacks its header: it may be truncated");
    }
    if text.contains('\0') {
        return Some("the configuration has NUL bytes: a part of it may be lost");
    }
    let last = ["\n# end of Kernel hacking\n", "\n# Kernel hacking\n"];
    let has_last = if has_ends(text) { text.contains(last[0]) } else { text.contains(last[1]) };
    if !text.ends_with('\n') || !has_last {
        return Some("the configuration lacks its end: it may be truncated");
    }
    (!sections_open(text)).then_some(
        "the configuration lacks the beginning of a section: it may be \
                                      truncated",
    )
}

/// True if each section that is closed was opened; a comment looks like the opening of one but is
/// never closed.
fn sections_open(text: &str) -> bool {
    let mut open: BTreeMap<&str, u64> = BTreeMap::new();
    for title in text.lines().filter_map(|line| line.strip_prefix("# ")) {
        match title.strip_prefix("end of ").map(|title| open.get_mut(title)) {
            None => *open.entry(title).or_default() += 1,
            Some(Some(count)) if *count > 0 => *count -= 1,
            Some(_) => return false,
        }
    }
    true
}

/// True if sections are closed by lines of their own.
fn has_ends(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("# end of "))
}

/// Parses a full configuration, plain text.
pub fn parse_kconfig(text: String) -> Result<Kconfig, String> {
    let config = parse_options(text)?;
    match missing(&config.text) {
        Some(what) => Err(what.to_owned()),
        None => Ok(config),
    }
}

/// Parses options, some of which may be missing.
pub(super) fn parse_options(text: String) -> Result<Kconfig, String> {
    if text.len() as u64 > KCONFIG_LIMIT {
        return Err(format!(
            "expected a kernel configuration, found {}",
            several(text.len() as u64, "byte", "bytes")
        ));
    }
    if !text.lines().any(|line| option(line).is_some()) {
        return Err("expected a kernel configuration, found no option".to_owned());
    }
    let (arch, version) = text.lines().find_map(heading).unwrap_or_default();
    Ok(Kconfig { version: version.to_owned(), arch: arch.to_owned(), text })
}

/// Architecture and version in the header, `# Linux/x86 6.12.9 Kernel Configuration`; before 2.6.39
/// without the architecture.
pub(super) fn heading(line: &str) -> Option<(&str, &str)> {
    let words = line.strip_prefix('#')?.trim_end().strip_suffix(" Kernel Configuration")?;
    let mut words = words.split_whitespace().skip_while(|word| !word.starts_with("Linux"));
    let arch = words.next()?.strip_prefix("Linux")?;
    Some((arch.strip_prefix('/').unwrap_or_default(), words.next().unwrap_or_default()))
}

/// Parses `/proc/config.gz`.
pub fn parse_compressed(bytes: &[u8]) -> Result<Kconfig, String> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes)
        .take(KCONFIG_LIMIT + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("expected gzip of text: {error}"))?;
    parse_kconfig(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    const TEXT: &str = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.1.170 Kernel Configuration\n#\n\
        CONFIG_HZ=250\n# CONFIG_PREEMPT_RT is not set\nCONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_NVME=m\nCONFIG_LOCALVERSION=\"-x y\"\n";

    fn fits(config: &Kconfig, release: &str) -> bool {
        config.misfit(release, false).is_none()
    }

    fn whole() -> String {
        format!("{TEXT}# Kernel hacking\n")
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn options_are_found_plain_and_compressed() {
        for config in [parse_kconfig(whole()).unwrap(), parse_compressed(&gzip(whole().as_bytes())).unwrap()]
        {
            assert_eq!(config.get("HZ"), OptionValue::Value("250"));
            assert_eq!(config.get("CONFIG_PREEMPT_RT"), OptionValue::No);
            assert_eq!(config.get("NVME"), OptionValue::Module);
            assert_eq!(config.get("LOCALVERSION"), OptionValue::Value("-x y"));
            assert_eq!(config.get("PREEMPT_LAZY"), OptionValue::Absent);
            assert!(config.is_yes("PREEMPT_VOLUNTARY"));
        }
    }

    #[test]
    fn another_kernels_configuration_does_not_fit() {
        let config = parse_kconfig(whole()).unwrap();
        assert_eq!(config.version, "6.1.170");
        assert!(fits(&config, "6.1.0-50-x y"));
        assert!(!fits(&config, "6.12.9-amd64"));
        // Another version of the same series, and another build with a different build string.
        assert!(!fits(&config, "6.1.55-x y"));
        assert!(
            config.fits_build("#1 SMP Debian 6.1.170-1 (2026-01-01)")
                && config.fits_build("#45~22.04.1-Ubuntu SMP")
        );
        assert!(!config.fits_build("#1 SMP Debian 6.1.171-1 (2026-01-01)"));
        let salted = |salt: &str| parse_options(format!("CONFIG_BUILD_SALT=\"{salt}\"")).unwrap();
        assert!(
            fits(&salted("6.8.5-301.fc40.x86_64"), "6.8.5-301.fc40.x86_64") && fits(&salted("salt"), "6.8.5")
        );
        assert!(!fits(&salted("6.8.5-300.fc40.x86_64"), "6.8.5-301.fc40.x86_64"));
        // The running kernel's own copy is not checked for that.
        let own = |config: Kconfig, release| config.misfit(release, true);
        assert_eq!(own(salted("6.8.5-300.fc40.x86_64"), "6.8.5-301.fc40.x86_64"), None);
        assert!(own(config.clone(), "6.12.9-x y").unwrap().contains("it is for Linux 6.1.170"));
        let misfit = salted("6.8.5-1").misfit("6.8.5-2", false).unwrap();
        assert_eq!(misfit, "its BUILD_SALT is '6.8.5-1', but the kernel is 6.8.5-2");
        // Each build with a different suffix.
        assert!(!fits(&config, "6.1.170-y"));
        assert!(fits(&parse_options("CONFIG_SMP=y".to_owned()).unwrap(), "6.12.9"));
    }

    #[test]
    fn a_configuration_that_was_cut_short_is_refused() {
        let old = format!("{TEXT}#\n# Kernel hacking\n#\nCONFIG_DEBUG_FS=y\n");
        let new = format!(
            "{TEXT}# General setup\n# end of General setup\n#\n# Kernel hacking\n#\nCONFIG_DEBUG_FS=y\n# end of Kernel hacking\n"
        );
        for whole in [&old, &new] {
            assert!(parse_kconfig(whole.clone()).is_ok());
            assert!(parse_kconfig(whole[..whole.len() - 1].to_owned()).is_err());
            assert!(parse_kconfig(whole[..120].to_owned()).is_err());
            assert!(parse_kconfig(TEXT.to_owned()).is_err());
        }
        let open = new.replace("# end of Kernel hacking\n", "");
        assert!(parse_kconfig(open).is_err());
    }

    #[test]
    fn a_configuration_with_holes_is_refused() {
        let whole = format!(
            "{TEXT}#\n# General setup\n#\nCONFIG_A=y\n# end of General setup\n#\n# Kernel hacking\n#\nCONFIG_B=y\n# end of Kernel hacking\n"
        );
        assert!(parse_kconfig(whole.clone()).is_ok());
        let refused = |text: String| parse_kconfig(text).unwrap_err();
        let headless = "the configuration lacks its header: it may be truncated";
        assert_eq!(refused("CONFIG_PREEMPT_RT=y\n".to_owned()), headless);
        assert_eq!(refused(format!("#\n#\n#\n{whole}")), headless);
        assert_eq!(refused(whole.lines().skip(3).map(|line| format!("{line}\n")).collect()), headless);
        assert!(refused(whole.replace("CONFIG_A=y", "\0\0")).contains("NUL"));
        for lost in [
            "# General setup\n",
            "# Kernel hacking\n#\n",
            "CONFIG_A=y\n# end of General setup\n#\n# Kernel hacking\n",
        ] {
            assert!(refused(whole.replacen(lost, "", 1)).contains("section"), "{lost}");
        }
    }

    #[test]
    fn the_suffix_of_a_release_is_a_part_of_it() {
        for (release, local) in [
            ("6.12.9-rt-amd64", ""),
            ("6.12.9-lab", "-lab"),
            ("6.13.0-rc1-lab", "-lab"),
            ("6.13.0-rc1-lab-00012-g1a2b3c", "-lab"),
            ("6.13.0-lab+", "-lab"),
            ("6.12.9.lab", ".lab"),
        ] {
            assert!(has_local(release, local), "{release} {local}");
        }
        for (release, local) in
            [("6.12.9", "1"), ("6.12.9-2-lab", "12"), ("6.12.9-x-lab1-y", "-lab"), ("6.12.9-a1b", "1")]
        {
            assert!(!has_local(release, local), "{release} {local}");
        }
    }

    #[test]
    fn hostile_configurations_are_refused() {
        assert!(parse_compressed(&gzip(&vec![b'a'; 64 << 20])).is_err());
        assert!(parse_compressed(b"not gzip").is_err());
        assert!(parse_compressed(&gzip(TEXT.as_bytes())[..40]).is_err());
        assert!(parse_kconfig(String::new()).is_err());
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "(#? ?CONFIG_[A-Z=\"]{0,6}|\\PC{0,20}|\n){0,8}", bytes: Vec<u8>) {
            let _ = parse_kconfig(text.clone());
            let _ = parse_compressed(&bytes);
            let _ = parse_compressed(&[b"\x1f\x8b\x08\0\0\0\0\0\0\x03", &bytes[..]].concat());
        }
    }
}
