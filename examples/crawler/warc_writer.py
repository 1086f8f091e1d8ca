"""Writes fetched pages to a WARC file, and asks the service first: a page that is stored already becomes a revisit record.

    lookalike serve seen &
    pip install './crates/lookalike-python[client]' requests warcio
    python warc_writer.py crawl.warc.gz http://example.org/ http://example.org/?session=17 …

- The same payload as a page that was written before: a `revisit` record with the profile identical-payload-digest, which refers to
  that page by record, URL and date. Archives replay it as if the page were there. The HTTP header is kept, the body is not.
- A near-duplicate, or the same words in another markup: a `response` record as usual, since what differs may matter some day, with
  `Lookalike-Verdict`, `Lookalike-Of` and `Lookalike-Similarity` in its header for those who come later.
- Anything else, and everything that is not HTML: a `response` record.

`SeenWriter` is the hook: give it a page as your crawler has it.
"""

import argparse
import base64
import hashlib
import io
from datetime import datetime, timezone

import requests
from lookalike.client import Client
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


class SeenWriter:
    """Writes pages to a WARC file; asks the service about each of them."""

    def __init__(self, file, client):
        self.writer = WARCWriter(file, gzip=True, warc_version="WARC/1.1")
        self.client = client
        # Where payloads were written: digest -> record id, URL and date. A crawler with more than one file keeps it in a database.
        self.written = {}

    def write(self, url, status_line, headers, body, html=None, date=None):
        """Writes a fetched page: `body` as it came, `html` decoded if it is HTML. Gives what was written, and the answer."""
        date = date or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        digest = "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
        answer = self.client.check({"url": url, "html": html}, store="if_new") if html is not None else None
        http = StatusAndHeaders(status_line, headers, protocol="HTTP/1.1")
        # That the words are the same is not enough: a revisit stands for the same bytes.
        if digest in self.written:
            _, first_url, first_date = self.written[digest]
            record = self.writer.create_revisit_record(
                url, digest, first_url, first_date, http_headers=http, warc_headers_dict={"WARC-Date": date}
            )
            record.rec_headers.replace_header("WARC-Profile", IDENTICAL)
            record.rec_headers.add_header("WARC-Refers-To", self.written[digest][0])
            self.writer.write_record(record)
            return "revisit", answer
        marks = {"WARC-Date": date, "WARC-Payload-Digest": digest}
        if answer is not None and answer.seen:
            marks["Lookalike-Verdict"] = answer.verdict
            marks["Lookalike-Of"] = answer.of[0].id
            marks["Lookalike-Similarity"] = f"{answer.of[0].similarity:.3f}"
        record = self.writer.create_warc_record(
            url, "response", payload=io.BytesIO(body), http_headers=http, warc_headers_dict=marks
        )
        self.writer.write_record(record)
        self.written[digest] = record.rec_headers.get_header("WARC-Record-ID"), url, date
        return "response", answer


def fetch(url):
    """What `SeenWriter.write` takes, over the network."""
    answer = requests.get(url, timeout=30)
    # The body is written as it is after decoding, so the header must not say otherwise.
    gone = {"content-encoding", "transfer-encoding", "content-length"}
    headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in gone]
    headers.append(("Content-Length", str(len(answer.content))))
    is_html = answer.ok and "html" in answer.headers.get("Content-Type", "")
    return url, f"{answer.status_code} {answer.reason}", headers, answer.content, answer.text if is_html else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("warc", help="the file to write, .warc.gz")
    parser.add_argument("urls", nargs="+", help="the pages to fetch")
    parser.add_argument("--service", default="http://127.0.0.1:8700", help="the address of the service")
    arguments = parser.parse_args()
    with Client(arguments.service) as client, open(arguments.warc, "wb") as file:
        writer = SeenWriter(file, client)
        for url in arguments.urls:
            kind, answer = writer.write(*fetch(url))
            print(f"{kind:8}  {answer.verdict if answer else '-':5}  {url}")
