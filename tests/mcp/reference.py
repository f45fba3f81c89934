"""reference.py CUTEGEN WORK KERNEL [full] - a conformance run by the reference client (PyPI `mcp`, 2.x).

Tools, resources and prompts; the client itself checks each result against the protocol's types and each tool's output
against its schema. At each revision over both transports; kernels are judged at the newest revision of the handshake over
stdio, and with `full` everywhere and by every tool. Prints `good SENTENCE` or `bad SENTENCE<tab>WHY`; judge_test.py makes TAP of it.
"""
import json
import os
import subprocess
import sys
import traceback

import anyio
import httpx2
import mcp.client.session
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

mcp.client.session.DISCOVER_TIMEOUT_SECONDS = 3600  # a slow machine is not an older server
program, work, kernel = sys.argv[1:4]
full = "full" in sys.argv
root = os.environ["CUTEGEN_HOME"]
task = root + "/examples/swish.py"
failed = False


def tell(sentence, good, why=""):
    global failed
    failed = failed or not good
    print("%s %s\t%s" % ("good" if good else "bad", sentence, "" if good else repr(why)[-800:].replace("\n", " ")), flush=True)


async def light(c, what):
    """What costs no judgement."""
    tools = await c.list_tools()
    tell(what + "tools are listed", len(tools.tools) == 9)
    resources = await c.list_resources()
    templates = await c.list_resource_templates()
    prompts = await c.list_prompts()
    tell(what + "resources, templates and prompts are listed",
         len(resources.resources) > 8 and len(templates.resource_templates) == 4 and len(prompts.prompts) == 2)
    for r in resources.resources:
        if "/guide/" in str(r.uri):
            text = await c.read_resource(str(r.uri))
            tell(what + "%s can be read" % r.uri, len(text.contents[0].text) > 100)
    found = await c.call_tool("search_cute", {"query": "make_tiled_copy", "max": 2})
    tell(what + "search_cute finds a declaration", any("make_tiled_copy" in p["text"] for p in found.structured_content["passages"]), found)
    missing = await c.call_tool("run_status", {"run": "20000101-nothing-1"})
    tell(what + "a run that is not there is the tool's error", missing.is_error, missing)


async def judged(c, what):
    """Every tool that judges, on a kernel that compiles in no time."""
    steps = []

    async def progress(done, total, message):
        steps.append(message)

    d = await c.call_tool("describe_task", {"task": task})
    tell(what + "describe_task", d.structured_content["class"] == "pointwise", d)
    e = await c.call_tool("evaluate_kernel", {"task": task, "kernel": kernel, "target": "cuda"}, progress_callback=progress)
    tell(what + "evaluate_kernel", e.structured_content["pass"], e)
    tell(what + "progress is told", "build" in steps, steps)
    run = e.structured_content["run"]
    for part in ["", "/attempt/1", "/source", "/report"]:
        text = await c.read_resource("cutegen://run/%s%s" % (run, part))
        tell(what + "a run%s can be read" % part, len(text.contents[0].text) > 100)
    r = await c.call_tool("compare_kernels", {"task": task, "kernel_a": kernel, "kernel_b": kernel, "rounds": 1, "target": "cuda"})
    tell(what + "compare_kernels", r.structured_content["faster"] == "none", r)
    r = await c.call_tool("profile_kernel", {"task": task, "kernel": kernel, "target": "cuda"})
    tell(what + "profile_kernel", "modelled" in (r.structured_content["profile"] or ""), r)
    if full:  # these compile CuTe, which takes its time
        r = await c.call_tool("start_kernel", {"task": task})
        tell(what + "start_kernel", "CUTEGEN_PLAN" in r.structured_content["source"], r)
        r = await c.call_tool("run_task", {"task": task, "model": "builtin", "depth": 0})
        run = r.structured_content["run"]
        tell(what + "run_task", run, r)
    while True:
        r = await c.call_tool("run_status", {"run": run})
        if r.structured_content["state"] != "running":
            break
        await anyio.sleep(0.5)
    tell(what + "run_status", r.structured_content["best_us"] > 0 and r.structured_content["parts"] is None, r)
    out = os.path.join(work, "export-" + "".join(x for x in what if x.isalnum()))
    r = await c.call_tool("export_kernel", {"run": run, "output": out})
    tell(what + "export_kernel", os.path.exists(os.path.join(out, "record.json")), r)
    r = await c.get_prompt("synthesis", {"task": task})
    tell(what + "the synthesis prompt", "CUTEGEN_PLAN" in str(r.messages))
    r = await c.get_prompt("repair", {"task": task, "kernel": kernel})
    tell(what + "the repair prompt", "swish" in str(r.messages))


async def converse(transport, revision, how, deep):
    what = "%s over %s, reference client: " % (revision, how)
    mode = "2026-07-28" if revision == "2026-07-28" else "legacy"
    try:
        async with Client(transport, mode="auto" if mode != "legacy" else mode, read_timeout_seconds=3600) as c:
            tell(what + "agreed", c.protocol_version == revision, c.protocol_version)
            await light(c, what)
            if deep:
                await judged(c, what)
    except BaseException:
        tell(what + "no exception", False, traceback.format_exc())


async def main():
    http = subprocess.Popen([program, "mcp", "--http", "--json"], cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    address = json.loads(http.stdout.readline())
    try:
        for revision in ["2025-06-18", "2025-11-25", "2026-07-28"]:
            # The client offers its newest handshake revision; it is made to offer this one.
            mcp.client.session.LATEST_HANDSHAKE_VERSION = revision if revision != "2026-07-28" else "2025-11-25"
            stdio = StdioServerParameters(command=program, args=["mcp"], env=dict(os.environ), cwd=work)
            await converse(stdio, revision, "stdio", full or revision == "2025-11-25")
            async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + address["token"]}, timeout=3600) as web:
                await converse(streamable_http_client(address["url"], http_client=web), revision, "HTTP", full)
    finally:
        http.terminate()
        http.wait()


anyio.run(main)
sys.exit(failed)
