/* The same system calls at the entry and exit of their functions (fentry, fexit), for kernels that permit it: the tracepoints of
 * calls.h make every call of every process take the kernel's slow path, these cost only the calls that are counted.
 *
 * User space attaches all of them or none, to __x64_sys_read or what the architecture calls it. A function knows its
 * meaning, so that the compiler leaves out what is of other calls. */
#pragma once
#include "calls.h"

#define COUNTED_CALL(name, call)                                                                                      \
    SEC("fentry/" #name)                                                                                              \
    int enter_##name(u64 *ctx)                                                                                        \
    {                                                                                                                 \
        struct task_struct *task = bpf_get_current_task_btf();                                                        \
        return counted(task) ? call_begins(task, (void *)ctx[0], call) : 0;                                           \
    }                                                                                                                 \
    SEC("fexit/" #name)                                                                                               \
    int exit_##name(u64 *ctx)                                                                                         \
    {                                                                                                                 \
        return call_ends((void *)ctx[0], 0, call, ctx[1]);                                                            \
    }

COUNTED_CALL(read, CALL_READ)
COUNTED_CALL(pread64, CALL_READ)
COUNTED_CALL(readv, CALL_READ)
COUNTED_CALL(preadv, CALL_READ)
COUNTED_CALL(preadv2, CALL_READ)
COUNTED_CALL(write, CALL_WRITE)
COUNTED_CALL(pwrite64, CALL_WRITE)
COUNTED_CALL(writev, CALL_WRITE)
COUNTED_CALL(pwritev, CALL_WRITE)
COUNTED_CALL(pwritev2, CALL_WRITE)
COUNTED_CALL(fsync, CALL_SYNC)
COUNTED_CALL(fdatasync, CALL_SYNC)
COUNTED_CALL(sync_file_range, CALL_SYNC)
COUNTED_CALL(msync, CALL_MSYNC)
COUNTED_CALL(copy_file_range, CALL_COPY)
COUNTED_CALL(splice, CALL_COPY)
COUNTED_CALL(sendfile64, CALL_SENDFILE)
COUNTED_CALL(io_submit, CALL_IO_SUBMIT)
COUNTED_CALL(io_getevents, CALL_IO_GETEVENTS)
COUNTED_CALL(io_pgetevents, CALL_IO_GETEVENTS)
