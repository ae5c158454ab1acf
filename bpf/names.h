/* The name of a file, recorded when it is first seen: it remains when the file is closed or deleted, or its
 * process and mount namespace have ended. */
#pragma once
#include "counters.h"

#define NAME_BYTES 1024
#define COMPONENT_MAX 255
#define COMPONENTS_MAX 40

/* `bytes` holds the components from the last one up, each ended by '/':
 *   [0, mount_end)      from the file to the root of its mount
 *   [mount_end, fs_end) from there to the root of its file system (a bind mount shows a part of it)
 *   [fs_end, end)       from where it is mounted to the root of the process's mount namespace
 */
struct name {
    u32 mode;
    u32 links;
    u32 magic;
    u16 mount_end;
    u16 fs_end;
    u16 end;
    u8 truncated;
    u8 mounted;
    u8 bytes[NAME_BYTES + COMPONENT_MAX + 1];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8192);
    __type(key, struct file_id);
    __type(value, struct name);
} names SEC(".maps");

/* Entry 0 for programs that run in a task, 1 for those of interrupts. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 2);
    __type(key, u32);
    __type(value, struct name);
} scratch SEC(".maps");

/* Adds a component; false where it does not fit. The length so far is kept in memory, not in a register: the
 * verifier would otherwise check each possible length. */
static __always_inline bool append(struct name *name, struct dentry *dentry)
{
    const unsigned char *text = BPF_CORE_READ(dentry, d_name.name);
    u32 length = BPF_CORE_READ(dentry, d_name.len);
    u32 at = *(volatile u16 *)&name->end;

    if (at >= NAME_BYTES || length > COMPONENT_MAX) {
        name->truncated = 1;
        return false;
    }
    if (bpf_probe_read_kernel(&name->bytes[at], length, text))
        return false;
    at += length;
    name->bytes[at] = '/';
    *(volatile u16 *)&name->end = at + 1;
    return true;
}

/* Not static: the verifier checks a global function once, not at every call. */
__noinline int walk(struct name *name, u64 dentry_address, u64 mnt_address)
{
    struct dentry *dentry = (void *)dentry_address;
    struct vfsmount *mnt = (void *)mnt_address;
    struct dentry *root = mnt ? BPF_CORE_READ(mnt, mnt_root) : NULL;
    struct mount *mount;
    int i;

    if (!name)
        return 0;
    for (i = 0; i < COMPONENTS_MAX; i++) {
        struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
        if (dentry == root)
            name->mount_end = name->end;
        if (!parent || parent == dentry)
            break;
        if (!append(name, dentry))
            break;
        dentry = parent;
    }
    if (i == COMPONENTS_MAX)
        name->truncated = 1;
    name->fs_end = name->end;
    if (!mnt)
        return 0;
    mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
    dentry = root;
    for (i = 0; i < COMPONENTS_MAX; i++) {
        if (dentry == root) {
            struct mount *above = BPF_CORE_READ(mount, mnt_parent);
            if (!above || above == mount)
                break;
            dentry = BPF_CORE_READ(mount, mnt_mountpoint);
            mount = above;
            root = BPF_CORE_READ(mount, mnt.mnt_root);
            continue;
        }
        if (!append(name, dentry))
            break;
        dentry = BPF_CORE_READ(dentry, d_parent);
    }
    if (i == COMPONENTS_MAX)
        name->truncated = 1;
    name->mounted = 1;
    return 0;
}

/* Records the name of an inode: the path by which it was opened, or one of its names where no file is known. */
static __noinline int keep_name(struct file_id *id, struct inode *inode, struct file *file, u32 context)
{
    struct vfsmount *mnt = NULL;
    struct dentry *dentry;
    struct name *name;
    int error;

    if (!id || bpf_map_lookup_elem(&names, id))
        return 0;
    name = bpf_map_lookup_elem(&scratch, &context);
    if (!name)
        return 0;
    name->mode = BPF_CORE_READ(inode, i_mode);
    name->links = BPF_CORE_READ(inode, i_nlink);
    name->magic = BPF_CORE_READ(inode, i_sb, s_magic);
    name->mount_end = name->fs_end = name->end = 0;
    name->truncated = name->mounted = 0;
    if (file) {
        dentry = BPF_CORE_READ(file, f_path.dentry);
        mnt = BPF_CORE_READ(file, f_path.mnt);
    } else {
        struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
        dentry = alias ? (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias) : NULL;
    }
    if (dentry)
        walk(name, (u64)dentry, (u64)mnt);
    error = bpf_map_update_elem(&names, id, name, BPF_NOEXIST);
    if (error && error != -EEXIST)
        lose(LOST_NAMES_FULL);
    return 0;
}
