/* The counters, their keys (file, process, kind), and the maps that user space reads. */
#pragma once
#include "kernel.h"

enum kind {
    READ = 0,
    WRITE = 1,
    SYNC = 2,
    /* Reads that found their page missing from the page cache: a part of READ. */
    MISS = 3,
    /* Page faults on a mapped file that had to read. */
    FAULT = 4,
    /* Requests to a block device for the file; without a process. */
    BLOCK_READ = 5,
    BLOCK_WRITE = 6,
    BLOCK_SYNC = 7,
    /* I/Os that storage failed: they have no bytes and no time. */
    FAILED = 8,
};

/* Inode 0 is the block device `dev` itself, for programs that open it. */
struct file_id {
    u64 ino;
    u32 dev;
    u32 generation;
};
struct key {
    struct file_id file;
    u32 tgid;
    /* When the process started, in units of 2^20 ns of the boot clock: distinguishes processes of equal number. */
    u32 started;
    u32 kind;
    u32 zero;
};

/* Four buckets per octave, as in filestats::LatencyBuckets, from 64 ns to 17 s. */
#define HISTOGRAM_FIRST 20
#define HISTOGRAM_LEN 112
/* The number of I/Os is the sum of the histogram: this saves one addition per I/O. */
struct counters {
    u64 bytes;
    u64 ns;
    u64 histogram[HISTOGRAM_LEN];
};
struct process {
    u64 start_boottime;
    char comm[16];
};

/* Number of lost events by cause; user space reports it with every snapshot. */
enum lost {
    LOST_FILES_FULL,
    LOST_NAMES_FULL,
    LOST_PENDING_FULL,
    LOST_THREADS,
    LOST_AIO_TOO_MANY,
    LOST_AIO_AGAIN,
    LOST_URING_UNSEEN,
    LOST_BIOS,
    LOST_COUNTERS,
    LOST_PROCESSES,
    LOST_CHILDREN,
    LOST_TOLD,
    LOST_LEN,
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 8192);
    __type(key, struct key);
    __type(value, struct counters);
} files SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8192);
    __type(key, u64); /* tgid << 32 | started */
    __type(value, struct process);
} processes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, LOST_LEN);
    __type(key, u32);
    __type(value, u64);
} lost SEC(".maps");

/* The kernel does not call a program that is already running on the same CPU, and an interrupt may occur at any time.
 * So block completions have two programs: the second runs where the first one was interrupted. Where both were
 * interrupted, the event is counted as lost. */
struct nested_state {
    /* The first program is running. */
    u64 first;
    /* Number of events that the second program counted. */
    u64 done;
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct nested_state);
} nested SEC(".maps");

enum {
    EIO = 5,
    E2BIG = 7,
    EEXIST = 17,
    EBADE = 52,
    ENODATA = 61,
    ENOLINK = 67,
    EILSEQ = 84,
    ETIMEDOUT = 110,
    EUCLEAN = 117,
    EREMOTEIO = 121,
};

/* Whether storage failed, not the request: the errors of blk_status_t, and EUCLEAN for what a file system finds damaged. */
static __always_inline bool is_failure_of_storage(long result)
{
    switch (-result) {
    case EIO:
    case EBADE:
    case ENODATA:
    case ENOLINK:
    case EILSEQ:
    case ETIMEDOUT:
    case EUCLEAN:
    case EREMOTEIO:
        return true;
    }
    return false;
}

static const struct counters zero_counters;

static __always_inline void lose(u32 why)
{
    u64 *count = bpf_map_lookup_elem(&lost, &why);
    if (count)
        __sync_fetch_and_add(count, 1);
}

static __always_inline u32 log2_of(u64 value)
{
    u32 log = 0;
    if (value >> 32) { value >>= 32; log += 32; }
    if (value >> 16) { value >>= 16; log += 16; }
    if (value >> 8) { value >>= 8; log += 8; }
    if (value >> 4) { value >>= 4; log += 4; }
    if (value >> 2) { value >>= 2; log += 2; }
    if (value >> 1) { log += 1; }
    return log;
}

static __always_inline u32 bucket_of(u64 ns)
{
    u32 exponent, index;
    if (ns < 64)
        return 0;
    exponent = log2_of(ns);
    index = 4 * (exponent - 1) + ((ns >> (exponent - 2)) & 3) - HISTOGRAM_FIRST;
    return index < HISTOGRAM_LEN ? index : HISTOGRAM_LEN - 1;
}

/* Atomic although per CPU: a completion in an interrupt may occur in between. */
static __always_inline void add(struct counters *to, u64 count, u64 bytes, u64 ns)
{
    u32 bucket = bucket_of(ns);
    if (bytes)
        __sync_fetch_and_add(&to->bytes, bytes);
    __sync_fetch_and_add(&to->ns, ns);
    if (count && bucket < HISTOGRAM_LEN)
        __sync_fetch_and_add(&to->histogram[bucket], count);
}
