/* A program named "postgres" whose memory answers no read: a thread reads a page of a file of this program's own FUSE file system,
 * which is never answered, and holds the lock of the memory meanwhile; another thread waits to change the memory. From then on a
 * read of /proc/PID/cmdline, environ or maps waits. Arguments: a node of /dev/fuse, a directory. Prints "ready".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static char *mapped;
static unsigned user, group;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void write_text(const char *path, const char *text) {
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, text, strlen(text)) < 0) fail(path);
    close(file);
}

static void *hold_lock(void *unused) {
    char byte;
    int memory = open("/proc/self/mem", O_RDONLY);
    if (pread(memory, &byte, 1, (off_t)mapped) < 0) perror("pread");
    return unused;
}

static void *wait_for_lock(void *unused) {
    mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return unused;
}

static void hang(const char *directory) {
    pthread_t holder, waiter;
    char path[4096];
    snprintf(path, sizeof path, "%s/file", directory);
    int file = open(path, O_RDWR);
    if (file < 0) fail("open");
    mapped = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) fail("mmap");
    pthread_create(&holder, 0, hold_lock, 0);
    usleep(100000);
    pthread_create(&waiter, 0, wait_for_lock, 0);
    for (;;) pause();
}

/* Answers all that is needed to map the file; a read is never answered. */
static void serve(int device) {
    static char request[1 << 18];
    for (;;) {
        if (read(device, request, sizeof request) < 0) continue;
        struct fuse_in_header *in = (void *)request;
        struct fuse_init_in *init = (void *)(in + 1);
        struct {
            struct fuse_out_header head;
            union {
                struct fuse_init_out init;
                struct fuse_attr_out attributes;
                struct fuse_entry_out entry;
                struct fuse_open_out opened;
            };
        } answer = {.head.unique = in->unique};
        struct fuse_attr file = {.ino = 2, .mode = S_IFREG | 0666, .nlink = 1, .size = 1 << 20, .uid = user, .gid = group};
        size_t bytes = 0;
        switch (in->opcode) {
            case FUSE_INIT:
                answer.init = (struct fuse_init_out){.major = 7, .minor = init->minor, .max_write = 4096};
                bytes = sizeof answer.init;
                break;
            case FUSE_LOOKUP:
                answer.entry = (struct fuse_entry_out){.nodeid = 2, .entry_valid = 999, .attr_valid = 999, .attr = file};
                bytes = sizeof answer.entry;
                break;
            case FUSE_GETATTR:
                if (in->nodeid == 1) file.mode = S_IFDIR | 0755;
                answer.attributes = (struct fuse_attr_out){.attr_valid = 999, .attr = file};
                bytes = sizeof answer.attributes;
                break;
            case FUSE_OPEN:
                bytes = sizeof answer.opened;
                break;
            case FUSE_READ:
                puts("ready");
                fflush(stdout);
                continue;
            case FUSE_FORGET:
            case FUSE_INTERRUPT:
                continue;
            default:
                answer.head.error = -38; /* ENOSYS */
        }
        answer.head.len = sizeof answer.head + bytes;
        if (write(device, &answer, answer.head.len) < 0) perror("answer");
    }
}

/* The process that was to hang has ended. */
static void give_up(int signal) {
    _exit(signal);
}

int main(int count, char **arguments) {
    char text[200];
    user = getuid();
    group = getgid();
    if (count != 3) return 2;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) fail("unshare");
    write_text("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1", user, user);
    write_text("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%u %u 1", group, group);
    write_text("/proc/self/gid_map", text);
    int device = open(arguments[1], O_RDWR);
    if (device < 0) fail(arguments[1]);
    snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", device, user, group);
    if (mount("fuse", arguments[2], "fuse", MS_NOSUID | MS_NODEV, text)) fail("mount");
    signal(SIGCHLD, give_up);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, 9);
        close(device);
        hang(arguments[2]);
    }
    prctl(PR_SET_NAME, "server");
    serve(device);
}
