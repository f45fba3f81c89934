#!/usr/bin/env bash
# stranger_test.sh - exported folders that a stranger changed, the record with them: refused when verified or imported, in words.
#
#     tests/export/stranger_test.sh PATH-TO-CUTEGEN
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/export/common.sh
. "$here/common.sh"

# forged EXPORT CODE: a copy of it, changed by Python code (folder, t: launches.json, r: record.json), all hashes set right again.
# $place is the copy. `known = False` leaves the hashes.
forged()
{
    place=$(mktemp -d "$work/forged.XXXX")/$(basename "$1")
    cp -r "$1" "$place"
    python3 - "$place" "$2" <<'END'
import hashlib, json, os, sys
folder, change = sys.argv[1:]
def path(name): return os.path.join(folder, name)
def text(name): return open(path(name), "rb").read()
def write(name, data):
    with open(path(name), "wb") as file:
        file.write(data)
t, r, known = json.loads(text("launches.json")), json.loads(text("record.json")), True
before = json.dumps(t)
exec(change)
if json.dumps(t) != before:
    write("launches.json", json.dumps(t).encode())
if known:
    for name in os.listdir(folder):
        if name != "record.json" and os.path.isfile(path(name)):
            r["files"][name] = hashlib.sha256(text(name)).hexdigest()
    write("record.json", json.dumps(r).encode())
END
}
verified() # WHAT PATTERN CODE: of a forged copy; the pattern holds the exit status too
{
    forged "$work/factor" "$3"
    timeout 300 "$program" verify "$place" >"$work/said" 2>&1
    ok "verify: $1" "$2" "exit $? $(tr '\n' ' ' <"$work/said")"
}
imported() # WHAT PATTERN CODE: what an import and a call of a forged copy say
{
    forged "$work/factor" "$3"
    ok "import: $1" "$2" "$(timeout 120 "$here/../oracle/run.sh" "$here/attack.py" "$place" 2>&1 | grep -v '^  \|^Traceback\|^$' | tr '\n' ' ')"
}

# Two functions that differ in a constant: FACTOR = 2 as written, judged with 3.
sed 's/return x \* 2 + 1/return x * FACTOR + 1/; s/^N = 1000/N = 1000\nFACTOR = 2/' "$here/doubled.py" >"$work/factor.py"
"$program" run "$work/factor.py" --depth 0 --ahead 0 --no-report --draws 1 --set FACTOR=3 >"$work/run" 2>&1
said=$("$program" export last --output "$work/factor" 2>&1)
ok "a kernel of x * 3 + 1 is exported" '^judged' "$said"
verified "as it was written it is verified" '^exit 0 .* verified' 'pass'

# ---- what a record that agrees does not make true -----------------------------------------
other='write("reference.py", text("reference.py").replace(b"FACTOR = 3", b"FACTOR = 2"))'
verified "another task is not what the code computes" '^exit 1 .*judge +DIFFERS' "$other"
verified "nor does a label set its constant" '^exit 1 .*(shapes|judge) +DIFFERS' "$other; t['cases'][0]['label'] = 'FACTOR=3'"
verified "nor the label of a further shape" '^exit 1 .*case 1: shapes: reference.py is another function' \
    "$other; t['cases'].append(dict(t['cases'][0], label='FACTOR=3'))"
verified "compilers of its own invention and a device that is not here vouch for nothing" '^exit 3 .*NOT VERIFIED: this machine could neither' \
    "t['device'].update(kind='cuda', name='GPU', arch='sm_90a'); r['environment'].update(nvrtc='99.9')"
verified "a file that Python takes before loader.py" '^exit 1 .*python +DIFFERS +loader.abi3.so' 'write("loader.abi3.so", b"")'
verified "a package in place of its module" '^exit 1 .*python +DIFFERS +factor_new' 'os.mkdir(path("factor_new")); write("factor_new/__init__.py", b"")'
verified "a link in place of the code" '^exit 1 .*DIFFERS' 'os.rename(path("kernel-0.ptx"), folder + ".ptx"); os.symlink(folder + ".ptx", path("kernel-0.ptx"))'
verified "a pipe in place of a file ends" '^exit [12] ' 'os.remove(path("README.md")); os.mkfifo(path("README.md"))'
verified "a name that leads out of the folder" '^exit [12] .*(is not the name of a code file|DIFFERS)' "t['modules'][0]['file'] = '../factor/kernel-0.ptx'"
verified "a module from the end of the list" '^exit [12] ' "t['cases'][0]['module'] = -1"
verified "a number that no integer holds" '^exit 2 .*cutegen:' "t['cases'][0]['ops'][0]['grid'][0] = 10 ** 40"

# ---- damage -----------------------------------------------------------------------------------
imported "as it was written it is right" '^right loaded \[\]' 'known = False'
for name in launches.json record.json reference.py kernel-0.ptx; do
    imported "$name cut in half is refused" 'Error: ' "known = False; write('$name', text('$name')[:len(text('$name')) // 2])"
    imported "$name made empty is refused" 'Error: ' "known = False; write('$name', b'')"
done
imported "another task beside the same code is refused" 'RuntimeError: .*reference.py was changed after the export' "known = False; $other"
imported "other code is refused" 'RuntimeError: .*is not the code that was judged' "known = False; write('kernel-0.ptx', text('kernel-0.ptx') + b' ')"
echo "1..$n"
exit $failed
