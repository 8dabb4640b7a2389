# SPDX-License-Identifier: MIT
"""A package registry and a server of archives on loopback, for tests of what is pinned.

Strict where the real ones are: GET alone, known paths alone, no credential, and a package's page and its archive under
the names that registries give them. What may go wrong in the world is switched on by path: see Server.broken."""

import base64
import hashlib
import http.server
import io
import json
import socket
import ssl
import tarfile
import threading
import time
import urllib.parse


def sha512(data):
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def package_archive(name, version, files):
    """What `npm publish` uploads: everything below package/."""
    out = io.BytesIO()
    manifest = json.dumps({"name": name, "version": version, "bin": {}}).encode()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, content in [("package.json", manifest), *files.items()]:
            info = tarfile.TarInfo("package/" + path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, status, why):
        self.server.owner.refused.append((self.command, self.path, why))
        self.answer(status, json.dumps({"error": why}).encode(), "application/json")

    def answer(self, status, body, kind, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        owner = self.server.owner
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        owner.requests.append(path)
        if self.headers.get("Authorization") or self.headers.get("Cookie"):
            return self.refuse(400, "a credential was sent")
        if self.headers.get("Host") != owner.authority:
            return self.refuse(421, "another host was meant")
        how = owner.broken.get(path)
        if how is not None:
            return how(self, owner.files.get(path, (b"", ""))[0])
        if path in owner.files:
            body, kind = owner.files[path]
            return self.answer(200, body, kind)
        name = path[1:]
        if name in owner.packages:
            return self.answer(200, owner.page(name), "application/json")
        return self.refuse(404, "Not Found")

    def do_PUT(self):
        self.refuse(405, "only GET")

    do_POST = do_DELETE = do_HEAD = do_PUT


def truncated(handler, body):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[:len(body) // 2])
    handler.close_connection = True


def altered(handler, body):
    handler.answer(200, body[:-1] + bytes([body[-1] ^ 1]), "application/octet-stream")


def redirect_to(target):
    return lambda handler, _body: handler.answer(302, b"", "text/plain", [("Location", target)])


def held(event, started):
    """Sends half, says so, and waits until the test lets it go on."""
    def how(handler, body):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:len(body) // 2])
        handler.wfile.flush()
        started.set()
        event.wait(60)
        handler.close_connection = True
    return how


class Proxy:
    """A proxy that tunnels what CONNECT names to one server, whatever the name: the test's host does not exist."""

    def __init__(self, server):
        self.asked = []
        self.target = ("127.0.0.1", server.port)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.tunnel, args=(client,), daemon=True).start()

    def tunnel(self, client):
        head = b""
        while b"\r\n\r\n" not in head and len(head) < 8192:
            more = client.recv(4096)
            if not more:
                return
            head += more
        words = head.split(b" ")
        self.asked.append(words[1].decode())
        if words[0] != b"CONNECT":
            client.sendall(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
            return
        there = socket.create_connection(self.target)
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        back = threading.Thread(target=pump, args=(there, client), daemon=True)
        back.start()
        pump(client, there)
        back.join()

    def stop(self):
        self.socket.close()


def pump(source, sink):
    try:
        while chunk := source.recv(65536):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Server:
    def __init__(self, certificate=None, name="127.0.0.1"):
        """@certificate: (file with certificate, file with key) to speak https; @name: host it is asked as."""
        self.packages = {}  # name -> {"tags": {}, "versions": {version: {"archive": bytes, "dependencies": {}}}}
        self.files = {}     # path -> (bytes, content type)
        self.broken = {}    # path -> function
        self.requests = []
        self.refused = []
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # a client that was ended in the middle
        self.http.owner = self
        self.port = self.http.server_address[1]
        self.authority = f"{name}:{self.port}"
        self.url = f"{'https' if certificate else 'http'}://{self.authority}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

    @staticmethod
    def archive_path(name, version):
        return f"/{name}/-/{name.split('/')[-1]}-{version}.tgz"

    def publish(self, name, version, files=None, dependencies=None, latest=True):
        archive = package_archive(name, version, files or {"run.js": b"1\n"})
        package = self.packages.setdefault(name, {"tags": {}, "versions": {}, "time": time.time()})
        package["versions"][version] = {"archive": archive, "dependencies": dependencies or {}}
        if latest:
            package["tags"]["latest"] = version
        self.files[self.archive_path(name, version)] = (archive, "application/octet-stream")
        return sha512(archive)

    def page(self, name):
        package = self.packages[name]
        versions = {version: {"name": name, "version": version, "dependencies": one["dependencies"],
                              "dist": {"tarball": self.url + self.archive_path(name, version),
                                       "integrity": sha512(one["archive"]),
                                       "shasum": hashlib.sha1(one["archive"]).hexdigest()}}
                    for version, one in package["versions"].items()}
        return json.dumps({"name": name, "dist-tags": package["tags"], "versions": versions}).encode()
