/* From a bio at a disk to the I/O that it is a part of. Device mapper, md, btrfs and the kernel's own splitting make bios of
 * another bio, or of a file, and keep that in a structure of their own:
 *
 *   bio.bi_end_io = clone_endio                      the function identifies the structure
 *   dm_target_io { ..., clone }                      which holds the bio, or is its bi_private
 *   dm_target_io.io -> dm_io.orig_bio -> bio         a link: the fields that lead to the next bio
 *
 * These structures are those of modules, whose BTF the loader does not know: user space looks up the functions and the
 * offsets (crates/observe/collect/src/process/links.rs), again whenever one of the modules was loaded.
 */
#pragma once
#include "kernel.h"

/* No field: of `holder`, bi_private is the structure; of `first`, the structure is the next bio itself. */
#define NO_OFFSET (~0U)
enum leads {
    TO_BIO = 0,
    TO_INODE,
    /* To a function and its argument, which identify another structure. */
    TO_CALL,
};
struct link {
    /* The address of the function. */
    u64 end;
    /* The offset of the bio in the structure. */
    u32 holder;
    /* The pointer in the structure, and the one in what that points to. Of TO_CALL: the function and its argument. */
    u32 first;
    u32 second;
    /* Added to the last pointer. */
    u32 added;
    u32 leads;
    u32 zero;
};
#define LINKS_MAX 16
struct links {
    struct link link[LINKS_MAX];
    u64 count;
    /* The operations of device mapper's own requests (multipath), which are counted as those that they make of a path; 0: none. */
    u64 mapper_requests;
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct links);
} links SEC(".maps");

/* LVM on md on partitions has 5, with encryption 6. */
#define STEPS_MAX 8
/* Set in the result where it is an inode: both are aligned. */
#define ORIGIN_INODE 1

static __always_inline struct link *link_of(struct links *links, u64 end)
{
    u32 i;

#pragma unroll
    for (i = 0; i < LINKS_MAX; i++) {
        if (i >= links->count)
            break;
        if (links->link[i].end == end)
            return &links->link[i];
    }
    return NULL;
}

/* Whether a request is passed on as another one of a device below. */
static __always_inline bool is_passed_on(struct request *request)
{
    u32 zero = 0;
    struct links *table = bpf_map_lookup_elem(&links, &zero);

    return table && table->mapper_requests && (u64)request->q->mq_ops == table->mapper_requests;
}

/* The way from a bio to what it was made from. */
struct origin {
    u64 bio;
    u64 end;
    u64 private;
    /* 0 as long as none is found. */
    u64 inode;
};

/* Returns whether that was the last step. */
static long one_step(u32 i, struct origin *at)
{
    u32 zero = 0;
    struct links *table = bpf_map_lookup_elem(&links, &zero);
    struct link *link = table ? link_of(table, at->end) : NULL;
    u64 structure, next;

    if (!link)
        return 1;
    structure = link->holder == NO_OFFSET ? at->private : at->bio - link->holder;
    next = link->first == NO_OFFSET ? structure : word_at((void *)(structure + link->first));
    if (link->leads == TO_CALL) {
        at->end = next;
        at->private = word_at((void *)(structure + link->second));
        return 0;
    }
    if (link->second != NO_OFFSET)
        next = word_at((void *)(next + link->second));
    if (!next)
        return 1;
    next += link->added;
    if (link->leads == TO_INODE) {
        at->inode = next;
        return 1;
    }
    at->bio = next;
    at->end = word_at(&((struct bio *)next)->bi_end_io);
    at->private = word_at(&((struct bio *)next)->bi_private);
    return 0;
}

/* The bio from which a bio was made, which may be the same one, or the inode (| ORIGIN_INODE) for which. Global, so that the
 * verifier checks it once. */
__noinline u64 origin_of(u64 bio)
{
    struct origin at = {
        .bio = bio,
        .end = word_at(&((struct bio *)bio)->bi_end_io),
        .private = word_at(&((struct bio *)bio)->bi_private),
    };

    bpf_loop(STEPS_MAX, one_step, &at, 0);
    return at.inode ? at.inode | ORIGIN_INODE : at.bio;
}
