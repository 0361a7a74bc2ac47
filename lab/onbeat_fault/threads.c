// SPDX-License-Identifier: (MIT OR GPL-2.0)
/* Threads that take the CPU, or make it wait: FIFO, stopper, lock. */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/stop_machine.h>

#include "onbeat_fault.h"

static const struct fault_request *current_rq;
static DEFINE_RAW_SPINLOCK(fault_lock);
static DECLARE_COMPLETION(go);
static DECLARE_COMPLETION(over);
static struct task_struct *second;
static bool second_ends;

static noinline void fault_fifo(const struct fault_request *rq)
{
	u64 start = fault_spin(rq->us);

	fault_log_add(rq, "thread", rq->kind->thread, -1, start);
}

/* A kernel thread is known by what it does: many have the same name, a function is one. */
static noinline void fault_hog_function(const struct fault_request *rq)
{
	u64 start = fault_spin(rq->us);

	fault_log_add(rq, "thread", "fault_hog_function", -1, start);
}

static noinline int fault_stop_machine(void *start)
{
	fault_spin(current_rq->us);
	fault_log_add(current_rq, "stop-machine", "fault_stop_machine",
		      current_rq->from, *(u64 *)start);
	return 0;
}

/* It begins with the call: until all CPUs have come, those that are there wait with interrupts off. */
static void inject_stop(const struct fault_request *rq)
{
	u64 start = fault_now();

	stop_machine(fault_stop_machine, &start, cpumask_of(rq->cpu));
}

/*
 * The step that another CPU takes on its way off line, with all others stopped.
 * A timer of another architecture: no driver of these machines has this state.
 */
static noinline int fault_cpu_dying(unsigned int cpu)
{
	u64 start = fault_spin(current_rq->us);

	fault_log_add(current_rq, "stop-machine", "fault_cpu_dying", cpu, start);
	return 0;
}

static int setup_offline(const struct fault_request *rq)
{
	current_rq = rq;
	return cpuhp_setup_state_nocalls(CPUHP_AP_JCORE_TIMER_STARTING, "onbeat_fault:starting",
					 NULL, fault_cpu_dying);
}

static void inject_offline(const struct fault_request *rq)
{
	remove_cpu(rq->from);
	add_cpu(rq->from);
}

static void teardown_offline(void)
{
	cpuhp_remove_state_nocalls(CPUHP_AP_JCORE_TIMER_STARTING);
}

static noinline void fault_lock_wait(void)
{
	unsigned long flags;
	u64 start = fault_now();

	raw_spin_lock_irqsave(&fault_lock, flags);
	fault_log_add(current_rq, "lock-contention", "fault_lock_wait",
		      current_rq->from, start);
	raw_spin_unlock_irqrestore(&fault_lock, flags);
	cond_resched();
	barrier();
}

static noinline void fault_lock_hold(const struct fault_request *rq)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&fault_lock, flags);
	complete(&go);
	fault_spin(rq->us);
	raw_spin_unlock_irqrestore(&fault_lock, flags);
	wait_for_completion(&over);
}

static noinline void fault_above(void)
{
	u64 start = fault_spin(current_rq->us / 2);

	fault_log_add(current_rq, "thread", "fault_above", -1, start);
}

/* The thread above is woken with interrupts off, so that it follows at once. */
static noinline void fault_then_above(const struct fault_request *rq)
{
	u64 start;

	local_irq_disable();
	complete(&go);
	start = fault_spin(rq->us / 2);
	fault_log_add(rq, "irqs-off", "fault_then_above", -1, start);
	local_irq_enable();
	cond_resched();
	wait_for_completion(&over);
}

/* The other thread of a fault that takes two: acts whenever the first says so. */
static int second_run(void *act)
{
	for (;;) {
		wait_for_completion(&go);
		if (READ_ONCE(second_ends))
			return 0;
		((void (*)(void))act)();
		complete(&over);
	}
}

static int start_second(const struct fault_request *rq, void (*act)(void),
			const char *name, unsigned int prio)
{
	current_rq = rq;
	reinit_completion(&go);
	reinit_completion(&over);
	second_ends = false;
	second = kthread_create(second_run, act, "%s", name);
	if (IS_ERR(second))
		return PTR_ERR(second);
	get_task_struct(second);
	kthread_bind(second, rq->cpu);
	if (prio)
		fault_set_fifo(second, prio);
	wake_up_process(second);
	return 0;
}

/* kthread_stop() does not end the wait for a completion; it holds the task where that has ended itself. */
static void stop_second(void)
{
	WRITE_ONCE(second_ends, true);
	complete(&go);
	kthread_stop(second);
	put_task_struct(second);
}

static int setup_plain(const struct fault_request *rq)
{
	current_rq = rq;
	return 0;
}

static int setup_lock(const struct fault_request *rq)
{
	return start_second(rq, fault_lock_wait, "fault_waiter", 0);
}

static int setup_double(const struct fault_request *rq)
{
	return start_second(rq, fault_above, "fault_above", 99);
}

const struct fault_kind fault_thread_kinds[] = {
	{ .word = "fifo", .thread = "fault_fifo", .prio = 90, .inject = fault_fifo },
	{ .word = "hog", .thread = "fault_hog", .prio = 10, .inject = fault_fifo },
	{ .word = "kthread-hog", .thread = "fault_hogger", .prio = 90, .inject = fault_hog_function },
	{ .word = "stop-machine", .thread = "fault_stopper", .remote = true,
	  .setup = setup_plain, .inject = inject_stop },
	{ .word = "cpu-offline", .thread = "fault_offliner", .setup = setup_offline,
	  .inject = inject_offline, .teardown = teardown_offline },
	{ .word = "lock", .thread = "fault_holder", .remote = true,
	  .setup = setup_lock, .inject = fault_lock_hold, .teardown = stop_second },
	{ .word = "double", .thread = "fault_double", .setup = setup_double,
	  .inject = fault_then_above, .teardown = stop_second },
	{ }
};
