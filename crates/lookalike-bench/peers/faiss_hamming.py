"""FAISS on the rows of the benchmark: an exact multi-hash of four times 16 bits, and its time and size, as JSON.

    faiss_hamming.py build ROWS INDEX
    faiss_hamming.py ask INDEX WARMING TIMED COLD

The second loads the index, in a process of its own, from a file that is not in the page cache. The first COLD queries
are cold, the rest of WARMING warm it up, TIMED are timed.
"""

import json
import os
import resource
import sys
import time

import faiss
import numpy

# FAISS finds what is nearer than this: 3 bits or fewer.
NEARER_THAN = 4


def read(path):
    return numpy.fromfile(path, dtype="<u8").view("u1").reshape(-1, 8)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def build(rows, index_file):
    rows, started = read(rows), time.process_time()
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.nflip = 0
    index.add(rows)
    seconds = time.process_time() - started
    faiss.write_index_binary(index, index_file)
    return {"seconds": seconds}


def evict(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def latency(index, queries):
    """Times of single queries in microseconds, and how many of them have a match."""
    times, matched = [], 0
    for query in queries:
        started = time.perf_counter()
        limits, _, _ = index.range_search(query.reshape(1, 8), NEARER_THAN)
        times.append(time.perf_counter() - started)
        matched += int(limits[1]) > 0
    times = numpy.sort(numpy.array(times)) * 1e6
    return {"p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}, matched


def ask(index_file, warming, timed, cold_count):
    warming, timed, cold_count = read(warming), read(timed), int(cold_count)
    evict(index_file)
    before, started = resident(), time.perf_counter()
    index = faiss.read_index_binary(index_file)
    load_ms = (time.perf_counter() - started) * 1e3
    memory_bytes = resident() - before
    cold, _ = latency(index, warming[:cold_count])
    latency(index, warming[cold_count:])
    warm, matched = latency(index, timed)
    started = time.process_time()
    index.range_search(timed, NEARER_THAN)
    seconds = time.process_time() - started
    return {
        "version": faiss.__version__,
        "file_bytes": os.path.getsize(index_file),
        "memory_bytes": memory_bytes,
        "load_ms": load_ms,
        "cold": cold,
        "warm": warm,
        "matched": matched,
        "batch_per_second": len(timed) / seconds,
    }


faiss.omp_set_num_threads(1)
print(json.dumps({"build": build, "ask": ask}[sys.argv[1]](*sys.argv[2:])))
