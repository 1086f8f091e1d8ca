"""Lists of search results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike._record import Record
from lookalike._sources import _encoder

if TYPE_CHECKING:
    # Only where it is needed: it takes longer to load than everything else, and the command line does without it.
    import numpy
    from numpy.typing import NDArray


class Folded(Record):
    """A folded list: ``groups``, each with the place of its ``best`` result and the ``others`` under it."""

    def best(self) -> list[int]:
        """The places of the results that stay, by rank."""
        return [group.best for group in self.groups]

    def keep_mask(self) -> NDArray[numpy.bool_]:
        """Which results stay: one value for each."""
        import numpy

        mask = numpy.zeros(self.results, dtype=bool)
        mask[self.best()] = True
        return mask


def refine(
    results: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    *,
    method: str = "bloom",
    threshold: float | None = None,
    evidence: str | None = None,
    cluster: str | None = None,
    results_field: str | None = None,
    id_field: str | None = None,
    url_field: str | None = None,
    title_field: str | None = None,
    text_field: str | None = None,
    **parameters: Any,
) -> Folded:
    """Fold near-duplicate search results under the best-ranked one, by text, title and URL.

    >>> import lookalike
    >>> story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 5
    >>> other = "Prices of bread and milk rose again this spring, and bakers say that flour is why. " * 5
    >>> folded = lookalike.refine([{"text": story}, {"text": other}, {"text": story + "(Photo)"}])
    >>> folded.best()
    [0, 1]
    >>> folded.groups[0].others[0].at, folded.groups[0].others[0].relation
    (2, 'near')

    Args:
        results: The results, best first: dicts with ``text`` or ``html``, ``title``, ``url``; or the whole response of
            Elasticsearch, OpenSearch or SearXNG.
        method: How near-duplicates are found, as in :func:`lookalike.dedup`.
        threshold: Similarity from which results are near-duplicates.
        evidence: What can show that two results are the same page: ``"text,title,url"``, or fewer.
        cluster: star folds a result only under one that it was compared with; components also follows chains.
        results_field: Where the list is in a response; a dot descends into an object.
        id_field, url_field, title_field, text_field: The fields of a result.
        **parameters: Parameters of the method.
    """
    answer = json.dumps(results, ensure_ascii=False, default=_encoder.default)
    fields = (results_field, id_field, url_field, title_field, text_field)
    settings = {"threshold": threshold, "cluster": cluster, **parameters}
    return Folded(Record.from_json(_lookalike.refine(answer, method, evidence, fields, settings)))
