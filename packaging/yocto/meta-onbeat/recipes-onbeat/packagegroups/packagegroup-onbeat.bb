SUMMARY = "Programs to measure and explain wake-up latency"

inherit packagegroup

RDEPENDS:${PN} = "onbeat-bin"
# The same latency by the programs that it is compared with.
RRECOMMENDS:${PN} = "rt-tests"
