/* What becomes of I/Os that programs ask for: they are counted (process.bpf.c), or told one by one (trace.bpf.c). Both
 * have the same functions:
 *
 *   begun      an I/O begins                  ensure      its file gets counters or a name while its process is there
 *   of_...     what it is, by how it is asked
 *   over       it ended, well or not          done        it moved so many bytes        missed   past the page cache
 */
#pragma once
#define NO_KIND 255
#ifdef TRACE
#include "tell.h"
#else
#include "account.h"
#endif
