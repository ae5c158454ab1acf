/* Requests to block devices, by file. Counted when a request completes; its time begins when the kernel creates the
 * request (as in /proc/diskstats: queueing in the kernel included).
 *
 *   a part of a bio, or what device mapper, md or btrfs made of one            origin.h
 *   the page cache's pages (reads, read-ahead, writeback by any thread)         page -> mapping -> inode
 *   direct I/O of iomap's file systems                                          iomap_dio -> iocb -> file
 *   direct I/O on a block device                                                the device
 *   pages of the device's own mapping, requests marked as metadata, flushes     the file system
 */
#pragma once
#include "account.h"
#include "origin.h"

/* Addresses of functions that complete direct I/O; 0 where unknown. */
const volatile u64 iomap_dio_bio_end_io = 0;
const volatile u64 blkdev_bio_end_io = 0;
const volatile u64 blkdev_bio_end_io_simple = 0;
const volatile u64 blkdev_bio_end_io_async = 0;
/* Flags of a request's rq_flags: it is counted in the device's statistics; it is a part of a flush sequence. */
const volatile u32 rq_counted = 0;
const volatile u32 rq_flush_sequence = 0;

/* The I/Os of a device that the programs saw, grouped as in its own statistics: user space compares them with
 * /proc/diskstats, because a kernel may complete a request without running a program. */
enum group {
    GROUP_READ = 0,
    GROUP_WRITE = 1,
    GROUP_FLUSH = 2,
    GROUPS = 3,
};
struct seen {
    /* 0: the entry is free. */
    u64 dev;
    u64 count[GROUPS];
    u64 bytes[GROUPS];
};
/* Each CPU has its own entries, and so has each of the two programs that may run there: nothing else writes to an
 * entry meanwhile, so that no addition needs to be atomic. A device's entry is at the hash of its number or after it;
 * user space adds the entries up. */
#define DEVICES_BITS 9
#define DEVICE_PROBES_MAX 8
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 2 << DEVICES_BITS);
    __type(key, u32);
    __type(value, struct seen);
} devices SEC(".maps");

#define BIOS_MAX 4096
enum {
    REQ_OP_MASK = 0xff,
    REQ_OP_READ = 0,
    REQ_OP_WRITE = 1,
    REQ_OP_FLUSH = 2,
    REQ_OP_DISCARD = 3,
    REQ_OP_SECURE_ERASE = 5,
    REQ_OP_ZONE_APPEND = 7,
    REQ_OP_WRITE_ZEROES = 9,
    /* Before Linux 5.19. */
    REQ_OP_ZONE_APPEND_ONCE = 13,
    /* Bit 12 since requests have 8 bits of operation. */
    REQ_META = 1 << 12,
};

struct walk_of_bios {
    /* A struct bio. */
    u64 bio;
    u64 left;
    u64 ns;
    u64 count;
    u32 meta;
    u32 kind;
    /* The last file, which is not counted yet. */
    struct key key;
    u64 inode;
    u64 bytes;
    u32 any;
    u32 dev;
};

/* Not static, like take_bio: the verifier checks a global function once, not at every call. To the verifier of a global
 * function its argument is not on the stack, and before Linux 6.2 such memory is no key of a map: the key is copied. */
__noinline int count_block(struct walk_of_bios *walk)
{
    struct counters *counters;
    struct key key;

    if (!walk || !walk->any)
        return 0;
    key = walk->key;
    counters = counters_of(&key, NULL, (void *)walk->inode, 1);
    if (counters)
        add(counters, walk->count, walk->bytes, walk->ns);
    return 0;
}

