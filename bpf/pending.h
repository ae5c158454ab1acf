/* Asynchronous I/Os under way, by the kernel's address of them. */
#pragma once
#include "thread.h"

#define NO_KIND 255
struct pending {
    u64 start_ns;
    u32 tgid;
    u32 started;
    /* Of libaio's; NO_KIND of a ring's, which says it when it completes. */
    u32 kind;
    u32 zero;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, u64);
    __type(value, struct pending);
} requests SEC(".maps");

static __always_inline void begin(u64 address, struct pending *pending, u32 if_unseen)
{
    long error = bpf_map_update_elem(&requests, &address, pending, BPF_NOEXIST);

    if (error == -EEXIST /* the end of an earlier one at that address was not told */) {
        struct pending *earlier = bpf_map_lookup_elem(&requests, &address);
        /* Of a process that ended before it, there is nothing to tell. */
        if (earlier && earlier->tgid == pending->tgid && earlier->started == pending->started)
            lose(if_unseen);
        error = bpf_map_update_elem(&requests, &address, pending, BPF_ANY);
    }
    if (error)
        lose(LOST_PENDING_FULL);
}
