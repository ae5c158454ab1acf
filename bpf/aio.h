/* libaio. Direct I/O on a file system that uses iomap completes at iomap_dio_complete, and is counted and timed
 * there. All other I/O is kept by the address of the program's iocb until the program fetches its result:
 *   buffered reads and writes are done when io_submit returns; their time ends there
 *   syncs, and direct I/O elsewhere (block devices), end when they are fetched: there is no earlier tracepoint
 */
#pragma once
#include "pending.h"

#define IOCBS_MAX 1024
#define EVENTS_MAX 65536
#define CONTEXTS_MAX 4096
/* A flag of struct iomap_dio. */
#define IOMAP_DIO_WRITE (1U << 30)
const volatile u32 o_direct = 0;
/* The address of the kernel's function that completes libaio's I/Os; 0 where it is unknown. */
const volatile u64 aio_complete_rw = 0;

/* The structures of io_submit(2) and io_getevents(2) on little-endian machines. */
struct user_iocb {
    u64 data;
    u32 key;
    u32 flags;
    u16 opcode;
    u16 priority;
    u32 fd;
};
struct user_event {
    u64 data;
    u64 iocb;
    s64 result;
    s64 result2;
};
struct aio_key {
    u64 iocb;
    u64 context;
};
struct aio {
    u64 start_ns;
    /* When it was done; 0 where that is unknown. */
    u64 done_ns;
    struct key key;
    u32 done_at_submit;
    /* Set at completion. The entry stays until it is fetched: to delete it on another CPU than its own costs more. */
    u32 counted;
    struct issue issue;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 32768);
    __type(key, struct aio_key);
    __type(value, struct aio);
} iocbs SEC(".maps");

static __always_inline u32 kind_of_iocb(u32 opcode)
{
    switch (opcode) {
    case 0: /* PREAD */
    case 7: /* PREADV */
        return READ;
    case 1: /* PWRITE */
    case 8: /* PWRITEV */
        return WRITE;
    case 2: /* FSYNC */
    case 3: /* FDSYNC */
        return SYNC;
    }
    return NO_KIND;
}

/* The search for the kernel's context that a program identifies by its mapped address; 0 where there is none. */
struct search {
    u64 contexts;
    u64 mapped;
    u64 found;
};

static long one_context(u32 i, struct search *search)
{
    struct kioctx *context = (void *)word_at((void *)(search->contexts + 8 * (u64)i));

    if (!context || READ(context, user_id) != search->mapped)
        return 0;
    search->found = (u64)context;
    return 1;
}

static __always_inline u64 context_of(struct task_struct *task, u64 mapped)
{
    struct mm_struct *mm = task->mm;
    struct search search = { .mapped = mapped };
    struct kioctx_table *table;
    u32 number = 0, count;

    if (!bpf_core_field_exists(mm->ioctx_table))
        return 0;
    table = READ(mm, ioctx_table);
    if (!table)
        return 0;
    count = READ(table, nr);
    search.contexts = (u64)table + bpf_core_field_offset(struct kioctx_table, table);
    /* The mapping begins with the context's number (struct aio_ring), unless the program never touched that page. */
    if (!bpf_probe_read_user(&number, sizeof(number), (void *)mapped) && number < count && one_context(number, &search))
        return search.found;
    bpf_loop(count < CONTEXTS_MAX ? count : CONTEXTS_MAX, one_context, &search, 0);
    return search.found;
}

/* Ends an earlier I/O of the same iocb, or one that was not submitted. Returns whether it had not been counted. */
static __always_inline bool replaced(struct aio_key *name)
{
    struct aio *aio = bpf_map_lookup_elem(&iocbs, name);

    if (!aio || aio->counted)
        return false;
    over(&aio->issue);
    return true;
}

static __always_inline u64 iocb_at(u64 array, u32 index)
{
    u64 address = 0;
    bpf_probe_read_user(&address, sizeof(address), (void *)(array + 8 * index));
    return address;
}

static long submit_one(u32 i, struct thread **at)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *thread = *at;
    struct user_iocb user = {};
    struct aio aio = {};
    struct aio_key name = { .iocb = iocb_at(thread->user, i), .context = thread->context };
    struct file *file;
    int error;

    if (bpf_probe_read_user(&user, sizeof(user), (void *)name.iocb))
        return 0;
    aio.key.kind = kind_of_iocb(user.opcode);
    if (aio.key.kind == NO_KIND)
        return 0;
    file = file_of(task, user.fd);
    if (!file)
        return 0;
    if (!identify(file, task, &aio.key))
        return 0;
    ensure(thread, &aio.key, file);
    aio.start_ns = thread->start_ns;
    aio.done_at_submit = aio.key.kind != SYNC && !(READ(file, f_flags) & o_direct);
    begun(&aio.issue, task);
    of_iocb(&aio.issue, task, file, name.iocb, user.opcode, user.flags);
    thread->done_at_submit += aio.done_at_submit;
    error = bpf_map_update_elem(&iocbs, &name, &aio, BPF_NOEXIST);
    if (error == -EEXIST) {
        if (replaced(&name))
            lose(LOST_AIO_AGAIN);
        error = bpf_map_update_elem(&iocbs, &name, &aio, BPF_ANY);
    }
    if (error)
        lose(LOST_PENDING_FULL);
    return 0;
}