/* The inode of a bio; NULL where it is unknown. `whole` is the bio that it was made for, or the same one. */
static __always_inline struct inode *inode_of(struct bio *bio, struct bio *whole)
{
    u64 end = (u64)READ(whole, bi_end_io), vector, page, head, mapping;
    struct inode *inode;

    if (iomap_dio_bio_end_io && end == iomap_dio_bio_end_io) {
        struct iomap_dio *dio = READ(whole, bi_private);
        struct kiocb *iocb = READ(dio, iocb);
        struct file *file = READ(iocb, ki_filp);
        return READ(file, f_inode);
    }
    /* All pages of a bio are of one file. The whole one may have been advanced beyond its last page, and its part may
     * have other pages than it: encrypted ones. */
    vector = word_at(&whole->bi_io_vec);
    if (whole == bio)
        vector += (u64)READ(bio, bi_iter.bi_idx) * bpf_core_type_size(struct bio_vec);
    page = word_at(&((struct bio_vec *)vector)->bv_page);
    head = word_at(&((struct page *)page)->compound_head);
    if (head & 1)
        page = head - 1;
    mapping = word_at(&((struct page *)page)->mapping);
    /* Anonymous memory, or a kernel page that uses the field for something else. */
    if (!mapping || mapping & 3)
        return NULL;
    inode = READ((struct address_space *)mapping, host);
    return (u64)READ(inode, i_mapping) == mapping ? inode : NULL;
}

static __always_inline bool owner_of(struct bio *bio, u32 meta, struct file_id *id, u64 *at)
{
    u64 origin = origin_of((u64)bio);
    bool known = origin & ORIGIN_INODE;
    struct bio *whole = known ? bio : (void *)origin;
    struct inode *inode = known ? (void *)(origin - ORIGIN_INODE) : inode_of(bio, whole);
    u64 end = (u64)READ(whole, bi_end_io);
    struct block_device *device;
    u32 type = inode ? READ(inode, i_mode) & S_IFMT : 0;

    *at = 0;
    if (type == S_IFREG) {
        *at = (u64)inode;
        if (!identify_inode(inode, id))
            return false;
        return !only_chosen || bpf_map_lookup_elem(&used_files, id);
    }
    if (only_chosen || only_files)
        return false;
    id->ino = 0;
    device = READ(bio, bi_bdev);
    id->dev = READ(device, bd_dev);
    if (end && (end == blkdev_bio_end_io || end == blkdev_bio_end_io_simple || end == blkdev_bio_end_io_async))
        id->generation = OF_DEVICE;
    else
        id->generation = type == S_IFBLK || meta ? OF_FILE_SYSTEM : OF_NOBODY_KNOWN;
    return true;
}

/* Returns whether another bio may follow. */
__noinline int take_bio(struct walk_of_bios *walk)
{
    struct file_id id = {};
    struct bio *bio;
    u64 bytes, inode;
    bool wanted;

    if (!walk || !walk->bio || !walk->left)
        return 0;
    bio = (void *)walk->bio;
    bytes = READ(bio, bi_iter.bi_size);
    if (bytes > walk->left)
        bytes = walk->left;
    walk->left -= bytes;
    walk->bio = (u64)READ(bio, bi_next);
    wanted = owner_of(bio, walk->meta, &id, &inode);
    if (wanted && walk->any && walk->key.file.ino == id.ino && walk->key.file.dev == id.dev &&
        walk->key.file.generation == id.generation) {
        walk->bytes += bytes;
        return 1;
    }
    if (walk->any)
        count_block(walk);
    walk->any = wanted;
    walk->key.file = id;
    walk->inode = inode;
    walk->bytes = bytes;
    return 1;
}

static long one_bio(u32 i, struct walk_of_bios *walk)
{
    return !take_bio(walk);
}

/* NULL where no entry is free: the device is not compared then. */
static __always_inline struct seen *seen_of(u32 dev, u32 program)
{
    u32 first = dev * 0x9e3779b1U >> (32 - DEVICES_BITS), i;

#pragma unroll
    for (i = 0; i < DEVICE_PROBES_MAX; i++) {
        u32 index = ((first + i) & ((1 << DEVICES_BITS) - 1)) | program << DEVICES_BITS;
        struct seen *seen = bpf_map_lookup_elem(&devices, &index);
        if (!seen)
            break;
        if (seen->dev == dev)
            return seen;
        if (seen->dev)
            continue;
        seen->dev = dev;
        return seen;
    }
    return NULL;
}

/* Counts as blk_account_io_completion and blk_account_io_done do: bytes as they complete, the request when all of it
 * is done; where a flush follows the data, the data alone is not the request. */
