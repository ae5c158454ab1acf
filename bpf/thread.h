/* The state of a thread: its current system call or page fault, and their arguments. */
#pragma once
#include "who.h"
#include "issue.h"

/* The meaning of each system call number. Filled in by user space, which knows its architecture's numbers. */
enum call {
    CALL_NONE = 0,
    CALL_READ, /* (fd, ...) -> bytes */
    CALL_WRITE, /* (fd, ...) -> bytes */
    CALL_SYNC, /* (fd, ...) -> 0 */
    CALL_MSYNC, /* (address, ...) -> 0 */
    CALL_COPY, /* copy_file_range, splice: (fd in, offset, fd out, ...) -> bytes */
    CALL_SENDFILE, /* (fd out, fd in, ...) -> bytes */
    CALL_IO_SUBMIT, /* (context, count, iocb **) -> count */
    CALL_IO_GETEVENTS, /* (context, min, count, events, ...) -> count */
};
#define SYSCALLS 512
const volatile u8 calls[SYSCALLS] = {};
const volatile u32 page_bytes = 4096;

struct thread {
    u64 start_ns;
    u64 file;
    struct key key;
    /* The open file and inode from which `key` was made, and whether they are counted: most calls use the same again. */
    u64 last_file;
    u64 last_inode;
    u64 last_ino;
    u32 last_generation;
    u32 last_wanted;
    u8 call;
    u8 missed;
    /* Of a copy: the file that is written. */
    u64 file_out;
    struct key key_out;
    /* Of io_submit and io_getevents: the kernel's context, the program's array, its length. */
    u64 context;
    u64 user;
    u32 count;
    u32 submitted;
    /* Number of its I/Os that are done when io_submit returns. */
    u32 done_at_submit;
    u32 zero;
    u64 now_ns;
    /* The current page fault. */
    u8 faulting;
    u8 fault_missed;
    u64 fault_ns;
    u64 fault_page;
    u64 fault_inode;
    u64 fault_number;
    struct key fault;
    /* The last key of an asynchronous I/O for which `ensure` was called. */
    struct key known;
    /* Of the current system call. */
    struct issue issue;
};
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

static __always_inline u64 argument(void *regs, u32 number)
{
    struct pt_regs___x86 *x86 = regs;
    struct pt_regs___arm64 *arm64 = regs;

    if (bpf_core_field_exists(x86->di)) {
        switch (number) {
        case 0: return x86->di;
        case 1: return x86->si;
        case 2: return x86->dx;
        default: return x86->r10;
        }
    }
    return BPF_CORE_READ(arm64, regs[number & 3]);
}

static __always_inline long call_number(void *regs)
{
    struct pt_regs___x86 *x86 = regs;
    struct pt_regs___arm64 *arm64 = regs;

    if (bpf_core_field_exists(x86->orig_ax))
        return x86->orig_ax;
    return BPF_CORE_READ(arm64, syscallno);
}

/* A 32-bit program uses other system call numbers. */
static __always_inline bool is_compat(struct task_struct *task)
{
    return bpf_core_field_exists(task->thread_info.status) && (task->thread_info.status & TS_COMPAT);
}

/* As `identify`, into the thread's key, which may already be of the same file. Equal addresses alone do not prove it:
 * memory is reused. */
static __always_inline bool identify_again(struct file *file, struct task_struct *task, struct thread *thread)
{
    struct inode *inode = READ(file, f_inode);
    u64 ino = READ(inode, i_ino);
    u32 generation = READ(inode, i_generation);

    if (thread->last_file == (u64)file && thread->last_inode == (u64)inode && thread->last_ino == ino &&
        thread->last_generation == generation)
        return thread->last_wanted;
    thread->last_file = (u64)file;
    thread->last_inode = (u64)inode;
    thread->last_ino = ino;
    thread->last_generation = generation;
    thread->last_wanted = identify(file, task, &thread->key);
    return thread->last_wanted;
}
