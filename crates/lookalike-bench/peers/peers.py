"""The same job with rensa: read a JSON-lines file, find documents that have a near-duplicate.

Usage: peers.py PEER CORPUS FOUND_FILE [WORK]

Document by document: with rensa's calls for many documents at once, the whole took more CPU time.
"""

import json
import re
import sys

from rensa import RMinHash, RMinHashLSH


def words(text):
    return set(text.split())


def word_ngrams(text, n=5):
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[at:at + n]) for at in range(max(1, len(words) - n + 1))}


def find(lines, features):
    index = RMinHashLSH(threshold=0.7, num_perm=128, num_bands=32)
    matched = []
    for number, line in enumerate(lines):
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update(list(features(json.loads(line)["text"])))
        if index.query(sketch):
            matched.append(number)
        index.insert(number, sketch)
    return matched


FEATURES = {"rensa": word_ngrams, "rensa-words": words}

peer, corpus, found_file = sys.argv[1:4]
with open(corpus, encoding="utf-8") as lines:
    matched = find(lines, FEATURES[peer])
with open(found_file, "w") as out:
    out.write("\n".join(map(str, matched)))
