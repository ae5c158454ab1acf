/* I/Os of programs, told one by one: the process source's hooks (process.bpf.c) with another outcome, in an object of its
 * own, so that who counts pays nothing for it. crates/observe/collect/src/process/trace reads the ring buffer.
 *
 *   tell.h      what is told, and of what    issue.h    what is kept of an I/O until it ends
 *   outcome.h   what hooks call              calls.h, ring.h, aio.h, faults.h   the hooks
 */
#define TRACE
#include "who.h"
#include "calls.h"
#include "ring.h"
#include "faults.h"

char LICENSE[] SEC("license") = "GPL";
