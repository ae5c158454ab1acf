/* A storage engine of a page: it logs each change, syncs the log, writes the page, and publishes what that costs.
 *
 *   cc -std=c11 -D_GNU_SOURCE -O2 -I../include -o engine engine.c && ./engine DIRECTORY COMMITS
 *   headroom watch --source published:DIRECTORY
 *
 * It prints "ready" after its commits and goes on until its standard input ends. */
#include "published.h"

enum { PAGE = 4096, RECORD = 64 };

static int open_in(const char *directory, const char *name, char *path, size_t bytes) {
  snprintf(path, bytes, "%s/%s", directory, name);
  return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "usage: engine DIRECTORY COMMITS\n"), 2;
  char data_path[4096], log_path[4096], page[PAGE] = {0}, record[RECORD] = {0};
  int data_fd = open_in(arguments[1], "data", data_path, sizeof data_path);
  int log_fd = open_in(arguments[1], "log", log_path, sizeof log_path);
  if (data_fd < 0 || log_fd < 0) return perror(arguments[1]), 1;
  struct headroom *counters =
      headroom_open("example", arguments[1], HEADROOM_COMMITS | HEADROOM_WRITER_TIME | HEADROOM_LOG_RECORDS);
  struct headroom_file *data = headroom_file(counters, HEADROOM_DATA, data_path, 0);
  struct headroom_file *log = headroom_file(counters, HEADROOM_LOG, log_path, 0);
  long commits = atol(arguments[2]);
  for (long at = 0; at < commits; at++) {
    uint64_t turn = headroom_now();
    record[0] = page[0] = (char)at;
    uint64_t begun = headroom_now();
    ssize_t written = pwrite(log_fd, record, sizeof record, at * RECORD);
    headroom_write(log, written, headroom_now() - begun);
    headroom_record(counters, sizeof record);
    uint64_t syncing = headroom_now();
    int synced = fdatasync(log_fd);
    headroom_sync(log, synced, headroom_now() - syncing);
    headroom_commit(counters, headroom_now() - begun);
    headroom_turn(counters, headroom_now() - turn);
    begun = headroom_now();
    headroom_write(data, pwrite(data_fd, page, sizeof page, 0), headroom_now() - begun);
  }
  uint64_t begun = headroom_now();
  headroom_read(data, pread(data_fd, page, sizeof page, 0), headroom_now() - begun);
  headroom_read(data, pread(data_fd, page, sizeof page, PAGE), headroom_now() - begun);
  puts(counters ? "ready" : "ready, without counters");
  fflush(stdout);
  while (getchar() != EOF) {}
  headroom_close(counters);
  return 0;
}
