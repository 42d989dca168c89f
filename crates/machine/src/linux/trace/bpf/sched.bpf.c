// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What tier T4 runs in the kernel: a record of 16 bytes for every switch and
// every wake-up, into a ring of the CPU's own that user space maps.
//
// `cargo xtask bpf` compiles this file into sched.bpf.o beside it, which is
// committed: who builds pinwise needs no clang. The declarations below are all
// that is needed of the kernel's; offsets are corrected when it is loaded
// (CO-RE), so that one object serves every kernel from 5.12 on, on x86-64 and
// arm64.
//
// The ring. A writer takes its place with one atomic addition to `head`, takes
// the time afterwards, and writes two words, each with the phase of the lap in
// its lowest bit: a reader takes a record only once both words have the phase
// it waits for. So records need no barrier and no lock, may be written by an
// interrupt in the midst of another record, and a reader that has seen `head`
// after time T and all places before it filled knows that no record older than
// T is to come. A full ring takes nothing and counts what it does not take;
// the first record after that says how many.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

// From linux/bpf.h (the numbers are ABI).
enum { MAP_ARRAY = 2, MAP_RINGBUF = 27, MMAPABLE = 1 << 10, FORCE_WAKEUP = 2 };
static void *(*const lookup)(const void *map, const u32 *key) = (void *)1;
static u64 (*const now_ns)(void) = (void *)5;
static u32 (*const this_cpu)(void) = (void *)8;
static long (*const read_text)(void *to, u32 size, const void *from) = (void *)115;
static long (*const ring)(void *map, const void *data, u64 size, u64 flags) = (void *)130;

// What is read of the kernel's structures.
#define RELOCATED __attribute__((preserve_access_index))
struct thread_info {
	u32 cpu;
} RELOCATED;
struct task_struct {
	int pid;
	int tgid;
	struct thread_info thread_info;
} RELOCATED;
struct task_struct___from_5_14 {
	u32 __state;
} RELOCATED;
// Up to Linux 5.13 the state was called `state`.
struct task_struct___before_5_14 {
	long state;
} RELOCATED;
// Up to Linux 5.15 the CPU stood in the task itself.
struct task_struct___before_5_16 {
	u32 cpu;
} RELOCATED;

#define EXISTS(field) __builtin_preserve_field_info(field, 2)

// A map's definition as BTF: numbers are lengths of arrays.
#define NUMBER(name, value) int (*name)[value]

// One line for the writers of a CPU, one for its reader.
struct cursor {
	u64 head;
	u64 dropped;
	u64 unused[6];
	u64 tail;
	u64 unused_too[7];
};

struct slot {
	u64 first;
	u64 second;
};

// The numbers of entries are set when it is loaded: CPUs, and CPUs times slots.
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	NUMBER(map_flags, MMAPABLE);
	u32 *key;
	struct cursor *value;
} cursors SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	NUMBER(map_flags, MMAPABLE);
	u32 *key;
	struct slot *value;
} slots SEC(".maps");

// Carries nothing: it wakes the reader when a ring is a quarter full.
struct {
	NUMBER(type, MAP_RINGBUF);
	NUMBER(max_entries, 4096);
} bell SEC(".maps");

// Two to this power are the slots of a CPU; set when it is loaded.
const volatile u32 slots_log2 = 12;

// A ring counts as full while so many places are left: interrupts that come
// between a writer's look at `tail` and its addition to `head` need them.
enum { SPARE = 16 };

enum kind { SWITCH = 1, WAKE = 2, FORK = 3, NAME = 4, LOST = 5 };
enum left { BLOCKED = 0, PREEMPTED = 1, ENDED = 2 };

// TASK_DEAD of the kernel, unchanged since 4.14.
enum { TASK_DEAD = 0x80 };

// Second word: phase 1 bit, kind 3 bits, manner of leaving 2 bits, then two
// numbers of 24 bits (a thread's number has 22 at most), or one of 58.
INLINE u64 word(enum kind kind, u64 left, u64 one, u64 other)
{
	return (u64)kind << 1 | left << 4 | one << 6 | other << 30;
}

INLINE struct slot *at(u32 cpu, u64 place)
{
	u32 index = (cpu << slots_log2) + (place & ((1u << slots_log2) - 1));

	return lookup(&slots, &index);
}

