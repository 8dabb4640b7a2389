# SPDX-License-Identifier: MIT
"""The part of GitHub's API that tools/freshness and tools/release-publish call, on loopback; refuses what GitHub refuses:
no or a wrong token, an unknown path, a body that is not what the documentation says, a second request for one branch, a
branch that was not pushed, a file that is uploaded twice."""

import http.server
import json
import re
import subprocess
import threading
import urllib.parse

TOKEN = "ghs_0123456789abcdef0123456789abcdef0123"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_call(self):
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        owner.calls.append(f"{self.command} {parts.path}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"message": "Bad credentials"})
        if not self.headers.get("User-Agent"):
            return self.answer(403, {"message": "Request forbidden by administrative rules."})
        if owner.refuse is not None:
            return self.answer(*owner.refuse)
        for method, pattern, function in owner.ROUTES:
            match = re.fullmatch(pattern, parts.path)
            if match and method == self.command:
                return self.answer(*function(owner, match, query, body))
        return self.answer(404, {"message": "Not Found"})

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_call


class Server:
    def __init__(self, repository, bare):
        self.repository = repository
        self.bare = bare      # the repository that is pushed to
        self.calls = []
        self.pulls = []
        self.releases = []
        self.refuse = None    # (status, answer) for every call
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.owner = self
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

    def branches(self):
        out = subprocess.run(["git", "-C", str(self.bare), "for-each-ref", "--format=%(refname:short)", "refs/heads"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        return out.split()

    def list_pulls(self, match, query, _body):
        if match.group(1) != self.repository:
            return 404, {"message": "Not Found"}
        found = [pull for pull in self.pulls if query.get("state", "open") in ("all", pull["state"])]
        if "head" in query:
            found = [pull for pull in found if f"{self.repository.split('/')[0]}:{pull['head']['ref']}" == query["head"]]
        return 200, found

    def open_pull(self, match, _query, body):
        if match.group(1) != self.repository:
            return 404, {"message": "Not Found"}
        try:
            value = json.loads(body)
        except ValueError:
            return 400, {"message": "Problems parsing JSON"}
        if not {"title", "head", "base"} <= set(value) or set(value) - {"title", "head", "base", "body", "draft",
                                                                        "maintainer_can_modify"}:
            return 422, {"message": "Validation Failed", "errors": [{"message": "wrong members"}]}
        if value["head"] not in self.branches() or value["base"] not in self.branches():
            return 422, {"message": "Validation Failed", "errors": [{"message": "no such branch"}]}
        if any(pull["head"]["ref"] == value["head"] and pull["state"] == "open" for pull in self.pulls):
            return 422, {"message": "Validation Failed", "errors": [{"message": "A pull request already exists"}]}
        return 201, self.add_pull(value["head"], value)

    def add_pull(self, branch, value, state="open", repository=None):
        number = len(self.pulls) + 1
        self.pulls.append({"number": number, "state": state, "html_url": f"{self.url}/pull/{number}", **value,
                           "head": {"ref": branch, "repo": {"full_name": repository or self.repository}}})
        return self.pulls[-1]

    def create_release(self, match, _query, body):
        value = json.loads(body)
        if match.group(1) != self.repository or set(value) - {"tag_name", "name", "body", "draft"}:
            return 422, {"message": "Validation Failed"}
        release = {"id": len(self.releases) + 1, "html_url": f"{self.url}/release", "assets": {}, **value}
        release["upload_url"] = f"{self.url}/upload/{release['id']}/assets{{?name,label}}"
        self.releases.append(release)
        return 201, release

    def upload(self, match, query, body):
        release = self.releases[int(match.group(1)) - 1]
        if not release["draft"] or not query.get("name") or query["name"] in release["assets"] or not body:
            return 422, {"message": "Validation Failed"}
        release["assets"][query["name"]] = body
        return 201, {"name": query["name"]}

    def finish_release(self, match, _query, body):
        release = self.releases[int(match.group(2)) - 1]
        release.update(json.loads(body))
        return 200, {name: value for name, value in release.items() if name != "assets"}

    ROUTES = [
        ("GET", r"/repos/([^/]+/[^/]+)/pulls", list_pulls),
        ("POST", r"/repos/([^/]+/[^/]+)/pulls", open_pull),
        ("POST", r"/repos/([^/]+/[^/]+)/releases", create_release),
        ("PATCH", r"/repos/([^/]+/[^/]+)/releases/(\d+)", finish_release),
        ("POST", r"/upload/(\d+)/assets", upload),
    ]
