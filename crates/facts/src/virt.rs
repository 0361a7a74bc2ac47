//! The hypervisor that the machine runs under, from the traces that hypervisors leave.
//!
//! Source: Documentation/ABI/stable/sysfs-hypervisor-xen, Documentation/virt/kvm,
//! Documentation/devicetree (`/hypervisor`), the DMI strings of the virtual machines themselves.
//! The CPUID leaf that names the hypervisor would need an instruction; these files answer for a
//! captured machine too.

use super::cpuinfo::CpuInfo;

/// Name of a hypervisor that nothing identifies.
pub const UNNAMED: &str = "vm-other";

/// Traces of a hypervisor; empty or none if not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtEvidence<'a> {
    /// `/proc/cpuinfo`
    pub cpuinfo: Option<&'a CpuInfo>,
    /// `/sys/hypervisor/type`
    pub hypervisor: Option<&'a str>,
    /// `/sys/class/dmi/id/sys_vendor`
    pub vendor: Option<&'a str>,
    /// `/sys/class/dmi/id/product_name`
    pub product: Option<&'a str>,
    /// `available_clocksource`
    pub clocksources: &'a [String],
    /// `/proc/device-tree/compatible`
    pub board: Option<&'a [String]>,
    /// `/proc/device-tree/hypervisor/compatible`
    pub board_hypervisor: Option<&'a [String]>,
}

/// Name of the hypervisor as in systemd-detect-virt (`kvm`, `qemu`, `xen`, `vmware`, `microsoft`,
/// ...): `none` on metal, [`UNNAMED`] if it hides its name, `""` if unknown.
///
/// `qemu` is the emulator with its acceleration off (TCG) or unknown.
pub fn judge(evidence: &VirtEvidence) -> String {
    if let Some(name) = evidence.hypervisor.filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let info = evidence.cpuinfo;
    let flag = info.and_then(|info| info.hypervisor);
    if info.is_some_and(|info| info.user_mode) {
        return "uml".to_owned();
    }
    // Software emulation offers no paravirtual clock and names itself in the model of its default
    // CPUs.
    let emulated = info.is_some_and(|info| info.model.contains("TCG"));
    let name = by_clock(evidence.clocksources)
        .filter(|_| !emulated)
        .or_else(|| by_firmware(evidence, flag))
        .or_else(|| by_device_tree(evidence))
        .or_else(|| info.filter(|info| info.model.starts_with("QEMU")).map(|_| "qemu"));
    let plain = match (flag, evidence.vendor, evidence.board) {
        (Some(true), ..) => UNNAMED,
        (Some(false), ..) => "none",
        // Arm and RISC-V have no flag: a maker that is neither a hypervisor nor a cloud, or a board
        // that mentions none.
        (None, Some(vendor), _) if CLOUDS.iter().any(|cloud| vendor.starts_with(cloud)) => "",
        (None, Some(vendor), _) if !vendor.is_empty() => "none",
        (None, _, Some([_, ..])) => "none",
        _ => "",
    };
    name.unwrap_or(plain).to_owned()
}

/// Makers in DMI that rent guests, some of them metal too.
const CLOUDS: &[&str] = &[
    "Alibaba Cloud",
    "Amazon EC2",
    "DigitalOcean",
    "Google",
    "Hetzner",
    "Nutanix",
    "OpenStack",
    "OracleCloud",
    "Scaleway",
    "Tencent Cloud",
];

fn by_clock(clocksources: &[String]) -> Option<&'static str> {
    clocksources.iter().find_map(|name| match name.as_str() {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        name if name.starts_with("hyperv_clocksource") => Some("microsoft"),
        _ => None,
    })
}

fn by_firmware(evidence: &VirtEvidence, flag: Option<bool>) -> Option<&'static str> {
    let (vendor, product) = (evidence.vendor?, evidence.product.unwrap_or_default());
    match (vendor, product) {
        (_, "KVM" | "KVM Virtual Machine") => Some("kvm"),
        ("QEMU", _) => Some("qemu"),
        ("Xen", _) => Some("xen"),
        ("VMware, Inc." | "VMW", _) => Some("vmware"),
        // The same maker sells physical machines.
        ("Microsoft Corporation", "Virtual Machine") => Some("microsoft"),
        ("innotek GmbH", _) | (_, "VirtualBox") => Some("oracle"),
        ("BHYVE" | "FreeBSD", "BHYVE") => Some("bhyve"),
        ("Google", "Google Compute Engine") if flag != Some(false) => Some("google"),
        // The same texts occur on this vendor's physical machines, whose processor does not have
        // the flag.
        ("Amazon EC2", _) if flag == Some(true) => Some("amazon"),
        // Without that flag the instance's type distinguishes them, as in systemd-detect-virt.
        ("Amazon EC2", product) if flag.is_none() && !product.is_empty() => {
            let is_metal = product.ends_with(".metal") || product.contains(".metal-");
            Some(if is_metal { "none" } else { "amazon" })
        }
        (vendor, product)
            if flag.is_none() && [vendor, product].iter().any(|name| name.starts_with("OpenStack")) =>
        {
            Some("kvm")
        }
        ("KubeVirt", _) | (_, "KubeVirt") => Some("kvm"),
        // Programs and platforms for guests only, on more than one hypervisor.
        ("Cloud Hypervisor" | "oVirt", _) | (_, "crosvm") => Some(UNNAMED),
        (vendor, _) if vendor.starts_with("Parallels") => Some("parallels"),
        (vendor, _) if vendor.starts_with("Apple") && product.contains("Virtual") => Some("apple"),
        _ => None,
    }
}

