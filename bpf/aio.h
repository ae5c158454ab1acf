/* libaio. What is direct on a file system that works by iomap completes at iomap_dio_complete, and is counted and
 * timed there. All else is kept by the address of the program's iocb until the program fetches its result:
 *   buffered reads and writes are done when io_submit returns; their time ends there
 *   syncs, and direct I/O elsewhere (block devices), end when they are fetched: the kernel tells of no earlier moment
 */
#pragma once
#include "pending.h"

#define IOCBS_MAX 1024
#define EVENTS_MAX 65536
const volatile u32 o_direct = 0;
/* Of the kernel's function that completes libaio's I/Os; 0 where it is not known. */
const volatile u64 aio_complete_rw = 0;

/* As io_submit(2) takes them and io_getevents(2) gives them; of little-endian machines. */
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
    u64 tgid;
};
struct aio {
    u64 start_ns;
    /* When it was done, where that was seen. */
    u64 done_ns;
    struct key key;
    u32 done_at_submit;
    u32 zero;
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

/* File systems whose direct I/O goes by iomap_dio. */
static __always_inline bool by_iomap(struct file *file)
{
    struct inode *inode = READ(file, f_inode);
    struct super_block *sb = READ(inode, i_sb);
    u64 magic = READ(sb, s_magic);
    u32 type = READ(inode, i_mode) & S_IFMT;

    return type == S_IFREG &&
           (magic == 0xef53 /* ext4 */ || magic == 0x58465342 /* xfs */ || magic == 0x9123683e /* btrfs */ ||
            magic == 0xf2f52010 /* f2fs */ || magic == 0x01161970 /* gfs2 */);
}

/* One of an earlier call, of the same iocb, that was never fetched, or one that was not submitted after all. */
static __always_inline void replaced(struct aio_key *name)
{
    struct aio *aio;

    if (!TRACING)
        return;
    aio = bpf_map_lookup_elem(&iocbs, name);
    if (aio)
        over(&aio->issue);
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
    struct aio_key name = { .iocb = iocb_at(thread->user, i), .tgid = (u32)task->tgid };
    struct file *file;
    bool direct;

    if (bpf_probe_read_user(&user, sizeof(user), (void *)name.iocb))
        return 0;
    aio.key.kind = kind_of_iocb(user.opcode);
    if (aio.key.kind == NO_KIND)
        return 0;
    file = file_of(task, user.fd);
    if (!file)
        return 0;
    direct = aio.key.kind != SYNC && (READ(file, f_flags) & o_direct);
    if (direct && by_iomap(file)) {
        thread->direct += identify(file, task, &aio.key);
        return 0;
    }
    if (!identify(file, task, &aio.key))
        return 0;
    ensure(thread, &aio.key, file);
    aio.start_ns = thread->start_ns;
    aio.done_at_submit = aio.key.kind != SYNC && !direct;
    replaced(&name);
    begun(&aio.issue, task);
    of_iocb(&aio.issue, task, file, name.iocb, user.opcode, user.flags);
    thread->followed++;
    if (bpf_map_update_elem(&iocbs, &name, &aio, BPF_ANY))
        lose(LOST_PENDING_FULL);
    return 0;
}

static __always_inline void submit_begins(struct thread *thread, u64 array, u64 count)
{
    if (count > IOCBS_MAX) {
        lose(LOST_AIO_TOO_MANY);
        count = IOCBS_MAX;
    }
    thread->user = array;
    thread->count = count;
    thread->direct = thread->direct_begun = thread->followed = 0;
    thread->begun = 0;
    thread->start_ns = bpf_ktime_get_ns();
    thread->call = CALL_IO_SUBMIT;
    bpf_loop(count, submit_one, &thread, 0);
}

/* A direct I/O that neither was queued nor has completed goes on through the page cache (a page of it could not be
 * put out of memory, say), within io_submit. */
static __noinline int follow_last(struct thread *thread)
{
    struct pending pending;
    struct aio_key name = {};
    struct aio aio = {};
    u64 address;

    if (!thread || !thread->begun)
        return 0;
    address = thread->begun;
    thread->begun = 0;
    if (!end(address, false, &pending))
        return 0;
    name.iocb = thread->begun_iocb;
    name.tgid = thread->begun_key.tgid;
    aio.key = thread->begun_key;
    aio.start_ns = thread->start_ns;
    aio.done_at_submit = 1;
    aio.issue = pending.issue;
    replaced(&name);
    thread->followed++;
    if (bpf_map_update_elem(&iocbs, &name, &aio, BPF_ANY))
        lose(LOST_PENDING_FULL);
    return 0;
}

static long submitted_one(u32 i, struct thread **at)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *thread = *at;
    struct aio_key name = { .iocb = iocb_at(thread->user, i), .tgid = (u32)task->tgid };
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
    if (thread->submitted == thread->count && thread->direct != thread->direct_begun)
        lose(LOST_AIO_DIRECT);
    follow_last(thread);
    if (thread->followed)
        bpf_loop(thread->count, submitted_one, &thread, 0);
}

