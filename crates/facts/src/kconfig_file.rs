//! A file given as a kernel's configuration: recognized by its own heading and lines.
//!
//! Source: `conf_write()` of the kernel's scripts/kconfig/confdata.c, which writes the heading
//! `# Linux/arm64 6.12.0 Kernel Configuration` and a line per option. Other programs use the same
//! language (Buildroot, U-Boot, Busybox, Xen), some with the same prefix `CONFIG_`, under a
//! different heading.

use std::fmt;
use std::io::Read;

use super::kconfig::{KCONFIG_LIMIT, Kconfig, heading, missing, option, parse_options};
use super::line::excerpt;
use super::preempt::configured;
use model::text::several;
use model::vocabulary::Preempt;

/// Kernel configuration from a file that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KconfigFile {
    pub config: Kconfig,
    /// True if it has the kernel's heading, but not the lines that the build writes around the
    /// options: some options may be missing.
    pub is_excerpt: bool,
}

/// Reason why a file is not accepted as a whole kernel configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KconfigRefusal {
    /// The heading is that of another program.
    OtherProgram(String),
    /// Options under no heading: a defconfig, or a fragment.
    Fragment(usize),
    /// A C header with the same options.
    Header,
    /// A line that sets no option; its number and text.
    Line(usize, String),
    /// The headings of more than one configuration.
    Several,
    /// The heading without the options that each configuration has.
    Incomplete,
    /// Part of the lines of a whole configuration; the rest is missing.
    Cut(&'static str),
    /// Packed by a program other than gzip.
    Packed(&'static str),
    /// Bytes that gzip does not unpack.
    BadGzip(String),
    /// The kernel itself, or another binary file.
    Binary,
    TooLarge,
    NoOption,
}

impl fmt::Display for KconfigRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WHOLE: &str = "give the .config of the kernel's build folder, or /boot/config-RELEASE";
        match self {
            KconfigRefusal::OtherProgram(heading) => write!(
                f,
                "its heading is '{heading}', expected '# Linux/ARCH VERSION Kernel Configuration': give the \
                 .config of the kernel's own build folder"
            ),
            KconfigRefusal::Fragment(options) => write!(
                f,
                "{} without the heading '# Linux/ARCH VERSION Kernel Configuration': a defconfig or a \
                 fragment lacks the defaults of the kernel's Kconfig; give the .config that the build \
                 generates from it (`make NAME_defconfig`, Yocto's `bitbake -c configure virtual/kernel`, \
                 Buildroot's output/build/linux-VERSION/.config)",
                several(*options as u64, "option", "options")
            ),
            KconfigRefusal::Header => write!(f, "expected options, found the lines of a C header: {WHOLE}"),
            KconfigRefusal::Line(number, text) => {
                write!(f, "expected CONFIG_NAME=VALUE or a comment, found '{text}' in line {number}: {WHOLE}")
            }
            KconfigRefusal::Several => write!(f, "it contains several configurations: give one"),
            KconfigRefusal::Incomplete => write!(
                f,
                "it has the heading of a kernel configuration but no option for the preemption model: \
                 {WHOLE}"
            ),
            KconfigRefusal::Cut(what) => write!(f, "{what}: {WHOLE}"),
            KconfigRefusal::Packed(tool) => {
                write!(f, "expected text or gzip, found the format of {tool}: unpack it first")
            }
            KconfigRefusal::BadGzip(why) => write!(f, "expected gzip of text: {why}: {WHOLE}"),
            KconfigRefusal::Binary => write!(
                f,
                "expected text, found a binary file: {WHOLE}; the kernel's scripts/extract-ikconfig extracts \
                 a built-in configuration from a kernel image"
            ),
            KconfigRefusal::TooLarge => {
                write!(f, "expected a kernel configuration, found more than {} MiB", KCONFIG_LIMIT >> 20)
            }
            KconfigRefusal::NoOption => {
                write!(f, "expected a kernel configuration, found no line CONFIG_NAME=VALUE: {WHOLE}")
            }
        }
    }
}

/// Reads a configuration, plain or packed by gzip.
pub fn read_kconfig_file(bytes: &[u8]) -> Result<KconfigFile, KconfigRefusal> {
    let unpacked = unpacked(bytes)?;
    let bytes = unpacked.as_deref().unwrap_or(bytes);
    if bytes.len() as u64 > KCONFIG_LIMIT {
        return Err(KconfigRefusal::TooLarge);
    }
    if let Some(tool) = packed_by(bytes) {
        return Err(KconfigRefusal::Packed(tool));
    }
    if bytes.contains(&0) {
        return Err(KconfigRefusal::Binary);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| KconfigRefusal::Binary)?;
    // A copy that passed through another system may end its lines differently.
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    recognise(&text)?;
    let config = parse_options(text).map_err(|_| KconfigRefusal::NoOption)?;
    if configured(&config) == Preempt::Unknown {
        return Err(KconfigRefusal::Incomplete);
    }
    let is_excerpt = !has_frame(config.text());
    match missing(config.text()) {
        Some(what) if !is_excerpt => Err(KconfigRefusal::Cut(what)),
        _ => Ok(KconfigFile { config, is_excerpt }),
    }
}

fn unpacked(bytes: &[u8]) -> Result<Option<Vec<u8>>, KconfigRefusal> {
    if !bytes.starts_with(b"\x1f\x8b") {
        return Ok(None);
    }
    let mut text = Vec::new();
    let unpacking = flate2::read::MultiGzDecoder::new(bytes).take(KCONFIG_LIMIT + 1).read_to_end(&mut text);
    unpacking.map(|_| Some(text)).map_err(|error| KconfigRefusal::BadGzip(error.to_string()))
}

