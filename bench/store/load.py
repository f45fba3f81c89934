# SPDX-License-Identifier: Apache-2.0
"""How long the store's questions take when it holds 100,000 jobs and 1,000,000 attempts.

    tests/store/postgres.sh python3 bench/store/load.py CUTEGEN [SUITES [TASKS [ATTEMPTS]]]     a server
    python3 bench/store/load.py CUTEGEN                                                         a SQLite file

Fills the tables by SQL, then times whole commands, start to end. `--explain` as the last word prints the plans of the
statements that the commands really sent (PostgreSQL only: set POSTGRES_OPTIONS as below).

    POSTGRES_OPTIONS='-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0'
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

EXPLAIN = sys.argv[-1] == "--explain"
WORDS = sys.argv[1:-1] if EXPLAIN else sys.argv[1:]
PROGRAM = str(Path(WORDS[0]).resolve())
SUITES, TASKS, ATTEMPTS = (int(WORDS[i]) if len(WORDS) > i else n for i, n in ((1, 400), (2, 250), (3, 10)))
URL = os.environ.get("CUTEGEN_TEST_STORE", "")
RUNS = SUITES * TASKS
DAY_MS = 86400000

# {n}: numbers from 0; {sha}: 64 letters made of a number; written so that both engines take it.
FILL = [
    "INSERT INTO blobs (sha256, size, data) SELECT {sha:n}, 8, {bytes} FROM {series:SOURCES}",
    "INSERT INTO tasks (id, name, path, source, description, class, evidence) SELECT n + 1, 'task' || n,"
    " '/tasks/' || n || '.py', {sha:0}, {sha:1}, 'pointwise', '' FROM {series:TASKS}",
    "INSERT INTO suites (name, source, flags, started_ms) SELECT 'suite-' || n, '/tasks', '[]', n FROM {series:SUITES}",
    "INSERT INTO suite_tasks (suite, number, path, ended) SELECT 'suite-' || (n / TASKS), n % TASKS,"
    " '/tasks/' || (n % TASKS) || '.py', 1 FROM {series:RUNS}",
    "INSERT INTO runs (id, task, model, suite, device, options, environment, state, reason, started_ms, ended_ms)"
    " SELECT '2026-run-' || n, n % TASKS + 1, 'builtin', 'suite-' || (n / TASKS), '{{\"kind\":\"simt\",\"name\":\"simt\"}}',"
    " '{{}}', '{{}}', 'done', '', n * 1000, n * 1000 + 500 FROM {series:RUNS}",
    "INSERT INTO candidates (id, run, depth, change, source) SELECT n + 1, '2026-run-' || (n / ATTEMPTS), n % ATTEMPTS,"
    " 'change', {sha:n % SOURCES} FROM {series:ALL}",
    "INSERT INTO attempts (run, number, repair, stage, candidate, started_ms, ended_ms, step, kept)"
    " SELECT '2026-run-' || (n / ATTEMPTS), n % ATTEMPTS + 1, 0, 'optimize', n + 1, n, n + 1, 'measure', 1 FROM {series:ALL}",
    "INSERT INTO verdicts (run, attempt, kind, summary, detail) SELECT '2026-run-' || (n / ATTEMPTS), n % ATTEMPTS + 1,"
    " CASE WHEN n % 3 = 0 THEN 'wrong values' ELSE 'pass' END, '', '' FROM {series:ALL}",
    "INSERT INTO measurements (run, attempt, modelled, time_us, bound) SELECT '2026-run-' || (n / ATTEMPTS),"
    " n % ATTEMPTS + 1, 1, 100 - n % ATTEMPTS, 'memory' FROM {series:ALL} WHERE n % 3 <> 0",
    "DELETE FROM workers",
    "INSERT INTO workers (id, host, pid, kind, gpu, memory_bytes, started_ms, seen_ms) SELECT n + 1, 'node' || n, n,"
    " 'cuda', 'H200', 1, 0, {now} FROM {series:1000}",
    "INSERT INTO jobs (suite, number, path, state, priority, needs_kind, needs_gpu, needs_bytes, added_ms, ended_ms, worker)"
    " SELECT 'suite-' || (n / TASKS), n % TASKS, '/tasks/x.py', CASE WHEN n < RUNS / 2 THEN 'done' ELSE 'waiting' END, 0, '', '', 0, n,"
    " CASE WHEN n < RUNS / 2 THEN {now} - n * 100 END, n % 1000 + 1 FROM {series:RUNS}",
    "UPDATE workers SET done = (SELECT count(*) FROM jobs WHERE worker = workers.id AND state = 'done')",
]
SOURCES = 1000


def statement(text: str) -> str:
    server = bool(URL)
    count = {"SOURCES": SOURCES, "TASKS": TASKS, "SUITES": SUITES, "RUNS": RUNS, "ALL": RUNS * ATTEMPTS}

    def series(m: re.Match[str]) -> str:
        last = int(count.get(m[1], 0) or m[1]) - 1
        if server:
            return f"generate_series(0, {last}) AS s(n)"
        return f"(WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < {last}) SELECT n FROM s)"

    def sha(m: re.Match[str]) -> str:
        return f"lpad(CAST({m[1]} AS TEXT), 64, '0')" if server else f"printf('%064d', {m[1]})"

    text = re.sub(r"\{series:(\w+)\}", series, text)
    text = re.sub(r"\{sha:([^}]+)\}", sha, text)
    text = text.replace("{bytes}", "'\\x7b7d'::bytea" if server else "CAST('{}' AS BLOB)")
    now = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
    text = text.replace("{now}", now if server else str(int(time.time() * 1000)))
    text = text.replace("{{", "{").replace("}}", "}")
    return re.sub(r"\b(SOURCES|TASKS|SUITES|RUNS|ATTEMPTS)\b", lambda m: str(count.get(m[1], ATTEMPTS)), text)


def fill(folder: Path) -> None:
    subprocess.run([PROGRAM, "worker", "--idle-exit", "0", "--quiet"], check=True)  # makes the tables
    if URL:
        text = ";".join(statement(s) for s in FILL)
        subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", URL, "-c", text, "-c", "VACUUM ANALYZE"], check=True)
        return
    db = sqlite3.connect(folder / "store.db")
    for s in FILL:
        db.execute(statement(s))
    db.commit()
    db.close()


def seconds(*words: str) -> tuple[float, str]:
    best, out = 1e9, ""
    for _ in range(3):
        began = time.monotonic()
        p = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        best = min(best, time.monotonic() - began)
        out = p.stdout
        if p.returncode:
            sys.exit(f"{' '.join(words)}: {p.stderr}")
    return best, out


def live_seconds(path: str) -> float:
    p = subprocess.Popen([PROGRAM, "live", "--json"], stdout=subprocess.PIPE, text=True)
    assert p.stdout
    url = re.search(r"http://[^\"]+", p.stdout.readline())[0]
    base, token = re.match(r"(http://[^/]+).*[#?/=]([0-9a-zA-Z_-]{16,})", url).groups()
    best = 1e9
    for _ in range(3):
        began = time.monotonic()
        request = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {token}"})
        urllib.request.urlopen(request).read()
        best = min(best, time.monotonic() - began)
    p.terminate()
    p.wait()
    return best


def plans() -> None:
    """One plan for each statement that was sent, and which of them read a whole table."""
    log = Path(os.environ["PGDATA_OF_TEST"], "log").read_text(errors="replace")
    seen = set()
    for m in re.finditer(r"Query Text: (.*)\n((?:\t.*\n)+)", log):
        if m[1] in seen or not m[1].startswith("SELECT"):
            continue
        seen.add(m[1])
        print(f"\n{m[1]}\n{m[2]}", end="")


def main() -> int:
    with tempfile.TemporaryDirectory() as top:
        os.environ.update(CUTEGEN_RUNS=f"{top}/runs", CUTEGEN_STORE=URL, XDG_CONFIG_HOME=top, CUTEGEN_DEVICE="simt")
        began = time.monotonic()
        fill(Path(top, "runs"))
        what = "PostgreSQL" if URL else "SQLite"
        print(f"# {what}: {RUNS} jobs and runs, {RUNS * ATTEMPTS} attempts; filled in {time.monotonic() - began:.0f} s")
        slow = 0
        for words in (["runs"], ["runs", "--suite", "suite-7"], ["top"], ["show", "last"],
                      ["report", f"2026-run-{RUNS // 2}", "--output", f"{top}/page.html"],
                      ["suite", "--resume", "suite-7"]):
            took, _ = seconds(*words)
            slow += took > 1
            print(f"{took * 1000:8.0f} ms  {' '.join(words[:3])}", flush=True)
        for path in ("/view", "/view/suite/suite-7"):
            took = live_seconds(path)
            slow += took > 1
            print(f"{took * 1000:8.0f} ms  live {path}", flush=True)
        if EXPLAIN:
            plans()
    return slow != 0


sys.exit(main())
