// SPDX-License-Identifier: (MIT OR GPL-2.0)
/* Interrupts that take long: a device's, a timer's, another CPU's, a softirq; what waits for one, and a callback of RCU. */
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/version.h>

#include "onbeat_fault.h"

#ifdef CONFIG_X86
#include <asm/io.h>

/* The keyboard controller's status: a read that changes nothing. */
static __always_inline void fault_touch_device(void)
{
	inb(0x64);
}
#else
static __always_inline void fault_touch_device(void)
{
	cpu_relax();
}
#endif

static const struct fault_request *current_rq;
static DECLARE_COMPLETION(over);
static int device_irq;

/* The handler of a device that is not there. */
static noinline irqreturn_t fault_device(int irq, void *unused)
{
	u64 start = fault_spin(current_rq->us);

	fault_log_add(current_rq, "irq", "onbeat_fault", -1, start);
	complete(&over);
	return IRQ_HANDLED;
}

static void raise_device(struct irq_work *unused)
{
	generic_handle_irq(device_irq);
}

static noinline void fault_irq_work(struct irq_work *unused)
{
	u64 start = fault_spin(current_rq->us);

	fault_log_add(current_rq, "irq", "fault_irq_work", -1, start);
	complete(&over);
}

static noinline void fault_tasklet(struct tasklet_struct *unused)
{
	u64 start = fault_spin(current_rq->us);

	fault_log_add(current_rq, "softirq", "fault_tasklet", -1, start);
	complete(&over);
}
static DECLARE_TASKLET(tasklet, fault_tasklet);

static void raise_tasklet(struct irq_work *unused)
{
	tasklet_schedule(&tasklet);
}

static noinline enum hrtimer_restart fault_hrtimer(struct hrtimer *unused)
{
	u64 start = fault_spin(current_rq->us);

	fault_log_add(current_rq, "timer-irq", "fault_hrtimer", -1, start);
	complete(&over);
	return HRTIMER_NORESTART;
}
static struct hrtimer timer;

/*
 * The same while it reads a slow device: an emulator serves that under a lock
 * of its own, so that the other virtual CPU, idle, is late with its timers.
 */
static noinline enum hrtimer_restart fault_hrtimer_device(struct hrtimer *unused)
{
	u64 start = fault_now();

	while (fault_now() - start < current_rq->us * 1000ull)
		fault_touch_device();
	fault_log_add(current_rq, "timer-irq", "fault_hrtimer_device", -1, start);
	complete(&over);
	return HRTIMER_NORESTART;
}

static noinline void fault_ipi(void *sender)
{
	u64 start = fault_spin(current_rq->us);

	fault_log_add(current_rq, "ipi", "fault_ipi", current_rq->from, start);
}

/* Interrupts these are on every kernel, PREEMPT_RT included. */
static struct irq_work device_work = IRQ_WORK_INIT_HARD(raise_device);
static struct irq_work long_work = IRQ_WORK_INIT_HARD(fault_irq_work);
static struct irq_work tasklet_work = IRQ_WORK_INIT_HARD(raise_tasklet);

static int setup_plain(const struct fault_request *rq)
{
	current_rq = rq;
	return 0;
}

static int setup_device(const struct fault_request *rq)
{
	int ret;

	current_rq = rq;
	device_irq = irq_alloc_desc(numa_node_id());
	if (device_irq < 0)
		return device_irq;
	irq_set_chip_and_handler(device_irq, &dummy_irq_chip, handle_simple_irq);
	irq_clear_status_flags(device_irq, IRQ_NOREQUEST | IRQ_NOPROBE);
	ret = request_irq(device_irq, fault_device, IRQF_NO_THREAD,
			  "onbeat_fault", &device_irq);
	if (ret)
		irq_free_desc(device_irq);
	return ret;
}

static void teardown_device(void)
{
	irq_work_sync(&device_work);
	free_irq(device_irq, &device_irq);
	irq_free_desc(device_irq);
}

static void inject_device(const struct fault_request *rq)
{
	reinit_completion(&over);
	irq_work_queue(&device_work);
	wait_for_completion(&over);
}

