/* System calls that a thread waits for. */
#pragma once
#include "outcome.h"
#include "aio.h"

static long msync_file(struct task_struct *task, struct vm_area_struct *vma, void *found)
{
    *(u64 *)found = (u64)vma->vm_file;
    return 0;
}

static __always_inline int call_begins(struct task_struct *task, void *regs, u32 call)
{
    u64 first, in, out = 0;
    struct thread *thread;
    struct file *file;

    first = argument(regs, 0);
    if (call == CALL_SENDFILE) {
        in = argument(regs, 1);
        out = first;
    } else {
        in = first;
        if (call == CALL_COPY)
            out = argument(regs, 2);
    }
    thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread) {
        lose(LOST_THREADS);
        return 0;
    }
    thread->call = CALL_NONE;
    thread->file_out = 0;
    if (call == CALL_IO_SUBMIT) {
        submit_begins(thread, task, first, argument(regs, 2), argument(regs, 1));
        return 0;
    }
    if (call == CALL_IO_GETEVENTS) {
        thread->context = context_of(task, first);
        thread->user = argument(regs, 3);
        thread->call = call;
        return 0;
    }
    if (call == CALL_MSYNC) {
        u64 mapped = 0;
        bpf_find_vma(task, first, msync_file, &mapped, 0);
        file = (void *)mapped;
    } else {
        file = file_of(task, in);
    }
    thread->file = file && identify_again(file, task, thread) ? (u64)file : 0;
    if (call == CALL_COPY || call == CALL_SENDFILE) {
        file = file_of(task, out);
        if (file && identify(file, task, &thread->key_out))
            thread->file_out = (u64)file;
    }
    if (!thread->file && !thread->file_out)
        return 0;
    thread->call = call;
    thread->missed = 0;
    begun(&thread->issue, task);
    thread->start_ns = bpf_ktime_get_ns();
    return 0;
}

static __always_inline void ended(struct thread *thread, u32 call, void *regs, u64 id, long result, u64 now)
{
    u64 bytes = result, ns = now - thread->start_ns;
    struct file *file = (void *)thread->file;
    struct file *out = (void *)thread->file_out;

    switch (call) {
    case CALL_WRITE:
        thread->key.kind = WRITE;
        break;
    case CALL_SYNC:
    case CALL_MSYNC:
        thread->key.kind = SYNC;
        bytes = 0;
        break;
    default:
        thread->key.kind = READ;
    }
    if (file) {
        of_call(thread, file, regs, id, result, false);
        done(&thread->key, file, NULL, bytes, thread->start_ns, ns, 0, &thread->issue);
    }
    if (file && thread->missed)
        missed(thread, file, bytes, ns);
    if (out) {
        thread->key_out.kind = WRITE;
        of_call(thread, out, regs, id, result, true);
        done(&thread->key_out, out, NULL, bytes, thread->start_ns, ns, 0, &thread->issue);
    }
}

/* `call`: CALL_NONE where only the thread's entry knows it. */
static __always_inline int call_ends(void *regs, u64 id, u32 call, long result)
{
    struct thread *thread;
    u64 now;

    /* Only threads whose calls are counted have an entry. */
    thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
    if (!thread || thread->call == CALL_NONE)
        return 0;
    if (call == CALL_NONE)
        call = thread->call;
    now = bpf_ktime_get_ns();
    if (call == CALL_IO_SUBMIT)
        submit_ended(thread, result, now);
    else if (call == CALL_IO_GETEVENTS)
        events_reaped(thread, result, now);
    else {
        over(&thread->issue);
        /* A failed call moved no data; -EAGAIN of a read that must not wait is not an I/O. */
        if (result >= 0)
            ended(thread, call, regs, id, result, now);
        else if (thread->file)
            failed(&thread->key, (void *)thread->file, result);
    }
    thread->call = CALL_NONE;
    return 0;
}

SEC("tp_btf/sys_enter")
int sys_enter(u64 *ctx)
{
    struct task_struct *task;
    u64 id = ctx[1];
    u32 call;

    if (id >= SYSCALLS)
        return 0;
    call = calls[id];
    if (call == CALL_NONE)
        return 0;
    task = bpf_get_current_task_btf();
    if (!counted(task) || is_compat(task))
        return 0;
    return call_begins(task, (void *)ctx[0], call);
}

SEC("tp_btf/sys_exit")
int sys_exit(u64 *ctx)
{
    void *regs = (void *)ctx[0];
    u64 id = call_number(regs);

    return id >= SYSCALLS || calls[id] == CALL_NONE ? 0 : call_ends(regs, id, CALL_NONE, ctx[1]);
}

/* The name of a process is that of the program that it runs now. */
SEC("tp_btf/sched_process_exec")
int exec(u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    u64 who = (u64)(u32)task->tgid << 32 | started_of(task);
    struct process *process = bpf_map_lookup_elem(&processes, &who);

    if (process)
        BPF_CORE_READ_INTO(&process->comm, task, comm);
    return 0;
}

/* The children of a chosen process are chosen with it. */
SEC("tp_btf/sched_process_fork")
int fork(u64 *ctx)
{
    struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
    u32 from = parent->tgid, to = child->tgid;
    u32 *root = from == to ? NULL : bpf_map_lookup_elem(&chosen_processes, &from);
    int error = 0;

    if (root) {
        u32 same = *root;
        error = bpf_map_update_elem(&chosen_processes, &to, &same, BPF_ANY);
    }
    if (error)
        lose(LOST_CHILDREN);
    return 0;
}
