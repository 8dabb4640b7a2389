# SPDX-License-Identifier: MIT
"""The few calls to GitHub's API that the workflows make. The token comes from the environment and is sent to the API's
own hosts alone, in a header; redirects are not followed, answers are bounded."""

import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_S = 60
MAX_ANSWER = 4 * 1024 * 1024
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
LOOPBACK = ("127.0.0.1", "::1")


class Refused(Exception):
    """The API says no, or cannot be asked: the text is for people."""

    def __init__(self, text, status=None):
        super().__init__(text)
        self.status = status


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def check_url(url):
    parts = urllib.parse.urlsplit(url)
    if parts.username or parts.password or not parts.hostname:
        raise Refused("the API's address is no plain URL")
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return parts
    raise Refused("the API's address is not https")


class Api:
    def __init__(self, token):
        self.base = os.environ.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        self.host = check_url(self.base).hostname
        self.repository = os.environ.get("GITHUB_REPOSITORY", "")
        if not REPOSITORY.fullmatch(self.repository):
            raise Refused("GITHUB_REPOSITORY does not name a repository (OWNER/NAME)")
        if not token or not token.isprintable() or " " in token:
            raise Refused("there is no token: GITHUB_TOKEN is to be set")
        self.token = token
        self.opener = urllib.request.build_opener(NoRedirect)

    def may_have_token(self, url):
        """The API's own host, and the one it names for uploads: uploads.github.com beside api.github.com."""
        host = check_url(url).hostname
        return host == self.host or (self.host.startswith("api.") and host == "uploads." + self.host[len("api."):])

    def send(self, method, url, body, kind):
        if not self.may_have_token(url):
            raise Refused("the API names a host that is not its own: the token is not sent there")
        request = urllib.request.Request(url, data=body, method=method, headers={
            "Authorization": "Bearer " + self.token, "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28", "User-Agent": "errand-box", **({"Content-Type": kind} if body else {})})
        try:
            with self.opener.open(request, timeout=TIMEOUT_S) as answer:
                text = answer.read(MAX_ANSWER + 1)
        except urllib.error.HTTPError as problem:
            raise Refused(f"{method} {urllib.parse.urlsplit(url).path}: {problem.code} "
                          f"{message_of(problem.read(MAX_ANSWER))}", problem.code) from None
        except OSError as problem:
            raise Refused(f"{method} {urllib.parse.urlsplit(url).path}: {problem}") from None
        if len(text) > MAX_ANSWER:
            raise Refused("the API's answer is too long")
        return json.loads(text) if text else None

    def call(self, method, path, value=None):
        body = json.dumps(value).encode() if value is not None else None
        return self.send(method, f"{self.base}/repos/{self.repository}{path}", body, "application/json")


def message_of(text):
    try:
        answer = json.loads(text)
        words = [answer.get("message", "")] + [e.get("message", "") for e in answer.get("errors", [])]
        return "; ".join(word for word in words if word)[:400]
    except (ValueError, AttributeError):
        return ""