static __always_inline void see(struct request *request, u32 bytes, u32 program)
{
    u32 op = request->cmd_flags & REQ_OP_MASK, flags = request->rq_flags, group;
    struct seen *seen;

    if (op == REQ_OP_DISCARD || (op != REQ_OP_FLUSH && !(flags & rq_counted)))
        return;
    seen = seen_of(request->q->disk->part0->bd_dev, program);
    if (!seen)
        return;
    group = op == REQ_OP_FLUSH ? GROUP_FLUSH : op & 1;
    if (group == GROUP_FLUSH) {
        seen->count[GROUP_FLUSH]++;
        return;
    }
    seen->bytes[group & 1] += bytes & ~511U;
    if (bytes >= request->__data_len && !(flags & rq_flush_sequence))
        seen->count[group & 1]++;
}

/* Most requests have one bio. */
static __always_inline void count_one(struct bio *bio, struct walk_of_bios *walk)
{
    struct counters *counters;

    if (!owner_of(bio, walk->meta, &walk->key.file, &walk->inode))
        return;
    counters = counters_of(&walk->key, NULL, (void *)walk->inode, 1);
    if (counters)
        add(counters, walk->count, walk->left, walk->ns);
}

static __always_inline int block_completed(struct request *request, u32 bytes, u32 program)
{
    u32 flags = request->cmd_flags;
    u64 start = request->start_time_ns;
    struct walk_of_bios walk = {};
    struct bio *bio;

    see(request, bytes, program);
    if (is_passed_on(request))
        return 0;
    switch (flags & REQ_OP_MASK) {
    case REQ_OP_READ: walk.kind = BLOCK_READ; break;
    /* The device counts all of these as writes; those without data are counted for no file. */
    case REQ_OP_SECURE_ERASE:
    case REQ_OP_ZONE_APPEND:
    case REQ_OP_WRITE_ZEROES:
    case REQ_OP_ZONE_APPEND_ONCE:
    case REQ_OP_WRITE: walk.kind = BLOCK_WRITE; break;
    case REQ_OP_FLUSH: walk.kind = BLOCK_SYNC; break;
    default: return 0;
    }
    walk.key.kind = walk.kind;
    walk.ns = start ? bpf_ktime_get_ns() - start : 0;
    if (walk.kind == BLOCK_SYNC) {
        if (only_chosen || only_files)
            return 0;
        walk.key.file.dev = request->q->disk->part0->bd_dev;
        walk.key.file.generation = OF_FILE_SYSTEM;
        walk.count = walk.any = 1;
        count_block(&walk);
        return 0;
    }
    if (!bytes)
        return 0;
    /* A request may complete in parts; the last part is counted as the request. */
    walk.count = bytes >= request->__data_len;
    walk.ns = walk.count ? walk.ns : 0;
    walk.left = bytes;
    walk.meta = flags & REQ_META;
    /* As a number: to the verifier a typed pointer is no argument of a global function. */
    bio = (void *)word_at(&request->bio);
    if (bio && READ(bio, bi_iter.bi_size) >= bytes) {
        count_one(bio, &walk);
        return 0;
    }
    walk.bio = (u64)bio;
    bpf_loop(BIOS_MAX, one_bio, &walk, 0);
    if (walk.left)
        lose(LOST_BIOS);
    count_block(&walk);
    return 0;
}

static __always_inline struct nested_state *nested_state(void)
{
    u32 index = 0;
    return bpf_map_lookup_elem(&nested, &index);
}

SEC("tp_btf/block_rq_complete")
int block_complete(u64 *ctx)
{
    struct nested_state *state = nested_state();

    if (!state)
        return 0;
    *(volatile u64 *)&state->first = 1;
    block_completed((void *)ctx[0], ctx[2], 0);
    *(volatile u64 *)&state->first = 0;
    return 0;
}

SEC("tp_btf/block_rq_complete")
int block_complete_2(u64 *ctx)
{
    struct nested_state *state = nested_state();

    if (!state || !*(volatile u64 *)&state->first)
        return 0;
    block_completed((void *)ctx[0], ctx[2], 1);
    __sync_fetch_and_add(&state->done, 1);
    return 0;
}
