//! Name of the processor, and the flag that a hypervisor is present.
//!
//! Source: `/proc/cpuinfo` in Documentation/filesystems/proc.rst; each architecture has different
//! lines. Serial numbers are never recorded: see `host::access::redact`.

use super::line::excerpt;

/// The content of `/proc/cpuinfo`; missing fields stay empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// Processor model, `""` if this architecture prints none.
    pub model: String,
    /// Arm cores as `implementer/part`, such as `0x41/0xd08`, each kind once.
    pub parts: Vec<String>,
    /// True if the x86 flag `hypervisor` is set; none without x86 flags.
    pub hypervisor: Option<bool>,
    /// x86 flags of the first CPU, in their order; none on other architectures.
    pub flags: Vec<String>,
    /// True for User Mode Linux.
    pub user_mode: bool,
    /// Architecture as in `uname -m`, if the lines are specific to one.
    pub machine: Option<&'static str>,
}

/// Limit of kinds of core: a machine has two or three.
const PARTS_LIMIT: usize = 16;

/// Limit of flags: the kernel knows some 20 words of 32 bits, few of them with all bits set.
const FLAGS_LIMIT: usize = 1024;

/// Parses `/proc/cpuinfo`; any text can be some processor's, so this cannot fail.
pub fn parse_cpuinfo(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let mut implementer = "";
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            // x86 and LoongArch; MIPS; POWER; RISC-V
            "model name" | "Model Name" | "cpu model" | "cpu" | "uarch" if info.model.is_empty() => {
                info.model = excerpt(value);
            }
            "CPU implementer" => implementer = value,
            "CPU part" => {
                let part = excerpt(&format!("{implementer}/{value}"));
                if info.parts.len() < PARTS_LIMIT && !info.parts.contains(&part) {
                    info.parts.push(part);
                }
            }
            // Virtual CPUs do not differ in this, so the first one represents all.
            "flags" if info.hypervisor.is_none() => {
                info.hypervisor = Some(value.split(' ').any(|flag| flag == "hypervisor"));
                info.flags = value.split_whitespace().take(FLAGS_LIMIT).map(excerpt).collect();
                let is_wide = value.split(' ').any(|flag| flag == "lm");
                info.machine = Some(if is_wide { "x86_64" } else { "i686" });
            }
            // Kernels of 32 bits call it neon.
            "Features" if value.split(' ').any(|feature| feature == "asimd") => {
                info.machine = Some("aarch64")
            }
            "isa" if value.starts_with("rv64") => info.machine = Some("riscv64"),
            "isa" if value.starts_with("rv32") => info.machine = Some("riscv32"),
            "vendor_id" if value == "User Mode Linux" => info.user_mode = true,
            _ => {}
        }
    }
    // 32-bit Arm kernels do print a name, but the architecture's ("ARMv7 Processor rev 3").
    info
}

/// Name to display: the processor's, else the board's with its kinds of core.
pub fn model_name(info: &CpuInfo, board: &str) -> String {
    let cores = info.parts.join(", ");
    let name = if board.is_empty() { &info.model } else { board };
    match (info.parts.is_empty(), name.is_empty()) {
        (true, _) => (if info.model.is_empty() { board } else { &info.model }).to_owned(),
        (false, true) => format!("arm {cores}"),
        (false, false) => format!("{name} (arm {cores})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn x86_names_its_model() {
        let info = parse_cpuinfo(
            "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nflags\t\t: fpu vme hypervisor lm\n\n\
             processor\t: 1\nmodel name\t: AMD EPYC\n",
        );
        assert_eq!(info.hypervisor, Some(true));
        assert_eq!(info.flags, ["fpu", "vme", "hypervisor", "lm"]);
        assert_eq!(model_name(&info, ""), "AMD EPYC");
        assert_eq!(parse_cpuinfo("flags : fpu hypervisor_not\n").hypervisor, Some(false));
        let of = |line: &str| parse_cpuinfo(line).machine;
        assert_eq!([of("flags : lm"), of("flags : fpu")], [Some("x86_64"), Some("i686")]);
        assert_eq!([of("Features\t: fp asimd"), of("Features\t: neon")], [Some("aarch64"), None]);
        assert_eq!([of("isa\t: rv64imafdc"), of("model name : x")], [Some("riscv64"), None]);
    }

    #[test]
    fn arm_is_named_after_its_board_and_parts() {
        let info = parse_cpuinfo(
            "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n\nprocessor\t: 4\n\
             CPU implementer\t: 0x41\nCPU part\t: 0xd08\n\nprocessor\t: 5\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n",
        );
        assert_eq!(info.hypervisor, None);
        assert_eq!(model_name(&info, "Rock 4"), "Rock 4 (arm 0x41/0xd03, 0x41/0xd08)");
        assert_eq!(model_name(&info, ""), "arm 0x41/0xd03, 0x41/0xd08");
        assert_eq!(model_name(&CpuInfo::default(), "StarFive VisionFive 2"), "StarFive VisionFive 2");
        assert_eq!(model_name(&CpuInfo::default(), ""), "");
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "((CPU part|CPU implementer|flags|model name)?[\t :]{0,2}\\PC{0,20}\n?){0,8}") {
            let _ = model_name(&parse_cpuinfo(&text), &text);
        }
    }
}