static void inject_work(const struct fault_request *rq)
{
	reinit_completion(&over);
	irq_work_queue(&long_work);
	wait_for_completion(&over);
}

static void teardown_work(void)
{
	irq_work_sync(&long_work);
}

static void inject_tasklet(const struct fault_request *rq)
{
	reinit_completion(&over);
	irq_work_queue(&tasklet_work);
	wait_for_completion(&over);
}

static void teardown_tasklet(void)
{
	irq_work_sync(&tasklet_work);
	tasklet_kill(&tasklet);
}

static int setup_timer(const struct fault_request *rq,
		       enum hrtimer_restart (*function)(struct hrtimer *))
{
	current_rq = rq;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer.function = function;
#endif
	return 0;
}

static int setup_hrtimer(const struct fault_request *rq)
{
	return setup_timer(rq, fault_hrtimer);
}

static int setup_hrtimer_device(const struct fault_request *rq)
{
	return setup_timer(rq, fault_hrtimer_device);
}

static void inject_hrtimer(const struct fault_request *rq)
{
	reinit_completion(&over);
	hrtimer_start(&timer, ns_to_ktime(300 * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
	wait_for_completion(&over);
}

static void teardown_hrtimer(void)
{
	hrtimer_cancel(&timer);
}

static noinline void fault_ipi_sender(const struct fault_request *rq)
{
	smp_call_function_single(rq->cpu, fault_ipi, NULL, 1);
	barrier();
}

/* On the other CPU, while this one waits for it with preemption off. */
static noinline void fault_called(void *unused)
{
	fault_spin(current_rq->us);
}

static noinline void fault_call_wait(const struct fault_request *rq)
{
	u64 start;

	preempt_disable();
	start = fault_now();
	smp_call_function_single(rq->from, fault_called, NULL, 1);
	fault_log_add(rq, "preempt-off", "fault_call_wait", rq->from, start);
	preempt_enable();
	cond_resched();
	barrier();
}

/* In the thread of RCU where callbacks run in one, which the guest raises above the victim. */
static noinline void fault_rcu_callback(struct rcu_head *unused)
{
	u64 start = fault_spin(current_rq->us);

	fault_log_add(current_rq, "thread", "fault_rcu_callback", -1, start);
	complete(&over);
}
static struct rcu_head callback;

static void inject_callback(const struct fault_request *rq)
{
	reinit_completion(&over);
	call_rcu(&callback, fault_rcu_callback);
	wait_for_completion(&over);
}

static void teardown_callback(void)
{
	rcu_barrier();
}

const struct fault_kind fault_interrupt_kinds[] = {
	{ .word = "irq", .thread = "fault_raiser", .setup = setup_device,
	  .inject = inject_device, .teardown = teardown_device },
	{ .word = "irq-work", .thread = "fault_raiser", .setup = setup_plain,
	  .inject = inject_work, .teardown = teardown_work },
	{ .word = "hrtimer", .thread = "fault_raiser", .setup = setup_hrtimer,
	  .inject = inject_hrtimer, .teardown = teardown_hrtimer },
	{ .word = "hrtimer-device", .thread = "fault_raiser", .setup = setup_hrtimer_device,
	  .inject = inject_hrtimer, .teardown = teardown_hrtimer },
	{ .word = "softirq", .thread = "fault_raiser", .setup = setup_plain,
	  .inject = inject_tasklet, .teardown = teardown_tasklet },
	{ .word = "tasklet", .thread = "fault_raiser", .setup = setup_plain,
	  .inject = inject_tasklet, .teardown = teardown_tasklet },
	{ .word = "call-wait", .thread = "fault_caller", .setup = setup_plain,
	  .inject = fault_call_wait },
	{ .word = "rcu-callback", .thread = "fault_queuer", .setup = setup_plain,
	  .inject = inject_callback, .teardown = teardown_callback },
	{ .word = "ipi", .thread = "fault_sender", .remote = true,
	  .setup = setup_plain, .inject = fault_ipi_sender },
	{ }
};
