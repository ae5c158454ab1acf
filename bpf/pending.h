/* io_uring requests in flight, by their address in the kernel.
 *
 * Each address has its place in an array, which is found and taken without a search. Where another request has that
 * place, the request goes into a hash table. */
#pragma once
#include "outcome.h"

struct pending {
    u64 start_ns;
    u32 tgid;
    u32 started;
    struct issue issue;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, u64);
    __type(value, struct pending);
} requests SEC(".maps");

#define PLACES_BITS 13
/* Marks a place that is being filled; not an address of the kernel. */
#define PLACE_TAKEN 1
struct place {
    /* 0: free. */
    u64 address;
    struct pending pending;
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1 << PLACES_BITS);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32);
    __type(value, struct place);
} places SEC(".maps");

static __always_inline struct place *place_of(u64 address)
{
    /* Fibonacci hashing (Knuth, volume 3, 6.4) of the lower half: to the verifier it is a number, unlike a whole typed
     * pointer. */
    u32 index = ((u32)address >> 6) * 0x9e3779b1U >> (32 - PLACES_BITS);

    return bpf_map_lookup_elem(&places, &index);
}

static __always_inline void not_told(struct pending *earlier, struct pending *now)
{
    over(&earlier->issue);
    /* An earlier request of another process is not counted as lost here: that process has ended. */
    if (earlier->tgid == now->tgid && earlier->started == now->started)
        lose(LOST_URING_UNSEEN);
}

static __always_inline void begin(u64 address, struct pending *pending)
{
    struct place *place = place_of(address);
    int error;

    if (place && place->address == address /* the end of an earlier one at that address was not told */) {
        not_told(&place->pending, pending);
        place->pending = *pending;
        return;
    }
    if (place && __sync_val_compare_and_swap(&place->address, 0, PLACE_TAKEN) == 0) {
        place->pending = *pending;
        __sync_lock_test_and_set(&place->address, address);
        return;
    }
    error = bpf_map_update_elem(&requests, &address, pending, BPF_NOEXIST);
    if (error == -EEXIST) {
        struct pending *earlier = bpf_map_lookup_elem(&requests, &address);
        if (earlier)
            not_told(earlier, pending);
        error = bpf_map_update_elem(&requests, &address, pending, BPF_ANY);
    }
    if (error)
        lose(LOST_PENDING_FULL);
}

/* Takes the request that was begun at that address. */
static __always_inline bool end(u64 address, struct pending *ended)
{
    struct place *place = place_of(address);
    struct pending *pending;

    if (place && place->address == address) {
        *ended = place->pending;
        /* False where user space has just removed it as left behind. */
        return __sync_val_compare_and_swap(&place->address, address, 0) == address;
    }
    pending = bpf_map_lookup_elem(&requests, &address);
    if (!pending)
        return false;
    *ended = *pending;
    bpf_map_delete_elem(&requests, &address);
    return true;
}
