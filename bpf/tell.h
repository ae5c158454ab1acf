/* Reports I/Os one by one: each that passes the filter goes into a ring buffer, which user space reads in the order of
 * their ends. Others are dropped before the buffer; those that find it full are lost, and counted. */
#pragma once
#include "thread.h"

#define TRACING 1
#define NOWHERE (~0ULL)

/* The filter: a bit for each kind, limits of bytes and time. */
const volatile u32 wanted_kinds = ~0U;
const volatile u64 bytes_min = 0;
const volatile u64 bytes_max = ~0ULL;
const volatile u64 ns_min = 0;
/* The thread's name in the kernel, padded with zeros. */
const volatile bool only_comm = false;
const volatile u64 wanted_comm[2] = {};
/* User space checks the name of each file, and lists those that are not wanted. */
const volatile bool only_names = false;
const volatile u32 o_append = 0;
#define RWF_APPEND 0x10

/* The interface through which an I/O was issued. */
enum how {
    BY_CALL = 0,
    BY_RING = 1,
    BY_AIO = 2,
    BY_FAULT = 3,
    BY_COPY = 4,
};
enum sync {
    NO_SYNC = 0,
    FSYNC = 1,
    FDATASYNC = 2,
    SYNC_RANGE = 3,
    MSYNC = 4,
};

/* Where a system call has its file offset. Filled in by user space, which knows its architecture's numbers. */
enum shape {
    AT_POSITION = 0, /* the open file's own */
    AT_ARGUMENT, /* the fourth argument */
    AT_ARGUMENT_FLAGS, /* the fourth, or -1: the file's own; and flags as the sixth */
    BY_FSYNC,
    BY_FDATASYNC,
    BY_SYNC_RANGE, /* (fd, offset, bytes, flags) */
    BY_MSYNC,
    AT_POINTERS, /* copy_file_range, splice: (in, *offset, out, *offset, ...) */
    AT_POINTER_IN, /* sendfile: (out, in, *offset, ...) */
};
const volatile u8 shapes[SYSCALLS] = {};

struct event {
    u64 start_ns;
    u64 ns;
    u64 offset;
    u64 bytes;
    struct file_id file;
    u32 tgid;
    u32 tid;
    u32 file_flags;
    u32 flags;
    u32 n;
    u8 kind;
    u8 how;
    u8 sync;
    u8 missed;
    char comm[16];
};
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 16 << 20);
} events SEC(".maps");

/* Files whose names were recorded. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct file_id);
    __type(value, u8);
} named SEC(".maps");

/* Files that are not wanted; user space fills this in. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct file_id);
    __type(value, u8);
} unwanted SEC(".maps");

/* Number of I/Os in flight of each process. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, u64); /* tgid << 32 | started */
    __type(value, s64);
} under_way SEC(".maps");

static __always_inline void begun(struct issue *issue, struct task_struct *task)
{
    u64 who = (u64)(u32)task->tgid << 32 | started_of(task);
    s64 *count = bpf_map_lookup_elem(&under_way, &who);
    s64 before;

    if (!count) {
        s64 none = 0;
        bpf_map_update_elem(&under_way, &who, &none, BPF_NOEXIST);
        count = bpf_map_lookup_elem(&under_way, &who);
    }
    before = count ? __sync_fetch_and_add(count, 1) : 0;
    issue->who = who;
    issue->n = before > 0 ? before + 1 : 1;
}

static __always_inline void over(struct issue *issue)
{
    u64 who = issue->who;
    s64 *count = bpf_map_lookup_elem(&under_way, &who);

    if (count)
        __sync_fetch_and_add(count, -1);
}

static __always_inline void by(struct issue *issue, struct task_struct *task, u32 how)
{
    issue->offset = NOWHERE;
    issue->flags = issue->file_flags = 0;
    issue->how = how;
    issue->sync = NO_SYNC;
    issue->missed = 0;
    issue->tid = task->pid;
    bpf_get_current_comm(issue->comm, sizeof(issue->comm));
}

