/* Counts I/Os: the counters of a file and process are created when the file is first used. What a trace reports beyond
 * that is not read. */
#pragma once
#include "thread.h"

#define TRACING 0

/* Records the name of the current task's process. A function of its own for its stack: the calls below `first_sight` need
 * nearly all of the 512 bytes that the kernel allows. */
static __noinline int keep_process(struct task_struct *task, u32 started)
{
    u64 who = (u64)task->tgid << 32 | started;
    struct process process = { .start_boottime = task->group_leader->start_boottime };
    int error;

    BPF_CORE_READ_INTO(&process.comm, task, group_leader, comm);
    error = bpf_map_update_elem(&processes, &who, &process, BPF_NOEXIST);
    if (error && error != -EEXIST)
        lose(LOST_PROCESSES);
    return 0;
}

/* Creates the counters of a key when it is first seen, and records the names of file and process. Returns whether
 * the counters exist; if not, the loss is counted. */
static __noinline int first_sight(struct key *key, struct file *file, struct inode *inode, u32 context)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct file_id id;
    int error;

    if (!key)
        return 0;
    error = bpf_map_update_elem(&files, key, &zero_counters, BPF_NOEXIST);
    if (error && error != -EEXIST) {
        lose(error == -E2BIG ? LOST_FILES_FULL : LOST_COUNTERS);
        return 0;
    }
    id = key->file;
    if (file)
        inode = BPF_CORE_READ(file, f_inode);
    if (inode) {
        struct file_id now;
        /* Another thread may have closed the file meanwhile. */
        if (identify_inode(inode, &now) && now.ino == id.ino && now.dev == id.dev)
            keep_name(&id, inode, file, context);
    }
    if (key->tgid && only_chosen) {
        u8 yes = 1;
        if (bpf_map_update_elem(&used_files, &id, &yes, BPF_ANY))
            lose(LOST_FILES_FULL);
    }
    if (key->tgid && task->tgid == key->tgid)
        keep_process(task, key->started);
    return 1;
}

/* The counters of a key; NULL where there are none, which is counted as a loss. */
static __always_inline struct counters *counters_of(struct key *key, struct file *file, struct inode *inode, u32 context)
{
    struct counters *counters = bpf_map_lookup_elem(&files, key);

    if (counters || !first_sight(key, file, inode, context))
        return counters;
    counters = bpf_map_lookup_elem(&files, key);
    if (!counters)
        lose(LOST_COUNTERS);
    return counters;
}

static __always_inline void done(struct key *key, struct file *file, struct inode *inode, u64 bytes, u64 start_ns,
                                 u64 ns, u32 context, struct issue *issue)
{
    struct counters *counters = counters_of(key, file, inode, context);

    if (counters)
        add(counters, 1, bytes, ns);
}

/* An I/O that ended with an error. */
static __always_inline void failed(struct key *key, struct file *file, long result)
{
    struct counters *counters;

    if (!is_failure_of_storage(result))
        return;
    key->kind = FAILED;
    counters = counters_of(key, file, NULL, 0);
    if (counters)
        add(counters, 1, 0, 0);
}

/* A read that missed the page cache is also counted as a miss. */
static __always_inline void missed(struct thread *thread, struct file *file, u64 bytes, u64 ns)
{
    thread->key.kind = MISS;
    done(&thread->key, file, NULL, bytes, 0, ns, 0, &thread->issue);
}

static __always_inline void begun(struct issue *issue, struct task_struct *task) {}
static __always_inline void over(struct issue *issue) {}
static __always_inline void of_call(struct thread *thread, struct file *file, void *regs, u64 id, long result, bool out) {}
static __always_inline void of_fault(struct issue *issue, struct task_struct *task, u64 page) {}
static __always_inline void of_ring(struct issue *issue, struct task_struct *task, struct io_kiocb *request) {}
static __always_inline void of_ring_ended(struct issue *issue, struct io_kiocb *request, struct file *file, long result) {}
static __always_inline void of_iocb(struct issue *issue, struct task_struct *task, struct file *file, u64 iocb, u32 opcode,
                                    u32 flags) {}
static __always_inline void of_direct_ended(struct issue *issue, struct kiocb *iocb, long result) {}

/* Ensures that the key has counters, while its process exists and its name can be read. */
static __always_inline void ensure(struct thread *thread, struct key *key, struct file *file)
{
    struct key *known = &thread->known;

    if (known->file.ino == key->file.ino && known->file.dev == key->file.dev && known->kind == key->kind &&
        known->file.generation == key->file.generation && known->started == key->started)
        return;
    *known = *key;
    if (!bpf_map_lookup_elem(&files, key))
        first_sight(key, file, NULL, 0);
}
