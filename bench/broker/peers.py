# SPDX-License-Identifier: MIT
"""What is measured: errand-box's broker and relay, and what an operator would put in their place."""
import os, shlex, signal, socket, subprocess, time

BASE = int(os.environ.get("BENCH_PORT", "23400"))
KEY = "sk-ant-bench-0123456789abcdef0123456789"
NONCE = "bench-nonce-0123456789abcdef01234567"


def port(number):
    return BASE + 10 + number


def reachable(address):
    if address.startswith("unix:"):
        end = socket.socket(socket.AF_UNIX)
        where = address[5:]
    else:
        end = socket.socket(socket.AF_INET)
        where = ("127.0.0.1", int(address))
    with end:
        end.settimeout(1)
        try:
            end.connect(where)
            return True
        except OSError:
            return False


class Peer:
    """One row: modes it takes part in, where the client connects to, the commands that serve it.

    modes: connect (CONNECT to the origin), raw (bytes to the origin), post (provider requests). without_service: the
    first command starts a broker and plays the service, whose CPU and memory are not the broker's.
    """

    def __init__(self, name, modes, address, commands=(), prefix="", headers=(), env=None, without_service=False):
        self.name, self.modes, self.address, self.commands = name, modes, str(address), list(commands)
        self.prefix, self.headers, self.env = prefix, list(headers), env or {}
        self.without_service = without_service
        self.processes = []

    def start(self, log_dir):
        if self.processes or not self.commands:
            return True
        if self.address.startswith("unix:") and os.path.exists(self.address[5:]):
            os.unlink(self.address[5:])
        with open(f"{log_dir}/{self.name}.log", "ab") as log:
            for command in self.commands:
                command = shlex.split(command) if isinstance(command, str) else command
                self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                       env=dict(os.environ, **self.env), process_group=0))
        for _ in range(400):
            if reachable(self.address):
                time.sleep(0.2)
                return True
            time.sleep(0.05)
        return False

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.processes = []

    def pids(self):
        """Of all processes that serve; of the broker the broker alone, not the program that plays the service."""
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat") as f:
                        parents[int(entry)] = int(f.read().rsplit(")", 1)[1].split()[1])
                except OSError:
                    pass
        roots = {process.pid for process in self.processes}
        found, grown = set(roots), True
        while grown:
            more = {pid for pid, parent in parents.items() if parent in found} - found
            grown = bool(more)
            found |= more
        if self.without_service:
            found = {pid for pid in found if self.is_broker(pid)} | {p.pid for p in self.processes[1:]}
        return found

    @staticmethod
    def is_broker(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return f.read().split(b"\0")[0].endswith(b"errand-box-broker")
        except OSError:
            return False


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def tinyproxy(work):
    hosts = write(f"{work}/tinyproxy.hosts", "^127\\.0\\.0\\.1$\n")
    conf = write(f"{work}/tinyproxy.conf", f"""Port {port(1)}
Listen 127.0.0.1
Allow 127.0.0.1
MaxClients 2500
Timeout 900
LogLevel Critical
FilterDefaultDeny Yes
FilterExtended On
Filter "{hosts}"
""")
    return Peer("tinyproxy", "connect", port(1), [f"tinyproxy -d -c {conf}"])


def goproxy(work):
    # It has two pipes for each tunnel and keeps them for minutes after: 125 MiB of 1000. The kernel counts pipes by the
    # real account, and once root's take 64 MiB a broker beside it, which is not privileged, gets none.
    account = "setpriv --ruid 61231 " if os.geteuid() == 0 else ""
    return Peer("goproxy", "connect", port(2), [f"{account}{work}/goproxy {port(2)} 127.0.0.1"],
                env={"GOMAXPROCS": "1"})


def haproxy(work, ca):
    conf = write(f"{work}/haproxy.cfg", f"""global
    nbthread 1
    maxconn 4000
defaults
    mode http
    timeout connect 10s
    timeout client 900s
    timeout server 900s
    timeout http-keep-alive 900s
    http-reuse always
frontend guest
    bind unix@{work}/haproxy.sock backlog 4096
    http-request deny unless {{ req.hdr(x-api-key) -m str {NONCE} }}
    http-request set-header x-api-key {KEY}
    http-request replace-path /provider/p(/.*) \\1
    default_backend provider
backend provider
    server s 127.0.0.1:{BASE + 1} ssl verify required ca-file {ca} sni str(localhost) verifyhost localhost
""")
    return Peer("haproxy-http-unix", "post", f"unix:{work}/haproxy.sock", [f"haproxy -db -f {conf}"], "/provider/p",
                [f"x-api-key: {NONCE}"])


def nginx(work, ca):
    temp = " ".join(f"{kind}_temp_path {work}/nginx-{kind};"
                    for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = write(f"{work}/nginx.conf", f"""daemon off; worker_processes 1; pid {work}/nginx.pid; user root;
error_log {work}/nginx.log crit; worker_rlimit_nofile 20000;
events {{ worker_connections 10000; }}
http {{
    access_log off; {temp} keepalive_timeout 900s; keepalive_requests 100000000;
    map $http_x_api_key $known {{ default 0; "{NONCE}" 1; }}
    upstream provider {{ server 127.0.0.1:{BASE + 1}; keepalive 256; keepalive_requests 100000000; }}
    server {{
        listen unix:{work}/nginx.sock backlog=4096;
        location /provider/p/ {{
            if ($known = 0) {{ return 401; }}
            proxy_pass https://provider/; proxy_http_version 1.1; proxy_buffering off;
            proxy_set_header Connection ""; proxy_set_header Host localhost; proxy_set_header x-api-key {KEY};
            proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca}; proxy_ssl_name localhost;
            proxy_ssl_server_name on; proxy_read_timeout 900s;
        }}
    }}
}}
""")
    return Peer("nginx-http-unix", "post", f"unix:{work}/nginx.sock", [f"nginx -c {conf} -e {work}/nginx.log"],
                "/provider/p", [f"x-api-key: {NONCE}"])


def caddy(work, ca):
    conf = write(f"{work}/Caddyfile", f"""{{
    admin off
    auto_https off
}}
http://:{port(4)} {{
    bind 127.0.0.1
    @known header x-api-key {NONCE}
    handle @known {{
        uri strip_prefix /provider/p
        reverse_proxy https://localhost:{BASE + 1} {{
            header_up x-api-key {KEY}
            flush_interval -1
            transport http {{
                tls_trusted_ca_certs {ca}
                tls_server_name localhost
                keepalive_idle_conns_per_host 256
            }}
        }}
    }}
    handle {{
        respond 401
    }}
}}
""")
    return Peer("caddy", "post", port(4), [f"caddy run --adapter caddyfile --config {conf}"], "/provider/p",
                [f"x-api-key: {NONCE}"],
                {"GOMAXPROCS": "1", "HOME": work, "XDG_DATA_HOME": work, "XDG_CONFIG_HOME": work})


def portkey(work, ca):
    server = f"{work}/npm/node_modules/@portkey-ai/gateway/build/start-server.js"
    return Peer("portkey", "post", port(5), [f"node {server} --port={port(5)} --headless"], "",
                ["x-portkey-provider: openai", f"x-portkey-custom-host: https://localhost:{BASE + 1}/v1",
                 f"Authorization: Bearer {KEY}"], {"NODE_EXTRA_CA_CERTS": ca, "NODE_ENV": "production"})


def srt_chain(work, here):
    package = f"{work}/npm/node_modules/@anthropic-ai/sandbox-runtime"
    bridge = f"{work}/srt.sock"
    # Queues as the product has them: socat's own default.
    return Peer("srt-chain", "connect", port(7), [
        f"node {here}/peers/srt.mjs {package} {port(6)} 127.0.0.1 localhost",
        f"socat UNIX-LISTEN:{bridge},fork,unlink-early TCP:127.0.0.1:{port(6)}",
        f"socat TCP-LISTEN:{port(7)},bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:{bridge}"])


def errand_box(build, work, ca, name, with_relay):
    run_dir = f"{work}/{name}"
    os.makedirs(run_dir, exist_ok=True)
    for secret, value in (("key", KEY), ("nonce", NONCE)):
        write(f"{run_dir}/{secret}", value)
    # An operator's own authority is read at the start; with the system's alone, which is usual, nothing is until needed.
    authority = f'"ca": "{ca}",' if ca else ""
    rules = write(f"{run_dir}/rules.json", f"""{{"allow": ["127.0.0.1", "*.example.com"], "ports": [443, {BASE}],
"allow_internal": true, {authority} "providers": [{{"name": "p", "kind": "anthropic",
"base_url": "https://127.0.0.1:{BASE + 1}", "key_file": "{run_dir}/key", "nonce_file": "{run_dir}/nonce"}}]}}""")
    broker = f"{build}/tests/component/broker/broker-run {run_dir} {rules}"
    if not with_relay:
        return Peer(name, "connect post" if ca else "memory", f"unix:{run_dir}/model.sock", [broker], "/provider/p",
                    [f"x-api-key: {NONCE}"], without_service=True)
    return Peer(name, "connect", port(8), [broker, relay_command(build, port(8), f"{run_dir}/model.sock")],
                without_service=True)


def relay_command(build, listen_port, path):
    """The relay is given its listening socket, as the guest's init gives it."""
    code = ("import os,socket,sys; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); "
            "s.bind(('127.0.0.1',int(sys.argv[1]))); s.listen(4096); s.set_inheritable(True); "
            "os.execv(sys.argv[2],[sys.argv[2],'--listen-fd',str(s.fileno()),'--connect',sys.argv[3]])")
    return ["python3", "-c", code, str(listen_port), f"{build}/guest/relay", path]


def all_peers(build, work, here, ca, origin_unix):
    relay = Peer("relay", "raw", port(9), [relay_command(build, port(9), origin_unix)])
    found = [
        errand_box(build, work, ca, "broker", False),
        Peer("direct-unix", "raw connect post", f"unix:{origin_unix}", headers=[f"x-api-key: {KEY}"]),
        tinyproxy(work),
        goproxy(work),
        haproxy(work, ca), nginx(work, ca), caddy(work, ca), portkey(work, ca),
        srt_chain(work, here),
        errand_box(build, work, ca, "whole-path", True),
        errand_box(build, work, None, "broker-idle", False),
        relay,
    ]
    return {peer.name: peer for peer in found}
