/* io_uring: from the submission of a request to the completion that its process receives. The kernel tries a request
 * that would have to wait, defers it and tries it again; only its completion is reported here. */
#pragma once
#include "pending.h"

static __always_inline u32 kind_of(u32 opcode)
{
    switch (opcode) {
    case OP_READV:
    case OP_READ_FIXED:
    case OP_READ:
    case OP_READV_FIXED:
        return READ;
    case OP_WRITEV:
    case OP_WRITE_FIXED:
    case OP_WRITE:
    case OP_WRITEV_FIXED:
        return WRITE;
    case OP_FSYNC:
    case OP_SYNC_FILE_RANGE:
        return SYNC;
    }
    return NO_KIND;
}

/* io_uring_submit_sqe on older kernels, with the same first argument. */
SEC("tp_btf/io_uring_submit_req")
int ring_submit(u64 *ctx)
{
    struct io_kiocb *request = (void *)ctx[0];
    /* It belongs to the process even when a kernel thread polls its queue. */
    struct task_struct *task;
    struct pending pending = {};
    u64 address = (u64)request;

    if (kind_of(request->opcode) == NO_KIND)
        return 0;
    task = bpf_get_current_task_btf();
    if (!counted(task))
        return 0;
    pending.tgid = task->tgid;
    pending.started = started_of(task);
    pending.start_ns = bpf_ktime_get_ns();
    begun(&pending.issue, task);
    of_ring(&pending.issue, task, request);
    begin(address, &pending);
    return 0;
}

static __always_inline int ring_completed(struct io_kiocb *request, int result)
{
    u64 address = (u64)request, ns;
    struct pending pending;
    struct file *file;
    struct key key = {};
    u32 kind;

    if (!address || !end(address, &pending))
        return 0;
    over(&pending.issue);
    ns = bpf_ktime_get_ns() - pending.start_ns;
    key.tgid = pending.tgid;
    key.started = pending.started;
    kind = kind_of(READ(request, opcode));
    if (kind == NO_KIND)
        return 0;
    file = READ(request, file);
    if (!file || !identify_inode(READ(file, f_inode), &key.file))
        return 0;
    if (result < 0) {
        failed(&key, file, result);
        return 0;
    }
    key.kind = kind;
    of_ring_ended(&pending.issue, request, file, result);
    done(&key, file, NULL, kind == SYNC ? 0 : result, pending.start_ns, ns, 0, &pending.issue);
    return 0;
}

/* (context, request, entry): the kernel's verifier accepts it where the third argument is a pointer to the entry. */
SEC("tp_btf/io_uring_complete")
int ring_complete(u64 *ctx)
{
    struct io_uring_cqe *entry = (void *)ctx[2];

    return ring_completed((void *)ctx[1], entry->res);
}

/* (context, request, user data, result, ...), as the tracepoint is on older kernels. */
SEC("tp_btf/io_uring_complete")
int ring_complete_by_value(u64 *ctx)
{
    return ring_completed((void *)ctx[1], (int)ctx[3]);
}
