"""Libraries that change what the system does for one process."""

import subprocess

# A sync does not come back while a file exists.
HANGING_SYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static void wait_for_it(void) {
    const char *flag = getenv("HANG_WHILE");
    while (flag && access(flag, F_OK) == 0) usleep(5000);
}
int fsync(int fd) { wait_for_it(); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
int fdatasync(int fd) { wait_for_it(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
"""

# It is 1960.
OLD_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = ((int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime"))(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec -= 66L * 365 * 86400 + 16 * 86400 + 31536000L;
    return done;
}
"""


def compiled(directory, source):
    """The library of a source."""
    (directory / "preload.c").write_text(source)
    library = directory / "preload.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, directory / "preload.c", "-ldl"], check=True)
    return library


class HangingSync:
    """Syncs of a service hang from `start` to `end`."""

    def __init__(self, directory):
        self.flag = directory / "hang"
        self.environment = {"LD_PRELOAD": str(compiled(directory, HANGING_SYNC)), "HANG_WHILE": str(self.flag)}

    def start(self):
        self.flag.touch()

    def end(self):
        self.flag.unlink(missing_ok=True)
