/* Preloaded into redis-server by stepped-clock.ts: the wall clock is off by what the file says, in microseconds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset_micros;

__attribute__((constructor)) static void open_offset(void) {
  const char *path = getenv("STEPPED_CLOCK_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) offset_micros = page;
  close(file);
}

/* The system call itself: looking for the library's function would allocate, which is too early at start. */
int clock_gettime(clockid_t id, struct timespec *at) {
  int failed = (int)syscall(SYS_clock_gettime, id, at);
  if (failed || !offset_micros || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
  int64_t nanos = at->tv_nsec + (*offset_micros % 1000000) * 1000;
  int64_t carry = nanos < 0 ? -1 : nanos >= 1000000000 ? 1 : 0;
  at->tv_sec += *offset_micros / 1000000 + carry;
  at->tv_nsec = nanos - carry * 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
