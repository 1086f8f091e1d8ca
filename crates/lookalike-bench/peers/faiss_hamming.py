"""FAISS on the rows of the benchmark: an exact multi-hash of four times 16 bits, and its time and size."""

import resource
import sys
import time

import faiss
import numpy

faiss.omp_set_num_threads(1)
rows = numpy.fromfile(sys.argv[1], dtype="<u8").view("u1").reshape(-1, 8)
queries = numpy.fromfile(sys.argv[2], dtype="<u8").view("u1").reshape(-1, 8)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


before, started = resident(), time.process_time()
index = faiss.IndexBinaryMultiHash(64, 4, 16)
index.nflip = 0
index.add(rows)
seconds = time.process_time() - started
size = (resident() - before) / len(rows)

some = queries[:4000]
for query in some[:200]:
    index.range_search(query.reshape(1, 8), 4)
times = []
found = 0
for query in some:
    started = time.perf_counter()
    limits, _, _ = index.range_search(query.reshape(1, 8), 4)
    times.append(time.perf_counter() - started)
    found += int(limits[1]) > 0
times = numpy.sort(numpy.array(times)) * 1e6
started = time.process_time()
index.range_search(some, 4)
many = time.process_time() - started
print(
    f"FAISS {faiss.__version__} IndexBinaryMultiHash 4 x 16: build {seconds:.1f} CPU s, {size:.1f} bytes per row, "
    f"p50 {times[len(times) // 2]:.0f} µs, p99 {times[len(times) * 99 // 100]:.0f} µs, "
    f"{len(some) / many:.0f} queries a CPU-second in a batch; {found} of {len(some)} with a match"
)
