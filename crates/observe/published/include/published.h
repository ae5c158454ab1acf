/* Counters of a storage engine for `headroom ... --source published:DATABASE`: the layout that the crate `published` draws in
 * layout.rs, version 1, and functions that write it. Linux, C11. Copy this file into an engine; its test is
 * tests/c_engine.rs, its example examples/engine.c.
 *
 *   struct headroom *counters = headroom_open("myengine", "/data/shop.db", HEADROOM_COMMITS);
 *   struct headroom_file *data = headroom_file(counters, HEADROOM_DATA, "/data/shop.db", 0);
 *   uint64_t begun = headroom_now();
 *   ssize_t got = pread(fd, page, 4096, at);
 *   headroom_read(data, got, headroom_now() - begun);
 *   headroom_commit(counters, waited_for_the_log_ns);
 *   headroom_close(counters);
 *
 * What counts takes no lock and makes no system call, may be called from any thread, and does nothing where `counters` or `file`
 * is NULL: where nothing can be published the engine goes on. After a fork the child must not count. */
#ifndef HEADROOM_PUBLISHED_H
#define HEADROOM_PUBLISHED_H

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

typedef _Atomic uint64_t headroom_counter;

/* What is counted besides I/O; a counter that is not named here is unknown to readers, not 0. */
enum { HEADROOM_TIMES = 1, HEADROOM_COMMITS = 2, HEADROOM_WRITER_TIME = 4, HEADROOM_LOG_RECORDS = 8, HEADROOM_ONE_BY_ONE = 16 };
enum { HEADROOM_DATA, HEADROOM_LOG, HEADROOM_JOURNAL, HEADROOM_TEMP, HEADROOM_OTHER };
/* Reads bypass the page cache; a write that has ended is durable without a sync. */
enum { HEADROOM_BYPASSES_CACHE = 1, HEADROOM_DURABLE_AT_END = 2 };
enum { HEADROOM_SLOTS = 1024, HEADROOM_PATH = 1024, HEADROOM_BUCKETS = 156, HEADROOM_INSTANCES = 16 };

struct headroom_file {
  _Alignas(64) _Atomic uint32_t state;
  uint32_t generation, kind, path_bytes;
  uint64_t device, inode;
  uint32_t way;
  _Alignas(64) headroom_counter read_bytes;
  headroom_counter read_ns, reads_short, reads_empty, read_errors, fetches, fetched_bytes;
  _Alignas(64) headroom_counter write_bytes;
  headroom_counter write_ns, write_errors;
  _Alignas(64) headroom_counter sync_ns;
  headroom_counter sync_errors, truncates, truncate_ns, truncate_errors;
  _Alignas(64) char path[HEADROOM_PATH];
  headroom_counter reads[HEADROOM_BUCKETS], writes[HEADROOM_BUCKETS], syncs[HEADROOM_BUCKETS], unused[12];
};

/* The whole file. */
struct headroom_table {
  _Alignas(4096) _Atomic uint64_t magic;
  uint32_t version, slot_bytes, slots_max;
  _Atomic uint32_t slots_used;
  uint32_t pid, counted;
  uint64_t start_ticks, pid_namespace;
  headroom_counter files_lost;
  uint64_t device, inode;
  char boot_id[36];
  _Atomic uint32_t closed;
  char engine[16];
  headroom_counter commits, log_wait_ns, writer_ns, log_records, log_record_bytes, unused[3];
  uint32_t path_bytes, unused_word;
  char path[HEADROOM_PATH];
  uint64_t opened_ns;
  _Alignas(4096) struct headroom_file files[HEADROOM_SLOTS];
};

_Static_assert(sizeof(struct headroom_file) == 5120 && sizeof(struct headroom_table) == 4096 + 1024 * 5120, "sizes");

/* A database that this process has open. */
struct headroom {
  struct headroom_table *table;
  pthread_mutex_t opening;
  char name[4096];
};

