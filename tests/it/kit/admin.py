"""Requests to weir's HTTP listener for operators."""

import json
import re
import urllib.error
import urllib.request

ADMIN = "[admin]\nlisten = 127.0.0.1:0\n"


def admin_of(weir):
    host, port = re.search(r"metrics and health: http://(.*):(\d+)/metrics", weir.log()).groups()
    return host, int(port)


def url_of(weir, path):
    return "http://%s:%d%s" % (*admin_of(weir), path)


def get(weir, path, method="GET", data=None):
    """Returns (status, headers, body)."""
    request = urllib.request.Request(url_of(weir, path), method=method, data=data)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def stats(weir, history=None):
    status, _, body = get(weir, "/api/v1/stats" + ("" if history is None else f"?history={history}"))
    assert status == 200, body
    return json.loads(body)


def limit_of(found, rule):
    return next(limit for limit in found["limits"] if limit["rule"] == rule)