static __always_inline u64 sixth_argument(void *regs)
{
    struct pt_regs___x86_more *x86 = regs;
    struct pt_regs___arm64 *arm64 = regs;

    if (bpf_core_field_exists(x86->r9))
        return x86->r9;
    return BPF_CORE_READ(arm64, regs[5]);
}

/* The offset at which an I/O began, where the file's position advanced by the result. */
static __always_inline u64 before_position(struct file *file, long result)
{
    return READ(file, f_pos) - result;
}

/* The offset at which an append began. */
static __always_inline u64 before_end(struct file *file, long result)
{
    struct inode *inode = READ(file, f_inode);
    return READ(inode, i_size) - result;
}

static __always_inline u64 before_pointer(u64 pointer, struct file *file, long result)
{
    u64 offset = 0;

    if (!pointer)
        return before_position(file, result);
    if (bpf_probe_read_user(&offset, sizeof(offset), (void *)pointer))
        return NOWHERE;
    return offset - result;
}

/* At the end of the system call, when all of it is known. Arguments except the first are still available. */
static __always_inline void of_call(struct thread *thread, struct file *file, void *regs, u64 id, long result, bool out)
{
    struct issue *issue = &thread->issue;
    u32 shape = shapes[id & (SYSCALLS - 1)];

    by(issue, bpf_get_current_task_btf(), BY_CALL);
    issue->file_flags = READ(file, f_flags);
    issue->missed = thread->missed;
    switch (shape) {
    case AT_POSITION:
        issue->offset = before_position(file, result);
        return;
    case AT_ARGUMENT_FLAGS:
        issue->flags = sixth_argument(regs);
        /* fall through */
    case AT_ARGUMENT:
        issue->offset = argument(regs, 3);
        if (shape == AT_ARGUMENT_FLAGS && issue->offset == NOWHERE)
            issue->offset = before_position(file, result);
        else if (thread->call == CALL_WRITE && (issue->file_flags & o_append || issue->flags & RWF_APPEND))
            issue->offset = before_end(file, result);
        return;
    case BY_FSYNC:
        issue->sync = FSYNC;
        return;
    case BY_FDATASYNC:
        issue->sync = FDATASYNC;
        return;
    case BY_SYNC_RANGE:
        issue->sync = SYNC_RANGE;
        issue->offset = argument(regs, 1);
        return;
    case BY_MSYNC:
        issue->sync = MSYNC;
        return;
    case AT_POINTERS:
        issue->how = BY_COPY;
        issue->offset = before_pointer(argument(regs, out ? 3 : 1), file, result);
        return;
    case AT_POINTER_IN:
        issue->how = BY_COPY;
        issue->offset = before_pointer(out ? 0 : argument(regs, 2), file, result);
        return;
    }
}

static __always_inline void of_fault(struct issue *issue, struct task_struct *task, u64 page)
{
    begun(issue, task);
    over(issue);
    by(issue, task, BY_FAULT);
    issue->offset = page * page_bytes;
}

/* When a request is submitted. */
static __always_inline void of_ring(struct issue *issue, struct task_struct *task, struct io_kiocb *request)
{
    struct io_rw *rw = (void *)request;
    struct io_sync *sync = (void *)request;

    by(issue, task, BY_RING);
    switch (request->opcode) {
    case OP_FSYNC:
        issue->sync = FSYNC;
        if (bpf_core_field_exists(sync->flags) && READ(sync, flags) & 1 /* IORING_FSYNC_DATASYNC */)
            issue->sync = FDATASYNC;
        return;
    case OP_SYNC_FILE_RANGE:
        issue->sync = SYNC_RANGE;
        return;
    }
    if (bpf_core_field_exists(rw->kiocb)) {
        issue->offset = READ(rw, kiocb.ki_pos);
        issue->flags = READ(rw, flags);
    }
}

