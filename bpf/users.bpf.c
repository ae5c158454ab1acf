/* Counts the I/Os that each process queues on each disk. crates/observe/collect/src/process/users.rs reads it.
 *
 * An I/O is counted when it enters the block layer, in the thread that asked for it: before it is split or merged, and at
 * each device that it passes (a file on a loop device: the program there, a thread of the kernel on the disk below). What
 * the kernel writes back, and what a control group's limit made wait, comes from a thread of the kernel: process 0.
 */
#include "kernel.h"

/* Fields that kernel.h lacks. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___flags {
    unsigned int flags;
};
struct block_device___disk {
    struct gendisk *bd_disk;
};
#pragma clang attribute pop

enum {
    PF_KTHREAD = 0x00200000,
    OP_MASK = 0xff,
    OP_READ = 0,
    OP_FLUSH = 2,
    OP_DISCARD = 3,
    OP_SECURE_ERASE = 5,
};

/* Processes times disks; what is more is counted as the kernel's. */
#define USERS_MAX 4096

struct queued {
    u64 reads, read_bytes, writes, write_bytes;
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, USERS_MAX);
    __type(key, u64); /* tgid << 32 | number of the disk */
    __type(value, struct queued);
} users SEC(".maps");

static const struct queued none;

static __always_inline struct queued *queued_of(u64 key)
{
    struct queued *queued = bpf_map_lookup_elem(&users, &key);

    if (queued)
        return queued;
    bpf_map_update_elem(&users, &key, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&users, &key);
}

SEC("tp_btf/block_bio_queue")
int bio_queued(u64 *ctx)
{
    struct bio *bio = (void *)ctx[0];
    struct task_struct *task = bpf_get_current_task_btf();
    struct block_device___disk *device = (void *)bio->bi_bdev;
    u32 bytes = bio->bi_iter.bi_size, op = bio->bi_opf & OP_MASK;
    u64 disk = device->bd_disk->part0->bd_dev, tgid = task->tgid;
    struct queued *queued;

    /* A flush alone has no data. */
    if (!bytes || op == OP_FLUSH || op == OP_DISCARD || op == OP_SECURE_ERASE)
        return 0;
    if (((struct task_struct___flags *)task)->flags & PF_KTHREAD)
        tgid = 0;
    queued = queued_of(tgid << 32 | disk);
    if (!queued)
        queued = queued_of(disk);
    if (!queued)
        return 0;
    if (op == OP_READ) {
        __sync_fetch_and_add(&queued->reads, 1);
        __sync_fetch_and_add(&queued->read_bytes, bytes);
    } else {
        __sync_fetch_and_add(&queued->writes, 1);
        __sync_fetch_and_add(&queued->write_bytes, bytes);
    }
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
