"""Reads an archive with FastWARC; with `text`, Resiliparse takes the text out of every page."""

import sys

from fastwarc.warc import ArchiveIterator, WarcRecordType

what, path = sys.argv[1:]
total = 0
if what == "bodies":
    for record in ArchiveIterator(open(path, "rb"), record_types=WarcRecordType.response):
        total += len(record.reader.read())
else:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    for record in ArchiveIterator(open(path, "rb"), record_types=WarcRecordType.response):
        body = record.reader.read()
        total += len(extract_plain_text(bytes_to_str(body, detect_encoding(body)), main_content=False))
print(total)
