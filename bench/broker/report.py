#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From the runs of bench/broker/run to bench/results/broker.md and broker.svg.

    bench/broker/report.py RUNS.jsonl [RESULTS-DIR]
"""
import collections, datetime, json, os, platform, statistics, sys

GIB = 1 << 30


def cpu_of(row):
    """CPU in the unit of the case: microseconds an operation or an event, or seconds a GiB."""
    if row.get("cpu") is None or row.get("error"):
        return None
    if row["case"] in ("down", "up", "mib"):
        return row["cpu"] * GIB / row["bytes"] if row.get("bytes") else None
    count = row.get("samples") if row["case"].startswith("events") else row.get("done")
    return row["cpu"] * 1e6 / count if count else None


def rate_of(row):
    if row.get("error") or not row.get("seconds"):
        return None
    return (row["bytes"] / (1 << 20) if row["case"] in ("down", "up") else row["done"]) / row["seconds"]


def short(row):
    text = f"{row['round']} {row['case']:11} {row['peer']:18}"
    if row["case"] == "memory":
        return text + " ".join(f" {k} {row[k]:.1f}" for k in ("rss", "anon", "rss_held", "each_kib") if k in row)
    if row.get("error"):
        return text + " " + row["error"]
    text += f" {rate_of(row) or 0:9.0f}/s p50 {row['p50_us']:8.0f} us"
    text += f" cpu {cpu_of(row):8.2f}" if cpu_of(row) is not None else ""
    return text + (f" failed {row['failed']}: {row.get('said', '')}" if row["failed"] else "")


class Runs:
    def __init__(self, path):
        self.rows = collections.defaultdict(dict)  # (case, peer) -> round -> row
        with open(path) as f:
            for line in f:
                row = json.loads(line)
                if not row.get("error"):
                    self.rows[row["case"], row["peer"]][row["round"]] = row

    def values(self, case, peer, what):
        found = [what(row) for row in self.rows.get((case, peer), {}).values()]
        return [value for value in found if value is not None]

    def median(self, case, peer, what):
        values = self.values(case, peer, what)
        return statistics.median(values) if values else None

    def cpu(self, case, peer="broker"):
        return self.median(case, peer, cpu_of)

    def ratio(self, case, peer, other, what):
        """Median of what was compared inside each round."""
        mine, theirs = self.rows.get((case, peer), {}), self.rows.get((case, other), {})
        both = [(what(mine[r]), what(theirs[r])) for r in mine if r in theirs]
        both = [a / b for a, b in both if a is not None and b]
        return statistics.median(both) if both else None

    def added(self, case, peer):
        mine, direct = self.rows.get((case, peer), {}), self.rows.get((case, "direct-unix"), {})
        both = [mine[r]["p50_us"] - direct[r]["p50_us"] for r in mine if r in direct]
        return statistics.median(both) if both else None


def rows_of(runs):
    """(measure, figure shown, value, must, lead): lower is better; a limit of None is not set."""
    rows = []

    def add(measure, unit, value, must, lead, note=""):
        rows.append((measure, unit, value, must, lead, note))

    for n in (16, 64):
        fast = runs.ratio(f"new-{n}", "broker", "tinyproxy", rate_of)
        add(f"new tunnels, {n} at once", "of tinyproxy's rate (more is better)", fast, 1.0, 1.6)
        add(f"new tunnels, {n} at once", "CPU us", runs.cpu(f"new-{n}"), 167, 105,
            f"goproxy {number(runs.cpu(f'new-{n}', 'goproxy'))}, tinyproxy {number(runs.cpu(f'new-{n}', 'tinyproxy'))}")
    idle, alone = runs.rows.get(("rtt-idle", "broker"), {}), runs.rows.get(("rtt", "broker"), {})
    grown = [idle[r]["p50_us"] / alone[r]["p50_us"] for r in idle if r in alone]
    add("round trip beside 1000 idle tunnels", "of its own without them", statistics.median(grown) if grown else None,
        1.25, None)
    add("round trip beside 1000 idle tunnels", "CPU us", runs.cpu("rtt-idle"), None, 40,
        f"tinyproxy {number(runs.cpu('rtt-idle', 'tinyproxy'))}")
    for case, text, must, lead in (("down", "bulk down", 0.51, 0.35), ("up", "bulk up", 0.41, 0.41),
                                   ("mib", "1 MiB on new tunnels", 0.70, 0.50)):
        add(text, "CPU s a GiB", runs.cpu(case), must, lead, f"goproxy {number(runs.cpu(case, 'goproxy'))}")
    add("provider, kept connection, 16 at once", "CPU us", runs.cpu("post-16"), 132, 40,
        ", ".join(f"{p} {number(runs.cpu('post-16', p))}" for p in ("caddy", "nginx-http-unix", "haproxy-http-unix")))
    add("provider, kept connection, 16 at once", "of portkey's CPU", runs.ratio("post-16", "broker", "portkey", cpu_of),
        0.05, None)
    add("provider, new connections, 16 at once", "CPU us", runs.cpu("post-new-16"), 55, 38,
        ", ".join(f"{p} {number(runs.cpu('post-new-16', p))}" for p in ("caddy", "nginx-http-unix", "haproxy-http-unix")))
    for case, text in (("events-1", "stream, 1 at once"), ("events-50", "stream, 50 at once"),
                       ("events-200", "stream, 200 at once"), ("events-50-together", "stream, 50 in one instant")):
        caddy, nginx = runs.added(case, "caddy"), runs.added(case, "nginx-http-unix")
        add(text, "added p50, us", runs.added(case, "broker"), caddy, nginx,
            f"caddy {number(caddy)}, nginx {number(nginx)}")
    add("stream, 200 at once", "CPU us an event", runs.cpu("events-200"), None, 45,
        f"nginx {number(runs.cpu('events-200', 'nginx-http-unix'))}")
    memory = lambda peer, key: runs.median("memory", peer, lambda row: row.get(key))
    for key, limit, text in (("rss", 12, "RSS of an idle broker"), ("anon", 3.5, "of it anonymous")):
        value = memory("broker-idle", key)
        add(text, "MiB", value / 1024 if value is not None else None, limit, None,
            f"tinyproxy {number((memory('tinyproxy', key) or 0) / 1024)}, "
            f"srt-chain {number((memory('srt-chain', key) or 0) / 1024)}")
    add("idle tunnel", "KiB", memory("broker-idle", "each_kib"), 4, 2, f"goproxy {number(memory('goproxy', 'each_kib'))}")
    add("relay, new connections, 16 at once", "CPU us", runs.cpu("new-16", "relay"), 110, 85)
    add("relay, bulk down", "CPU s a GiB", runs.cpu("down", "relay"), 0.38, 0.30)
    add("relay, idle connection", "KiB", memory("relay", "each_kib"), 1, 1)
    fast = runs.ratio("new-16", "whole-path", "srt-chain", rate_of)
    add("whole path, new tunnels, 16 at once", "of srt-chain's rate (more is better)", fast, 5, None)
    add("whole path, new tunnels, 16 at once", "of srt-chain's CPU",
        runs.ratio("new-16", "whole-path", "srt-chain", cpu_of), 0.2, None)
    add("whole path, bulk down", "of srt-chain's CPU", runs.ratio("down", "whole-path", "srt-chain", cpu_of), 0.2, None)
    return rows


def number(value):
    if value is None:
        return "none"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def verdict(unit, value, must, lead):
    if value is None:
        return "not measured"
    reaches = (lambda limit: value >= limit) if "more is better" in unit else (lambda limit: value <= limit)
    if lead is not None and reaches(lead):
        return "lead"
    if must is not None and reaches(must):
        return "must" if lead is not None else "reached"
    return "missed" if must is not None else "lead missed"


def table(runs):
    lines = ["| measure | figure | broker or relay | must | lead | peers in the same rounds | verdict |",
             "|---|---|---|---|---|---|---|"]
    for measure, unit, value, must, lead, note in rows_of(runs):
        lines.append(f"| {measure} | {unit.replace(' (more is better)', '')} | {number(value)} | "
                     f"{'' if must is None else number(must)} | {'' if lead is None else number(lead)} | {note} | "
                     f"{verdict(unit, value, must, lead)} |")
    return lines


def all_figures(runs):
    lines = ["| case | peer | a second | p50 us | p99 us | CPU (us, or s a GiB) | failed | rounds |",
             "|---|---|---|---|---|---|---|---|"]
    for (case, peer), rows in runs.rows.items():
        if case == "memory":
            continue
        middle = lambda key: statistics.median(row[key] for row in rows.values())
        lines.append(f"| {case} | {peer} | {number(runs.median(case, peer, rate_of))} | {number(middle('p50_us'))} | "
                     f"{number(middle('p99_us'))} | {number(runs.cpu(case, peer))} | "
                     f"{sum(row['failed'] for row in rows.values())} | {len(rows)} |")
    return lines


# --- the plot ---

PLOTS = [("new-16", "new tunnel, 16 at once: CPU us"), ("mib", "1 MiB on new tunnels: CPU s a GiB"),
         ("down", "bulk down: CPU s a GiB"), ("up", "bulk up: CPU s a GiB"),
         ("rtt-idle", "round trip beside 1000 idle tunnels: CPU us"), ("post-16", "provider request, kept: CPU us"),
         ("events-200", "event of 200 streams: CPU us")]


def plot(runs):
    """One group of bars a case, as wide as its longest; the broker and the relay stand out."""
    parts, y, width = [], 10, 420
    for case, title in PLOTS:
        bars = [(peer, runs.cpu(case, peer)) for (c, peer) in runs.rows if c == case and runs.cpu(case, peer) is not None]
        # One peer that is far off would make all others look alike.
        bars = sorted(bars, key=lambda bar: bar[1])
        if not bars:
            continue
        longest = min(bars[-1][1], 8 * bars[0][1])
        parts.append(f'<text x="10" y="{y + 12}" font-weight="bold">{title}</text>')
        y += 20
        for peer, value in bars:
            own = peer in ("broker", "relay", "whole-path")
            length = max(1, width * min(value, longest) / longest)
            parts.append(f'<text x="150" y="{y + 11}" text-anchor="end">{peer}</text>'
                         f'<rect x="156" y="{y}" width="{length:.0f}" height="13" fill="{"#1a6" if own else "#99a"}"/>'
                         f'<text x="{162 + length:.0f}" y="{y + 11}">{number(value)}{" (cut)" if value > longest else ""}'
                         f'</text>')
            y += 17
        y += 12
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{y}" font-family="sans-serif" font-size="12">'
            f'<rect width="100%" height="100%" fill="white"/>' + "\n".join(parts) + "</svg>\n")


def write(path, results):
    runs = Runs(path)
    rounds = max((len(rows) for rows in runs.rows.values()), default=0)
    loads = [row["load"] for rows in runs.rows.values() for row in rows.values()]
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown processor")
    head = (f"{datetime.date.today()}, {os.cpu_count()} processors ({model}), Linux {platform.release()}, {rounds} rounds, "
            f"load average {min(loads):.0f} to {max(loads):.0f} meanwhile.")
    lines = ["# Broker and relay", "", head, "`bench/broker/run` makes this file; `bench/broker/README.md` has the method.", "",
             *table(runs), "", "![CPU of broker and peers](broker.svg)", "",
             "## All figures", "", "Medians of the rounds.", "", *all_figures(runs), ""]
    with open(f"{results}/broker.md", "w") as f:
        f.write("\n".join(lines))
    with open(f"{results}/broker.svg", "w") as f:
        f.write(plot(runs))
    put_into(os.path.join(results, "../../docs/performance.md"), [head, "", *table(runs)])
    print("\n".join(table(runs)))


def put_into(page, lines):
    """Replaces what the page shows between its two marks."""
    if not os.path.exists(page):
        return
    with open(page) as f:
        before, _, after = f.read().partition("<!-- results -->\n")
    with open(page, "w") as f:
        f.write(before + "<!-- results -->\n" + "\n".join(lines) + "\n<!-- end -->" + after.partition("<!-- end -->")[2])


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(sys.argv[0]), "../results"))
