"""The examples in the documentation, and the types."""

import doctest
import importlib
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest

import lookalike

ROOT = pathlib.Path(__file__).resolve().parents[3]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted(module.name for module in pkgutil.iter_modules(lookalike.__path__) if module.name not in {"__main__", "_lookalike"})


@pytest.mark.parametrize("name", ["lookalike", *(f"lookalike.{name}" for name in MODULES)])
def test_examples_of_a_module(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0


def test_everything_public_has_an_example_or_says_what_it_is():
    for name in lookalike.__all__:
        if name != "__version__":
            assert getattr(lookalike, name).__doc__, name
    for name in ["dedup", "compare", "refine", "Result", "HammingIndex", "MinHash", "SimHash", "Sketcher"]:
        assert ">>>" in getattr(lookalike, name).__doc__, name


@pytest.mark.parametrize("page", ["python.md", "coming-from.md"])
def test_examples_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^```pycon\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    # One page is one session.
    session = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(session, {}, page, page, 0)
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0


USE = """
import pathlib

import numpy
import pyarrow
from numpy.typing import NDArray
from typing_extensions import assert_type

import lookalike

result = lookalike.dedup(pyarrow.table({"text": ["a"]}), threshold=0.8, ngram=3)
assert_type(result, lookalike.Result)
assert_type(result.clusters, lookalike.Table)
assert_type(result.report, pathlib.Path)
mask: NDArray[numpy.bool_] = result.keep_mask()
lookalike.dedup(["a", None])
lookalike.dedup([{"text": "a"}])
lookalike.dedup(pathlib.Path("pages"))
lookalike.dedup([pathlib.Path("pages")])
sketches: NDArray[numpy.uint32] = lookalike.MinHash().sketch_all(["a"])
assert_type(lookalike.SimHash().sketch("a"), int)
assert_type(lookalike.HammingIndex().query(1), list[lookalike.Match])
"""


def test_types(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "misuse.py").write_text("import lookalike\n\nlookalike.dedup(['a'], threads='two')\n")
    # pyarrow comes without types.
    command = [sys.executable, "-m", "mypy", "--strict", "--disable-error-code", "import-untyped", "--cache-dir", str(tmp_path)]
    right = subprocess.run([*command, "use.py"], cwd=tmp_path, capture_output=True, text=True)
    assert right.returncode == 0, right.stdout + right.stderr
    wrong = subprocess.run([*command, "misuse.py"], cwd=tmp_path, capture_output=True, text=True)
    assert '"threads"' in wrong.stdout
    own = subprocess.run([*command, "-p", "lookalike"], cwd=tmp_path, capture_output=True, text=True)
    assert own.returncode == 0, own.stdout + own.stderr
