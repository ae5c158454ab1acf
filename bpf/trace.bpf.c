/* Reports I/Os of processes one by one: the process source's hooks (process.bpf.c) with another outcome, in a separate
 * object, so that counting does not pay for it. crates/observe/collect/src/process/trace reads the ring buffer.
 *
 *   tell.h      events and their filter      issue.h    what is kept of an I/O until it ends
 *   outcome.h   what hooks call              calls.h, ring.h, aio.h, faults.h   the hooks
 */
#define TRACE
#include "who.h"
#include "calls.h"
#include "ring.h"
#include "faults.h"

char LICENSE[] SEC("license") = "GPL";