static inline uint64_t headroom_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Four buckets an octave; one for each nanosecond below 4. */
static inline unsigned headroom_bucket(uint64_t ns) {
  if (ns < 4) return (unsigned)ns;
  unsigned exponent = 63u - (unsigned)__builtin_clzll(ns);
  unsigned index = 4 * (exponent - 1) + (unsigned)(ns >> (exponent - 2) & 3);
  return index < HEADROOM_BUCKETS ? index : HEADROOM_BUCKETS - 1;
}

static inline void headroom_add(headroom_counter *counter, uint64_t more) {
  atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* `result` is that of the call: bytes, or negative where it failed. A read at the end of the file returns 0. */
static inline void headroom_read(struct headroom_file *file, int64_t result, uint64_t ns) {
  if (!file) return;
  if (result <= 0) { headroom_add(result ? &file->read_errors : &file->reads_empty, 1); return; }
  headroom_add(&file->read_bytes, (uint64_t)result);
  headroom_add(&file->read_ns, ns);
  headroom_add(&file->reads[headroom_bucket(ns)], 1);
}

static inline void headroom_write(struct headroom_file *file, int64_t result, uint64_t ns) {
  if (!file) return;
  if (result < 0) { headroom_add(&file->write_errors, 1); return; }
  headroom_add(&file->write_bytes, (uint64_t)result);
  headroom_add(&file->write_ns, ns);
  headroom_add(&file->writes[headroom_bucket(ns)], 1);
}

static inline void headroom_sync(struct headroom_file *file, int result, uint64_t ns) {
  if (!file) return;
  if (result < 0) { headroom_add(&file->sync_errors, 1); return; }
  headroom_add(&file->sync_ns, ns);
  headroom_add(&file->syncs[headroom_bucket(ns)], 1);
}

static inline void headroom_commit(struct headroom *counters, uint64_t waited_for_the_log_ns) {
  if (!counters) return;
  headroom_add(&counters->table->commits, 1);
  headroom_add(&counters->table->log_wait_ns, waited_for_the_log_ns);
}

/* One transaction at a time has the turn to write; it had it for so long. */
static inline void headroom_turn(struct headroom *counters, uint64_t ns) {
  if (counters) headroom_add(&counters->table->writer_ns, ns);
}

static inline void headroom_record(struct headroom *counters, uint64_t bytes) {
  if (!counters) return;
  headroom_add(&counters->table->log_records, 1);
  headroom_add(&counters->table->log_record_bytes, bytes);
}

static inline size_t headroom_read_text(const char *path, char *text, size_t bytes) {
  FILE *file = fopen(path, "r");
  size_t got = file ? fread(text, 1, bytes, file) : 0;
  if (file) fclose(file);
  return got;
}

/* This process: its start time, pid namespace and boot. 0 where /proc cannot be read. */
static inline int headroom_identify(struct headroom_table *table) {
  char text[1024] = "";
  struct stat space;
  headroom_read_text("/proc/self/stat", text, sizeof text - 1);
  char *field = strrchr(text, ')');
  for (int at = 2; field && at < 22; at++) field = strchr(field + 1, ' ');
  size_t got = headroom_read_text("/proc/sys/kernel/random/boot_id", table->boot_id, sizeof table->boot_id);
  if (!field || got != sizeof table->boot_id || stat("/proc/self/ns/pid", &space)) return 0;
  table->pid = (uint32_t)getpid();
  table->start_ticks = strtoull(field, NULL, 10);
  table->pid_namespace = space.st_ino;
  return 1;
}

/* Fills in the head, the magic last: a reader sees a complete one or none. */
static inline int headroom_begin(struct headroom_table *table, const char *engine, const char *database, uint32_t counted) {
  static const union { char text[8]; uint64_t number; } magic = {"HDRMPUB1"};
  char *path = realpath(database, NULL);
  struct stat found;
  size_t bytes = path ? strlen(path) : 0;
  int known = bytes && bytes <= HEADROOM_PATH && !stat(path, &found) && strlen(engine) <= sizeof table->engine &&
              headroom_identify(table);
  if (known) {
    table->version = 1;
    table->slot_bytes = sizeof(struct headroom_file);
    table->slots_max = HEADROOM_SLOTS;
    table->counted = counted | HEADROOM_TIMES;
    table->device = (uint64_t)major(found.st_dev) << 32 | minor(found.st_dev);
    table->inode = found.st_ino;
    memcpy(table->engine, engine, strlen(engine));
    memcpy(table->path, path, bytes);
    table->path_bytes = (uint32_t)bytes;
    table->opened_ns = headroom_now();
    atomic_store_explicit(&table->magic, magic.number, memory_order_release);
  }
  free(path);
  return known;
}

static inline void headroom_close(struct headroom *counters) {
  if (!counters) return;
  atomic_store_explicit(&counters->table->closed, 1, memory_order_relaxed);
  unlink(counters->name);
  munmap(counters->table, sizeof *counters->table);
  pthread_mutex_destroy(&counters->opening);
  free(counters);
}

/* `engine`: 1 to 16 of a-z and 0-9; `database`: its file or directory, which exists. NULL where nothing can be published. */
static inline struct headroom *headroom_open(const char *engine, const char *database, uint32_t counted) {
  struct headroom *counters = calloc(1, sizeof *counters);
  const char *dir = getenv("HEADROOM_COUNTERS_DIR");
  int fd = -1;
  for (int instance = 0; counters && fd < 0 && instance < HEADROOM_INSTANCES; instance++) {
    snprintf(counters->name, sizeof counters->name, "%s/headroom-%ld-%d.counters", dir && *dir ? dir : "/dev/shm",
             (long)getpid(), instance);
    fd = open(counters->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }
  if (fd < 0) return free(counters), NULL;
  pthread_mutex_init(&counters->opening, NULL);
  counters->table = MAP_FAILED;
  /* Storage is reserved first: a full /dev/shm would kill the program at the first access. */
  if (!ftruncate(fd, sizeof *counters->table) && !posix_fallocate(fd, 0, 4096))
    counters->table = mmap(NULL, sizeof *counters->table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (counters->table == MAP_FAILED) {
    unlink(counters->name);
    return free(counters), NULL;
  }
  if (!headroom_begin(counters->table, engine, database, counted)) {
    headroom_close(counters);
    return NULL;
  }
  return counters;
}

/* A file of the engine's, once for each path. NULL where no slot is free; it is counted as lost. */
static inline struct headroom_file *headroom_file(struct headroom *counters, uint32_t kind, const char *path, uint32_t way) {
  if (!counters) return NULL;
  struct headroom_file *file = NULL;
  struct stat found;
  size_t bytes = strlen(path);
  pthread_mutex_lock(&counters->opening);
  uint32_t at = atomic_load_explicit(&counters->table->slots_used, memory_order_relaxed);
  int fd = bytes <= HEADROOM_PATH && at < HEADROOM_SLOTS ? open(counters->name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (fd >= 0 && !posix_fallocate(fd, 4096 + (off_t)at * (off_t)sizeof *file, sizeof *file)) {
    file = &counters->table->files[at];
    file->generation = 1;
    file->kind = kind;
    file->way = way;
    if (!stat(path, &found)) {
      file->device = (uint64_t)major(found.st_dev) << 32 | minor(found.st_dev);
      file->inode = found.st_ino;
    }
    memcpy(file->path, path, bytes);
    file->path_bytes = (uint32_t)bytes;
    atomic_store_explicit(&file->state, 1, memory_order_release);
    atomic_store_explicit(&counters->table->slots_used, at + 1, memory_order_release);
  } else {
    headroom_add(&counters->table->files_lost, 1);
  }
  if (fd >= 0) close(fd);
  pthread_mutex_unlock(&counters->opening);
  return file;
}
#endif
