"""The same job with other tools: read a JSON-lines file, find documents that have a near-duplicate.

Usage: peers.py PEER CORPUS COUNT_FILE
"""

import json
import re
import sys


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def word_ngrams(text, n=5):
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[at:at + n]) for at in range(max(1, len(words) - n + 1))}


def gaoya(texts):
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex(hash_size=32, jaccard_threshold=0.7, num_bands=25, band_size=5, num_hashes=128,
                               analyzer="word", lowercase=True, ngram_range=(5, 5))
    matched = 0
    for number, text in enumerate(texts):
        if index.query(text):
            matched += 1
        index.insert_document(number, text)
    return matched


def rensa(texts, features):
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.7, num_perm=128, num_bands=32)
    matched = 0
    for number, text in enumerate(texts):
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update(list(features(text)))
        candidates = index.query(sketch)
        if candidates:
            matched += 1
        index.insert(number, sketch)
    return matched


def main():
    peer, corpus, count_file = sys.argv[1:]
    texts = read(corpus)
    if peer == "gaoya":
        matched = gaoya(texts)
    elif peer == "rensa":
        matched = rensa(texts, word_ngrams)
    elif peer == "rensa-words":
        matched = rensa(texts, lambda text: set(text.split()))
    else:
        sys.exit(f"unknown peer {peer}")
    with open(count_file, "w") as out:
        out.write(str(matched))


main()
