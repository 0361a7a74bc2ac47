SUMMARY = "Measure, explain and fix wake-up latency on real-time Linux"
LICENSE = "MIT OR Apache-2.0"
LIC_FILES_CHKSUM = "\
    file://share/doc/onbeat/LICENSE-MIT;md5=4ad568aa0cac5ff120d93acb20678c73 \
    file://share/doc/onbeat/LICENSE-APACHE;md5=3b83ef96387f14655fc854ddc3c6bd57 \
"

# The static program of the tarball: no Rust is needed to build an image.
ONBEAT_TARGET:x86-64 = "x86_64-unknown-linux-musl"
ONBEAT_TARGET:aarch64 = "aarch64-unknown-linux-musl"
ONBEAT_TARGET:riscv64 = "riscv64gc-unknown-linux-musl"
ONBEAT_TARGET ?= "none"
COMPATIBLE_HOST = "(x86_64|aarch64|riscv64).*-linux.*"

FILESEXTRAPATHS:prepend := "${ONBEAT_PACKAGES}:"
SRC_URI = "file://onbeat-${PV}-${ONBEAT_TARGET}.tar.gz"
S = "${UNPACKDIR}/onbeat-${PV}-${ONBEAT_TARGET}"

inherit bash-completion systemd

SYSTEMD_SERVICE:${PN} = "onbeat-watch.service onbeat-tune-undo.service"
SYSTEMD_AUTO_ENABLE = "disable"

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    install -D -m 0755 ${S}/bin/onbeat ${D}${bindir}/onbeat
    install -d ${D}${mandir}/man1 ${D}${docdir}/${BPN}
    install -m 0644 ${S}/share/man/man1/* ${D}${mandir}/man1/
    cp -r --no-preserve=ownership ${S}/share/doc/onbeat/. ${D}${docdir}/${BPN}/
    install -D -m 0644 ${S}/share/bash-completion/completions/onbeat \
        ${D}${datadir}/bash-completion/completions/onbeat
    if ${@bb.utils.contains('DISTRO_FEATURES', 'systemd', 'true', 'false', d)}; then
        install -d ${D}${systemd_system_unitdir}
        for unit in ${SYSTEMD_SERVICE:${PN}}; do
            sed 's|/usr/local/bin/|${bindir}/|' ${S}/lib/systemd/system/$unit \
                > ${D}${systemd_system_unitdir}/$unit
        done
    fi
}

PROVIDES += "onbeat"
RPROVIDES:${PN} += "onbeat"
# Stripped by `cargo xtask dist`, which keeps the symbols.
INSANE_SKIP:${PN} += "already-stripped"
