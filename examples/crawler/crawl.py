"""A crawler that asks before it follows links: near-duplicates of a page it has seen are not followed.

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
    """The link targets of a page."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        target = dict(attributes).get("href") if tag == "a" else None
        if target:
            self.found.append(target)


def crawl(start, service, max_pages):
    """Yields the URL of every fetched page, and the answer of the service."""
    asking, fetching = requests.Session(), requests.Session()
    waiting, known, fetched = deque([start]), {start}, 0
    while waiting and fetched < max_pages:
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
        # Look up and store in one call: if two crawlers send the same page, only one gets "new".
        asked = asking.post(f"{service}/v1/pages?store=if_new", json={"url": url, "html": answer.text}, timeout=30)
        asked.raise_for_status()
        seen = asked.json()
        yield url, seen
        if seen["verdict"] != "new" and seen["of"][0]["id"] != url:
            continue  # its links are those of the page it duplicates
        for target in Links(answer.text).found:
            target = urldefrag(urljoin(url, target)).url
            if target not in known and urlsplit(target).netloc == urlsplit(start).netloc:
                known.add(target)
                waiting.append(target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("start", help="the URL to start with; links to other hosts are not followed")
    parser.add_argument("--service", default="http://127.0.0.1:8700", help="the address of the service")
    parser.add_argument("--pages", type=int, default=100, help="maximum number of pages to fetch")
    arguments = parser.parse_args()
    for url, seen in crawl(arguments.start, arguments.service, arguments.pages):
        of = f"  like {seen['of'][0]['id']} ({seen['of'][0]['similarity']:.2f})" if seen["of"] else ""
        print(f"{seen['verdict']:5}  {url}{of}")
