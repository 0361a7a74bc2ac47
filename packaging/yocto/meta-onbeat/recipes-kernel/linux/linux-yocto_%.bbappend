FILESEXTRAPATHS:prepend := "${THISDIR}/files:"
SRC_URI += "file://onbeat.cfg"
