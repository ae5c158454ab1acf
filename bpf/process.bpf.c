/* What programs ask of storage: per file and process, counted in the kernel. crates/observe/collect/src/process reads it.
 *
 *   calls.h     system calls that a thread waits for: read, write, fsync, ...
 *   ring.h      io_uring: from submission to completion
 *   aio.h       libaio: from io_submit to the completion
 *   block.h     what block devices were asked, by the file that it is for
 *   faults.h    page faults on mapped files that read; reads that miss the page cache
 *   who.h       whose I/O is counted       names.h    a file's name          counters.h   the maps
 *   thread.h    what a thread is doing     pending.h  asynchronous I/Os under way
 *   outcome.h   what hooks call            account.h  the counters of what they saw; trace.bpf.c has another outcome
 *
 * Every hook is a tracepoint with BTF (tp_btf). Nothing is sent to user space: it reads the maps.
 */
#include "who.h"
#include "calls.h"
#include "ring.h"
#include "faults.h"
#include "block.h"

char LICENSE[] SEC("license") = "GPL";