static __always_inline void submit_begins(struct thread *thread, struct task_struct *task, u64 mapped, u64 array, u64 count)
{
    if (count > IOCBS_MAX) {
        lose(LOST_AIO_TOO_MANY);
        count = IOCBS_MAX;
    }
    thread->user = array;
    thread->count = count;
    thread->context = context_of(task, mapped);
    thread->done_at_submit = 0;
    thread->start_ns = bpf_ktime_get_ns();
    thread->call = CALL_IO_SUBMIT;
    bpf_loop(count, submit_one, &thread, 0);
}

static long submitted_one(u32 i, struct thread **at)
{
    struct thread *thread = *at;
    struct aio_key name = { .iocb = iocb_at(thread->user, i), .context = thread->context };
    struct aio *aio;

    if (i >= thread->submitted) {
        replaced(&name);
        bpf_map_delete_elem(&iocbs, &name);
        return 0;
    }
    aio = bpf_map_lookup_elem(&iocbs, &name);
    if (aio && aio->done_at_submit && !aio->done_ns)
        aio->done_ns = thread->now_ns;
    return 0;
}

static __always_inline void submit_ended(struct thread *thread, long result, u64 now)
{
    thread->submitted = result < 0 ? 0 : result;
    thread->now_ns = now;
    if (thread->done_at_submit || thread->submitted < thread->count)
        bpf_loop(thread->count, submitted_one, &thread, 0);
}

static long reaped_one(u32 i, struct thread **at)
{
    struct thread *thread = *at;
    struct user_event event = {};
    struct aio_key name = { .context = thread->context };
    struct aio *aio;
    u64 at_ns;

    if (bpf_probe_read_user(&event, sizeof(event), (void *)(thread->user + sizeof(event) * i)))
        return 0;
    name.iocb = event.iocb;
    aio = bpf_map_lookup_elem(&iocbs, &name);
    if (!aio)
        return 0;
    if (!aio->counted)
        over(&aio->issue);
    at_ns = aio->done_ns ?: thread->now_ns;
    if (!aio->counted && event.result >= 0)
        done(&aio->key, NULL, NULL, aio->key.kind == SYNC ? 0 : event.result, aio->start_ns, at_ns - aio->start_ns, 0,
             &aio->issue);
    if (event.result < 0) {
        struct key key = aio->key;
        failed(&key, NULL, event.result);
    }
    bpf_map_delete_elem(&iocbs, &name);
    return 0;
}

static __always_inline void events_reaped(struct thread *thread, long result, u64 now)
{
    if (result > EVENTS_MAX)
        lose(LOST_AIO_TOO_MANY);
    thread->now_ns = now;
    if (result > 0)
        bpf_loop(result < EVENTS_MAX ? result : EVENTS_MAX, reaped_one, &thread, 0);
}

static __always_inline int direct_completed(struct kiocb *iocb, long result)
{
    struct aio_kiocb *kernels = (void *)iocb;
    struct aio_key name = {};
    struct aio *aio;
    struct key key;
    u64 ns;

    if (aio_complete_rw ? (u64)iocb->ki_complete != aio_complete_rw : !iocb->ki_complete)
        return 0;
    /* A failed I/O ends when it is fetched. */
    if (result < 0)
        return 0;
    name.iocb = READ(kernels, ki_res.obj);
    name.context = (u64)READ(kernels, ki_ctx);
    aio = bpf_map_lookup_elem(&iocbs, &name);
    if (!aio || aio->counted)
        return 0;
    aio->counted = 1;
    over(&aio->issue);
    of_direct_ended(&aio->issue, iocb, result);
    ns = bpf_ktime_get_ns() - aio->start_ns;
    key = aio->key;
    done(&key, NULL, NULL, result, aio->start_ns, ns, 1, &aio->issue);
    return 0;
}

/* The kernel skips it if it is already running on that CPU: then the I/O is counted when it is fetched. */
SEC("tp_btf/iomap_dio_complete")
int direct_complete(u64 *ctx)
{
    return direct_completed((void *)ctx[0], ctx[2]);
}

/* The function around that tracepoint, for kernels without the tracepoint. As the function does, the result is cut at the
 * end of the file: only of reads, since what was written lies before it by then. */
SEC("fentry/iomap_dio_complete")
int direct_completing(u64 *ctx)
{
    struct iomap_dio *dio = (void *)ctx[0];
    struct kiocb *iocb = dio->iocb;
    long result = dio->error ?: dio->size;
    s64 position = iocb->ki_pos;

    if (!dio->error && !(dio->flags & IOMAP_DIO_WRITE) && position + result > dio->i_size)
        result = dio->i_size - position;
    return direct_completed(iocb, result);
}
