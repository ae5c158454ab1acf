/* Reads that missed the page cache, and page faults on mapped files that had to read.
 *
 *   a miss   page_cache_sync_ra within a read: its page was not cached, and the read waits for storage. A page that
 *            another read or read-ahead is already fetching is no miss, though this read may wait for it.
 *   a fault  mm_filemap_fault ... mm_filemap_add_to_page_cache ... the exit of filemap_fault: the page was read. Where the
 *            kernel permits no program there, rss_stat: the page is mapped. Faults that found their page in memory are not
 *            counted.
 */
#pragma once
#include "outcome.h"

/* enum vm_fault_reason: out of memory, a bus error and similar. */
#define FAULT_ERROR (0x1 | 0x2 | 0x10 | 0x20 | 0x40 | 0x800)

static __always_inline u64 faults_ended(struct task_struct *task)
{
    return task->min_flt + task->maj_flt;
}

static __always_inline int fault_began(struct inode *inode, u64 page)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *thread;
    struct key key = {};

    if (!counted(task))
        return 0;
    if (!identify_inode(inode, &key.file))
        return 0;
    thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread) {
        lose(LOST_THREADS);
        return 0;
    }
    /* The same fault, retried after it waited. */
    if (thread->faulting && thread->fault_page == page && thread->fault.file.ino == key.file.ino &&
        thread->fault_number == faults_ended(task))
        return 0;
    key.tgid = task->tgid;
    key.started = started_of(task);
    key.kind = FAULT;
    thread->fault = key;
    thread->fault_inode = (u64)inode;
    thread->fault_page = page;
    thread->fault_number = faults_ended(task);
    thread->fault_missed = 0;
    thread->faulting = 1;
    thread->fault_ns = bpf_ktime_get_ns();
    return 0;
}

SEC("tp_btf/mm_filemap_fault")
int fault_begin(u64 *ctx)
{
    struct address_space *mapping = (void *)ctx[0];

    return fault_began(mapping->host, ctx[1]);
}

/* The function around that tracepoint, for kernels without the tracepoint. */
SEC("fentry/filemap_fault")
int fault_beginning(u64 *ctx)
{
    struct vm_fault *fault = (void *)ctx[0];
    struct file *file = fault->vma->vm_file;

    return file ? fault_began(file->f_inode, fault->pgoff) : 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int page_added(u64 *ctx)
{
    struct thread *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

    if (thread && thread->faulting)
        thread->fault_missed = 1;
    return 0;
}

static __always_inline int fault_ended(struct task_struct *task, struct thread *thread)
{
    struct issue issue = {};
    u64 ns;

    thread->faulting = 0;
    if (!thread->fault_missed || thread->fault_number != faults_ended(task))
        return 0;
    ns = bpf_ktime_get_ns() - thread->fault_ns;
    of_fault(&issue, task, thread->fault_page);
    done(&thread->fault, NULL, (void *)thread->fault_inode, page_bytes, thread->fault_ns, ns, 0, &issue);
    return 0;
}

/* A fault that waited for its read is begun again by the kernel, and then mostly mapped without this function. */
SEC("fexit/filemap_fault")
int fault_ending(u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

    if (!thread || !thread->faulting)
        return 0;
    if (ctx[1] & FAULT_ERROR)
        thread->fault_missed = 0;
    return fault_ended(task, thread);
}

/* Before Linux 6.2 pages are counted for each thread, and the event comes once in 64 faults. */
SEC("tp_btf/rss_stat")
int fault_end(u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

    return thread && thread->faulting && (void *)ctx[0] == task->mm ? fault_ended(task, thread) : 0;
}

static __always_inline int read_misses(void)
{
    struct thread *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

    if (thread && thread->call == CALL_READ)
        thread->missed = 1;
    return 0;
}

SEC("tp_btf/page_cache_sync_ra")
int read_missed(u64 *ctx)
{
    return read_misses();
}

/* The function around that tracepoint, for kernels without the tracepoint. */
SEC("fentry/page_cache_sync_ra")
int read_missing(u64 *ctx)
{
    return read_misses();
}
