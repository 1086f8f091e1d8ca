"""The numbers of `lookalike evaluate` against independent implementations."""

import json
import os
import random
import subprocess

import ir_measures
import pytest
from sklearn.metrics import adjusted_rand_score, average_precision_score, f1_score, roc_auc_score
from sklearn.metrics.cluster import pair_confusion_matrix

LOOKALIKE = os.environ.get("LOOKALIKE", "target/release/lookalike")


def run(*arguments, cwd):
    ran = subprocess.run([LOOKALIKE, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def clusterings():
    """Random pairs of clusterings: many and few clusters, singletons, one big one, the same twice."""
    draw = random.Random(20)
    for number in range(24):
        pages = draw.choice([1, 2, 7, 40, 300])
        sizes = [draw.choice([1, 2, pages // 3 + 1, pages]) for _ in range(2)]
        gold = [draw.randrange(sizes[0]) for _ in range(pages)]
        found = [draw.randrange(sizes[1]) for _ in range(pages)]
        if number % 6 == 4:
            found = list(range(pages))
        if number % 6 == 5:
            found = [f"same{cluster}" for cluster in gold]
        yield gold, found


@pytest.mark.parametrize("number, pair", list(enumerate(clusterings())))
def test_clusterings(number, pair, tmp_path):
    gold, found = pair
    for name, clusters in (("gold.tsv", gold), ("found.tsv", found)):
        lines = [f"page{page}\t{cluster}\n" for page, cluster in enumerate(clusters)]
        random.Random(number).shuffle(lines)
        (tmp_path / name).write_text("".join(lines))
    answer = json.loads(run("evaluate", "clusters", "--gold", "gold.tsv", "--found", "found.tsv", "--json", cwd=tmp_path))
    scores = answer["clusters"]
    assert scores["adjusted_rand"] == pytest.approx(adjusted_rand_score(gold, found), abs=1e-12)
    # Each pair is counted twice there.
    (_, wrong), (missed, correct) = pair_confusion_matrix(gold, found) // 2
    pairs = scores["pairs"]
    assert (pairs["correct"], pairs["wrong"], pairs["gold"]) == (correct, wrong, correct + missed)
    if correct + wrong:
        assert pairs["precision"] == pytest.approx(correct / (correct + wrong))
    mates = lambda labels, page: {other for other, label in enumerate(labels) if label == labels[page]}
    pages = range(len(gold))
    precision = sum(len(mates(gold, p) & mates(found, p)) / len(mates(found, p)) for p in pages) / len(gold)
    recall = sum(len(mates(gold, p) & mates(found, p)) / len(mates(gold, p)) for p in pages) / len(gold)
    assert scores["cluster_precision"] == pytest.approx(precision)
    assert scores["cluster_recall"] == pytest.approx(recall)
    sets = lambda labels: {frozenset(mates(labels, page)) for page in pages}
    assert scores["exact_sets"] == pytest.approx(len(sets(gold) & sets(found)) / len(sets(gold)))


@pytest.mark.parametrize("number", range(24))
def test_ranked_pairs(number, tmp_path):
    draw = random.Random(number)
    count = draw.choice([2, 5, 60, 400])
    levels = draw.choice([2, 5, 1000])
    rows = [(draw.randrange(levels) / levels, draw.random() < 0.4) for _ in range(count)]
    rows[0], rows[1] = (rows[0][0], True), (rows[1][0], False)
    lines = [json.dumps({"text_a": "x", "text_b": "y", "label": int(label), "score": score}) for score, label in rows]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    answer = json.loads(
        run("evaluate", "pairs", "pairs.jsonl", "--score-field", "score", "--method", "minhash", "--json", cwd=tmp_path)
    )
    ranked = answer["methods"][0]["ranked"]
    scores, labels = zip(*rows)
    assert ranked["area"] == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    assert ranked["average_precision"] == pytest.approx(average_precision_score(labels, scores), abs=1e-12)
    best = max(f1_score(labels, [score >= at for score in scores]) for at in set(scores))
    assert ranked["best_f1"] == pytest.approx(best, abs=1e-12)
    assert f1_score(labels, [score >= ranked["best_at"] for score in scores]) == pytest.approx(best, abs=1e-12)


def test_carried_judgments_are_read_by_trec_tools(tmp_path):
    words = lambda topic: " ".join(f"w{(topic * 7919 + n * n) % 3000}" for n in range(150))
    for side in "ab":
        lines = [json.dumps({"id": f"{side}{topic}", "text": words(topic)}) + "\n" for topic in range(12)]
        (tmp_path / f"{side}.jsonl").write_text("".join(lines))
    grades = {f"a{topic}": topic % 5 - 2 for topic in range(12)}
    (tmp_path / "qrels.txt").write_text("".join(f"{1 + int(page[1:]) % 2} 0 {page} {grade}\n" for page, grade in grades.items()))
    run("transfer", "--qrels", "qrels.txt", "--from", "a.jsonl", "--to", "b.jsonl", "--output", "out", cwd=tmp_path)
    carried = list(ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels.txt")))
    assert {row.doc_id: row.relevance for row in carried} == {f"b{page[1:]}": grade for page, grade in grades.items()}
    ranking = [ir_measures.ScoredDoc(row.query_id, row.doc_id, float(row.relevance)) for row in carried]
    measured = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.P @ 1], carried, ranking)
    assert measured[ir_measures.nDCG @ 10] == pytest.approx(1.0)
    assert measured[ir_measures.P @ 1] == pytest.approx(1.0)


def test_a_folded_run_is_read_by_trec_tools(tmp_path):
    words = lambda topic: " ".join(f"w{(topic * 7919 + n * n) % 3000}" for n in range(150))
    pages = {"one": words(1), "one-again": words(1), "two": words(2)}
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in pages.items()))
    (tmp_path / "run.txt").write_text("".join(f"9 Q0 {page} {rank} {5 - rank} r\n" for rank, page in enumerate(pages, 1)))
    run("refine", "run.txt", "--corpus", "pages.jsonl", "--run", "folded.txt", cwd=tmp_path)
    folded = list(ir_measures.read_trec_run(str(tmp_path / "folded.txt")))
    assert [row.doc_id for row in folded] == ["one", "two"]


@pytest.mark.parametrize("number", range(12))
def test_a_run_before_and_after_folding_is_measured_as_trec_tools_do(number, tmp_path):
    draw = random.Random(number)
    words = lambda page: " ".join(f"w{(page * 7919 + n * n) % 3000}" for n in range(150))
    pages = {f"p{page}": words(page % 25) for page in range(60)}
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in pages.items()))
    rows, qrels = [], []
    for topic in range(1, 6):
        if topic < 5 or number % 2:
            shown = draw.sample(sorted(pages), draw.choice([1, 7, 30, 60]))
            # Ties are frequent; some scores differ by less than 32 bits can tell.
            rows += [f"{topic} Q0 {page} 0 {draw.choice([1, 2, 3, 0.5, 1.00000001, -4])} r\n" for page in shown]
        judged = draw.sample(sorted(pages), draw.choice([1, 10, 50]))
        # Their library crashes where every grade of a topic is negative.
        grades = [draw.choice([0, 1])] + [draw.choice([-2, 0, 0, 1, 1, 2, 3]) for _ in judged[1:]]
        qrels += [f"{topic} 0 {page} {grade}\n" for page, grade in zip(judged, grades)]
    (tmp_path / "run.txt").write_text("".join(rows))
    (tmp_path / "qrels.txt").write_text("".join(qrels))
    answer = run("refine", "run.txt", "--corpus", "pages.jsonl", "--qrels", "qrels.txt", "--run", "folded.txt",
                 "--write-qrels", "unique.txt", "--json", cwd=tmp_path)
    found = json.loads(answer)["measures"]
    names = {"ndcg_10": ir_measures.nDCG @ 10, "average_precision": ir_measures.AP, "precision_10": ir_measures.P @ 10,
             "reciprocal_rank": ir_measures.RR}
    for key, run_file, qrels_file in [("run", "run.txt", "qrels.txt"), ("folded", "folded.txt", "qrels.txt"),
                                      ("run_unique", "run.txt", "unique.txt"), ("folded_unique", "folded.txt", "unique.txt")]:
        theirs = ir_measures.calc_aggregate(
            list(names.values()),
            list(ir_measures.read_trec_qrels(str(tmp_path / qrels_file))),
            list(ir_measures.read_trec_run(str(tmp_path / run_file))),
        )
        for name, measure in names.items():
            assert found[key][name] == pytest.approx(theirs[measure], abs=1e-9), (key, name)
    assert found["relevant_duplicates"] <= found["relevant_results"]
