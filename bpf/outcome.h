/* What happens to the I/Os of programs: they are counted (process.bpf.c), or reported one by one (trace.bpf.c). Both
 * have the same functions:
 *
 *   begun      an I/O begins                  ensure      its file gets counters or a name while its process exists
 *   of_...     its details, by interface
 *   over       it ended, with success or not  done        it moved so many bytes        missed   a page-cache miss
 *   failed     it ended with an error
 */
#pragma once
#define NO_KIND 255
#ifdef TRACE
#include "tell.h"
#else
#include "account.h"
#endif