INLINE void write(u32 cpu, u64 place, u64 first, u64 second)
{
	u64 phase = (~place >> slots_log2) & 1;
	struct slot *slot = at(cpu, place);

	if (slot) {
		*(volatile u64 *)&slot->first = first | phase;
		*(volatile u64 *)&slot->second = second | phase;
	}
}

// Takes `count` places; 0 where there are none.
INLINE int take(u32 cpu, u32 count, u64 *place)
{
	struct cursor *cursor = lookup(&cursors, &cpu);
	u64 used, quarter = 1ull << (slots_log2 - 2);

	if (!cursor)
		return 0;
	used = *(volatile u64 *)&cursor->head - *(volatile u64 *)&cursor->tail;
	if (UNLIKELY(used + count + SPARE > 4 * quarter)) {
		__sync_fetch_and_add(&cursor->dropped, 1);
		return 0;
	}
	if (UNLIKELY(used < quarter && used + count >= quarter))
		ring(&bell, &used, sizeof(used), FORCE_WAKEUP);
	if (UNLIKELY(*(volatile u64 *)&cursor->dropped)) {
		u64 lost = __sync_lock_test_and_set(&cursor->dropped, 0);

		*place = __sync_fetch_and_add(&cursor->head, 1);
		write(cpu, *place, now_ns() << 1, (u64)LOST << 1 | lost << 6);
	}
	*place = __sync_fetch_and_add(&cursor->head, count);
	return 1;
}

INLINE void note(u64 second)
{
	u32 cpu = this_cpu();
	u64 place;

	if (take(cpu, 1, &place))
		write(cpu, place, now_ns() << 1, second);
}

INLINE void note_two(u64 second, u64 third, u64 fourth)
{
	u32 cpu = this_cpu();
	u64 place;

	if (take(cpu, 2, &place)) {
		write(cpu, place, now_ns() << 1, second);
		write(cpu, place + 1, third, fourth);
	}
}

INLINE int on_switch(int preempt, struct task_struct *prev, struct task_struct *next, u64 state)
{
	u64 left = preempt || !state ? PREEMPTED : state & TASK_DEAD ? ENDED : BLOCKED;

	note(word(SWITCH, left, prev->pid, next->pid));
	return 0;
}

// The state's copy among the arguments came with 5.18; the task's own may be
// overwritten already by whoever wakes it.
SEC("tp_btf/sched_switch")
int switched(u64 *ctx)
{
	return on_switch((u8)ctx[0], (void *)ctx[1], (void *)ctx[2], (u32)ctx[3]);
}

SEC("tp_btf/sched_switch")
int switched_before_5_18(u64 *ctx)
{
	struct task_struct___before_5_14 *old = (void *)ctx[1];
	struct task_struct___from_5_14 *prev = (void *)ctx[1];
	u64 state = EXISTS(old->state) ? (u64)old->state : prev->__state;

	return on_switch((u8)ctx[0], (void *)prev, (void *)ctx[2], state);
}

INLINE int on_wake(struct task_struct *task)
{
	struct task_struct___before_5_16 *old = (void *)task;
	u32 target = EXISTS(old->cpu) ? old->cpu : task->thread_info.cpu;

	note(word(WAKE, 0, task->pid, target));
	return 0;
}

SEC("tp_btf/sched_wakeup")
int woken(u64 *ctx)
{
	return on_wake((void *)ctx[0]);
}

SEC("tp_btf/sched_wakeup_new")
int woken_first(u64 *ctx)
{
	return on_wake((void *)ctx[0]);
}

SEC("tp_btf/sched_process_fork")
int forked(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0];
	struct task_struct *child = (void *)ctx[1];

	note_two(word(FORK, 0, parent->pid, child->pid), (u64)child->tgid << 1, 0);
	return 0;
}

// Whoever executes a program is renamed, and so is a thread that names itself.
// Fifteen bytes: seven in each word of the second slot, the eighth in the first.
SEC("tp_btf/task_rename")
int renamed(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u64 text[2] = {};

	read_text(text, sizeof(text), (void *)ctx[1]);
	note_two(word(NAME, 0, task->pid, text[0] >> 56), text[0] << 8, text[1] << 8);
	return 0;
}

char terms[] SEC("license") = "Dual MIT/GPL";
