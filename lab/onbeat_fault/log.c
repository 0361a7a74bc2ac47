// SPDX-License-Identifier: (MIT OR GPL-2.0)
/* The log of what was injected: written from any context, without a lock. */
#include <linux/atomic.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>

#include "onbeat_fault.h"

#define FAULT_RECORDS 8192

static struct fault_record *records;
static atomic_t taken = ATOMIC_INIT(0);
static unsigned int seq;

int fault_log_init(void)
{
	records = vzalloc(array_size(FAULT_RECORDS, sizeof(*records)));
	return records ? 0 : -ENOMEM;
}

void fault_log_exit(void)
{
	vfree(records);
}

/* The next injection begins; its records share a number. */
void fault_log_next(void)
{
	WRITE_ONCE(seq, seq + 1);
}

/* Notes a fault that began at @start and ends now. */
void fault_log_add(const struct fault_request *rq, const char *kind,
		   const char *name, int from, u64 start)
{
	u64 end = fault_now();
	unsigned int at = atomic_inc_return(&taken) - 1;
	struct fault_record *record;

	if (at >= FAULT_RECORDS)
		return;
	record = &records[at];
	record->word = rq->kind->word;
	record->name = name;
	record->seq = READ_ONCE(seq);
	record->cpu = rq->cpu;
	record->from = from;
	record->start = start;
	record->end = end;
	/* Pairs with the acquire of the reader: a record with a kind is whole. */
	smp_store_release(&record->kind, kind);
}

/* One line per record; the last line counts what had no place. */
int fault_log_show(struct seq_file *m, void *unused)
{
	unsigned int n = atomic_read(&taken);
	unsigned int held = min_t(unsigned int, n, FAULT_RECORDS);
	unsigned int i;

	for (i = 0; i < held; i++) {
		const struct fault_record *r = &records[i];
		const char *kind = smp_load_acquire(&r->kind);

		if (kind)
			seq_printf(m, "seq=%u fault=%s kind=%s cpu=%u from=%d start=%llu end=%llu name=%s\n",
				   r->seq, r->word, kind, r->cpu, r->from,
				   r->start, r->end, r->name);
	}
	seq_printf(m, "dropped=%u\n", n - held);
	return 0;
}
