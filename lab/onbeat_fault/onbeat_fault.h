/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/*
 * Faults of known kind, place, time and length, to score explanations
 * of latency against. For virtual machines: it stops CPUs on purpose.
 */
#ifndef ONBEAT_FAULT_H
#define ONBEAT_FAULT_H

#include <linux/compiler.h>
#include <linux/timekeeping.h>
#include <linux/types.h>

/* What one write to the inject file asks for. */
struct fault_request {
	const struct fault_kind *kind;
	unsigned int cpu;		/* the victim's */
	unsigned int from;		/* another one, for what takes a sender */
	unsigned int us;		/* length of one fault */
	unsigned int count;
	unsigned int period_ms;
	unsigned int jitter_ms;
	unsigned int prio;		/* SCHED_FIFO; 0 is SCHED_OTHER */
};

/* One kind of fault. */
struct fault_kind {
	const char *word;		/* in requests */
	const char *thread;		/* name of the thread that injects */
	bool remote;			/* that thread runs on the other CPU */
	unsigned int prio;		/* its priority unless asked otherwise */
	int (*setup)(const struct fault_request *rq);
	void (*inject)(const struct fault_request *rq);
	void (*teardown)(void);
};

extern const struct fault_kind fault_atomic_kinds[];
extern const struct fault_kind fault_device_kinds[];
extern const struct fault_kind fault_interrupt_kinds[];
extern const struct fault_kind fault_thread_kinds[];
extern const struct fault_kind fault_work_kinds[];

/* One line of the log: what was done, where, by what, from when to when. */
struct fault_record {
	const char *word;
	const char *kind;		/* a slice kind of run.json */
	const char *name;		/* function, thread or interrupt */
	unsigned int seq;
	unsigned int cpu;
	int from;			/* sender, -1 without */
	u64 start;
	u64 end;
};

int fault_log_init(void);
void fault_log_exit(void);
void fault_log_next(void);
void fault_log_add(const struct fault_request *rq, const char *kind,
		   const char *name, int from, u64 start);
struct seq_file;
int fault_log_show(struct seq_file *m, void *unused);

struct task_struct;
void fault_set_fifo(struct task_struct *task, unsigned int prio);

/* CLOCK_MONOTONIC, from any context. */
static __always_inline u64 fault_now(void)
{
	return ktime_get_mono_fast_ns();
}

/* Reading the clock may be slow, and take a lock with interrupts off (HPET): not too often. */
#define FAULT_LOOPS 500

/*
 * Keeps the CPU for a time that is exact on CLOCK_MONOTONIC; mdelay() is not
 * where the emulator has calibrated it badly. Returns when it began.
 */
static __always_inline u64 fault_spin(u64 us)
{
	u64 start = fault_now();
	unsigned int i;

	while (fault_now() - start < us * 1000)
		for (i = 0; i < FAULT_LOOPS; i++)
			barrier();
	return start;
}

#endif
