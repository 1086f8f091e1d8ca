"""A corpus for comparing builds: the same bytes on every machine and with every Python.

Stories in several languages, in page frames or plain, with exact copies, edited copies, stories inside longer ones and chains
of small changes; also pages that are empty, short, or carry dates and counters.
"""

import json

FUNCTION_WORDS = {
    "en": "the a of to is was that said in and for on with by it be at".split(),
    "de": "der die das ist und nicht von zu mit war ein im den auf es sich dass".split(),
    "fr": "le la les de un une est et que dans pour sur il elle avec pas ne".split(),
}
SYLLABLES = [a + b for a in "b d f g k l m n p r s t v br st pl".split() for b in "a e i o u an el or is em".split()]
CJK = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜"


class Numbers:
    """Numbers that look random; `random` promises less from version to version."""

    def __init__(self, seed):
        self.state = seed * 2 + 1

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit

    def one_of(self, choices):
        return choices[self.below(len(choices))]


def words_of(numbers, count):
    language = numbers.one_of(["en", "en", "en", "de", "fr"])
    words = []
    for _ in range(count):
        if numbers.below(10) < 4:
            words.append(numbers.one_of(FUNCTION_WORDS[language]))
        else:
            # Small numbers more often, as with real words.
            rank = numbers.below(numbers.below(20_000) + 1)
            words.append(SYLLABLES[rank % 160] + SYLLABLES[rank // 160 % 160] + ("s" if rank % 3 else ""))
    return words


def edited(numbers, words, changes):
    words = list(words)
    for _ in range(changes):
        words[numbers.below(len(words))] = numbers.one_of(SYLLABLES) + "x"
    return words


def prose(words):
    sentences = [" ".join(words[at : at + 14]) for at in range(0, len(words), 14)]
    return ". ".join(sentence[:1].upper() + sentence[1:] for sentence in sentences) + "."


def page(numbers, title, words, frame):
    sentences = prose(words).split(". ")
    paragraphs = "\n".join(f"<p>{'. '.join(sentences[at : at + 4])}</p>" for at in range(0, len(sentences), 4))
    links = "".join(f'<li><a href="/{frame}/{at}">{SYLLABLES[(frame * 7 + at) % 160]} news</a></li>' for at in range(12))
    counter = numbers.below(100_000)
    return (
        f"<!doctype html><html><head><title>{title}</title><style>p {{ color: #{frame:03} }}</style></head><body>"
        f"<ul class=menu>{links}</ul><h1>{title}</h1>\n{paragraphs}\n"
        f"<div>{counter} visitors since 2024-01-{frame % 28 + 1:02} &amp; counting &copy; paper {frame}</div></body></html>"
    )


def records(wanted_bytes, seed=1):
    """Records until they have about as many bytes as wanted."""
    numbers = Numbers(seed)
    recent, made, number = [], 0, 0
    while made < wanted_bytes:
        number += 1
        kind = numbers.below(20)
        if kind == 0 or not recent:
            words = words_of(numbers, 60 + numbers.below(600))
        elif kind < 3:
            words = numbers.one_of(recent)
        elif kind < 7:
            words = edited(numbers, numbers.one_of(recent), 1 + numbers.below(20))
        elif kind == 7:
            words = numbers.one_of(recent) + words_of(numbers, 40 + numbers.below(400))
        elif kind == 8:
            words = [CJK[numbers.below(len(CJK)) :] + CJK[: numbers.below(9)] for _ in range(30)]
        elif kind == 9:
            words = words_of(numbers, numbers.below(12))
        else:
            words = words_of(numbers, 60 + numbers.below(500))
        if len(words) > 40:
            recent = [words, *recent[:400]]
        title = " ".join(words[:5])
        frame = numbers.below(30)
        is_page = numbers.below(2) == 0
        record = {
            "id": f"doc-{number}",
            "url": f"http://www.paper{frame}.example/{number % 97}/{number}",
            "title": title,
            "date": f"20{10 + numbers.below(15)}-{1 + numbers.below(12):02}-{1 + numbers.below(28):02}T{numbers.below(24):02}:00:00Z",
            "score": numbers.below(1000),
            "text": page(numbers, title, words, frame) if is_page else prose(words) if words else "",
        }
        line = json.dumps(record, ensure_ascii=number % 2 == 0)
        made += len(line.encode()) + 1
        yield line, record


def write_jsonl(path, wanted_bytes, seed=1):
    with open(path, "w", encoding="utf-8") as file:
        for line, _ in records(wanted_bytes, seed):
            file.write(line + "\n")


def texts(count, words):
    """Texts, every fifth of them an edited copy of an earlier one."""
    numbers, all_words = Numbers(20261118), []
    for at in range(count):
        if at % 5 == 4:
            all_words.append(edited(numbers, all_words[numbers.below(at)], numbers.below(40)))
        else:
            all_words.append(words_of(numbers, words))
    return [prose(text) for text in all_words]