fn packed_by(bytes: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], &str); 4] =
        [(b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"), (b"\x04\x22\x4d\x18", "lz4")];
    magics.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, tool)| tool)
}

/// Refuses a text that does not identify itself as a kernel's configuration.
fn recognise(text: &str) -> Result<(), KconfigRefusal> {
    let options = text.lines().filter(|line| option(line).is_some()).count();
    let headings = text.lines().filter(|line| heading(line).is_some()).count();
    if headings == 0 {
        if let Some(other) = other_heading(text) {
            return Err(KconfigRefusal::OtherProgram(excerpt(other)));
        }
        if text.lines().any(|line| line.starts_with("#define CONFIG_")) {
            return Err(KconfigRefusal::Header);
        }
    }
    let is_option = |line: &str| line.starts_with('#') || option(line).is_some() || line.trim().is_empty();
    let wrong = text.lines().enumerate().find(|(_, line)| !is_option(line));
    match wrong {
        _ if options == 0 => Err(KconfigRefusal::NoOption),
        Some((at, line)) => Err(KconfigRefusal::Line(at + 1, excerpt(line))),
        None if headings == 0 => Err(KconfigRefusal::Fragment(options)),
        None if headings > 1 => Err(KconfigRefusal::Several),
        None => Ok(()),
    }
}

/// Heading of another program's configuration, such as `# Buildroot 2024.02 Configuration` or
/// `# Busybox version: 1.36.1`.
fn other_heading(text: &str) -> Option<&str> {
    let comments = text.lines().take(8).filter_map(|line| line.strip_prefix("# "));
    comments.map(str::trim_end).find(|line| line.ends_with(" Configuration") || line.contains("ersion: "))
}

/// True for a file that has some of the lines that the build writes around the options.
fn has_frame(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("# Automatically generated") || line.starts_with("# end of "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    const HEADING: &str = "# Linux/arm64 6.12.0 Kernel Configuration\n";

    fn whole() -> String {
        format!(
            "#\n# Automatically generated file; DO NOT EDIT.\n{HEADING}#\n\
             CONFIG_PREEMPT_RT=y\n# Kernel hacking\n"
        )
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_configuration_is_known_by_its_heading() {
        for bytes in [
            whole().into_bytes(),
            gzip(&whole()),
            whole().replace('\n', "\r\n").into_bytes(),
            format!("\u{feff}{}", whole()).into_bytes(),
        ] {
            let read = read_kconfig_file(&bytes).unwrap();
            assert!(!read.is_excerpt && read.config.is_yes("PREEMPT_RT"));
            assert_eq!(
                (read.config.version.as_str(), read.config.machine()),
                ("6.12.0", Some("aarch64".into()))
            );
        }
        let excerpt = read_kconfig_file(format!("{HEADING}CONFIG_PREEMPT=y\n").as_bytes()).unwrap();
        assert!(excerpt.is_excerpt);
    }

    #[track_caller]
    fn refused(bytes: &[u8], words: &str) {
        let refusal = read_kconfig_file(bytes).unwrap_err().to_string();
        assert!(refusal.contains(words) && !refusal.contains('\n'), "{refusal}");
    }

    #[test]
    fn what_is_no_kernel_configuration_is_named() {
        let generated = "#\n# Automatically generated file; DO NOT EDIT.\n";
        let text = |text: &str| read_kconfig_file(text.as_bytes()).unwrap_err().to_string();
        for heading in [
            "Buildroot 2024.02 Configuration",
            "U-Boot 2023.01 Configuration",
            "Xen/x86 4.17.0 Configuration",
        ] {
            let refusal = text(&format!("{generated}# {heading}\n#\nCONFIG_ARM=y\n"));
            assert!(refusal.contains(&format!("'{heading}'")), "{refusal}");
        }
        let busybox = "# Automatically generated make config\n# Busybox version: 1.36.1\nCONFIG_ASH=y\n";
        assert!(text(busybox).contains("Busybox version: 1.36.1"));
        assert!(text("GRUB_TIMEOUT=5\n").contains("no line CONFIG_NAME"));
        assert!(text("CONFIG_PREEMPT_RT=y\nCONFIG_HZ_1000=y\n").contains("2 options without the heading"));
        assert!(text("#define CONFIG_SMP 1\n").contains("C header"));
        assert!(text(&format!("{HEADING}CONFIG_PREEMPT=y\n<<<<<<< ours\n")).contains("line 3"));
        assert!(text(&(whole() + &whole())).contains("several configurations"));
        assert!(text(&format!("{HEADING}CONFIG_HZ=250\n")).contains("preemption model"));
        refused(b"\x7fELF\0\0", "extract-ikconfig");
        refused(b"\xfd7zXZ\0", "xz");
        refused(&gzip(&whole())[..40], "gzip");
        refused(&gzip(&"# CONFIG_A=y\n".repeat(1 << 20)), "4 MiB");
        refused(b"", "no line");
    }

    #[test]
    fn a_configuration_that_was_cut_is_refused() {
        let cut = whole().replace("# Kernel hacking\n", "");
        refused(cut.as_bytes(), "lacks its end");
        refused(whole().trim_end().as_bytes(), "lacks its end");
    }

    proptest! {
        #[test]
        fn the_reader_is_total(
            text in "(#? ?(CONFIG_[A-Z=\"]{0,6}|Linux/[a-z]{0,4} 6 Kernel Configuration)?|\\PC{0,9}|\n){0,8}",
            bytes: Vec<u8>,
        ) {
            let packed = [b"\x1f\x8b\x08\0\0\0\0\0\0\x03", &bytes[..]].concat();
            for bytes in [text.into_bytes(), bytes, packed] {
                if let Err(refusal) = read_kconfig_file(&bytes) {
                    prop_assert!(!refusal.to_string().contains('\n'));
                }
            }
        }
    }
}
