"""What the tests of the Python package share."""

import random

import pytest

WORDS = [f"{start}{end}" for start in ("har", "fer", "sto", "bre", "cou", "bri", "orc", "win", "eng", "let") for end in ("bour", "ry", "rm", "ad", "ncil", "dge", "hard", "ter", "ine", "mark")]


def story(seed: int, words: int = 120) -> str:
    """A text that is unlike the text of any other seed."""
    chosen = random.Random(seed)
    return " ".join(chosen.choice(WORDS) for _ in range(words))


def documents(count: int) -> list[str]:
    """Texts, every third of which is a near-duplicate of the one before it."""
    return [story(at) if at % 3 else story(max(at - 1, 0)) + " and a reader sent a photo" for at in range(count)]


@pytest.fixture
def texts() -> list[str]:
    return documents(30)


@pytest.fixture
def expected(texts) -> list[bool]:
    """What is to be kept of the texts."""
    return [at == 0 or at % 3 != 0 for at in range(len(texts))]
