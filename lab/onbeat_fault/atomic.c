// SPDX-License-Identifier: (MIT OR GPL-2.0)
/* Threads that keep interrupts or preemption off, or do not give the CPU away. */
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "onbeat_fault.h"

static DEFINE_RAW_SPINLOCK(fault_own_lock);

/*
 * What follows a fault in each function keeps the call from becoming a jump,
 * which would take the function off the stack.
 */
static noinline void fault_irqs_off(const struct fault_request *rq)
{
	u64 start;

	local_irq_disable();
	start = fault_spin(rq->us);
	fault_log_add(rq, "irqs-off", "fault_irqs_off", -1, start);
	local_irq_enable();
	cond_resched();
	barrier();
}

static noinline void fault_spin_irqsave(const struct fault_request *rq)
{
	unsigned long flags;
	u64 start;

	raw_spin_lock_irqsave(&fault_own_lock, flags);
	start = fault_spin(rq->us);
	fault_log_add(rq, "irqs-off", "fault_spin_irqsave", -1, start);
	raw_spin_unlock_irqrestore(&fault_own_lock, flags);
	cond_resched();
	barrier();
}

/* Interrupts are switched off in one function and on in another. */
static noinline void fault_hand_over(const struct fault_request *rq)
{
	u64 start;

	local_irq_disable();
	start = fault_spin(rq->us);
	fault_log_add(rq, "irqs-off", "fault_hand_over", -1, start);
	barrier();
}

static noinline void fault_take_over(void)
{
	local_irq_enable();
	cond_resched();
	barrier();
}

static void inject_handed(const struct fault_request *rq)
{
	fault_hand_over(rq);
	fault_take_over();
}

/* Without a preemptible kernel, cond_resched() is where the CPU is given away. */
static noinline void fault_preempt_off(const struct fault_request *rq)
{
	u64 start;

	preempt_disable();
	start = fault_spin(rq->us);
	fault_log_add(rq, "preempt-off", "fault_preempt_off", -1, start);
	preempt_enable();
	cond_resched();
	barrier();
}

/*
 * Preemption is on, and the kernel does not preempt its own code unless it is
 * built to: a real-time thread waits until this one sleeps.
 */
static noinline void fault_long_call(const struct fault_request *rq)
{
	u64 start = fault_spin(rq->us);

	fault_log_add(rq, "preempt-off", "fault_long_call", -1, start);
}

const struct fault_kind fault_atomic_kinds[] = {
	{ .word = "irqs-off", .thread = "fault_atomic", .inject = fault_irqs_off },
	{ .word = "spin-irqsave", .thread = "fault_atomic", .inject = fault_spin_irqsave },
	{ .word = "irqs-handed", .thread = "fault_atomic", .inject = inject_handed },
	{ .word = "preempt-off", .thread = "fault_atomic", .inject = fault_preempt_off },
	{ .word = "long-call", .thread = "fault_atomic", .inject = fault_long_call },
	{ }
};
