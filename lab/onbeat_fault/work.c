// SPDX-License-Identifier: (MIT OR GPL-2.0)
/* Work items: one that keeps preemption off, and one whose worker was given a priority. */
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "onbeat_fault.h"

static const struct fault_request *current_rq;

/* The worker is a fair thread: a real-time one waits for it only while it keeps preemption off. */
static noinline void fault_work_preempt_off(struct work_struct *unused)
{
	u64 start;

	preempt_disable();
	start = fault_spin(current_rq->us);
	fault_log_add(current_rq, "preempt-off", "fault_work_preempt_off", current_rq->from, start);
	preempt_enable();
	cond_resched();
	barrier();
}
static DECLARE_WORK(atomic_work, fault_work_preempt_off);

/*
 * Preemption stays on: only the worker's priority, a mistake people make, keeps
 * others off the CPU. It keeps that, and is one of the few that serve work of
 * high priority: nothing else suffers from it.
 */
static noinline void fault_work(struct work_struct *unused)
{
	u64 start;

	fault_set_fifo(current, 90);
	start = fault_spin(current_rq->us);
	fault_log_add(current_rq, "workqueue", "fault_work", current_rq->from, start);
}
static DECLARE_WORK(raised_work, fault_work);

/* Named like the kernel's own: a culprit whose rule has a cure that changes nothing here. */
static noinline void vmstat_update(struct work_struct *unused)
{
	u64 start;

	fault_set_fifo(current, 90);
	start = fault_spin(current_rq->us);
	fault_log_add(current_rq, "workqueue", "vmstat_update", current_rq->from, start);
}
static DECLARE_WORK(namesake_work, vmstat_update);

static int setup_work(const struct fault_request *rq)
{
	current_rq = rq;
	return 0;
}

static void inject_atomic_work(const struct fault_request *rq)
{
	schedule_work_on(rq->cpu, &atomic_work);
	flush_work(&atomic_work);
}

static void inject_raised_work(const struct fault_request *rq)
{
	queue_work_on(rq->cpu, system_highpri_wq, &raised_work);
	flush_work(&raised_work);
}

static void inject_namesake_work(const struct fault_request *rq)
{
	queue_work_on(rq->cpu, system_highpri_wq, &namesake_work);
	flush_work(&namesake_work);
}

const struct fault_kind fault_work_kinds[] = {
	{ .word = "work-preempt-off", .thread = "fault_queuer", .remote = true,
	  .setup = setup_work, .inject = inject_atomic_work },
	{ .word = "workqueue", .thread = "fault_queuer", .remote = true,
	  .setup = setup_work, .inject = inject_raised_work },
	{ .word = "vmstat", .thread = "fault_queuer", .remote = true,
	  .setup = setup_work, .inject = inject_namesake_work },
	{ }
};
