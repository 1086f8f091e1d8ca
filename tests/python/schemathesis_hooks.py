"""How schemathesis sends lines of JSON."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value).encode()
