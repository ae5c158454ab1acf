/* Counts the storage I/O of processes in the kernel, by file and process. crates/observe/collect/src/process reads it.
 *
 *   calls.h     system calls that a thread waits for: read, write, fsync, ...    entries.h   the same, at their functions
 *   ring.h      io_uring: from submission to completion
 *   aio.h       libaio: from io_submit to the completion
 *   block.h     requests to block devices, by file            origin.h   what a request is a part of
 *   faults.h    page faults on mapped files that read; reads that miss the page cache
 *   who.h       whose I/O is counted       names.h    a file's name          counters.h   the maps
 *   thread.h    the state of a thread      pending.h  asynchronous I/Os in flight
 *   outcome.h   what hooks call            account.h  the counters; trace.bpf.c has tell.h in its place
 *
 * Every hook is a tracepoint with BTF (tp_btf), or a function where a kernel lacks the tracepoint or it would cost more. Nothing is sent to user space: it reads the maps.
 */
#include "who.h"
#include "entries.h"
#include "ring.h"
#include "faults.h"
#include "block.h"

char LICENSE[] SEC("license") = "GPL";
