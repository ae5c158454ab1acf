/* Whose I/O is counted, and of which file: all decisions before any counting. User space sets the constants before
 * the programs are loaded, so that features that are not selected cost nothing. */
#pragma once
#include "names.h"

/* False where no process and no cgroup is chosen: all processes except `own_tgid` are counted. */
const volatile bool only_chosen = false;
const volatile bool only_files = false;
const volatile u32 own_tgid = 0;
/* The cgroup whose members, and those of the cgroups below it, are counted; 0: none. */
const volatile u64 cgroup_id = 0;
const volatile u32 cgroup_level = 0;
/* The hierarchy of that cgroup. */
enum hierarchy {
    VERSION_2 = 0,
    CPUSET,
    CPU,
    CPUACCT,
    BLKIO,
    MEMORY,
    DEVICES,
    FREEZER,
    PIDS,
};
const volatile u32 cgroup_hierarchy = VERSION_2;

/* The chosen processes and their descendants, each with the chosen one that it comes from. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u32);
    __type(value, u32);
} chosen_processes SEC(".maps");

/* Files that chosen processes use, whose block I/O is counted. Empty where all processes are counted. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 262144);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct file_id);
    __type(value, u8);
} used_files SEC(".maps");

struct wanted_file {
    u64 ino;
    u64 dev;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct wanted_file);
    __type(value, u8);
} chosen_files SEC(".maps");

/* The running kernel's number of a version 1 controller. */
static __always_inline u32 controller_number(void)
{
    switch (cgroup_hierarchy) {
    case CPUSET: return bpf_core_enum_value(enum cgroup_subsys_id, cpuset_cgrp_id);
    case CPU: return bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
    case CPUACCT: return bpf_core_enum_value(enum cgroup_subsys_id, cpuacct_cgrp_id);
    case BLKIO: return bpf_core_enum_value(enum cgroup_subsys_id, io_cgrp_id);
    case MEMORY: return bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
    case DEVICES: return bpf_core_enum_value(enum cgroup_subsys_id, devices_cgrp_id);
    case FREEZER: return bpf_core_enum_value(enum cgroup_subsys_id, freezer_cgrp_id);
    default: return bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id);
    }
}

static __always_inline bool in_chosen_cgroup(struct task_struct *task)
{
    struct css_set *set = task->cgroups;
    struct cgroup *cgroup, *ancestor = NULL;

    if (cgroup_hierarchy == VERSION_2) {
        cgroup = set->dfl_cgrp;
    } else {
        struct cgroup_subsys_state *state = NULL;
        bpf_probe_read_kernel(&state, sizeof(state), &set->subsys[controller_number() & 31]);
        cgroup = BPF_CORE_READ(state, cgroup);
    }
    if (!cgroup || BPF_CORE_READ(cgroup, level) < (int)cgroup_level)
        return false;
    bpf_probe_read_kernel(&ancestor, sizeof(ancestor), &cgroup->ancestors[cgroup_level & 255]);
    return BPF_CORE_READ(ancestor, kn, id) == cgroup_id;
}

static __always_inline bool counted(struct task_struct *task)
{
    u32 tgid = task->tgid;

    if (!only_chosen)
        return tgid != own_tgid;
    if (bpf_map_lookup_elem(&chosen_processes, &tgid))
        return true;
    return cgroup_id && in_chosen_cgroup(task);
}

/* Files of these file systems show the kernel's state and store nothing. */
static __always_inline bool stores_nothing(u64 magic)
{
    switch (magic) {
    case 0x9fa0: /* proc */
    case 0x62656572: /* sysfs */
    case 0x27e0eb: /* cgroup */
    case 0x63677270: /* cgroup2 */
    case 0x64626720: /* debugfs */
    case 0x74726163: /* tracefs */
    case 0x73636673: /* securityfs */
    case 0xcafe4a11: /* bpf */
    case 0x62656570: /* configfs */
    case 0x6165676c: /* pstore */
    case 0xde5e81e4: /* efivarfs */
    case 0x42494e4d: /* binfmt_misc */
    case 0x09041934: /* anonymous inodes */
        return true;
    }
    return false;
}

static __always_inline bool identify_inode(struct inode *inode, struct file_id *id)
{
    u32 type = READ(inode, i_mode) & S_IFMT;
    struct super_block *sb;

    if (type == S_IFBLK) {
        id->ino = 0;
        id->generation = 0;
        id->dev = READ(inode, i_rdev);
    } else if (type == S_IFREG) {
        sb = READ(inode, i_sb);
        if (stores_nothing(READ(sb, s_magic)))
            return false;
        id->ino = READ(inode, i_ino);
        id->generation = READ(inode, i_generation);
        id->dev = READ(sb, s_dev);
    } else {
        return false;
    }
    if (only_files) {
        struct wanted_file wanted = { .ino = id->ino, .dev = id->dev };
        return bpf_map_lookup_elem(&chosen_files, &wanted);
    }
    return true;
}

static __always_inline u32 started_of(struct task_struct *task)
{
    return task->group_leader->start_boottime >> 20;
}

static __always_inline bool identify(struct file *file, struct task_struct *task, struct key *key)
{
    if (!identify_inode(READ(file, f_inode), &key->file))
        return false;
    key->tgid = task->tgid;
    key->started = started_of(task);
    key->zero = 0;
    return true;
}

/* The open file of a descriptor; NULL where there is none. */
static __always_inline struct file *file_of(struct task_struct *task, u64 fd)
{
    struct fdtable *table = task->files->fdt;

    if ((u32)fd >= table->max_fds)
        return NULL;
    return (struct file *)word_at(table->fd + (u32)fd);
}

/* Kinds of block I/O that belong to no file. Stored as the generation, at inode 0 of the device. */
enum {
    OF_DEVICE = 0,
    OF_FILE_SYSTEM = 1,
    OF_NOBODY_KNOWN = 2,
};
