# Runs the fault series: the module, the tracepoints that are held, then the checks in their order.

insmod /lab/onbeat_fault.ko || echo "LAB: no module"
hold
each_check 150 "onbeat user_faults followed ld.so" fault-helpers.sh