static long reaped_one(u32 i, struct thread **at)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *thread = *at;
    struct user_event event = {};
    struct aio_key name = { .tgid = (u32)task->tgid };
    struct aio *aio;
    u64 at_ns;

    if (bpf_probe_read_user(&event, sizeof(event), (void *)(thread->user + sizeof(event) * i)))
        return 0;
    name.iocb = event.iocb;
    aio = bpf_map_lookup_elem(&iocbs, &name);
    if (!aio)
        return 0;
    over(&aio->issue);
    at_ns = aio->done_ns ?: thread->now_ns;
    if (event.result >= 0)
        done(&aio->key, NULL, NULL, aio->key.kind == SYNC ? 0 : event.result, aio->start_ns, at_ns - aio->start_ns, 0,
             &aio->issue);
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

SEC("tp_btf/iomap_dio_rw_queued")
int direct_queued(u64 *ctx)
{
    struct thread *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

    if (thread && thread->call == CALL_IO_SUBMIT)
        thread->begun = 0;
    return 0;
}

SEC("tp_btf/iomap_dio_rw_begin")
int direct_begin(u64 *ctx)
{
    struct kiocb *iocb = (void *)ctx[0];
    struct iov_iter *iter = (void *)ctx[1];
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
    struct pending pending = {};
    struct file *file;
    struct key key = {};

    if (!thread || thread->call != CALL_IO_SUBMIT)
        return 0;
    if (aio_complete_rw && (u64)iocb->ki_complete != aio_complete_rw)
        return 0;
    file = iocb->ki_filp;
    if (!identify(file, task, &key))
        return 0;
    follow_last(thread);
    thread->direct_begun++;
    thread->begun = (u64)iocb;
    thread->begun_iocb = BPF_CORE_READ((struct aio_kiocb *)iocb, ki_res.obj);
    key.kind = iter->data_source ? WRITE : READ;
    ensure(thread, &key, file);
    thread->begun_key = key;
    pending.start_ns = thread->start_ns;
    pending.tgid = key.tgid;
    pending.started = key.started;
    pending.kind = key.kind;
    begun(&pending.issue, task);
    of_direct(&pending.issue, task, iocb);
    begin((u64)iocb, &pending, LOST_AIO_DIRECT);
    return 0;
}

static __always_inline int direct_completed(struct kiocb *iocb, long result)
{
    u64 address = (u64)iocb, ns;
    struct pending pending;
    struct file *file;
    struct key key = {};

    if (aio_complete_rw && (u64)iocb->ki_complete != aio_complete_rw)
        return 0;
    if (!end(address, false, &pending))
        return 0;
    over(&pending.issue);
    if (result < 0)
        return 0;
    ns = bpf_ktime_get_ns() - pending.start_ns;
    key.tgid = pending.tgid;
    key.started = pending.started;
    key.kind = pending.kind;
    file = READ(iocb, ki_filp);
    if (identify_inode(READ(file, f_inode), &key.file))
        done(&key, NULL, NULL, result, pending.start_ns, ns, 1, &pending.issue);
    return 0;
}

/* Three times: the kernel does not call a program that is at work on the same CPU already, and interrupts come in at
 * any time. Whichever is called first does it; the others find nothing to do. */
SEC("tp_btf/iomap_dio_complete")
int direct_complete(u64 *ctx)
{
    return direct_completed((void *)ctx[0], ctx[2]);
}

SEC("tp_btf/iomap_dio_complete")
int direct_complete_2(u64 *ctx)
{
    return direct_completed((void *)ctx[0], ctx[2]);
}

SEC("tp_btf/iomap_dio_complete")
int direct_complete_3(u64 *ctx)
{
    return direct_completed((void *)ctx[0], ctx[2]);
}