fn by_device_tree(evidence: &VirtEvidence) -> Option<&'static str> {
    let names = evidence.board_hypervisor.unwrap_or_default().iter();
    let named = names.map(String::as_str).find_map(|name| match name {
        "linux,kvm" => Some("kvm"),
        name if name.starts_with("xen,xen") => Some("xen"),
        "vmware" => Some("vmware"),
        _ => None,
    });
    let unnamed = evidence.board_hypervisor.filter(|names| !names.is_empty()).map(|_| UNNAMED);
    // The virtual board of QEMU, with or without KVM behind it.
    let board = evidence.board.unwrap_or_default().iter();
    let virt = board
        .map(String::as_str)
        .any(|name| matches!(name, "linux,dummy-virt" | "riscv-virtio" | "qemu,pseries"));
    // Xen's guests have its board, with or without the hypervisor's node.
    let xen = evidence.board.unwrap_or_default().iter().any(|name| name.starts_with("xen,xenvm"));
    named.or(xen.then_some("xen")).or(unnamed).or(virt.then_some("qemu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        flag: Option<bool>,
        model: &str,
        vendor: &str,
        product: &str,
        clocksources: &str,
        expected: &str,
    ) {
        let info = CpuInfo { model: model.to_owned(), hypervisor: flag, ..CpuInfo::default() };
        let clocksources: Vec<String> = clocksources.split_whitespace().map(str::to_owned).collect();
        let evidence = VirtEvidence {
            cpuinfo: Some(&info),
            vendor: (!vendor.is_empty()).then_some(vendor),
            product: (!product.is_empty()).then_some(product),
            clocksources: &clocksources,
            ..VirtEvidence::default()
        };
        assert_eq!(judge(&evidence), expected, "{model} {vendor} {product} {clocksources:?}");
    }

    #[test]
    fn x86_guests_and_metal() {
        check(Some(true), "AMD EPYC", "", "", "tsc kvm-clock", "kvm");
        check(
            Some(true),
            "Intel Xeon",
            "QEMU",
            "Standard PC (Q35 + ICH9, 2009)",
            "kvm-clock tsc acpi_pm",
            "kvm",
        );
        check(Some(true), "QEMU TCG CPU version 2.5+", "QEMU", "Standard PC", "tsc hpet acpi_pm", "qemu");
        check(
            Some(true),
            "Intel Xeon",
            "Microsoft Corporation",
            "Virtual Machine",
            "hyperv_clocksource_tsc_page",
            "microsoft",
        );
        check(Some(true), "Intel Xeon", "VMware, Inc.", "VMware7,1", "tsc", "vmware");
        check(Some(true), "QEMU TCG CPU version 2.5+", "", "", "", "qemu");
        check(Some(true), "Intel Xeon", "", "", "tsc", UNNAMED);
        check(Some(false), "Intel Core", "Microsoft Corporation", "Surface Pro", "tsc hpet", "none");
        check(Some(false), "Intel Xeon", "Amazon EC2", "m5.metal", "tsc", "none");
        check(Some(false), "Intel Core", "", "", "", "none");
    }

    #[test]
    fn other_architectures() {
        check(None, "", "", "", "arch_sys_counter", "");
        check(None, "", "QEMU", "KVM Virtual Machine", "arch_sys_counter", "kvm");
        check(None, "", "QEMU", "QEMU Virtual Machine", "arch_sys_counter", "qemu");
        check(None, "", "HPE", "ProLiant RL300", "arch_sys_counter", "none");
        check(None, "", "Amazon EC2", "c6g.large", "arch_sys_counter", "amazon");
        check(None, "", "Amazon EC2", "c6g.metal", "arch_sys_counter", "none");
        check(None, "", "Amazon EC2", "u7i.metal-24xl", "arch_sys_counter", "none");
        check(None, "", "Amazon EC2", "", "arch_sys_counter", "");
        check(None, "", "OpenStack Foundation", "OpenStack Nova", "arch_sys_counter", "kvm");
        check(None, "", "KubeVirt", "None", "arch_sys_counter", "kvm");
        check(None, "", "Cloud Hypervisor", "cloud-hypervisor", "arch_sys_counter", UNNAMED);
        check(None, "", "ChromiumOS", "crosvm", "arch_sys_counter", UNNAMED);
        check(None, "", "oVirt", "RHEL", "arch_sys_counter", UNNAMED);
        check(None, "", "Hetzner", "vServer", "arch_sys_counter", "");
        let tree = |board: &str, hypervisor: &[&str]| {
            let hypervisor: Vec<String> = hypervisor.iter().map(|name| (*name).to_owned()).collect();
            judge(&VirtEvidence {
                board: Some(&[board.to_owned()]),
                board_hypervisor: Some(&hypervisor),
                ..VirtEvidence::default()
            })
        };
        assert_eq!(tree("linux,dummy-virt", &[]), "qemu");
        assert_eq!(tree("raspberrypi,4-model-b", &[]), "none");
        assert_eq!(tree("xen,xenvm-4.17", &["xen,xen-4.17", "xen,xen"]), "xen");
        assert_eq!(tree("xen,xenvm-4.17", &[]), "xen");
        assert_eq!(tree("vendor,board", &["acme,hypervisor"]), UNNAMED);
        assert_eq!(judge(&VirtEvidence { hypervisor: Some("xen"), ..VirtEvidence::default() }), "xen");
        assert_eq!(judge(&VirtEvidence::default()), "");
    }
}
