/* Only the fields of the kernel's structures that the programs read: each is found by its name in the running
 * kernel's BTF (CO-RE), so that neither the order of fields nor the size of a structure matters. */
#pragma once

#include <linux/types.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs___x86 {
    unsigned long di, si, dx, r10, r8, orig_ax;
};
struct pt_regs___x86_more {
    unsigned long r9;
};
struct pt_regs___arm64 {
    u64 regs[31];
    int syscallno;
};

struct qstr {
    u32 len;
    const unsigned char *name;
};
struct hlist_node {
    struct hlist_node *next;
};
struct hlist_head {
    struct hlist_node *first;
};
struct dentry {
    struct dentry *d_parent;
    struct qstr d_name;
    struct inode *d_inode;
    struct {
        struct hlist_node d_alias;
    } d_u;
};
struct super_block {
    u32 s_dev;
    unsigned long s_magic;
};
struct inode {
    u16 i_mode;
    struct super_block *i_sb;
    struct address_space *i_mapping;
    unsigned long i_ino;
    u32 i_rdev;
    u32 i_generation;
    const unsigned int i_nlink;
    struct hlist_head i_dentry;
    s64 i_size;
};
struct vfsmount {
    struct dentry *mnt_root;
};
struct mount {
    struct mount *mnt_parent;
    struct dentry *mnt_mountpoint;
    struct vfsmount mnt;
};
struct path {
    struct vfsmount *mnt;
    struct dentry *dentry;
};
struct file {
    u32 f_flags;
    struct inode *f_inode;
    const struct path f_path;
    s64 f_pos;
};
struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};
struct files_struct {
    struct fdtable *fdt;
};

struct kernfs_node {
    u64 id;
};
struct cgroup {
    int level;
    struct kernfs_node *kn;
    struct cgroup *ancestors[1];
};
struct cgroup_subsys_state {
    struct cgroup *cgroup;
};
struct css_set {
    struct cgroup_subsys_state *subsys[1];
    struct cgroup *dfl_cgrp;
};
struct thread_info {
    u32 status;
};
struct kioctx {
    unsigned long user_id;
};
struct kioctx_table {
    unsigned int nr;
    struct kioctx *table[1];
};
struct mm_struct {
    struct kioctx_table *ioctx_table;
};
/* Stands for any structure that begins with a 64-bit number. */
struct timespec64 {
    s64 tv_sec;
};
struct task_struct {
    struct thread_info thread_info;
    int pid;
    int tgid;
    u64 start_boottime;
    unsigned long min_flt, maj_flt;
    char comm[16];
    struct mm_struct *mm;
    struct task_struct *group_leader;
    struct files_struct *files;
    struct css_set *cgroups;
};

struct address_space {
    struct inode *host;
};
struct folio {
    struct address_space *mapping;
};
struct page {
    struct address_space *mapping;
    unsigned long compound_head;
};
struct vm_area_struct {
    struct file *vm_file;
};
struct vm_fault {
    struct vm_area_struct *vma;
    unsigned long pgoff;
};

struct kiocb {
    struct file *ki_filp;
    s64 ki_pos;
    int ki_flags;
    void *ki_complete;
};
struct io_event {
    u64 obj;
};
struct aio_kiocb {
    struct kioctx *ki_ctx;
    struct io_event ki_res;
};
struct io_kiocb {
    struct file *file;
    u8 opcode;
};
struct io_rw {
    struct kiocb kiocb;
    int flags;
};
struct io_sync {
    int flags;
};
struct io_uring_cqe {
    int res;
};
struct iomap_dio {
    struct kiocb *iocb;
    s64 i_size;
    s64 size;
    unsigned int flags;
    int error;
};

struct bio_vec {
    struct page *bv_page;
};
struct bvec_iter {
    unsigned int bi_size;
    unsigned int bi_idx;
};
struct bio {
    struct bio *bi_next;
    struct block_device *bi_bdev;
    u32 bi_opf;
    struct bvec_iter bi_iter;
    void *bi_end_io;
    void *bi_private;
    struct bio_vec *bi_io_vec;
};
struct block_device {
    u32 bd_dev;
};
struct request {
    u32 cmd_flags;
    u32 rq_flags;
    unsigned int __data_len;
    struct bio *bio;
    u64 start_time_ns;
    struct request_queue *q;
};
struct gendisk {
    struct block_device *part0;
};
struct request_queue {
    struct gendisk *disk;
    const void *mq_ops;
};

#pragma clang attribute pop

/* Map helpers return a long since Linux 6.3 and an int before, whose upper half is not defined: their results are kept
 * in an int. */

/* READ(pointer, field) reads a field of a kernel structure at any address. Where the kernel can make a typed pointer
 * from an address (bpf_rdonly_cast, since Linux 6.2), it is one load, which returns zero at an address that cannot
 * be read. Elsewhere it is a call of bpf_probe_read_kernel, which costs ten times as much. User space knows which, and
 * replaces this function's id by the kernel's (crates/observe/collect/src/process/casts.rs). */
const volatile bool casts = false;
static void *(*rdonly_cast)(const void *address, u64 type) = (void *)0x6b66756e;

#define TYPED(pointer) \
    ((typeof(pointer))rdonly_cast((pointer), bpf_core_type_id_kernel(typeof(*(pointer)))))
#define READ(pointer, field) (casts ? TYPED(pointer)->field : BPF_CORE_READ(pointer, field))

/* The word at an address, as a number: its lower bits may be flags. */
static __always_inline u64 word_at(const void *address)
{
    u64 word = 0;

    if (casts)
        return TYPED((struct timespec64 *)address)->tv_sec;
    bpf_probe_read_kernel(&word, sizeof(word), address);
    return word;
}

enum cgroup_subsys_id {
    cpuset_cgrp_id,
    cpu_cgrp_id,
    cpuacct_cgrp_id,
    io_cgrp_id,
    memory_cgrp_id,
    devices_cgrp_id,
    freezer_cgrp_id,
    pids_cgrp_id,
};

enum {
    S_IFMT = 0170000,
    S_IFREG = 0100000,
    S_IFBLK = 0060000,
    TS_COMPAT = 2,
};
