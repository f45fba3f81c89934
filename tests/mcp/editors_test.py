"""editors_test.py CUTEGEN - `watch`, `eval --format github`, `agent install`: cutegen in editors and CI logs. Prints TAP."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

program = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.abspath(os.path.join(here, "..", ".."))
work = tempfile.mkdtemp(prefix="cutegen-editors-test-")
env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
env.update(XDG_CONFIG_HOME=work + "/config", CUTEGEN_DEVICE="simt", CUTEGEN_RUNS=work + "/runs", CUTEGEN_HOME=root, CUTEGEN_DRAWS="1",
           CUTEGEN_SERVER="yes", CUTEGEN_RUNTIME=work + "/runtime", CUTEGEN_TARGET="cuda")
task, kernel = root + "/examples/swish.py", work + "/k.cu"
with open(here + "/swish.cu") as f:
    source = f.read()
count = failed = 0


def ok(sentence, good, why=""):
    global count, failed
    count += 1
    failed += not good
    print("%s %d - %s" % ("ok" if good else "not ok", count, sentence), flush=True)
    if not good:
        print("#", str(why)[-1500:].replace("\n", "\n# "), flush=True)


def run(*words):
    return subprocess.run([program, *words], env=env, cwd=work, text=True, capture_output=True)


def save(text, by_rename=False):
    path = kernel + ".new" if by_rename else kernel
    with open(path, "w") as f:
        f.write(text)
    if by_rename:
        os.rename(path, kernel)


def watching():
    save(source)
    w = subprocess.Popen([program, "watch", task, kernel, "--json"], env=env, cwd=work, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    said = []

    def hears(verdict):
        """Reads up to this verdict: a save in place may be judged half done, too."""
        while not said or said[-1]["verdict"] != verdict:
            line = w.stdout.readline()
            if not line:
                return False
            said.append(json.loads(line))
        return True

    ok("watch judges what is there", hears("pass") and len(said) == 1 and said[0]["change"] == "first", said)
    save(source.replace("if (i < n)", "if (i < n - 1)"))
    ok("and again at a save", hears("not written") and said[1]["change"] == "was pass", said)
    save(source + "// the same\n", by_rename=True)
    ok("and at one by renaming", hears("pass") and said[-1]["change"] == "was not written", said)
    ok("each verdict has its number", [one["number"] for one in said] == list(range(1, len(said) + 1)), said)
    w.send_signal(signal.SIGINT)
    ok("Ctrl-C ends it", w.wait() == 0 and w.stdout.read() == "")


def formats():
    save(source.replace("float const *x", "float cnst *x"))
    r = run("eval", task, kernel, "--format", "github")
    ok("--format github names file and line", r.returncode == 1 and r.stdout.startswith("::error file=%s,line=8,title=compile error::" % kernel), r)
    ok("a message is one line", all(line.startswith(("::", "try:")) for line in r.stdout.splitlines()), r.stdout)
    r = run("eval", task, kernel, "--format", "json")
    ok("--format json is --json", json.loads(r.stdout)["verdict"] == "compile error", r)
    r = run("eval", task, kernel, "--format", "yaml")
    ok("another format is refused", r.returncode == 2 and "text, json or github" in r.stderr, r)


def install():
    with open(work + "/.mcp.json", "w") as f:
        f.write('{"mcpServers": {"other": {"command": "x"}}}')
    r = run("agent", "install")
    ok("which agent is asked", r.returncode == 2 and "--claude" in r.stderr, r)
    r = run("agent", "install", "--print")
    ok("--print writes nothing", r.returncode == 0 and os.listdir(work).count(".codex") == 0 and "[mcp_servers.cutegen]" in r.stdout, r)
    r = run("agent", "install", "--claude", "--codex", "--cursor")
    with open(work + "/.mcp.json") as f:
        entry = json.load(f)["mcpServers"]
    ok("the entry stands beside what was there", entry["other"] == {"command": "x"} and entry["cutegen"]["args"] == ["mcp"], entry)
    ok("the entry's command is a cutegen", subprocess.run([entry["cutegen"]["command"], "version"], capture_output=True).returncode == 0, entry)
    ok("what is written is shown", entry["cutegen"]["command"] in r.stdout and "name: cutegen" in r.stdout, r.stdout)
    files = [".claude/skills/cutegen/SKILL.md", ".agents/skills/cutegen/SKILL.md", ".cursor/skills/cutegen/SKILL.md", ".cursor/mcp.json",
             ".codex/config.toml"]
    ok("every file is there", all(os.path.exists(work + "/" + f) for f in files), r)
    r = run("agent", "install", "--claude", "--codex", "--cursor", "--json")
    ok("a second time changes nothing", {f["action"] for f in json.loads(r.stdout)["files"]} == {"keep"}, r)
    with open(work + "/.cursor/skills/cutegen/SKILL.md", "w") as f:
        f.write("mine\n")
    r = run("agent", "install", "--cursor", "--remove")
    ok("a user's file is named and nothing is touched", r.returncode == 2 and "SKILL.md" in r.stderr and os.path.exists(work + "/.cursor/mcp.json"), r)
    r = run("agent", "install", "--claude", "--codex", "--remove")
    with open(work + "/.mcp.json") as f:
        ok("--remove leaves what was there before", json.load(f) == {"mcpServers": {"other": {"command": "x"}}} and
           not os.path.exists(work + "/.codex/config.toml") and not os.path.exists(work + "/.claude/skills/cutegen/SKILL.md"), r)


try:
    install()
    watching()
    formats()
finally:
    subprocess.run([program, "server", "stop"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(work, ignore_errors=True)
print("1..%d" % count)
sys.exit(failed != 0)
