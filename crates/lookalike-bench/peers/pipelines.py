"""The same job with text-dedup or datatrove, as their users run it: which documents are in a group with an earlier one.

Usage: pipelines.py PEER CORPUS FOUND_FILE WORK

On one process each, word 5-grams. text-dedup takes the threshold of the others and its fast hash; datatrove has no threshold, but
buckets, of which it has its defaults. Either keeps any one document of a group, not the first, so that groups are looked at and not
what is kept.
"""

import pickle
import shutil
import struct
import subprocess
import sys
from pathlib import Path

THRESHOLD = "0.7"


def later_of_groups(groups):
    """All but the first of each group; `groups` has (document, group) pairs."""
    first = {}
    for document, group in groups:
        first[group] = min(document, first.get(group, document))
    return [document for document, group in groups if document != first[group]]


def text_dedup(corpus, work):
    command = [sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", corpus, "--split", "train"]
    command += ["--column", "text", "--ngram", "5", "--threshold", THRESHOLD, "--hash_func", "xxh3", "--num_proc", "1"]
    command += ["--output", str(work / "out"), "--cache_dir", str(work / "cache"), "--debug"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    groups = pickle.loads((work / "out" / "uf.pkl").read_bytes())
    return later_of_groups([(document, groups.find(document)) for document in list(groups.parent)])


def datatrove(corpus, work):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from loguru import logger

    logger.remove()
    config = MinhashConfig(n_grams=5)
    reader = JsonlReader(str(Path(corpus).parent), glob_pattern=Path(corpus).name)
    signatures, buckets, removed, kept = (str(work / name) for name in ("signatures", "buckets", "removed", "kept"))
    stages = [
        ([reader, MinhashDedupSignature(output_folder=signatures, config=config)], 1),
        ([MinhashDedupBuckets(input_folder=signatures, output_folder=buckets, config=config)], config.num_buckets),
        ([MinhashDedupCluster(input_folder=buckets, output_folder=removed, config=config, save_cluster_id=True)], 1),
        ([reader, MinhashDedupFilter(input_folder=removed), JsonlWriter(kept, compression=None)], 1),
    ]
    for number, (pipeline, tasks) in enumerate(stages):
        logs = str(work / f"logs-{number}")
        LocalPipelineExecutor(pipeline, tasks=tasks, workers=1, logging_dir=logs).run()
    return later_of_groups([group for file in Path(removed).glob("*.clusters") for group in struct.iter_unpack("<2I", file.read_bytes())])


if __name__ == "__main__":
    peer, corpus, found_file, work = sys.argv[1:]
    work = Path(work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    found = {"text-dedup": text_dedup, "datatrove": datatrove}[peer](corpus, work)
    Path(found_file).write_text("\n".join(map(str, found)), encoding="utf-8")
