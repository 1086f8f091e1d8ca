"""A crawler that asks before it follows links: pages that look like one it has seen are not followed.

    lookalike serve seen &
    pip install requests
    python crawl.py http://example.org/ --pages 1000
"""

import argparse
import sys
from collections import deque
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

import requests


class Links(HTMLParser):
    """The targets of the links of a page."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        target = dict(attributes).get("href") if tag == "a" else None
        if target:
            self.found.append(target)


def crawl(start, service, most):
    """Yields every page that was fetched: its URL, and what the service says of it."""
    asking, fetching = requests.Session(), requests.Session()
    waiting, met, fetched = deque([start]), {start}, 0
    while waiting and fetched < most:
        url = waiting.popleft()
        fetched += 1
        try:
            answer = fetching.get(url, timeout=30)
        except requests.RequestException as error:
            print(f"error  {url}: {error}", file=sys.stderr)
            continue
        if not answer.ok or "html" not in answer.headers.get("Content-Type", ""):
            continue
        if "charset" not in answer.headers["Content-Type"]:
            answer.encoding = answer.apparent_encoding
        # Asked and stored in one call, so that of two crawlers with the same page one is told "new".
        asked = asking.post(f"{service}/v1/pages?store=if_new", json={"url": url, "html": answer.text}, timeout=30)
        asked.raise_for_status()
        seen = asked.json()
        yield url, seen
        if seen["verdict"] != "new" and seen["of"][0]["id"] != url:
            continue  # its links are those of another page
        for target in Links(answer.text).found:
            target = urldefrag(urljoin(url, target)).url
            if target not in met and urlsplit(target).netloc == urlsplit(start).netloc:
                met.add(target)
                waiting.append(target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("start", help="the URL to begin with; other hosts are not followed")
    parser.add_argument("--service", default="http://127.0.0.1:8700", help="where lookalike serves")
    parser.add_argument("--pages", type=int, default=100, help="pages that are fetched at the most")
    arguments = parser.parse_args()
    for url, seen in crawl(arguments.start, arguments.service, arguments.pages):
        of = f"  like {seen['of'][0]['id']} ({seen['of'][0]['similarity']:.2f})" if seen["of"] else ""
        print(f"{seen['verdict']:5}  {url}{of}")
