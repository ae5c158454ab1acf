/* What a trace keeps of an I/O from its issue to its end, beyond what is counted. Empty, and without cost, where I/Os are
 * only counted. */
#pragma once
#include "kernel.h"

/* io_uring's operations. */
enum {
    OP_READV = 1,
    OP_WRITEV = 2,
    OP_FSYNC = 3,
    OP_READ_FIXED = 4,
    OP_WRITE_FIXED = 5,
    OP_SYNC_FILE_RANGE = 8,
    OP_READ = 22,
    OP_WRITE = 23,
    OP_READV_FIXED = 60,
    OP_WRITEV_FIXED = 61,
};

#ifdef TRACE
struct issue {
    /* The offset in the file; NOWHERE where it is only known when the I/O ends. */
    u64 offset;
    /* The process: tgid << 32 | started. */
    u64 who;
    u32 tid;
    /* O_* of the open file. */
    u32 file_flags;
    /* The flags of the call: RWF_* and similar. */
    u32 flags;
    /* Number of I/Os in flight of its process, this one included. */
    u32 n;
    u8 how;
    u8 sync;
    /* The read missed the page cache. */
    u8 missed;
    u8 zero;
    char comm[16];
};
#else
struct issue {};
#endif