/* When a request completed: an offset at the file's position or end is known only then. */
static __always_inline void of_ring_ended(struct issue *issue, struct io_kiocb *request, struct file *file, long result)
{
    struct io_rw *rw = (void *)request;

    issue->file_flags = READ(file, f_flags);
    if (issue->sync || !bpf_core_field_exists(rw->kiocb))
        return;
    if (issue->offset == NOWHERE || issue->file_flags & o_append || issue->flags & RWF_APPEND)
        issue->offset = READ(rw, kiocb.ki_pos) - result;
}

/* When io_submit takes an iocb. */
static __always_inline void of_iocb(struct issue *issue, struct task_struct *task, struct file *file, u64 iocb, u32 opcode,
                                    u32 flags)
{
    by(issue, task, BY_AIO);
    issue->file_flags = READ(file, f_flags);
    if (opcode == 2 || opcode == 3) {
        issue->sync = opcode == 2 ? FSYNC : FDATASYNC;
        return;
    }
    issue->flags = flags;
    /* aio_offset of struct iocb. */
    bpf_probe_read_user(&issue->offset, sizeof(issue->offset), (void *)(iocb + 40));
}

/* When direct I/O completed: the offset of an append is known only then. */
static __always_inline void of_direct_ended(struct issue *issue, struct kiocb *iocb, long result)
{
    if (issue->file_flags & o_append || issue->flags & RWF_APPEND)
        issue->offset = iocb->ki_pos - result;
}

/* Records a file's name when it is first seen. */
static __always_inline void name_it(struct file_id *id, struct file *file, struct inode *inode, u32 context)
{
    struct file_id now;
    u8 yes = 1;

    if (bpf_map_lookup_elem(&named, id))
        return;
    if (file)
        inode = READ(file, f_inode);
    /* Another thread may have closed the file meanwhile. */
    if (!inode || !identify_inode(inode, &now) || now.ino != id->ino || now.dev != id->dev)
        return;
    keep_name(id, inode, file, context);
    bpf_map_update_elem(&named, id, &yes, BPF_ANY);
}

static __always_inline void ensure(struct thread *thread, struct key *key, struct file *file)
{
    name_it(&key->file, file, NULL, 0);
}

static __always_inline bool other_comm(struct issue *issue)
{
    u64 *comm = (void *)issue->comm;

    return comm[0] != wanted_comm[0] || comm[1] != wanted_comm[1];
}

static __always_inline void done(struct key *key, struct file *file, struct inode *inode, u64 bytes, u64 start_ns,
                                 u64 ns, u32 context, struct issue *issue)
{
    struct event *event;

    if (!(wanted_kinds >> (key->kind & 31) & 1) || bytes < bytes_min || bytes > bytes_max || ns < ns_min)
        return;
    if (only_comm && other_comm(issue))
        return;
    name_it(&key->file, file, inode, context);
    if (only_names && bpf_map_lookup_elem(&unwanted, &key->file))
        return;
    event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        lose(LOST_TOLD);
        return;
    }
    event->start_ns = start_ns;
    event->ns = ns;
    event->offset = issue->offset;
    event->bytes = bytes;
    event->file = key->file;
    event->tgid = key->tgid;
    event->tid = issue->tid;
    event->file_flags = issue->file_flags;
    event->flags = issue->flags;
    event->n = issue->n;
    event->kind = key->kind;
    event->how = issue->how;
    event->sync = issue->sync;
    event->missed = issue->missed;
    __builtin_memcpy(event->comm, issue->comm, sizeof(event->comm));
    /* User space polls often: a wakeup would cost more than all of this. */
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* Only what moved data is reported. */
static __always_inline void failed(struct key *key, struct file *file, long result) {}

/* The event of the read itself has this. */
static __always_inline void missed(struct thread *thread, struct file *file, u64 bytes, u64 ns) {}
