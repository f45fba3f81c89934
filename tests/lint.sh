#!/usr/bin/env bash
# lint.sh - what the compilers do not say: walls, banned functions, marks, sizes, shell scripts.
#
#     tests/lint.sh      one line per check: ok or not ok, and why
# shellcheck disable=SC2317  # the checks are called by name
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3
failed=0

# A check that has nothing to say is content.
check()
{
    local name=$1 out
    shift
    out=$("$@" 2>&1)
    if [ -z "$out" ]; then
        echo "ok      $name"
    else
        echo "not ok  $name"
        printf '%s\n' "$out" | head -20 | sed 's/^/        /'
        failed=$((failed + 1))
    fi
}

# Comments and string literals do not count; what is left is code.
banned()
{
    python3 - <<'END'
import pathlib, re
ALWAYS = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|system|popen|gets)\(")
MEMORY = re.compile(r"\b(malloc|calloc|realloc|strdup|strndup|asprintf)\(")
EXIT = re.compile(r"(^|[^_a-z])exit\(")
for path in sorted(pathlib.Path("src").rglob("*.[ch]")):
    rules = [ALWAYS]
    if str(path) != "src/base/mem.c":
        rules.append(MEMORY)
    if not re.search(r"^src/main\.c$|main\.c$|^src/base/error\.c$", str(path)):
        rules.append(EXIT)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = re.sub(r'"([^"\\]|\\.)*"', '""', line)
        code = re.sub(r"/\*.*\*/|^ *\* .*|//.*", "", code)
        if any(rule.search(code) for rule in rules):
            print(f"{path}:{number}:{code}")
END
}

# Objects that a program could write to at run time. Statics inside functions have a number
# behind their name; those that are listed are what signals, -v and the keys need.
writable_globals()
{
    local allowed='^(current_log|vault|loop_interrupts)$' lib
    for lib in build/release/src/lib*.a build/release/src/*/lib*.a; do
        [ -e "$lib" ] || continue
        objdump -t "$lib" 2>/dev/null |
            awk 'NF > 4 && $(NF-2) ~ /^\.(data|bss)/ && $(NF-2) !~ /rel\.ro/ && $(NF-1) !~ /^0+$/ { print $NF }' |
            grep -vE "$allowed|\.[0-9]+$" | sed "s|^|$lib: |"
    done
}

marks() { git grep -InE '\b(TODO|FIXME|XXX|HACK)\b' -- ':!tests/lint.sh' | head; }

long_files()
{
    git ls-files -co --exclude-standard '*.[ch]' '*.cu' '*.cuh' '*.py' '*.sh' | xargs wc -l |
        awk '$2 != "total" && $1 > 800 { print $2 ": " $1 " lines" }'
}

# A function has at most 70 lines between its braces. One that is better whole has a line
# "/* long: why */" directly above it.
long_functions()
{
    find src -name '*.[ch]' | sort | xargs awk '
    FNR == 1 { open = 0; why = -9; head = "" }
    /^\/\* long: .* \*\/$/ { why = FNR }
    /^[a-z_].*\(/ && !open { head = $0; at = FNR; sub(/\(.*/, "", head); sub(/.*[ *]/, "", head) }
    /^\{/ { open = FNR }
    /^\}/ && open {
        n = FNR - open - 1
        if (n > 70 && why != at - 1) printf "%s:%d: %s has %d lines\n", FILENAME, at, head, n
        open = 0
    }'
}

# No two functions have the same body of four lines or more, wherever they are and whatever their names.
same_functions()
{
    python3 - <<'END'
import collections, pathlib, re
same = collections.defaultdict(list)
function = re.compile(r"^[a-z_][\w \*]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)\n\}\n", re.M | re.S)
for path in sorted(pathlib.Path("src").rglob("*.[ch]")):
    for name, body in function.findall(path.read_text()):
        lines = [" ".join(line.split()) for line in body.splitlines() if line.strip()]
        if len(lines) >= 4:
            same["\n".join(lines).replace(name + "(", "itself(")].append(f"{path}: {name}")
for places in same.values():
    if len(places) > 1:
        print(" = ".join(places))
END
}

# One tag, one struct.
struct_tags()
{
    grep -rhoE 'struct [a-z_0-9]+ \{' src include --include='*.[ch]' | sort | uniq -d |
        sed 's/ {$/: two structs have this tag/'
}

# Behind the reader an opcode is a number.
opcode_text()
{
    grep -rnE 'str(n?cmp|str)\([^;]*(->|\.)op\b|insn_has[a-z_]*\([^,()]*, "|(->|\.)op\[' src/simt --include='*.[ch]' |
        grep -v '^src/simt/ptx/'
}

# A caller decides by an error's kind: its text is for people.
error_text()
{
    grep -rnE '\b(str(n?(case)?cmp|str|casestr)|memmem|text_starts)\([^;]*\b(err|error|why|first|second|busy|fault|ignored)(->|\.)(text|hint)\b' \
        src --include='*.[ch]'
}

# Findings, verdicts and comparisons carry a kind or a relation: their words are for people. model.c asks whether a text
# is shown already.
finding_text()
{
    grep -rnE '\b(strstr|strcasestr|memmem)\([^,()]*(->|\.)(kind|what|summary|detail|advice|pattern)\b' src --include='*.[ch]' |
        grep -vE '^src/model\.c:'
}

licences()
{
    git ls-files 'src/*.[ch]' 'src/*.def' 'include/*.h' 'oracle/*.py' 'python/*.py' | xargs grep -L '^\(/\*\|#\) SPDX-License-Identifier: Apache-2.0'
}

first_lines()
{
    python3 - <<'END'
import pathlib
for path in sorted(p for folder in ("src", "include") for p in pathlib.Path(folder).rglob("*.[ch]")):
    if not any(path.name in line for line in path.read_text().splitlines()[:3]):
        print(f"{path}: the first line does not say what it is for")
END
}

# The README of a file's room, or of the room around it, names the file in backquotes; and no row of a README has a file
# that is gone.
room_readmes()
{
    python3 - "$1" <<'END'
import functools, pathlib, re, sys
KINDS = {".c", ".h", ".def", ".py", ".cu", ".cuh"}
@functools.cache
def text(readme):
    return readme.read_text() if readme.exists() else ""
rooms = [pathlib.Path(r) for r in ("src", "oracle", "python", "recipes")]
files = sorted(p for r in rooms for p in r.rglob("*") if p.suffix in KINDS)
if sys.argv[1] == "missing":
    for path in files:
        around = [path.parent] if path.parent == pathlib.Path("src") else [path.parent, path.parent.parent]
        if not any(f"`{path.name}`" in text(folder / "README.md") for folder in around):
            print(f"{path}: not named in {path.parent}/README.md")
for readme in sorted(p for r in rooms for p in r.rglob("README.md")) if sys.argv[1] == "stale" else []:
    there = {p.name for pattern in ("*", "*/*") for p in readme.parent.glob(pattern)}
    for row in re.findall(r"^\| *(`[^|]*)\|", text(readme), re.M):
        for name in re.findall(r"`([a-z0-9_]+\.(?:c|h|def|py|cu|cuh))`", row):
            if name not in there:
                print(f"{readme}: names {name}, which is not there")
END
}

# Every file that a document names in backquotes, by its path from the top.
doc_paths()
{
    local row path
    git ls-files README.md CONTRIBUTING.md 'docs/*.md' ':!docs/moved-files.md' | xargs \
        grep -noE '`(src|oracle|python|recipes|tests|bench|prompts|examples|setup|data|include)/[A-Za-z0-9_./-]+`' | tr -d '`' |
        while IFS= read -r row; do
            path=${row##*:}
            [ -e "$path" ] || [[ $path == recipes/roll.cu || $path == *match/roll.c || $path == */STEP.c || $path == */NAME.* ]] || echo "$row: not there"
        done
}

# Links between documents, relative to the document.
doc_links()
{
    local row file target
    git ls-files '*.md' ':!prompts' ':!tests' | xargs grep -noE '\]\([^)# ]+' | while IFS= read -r row; do
        file=${row%%:*} target=${row##*\](}
        case $target in http://* | https://*) continue ;; *[./]*) ;; *) continue ;; esac # kernel[grid](x, y) is code
        [ -e "$(dirname "$file")/$target" ] || echo "${row%%]*}: $target is not there"
    done
}

plain_words()
{
    # Recorded messages of earlier versions stay as they were.
    git ls-files '*.md' ':!tests' ':!examples' ':!bench/gpu/results' | xargs grep -nHiE \
        '\b(mend|mends|mended)\b|the way of the|\bnobody\b|\bis no [a-z]+ but\b|a look at|what is told|of now\b|the look of|\b(any|some)body\b|gone on with|worth its while' | cut -c1-100
    git ls-files 'src/*.[ch]' 'include/*' 'oracle/*.py' 'python/*.py' 'recipes/*' |
        xargs grep -nHE "\b([Mm]end(s|ed)?|[Nn]obody)\b|the way of the|\b(is|are) told (with|later|so|before)\b|what is told|of now\b|\b[Aa]nybody\b|\b[Ss]omebody\b|gone on with|worth its while" | cut -c1-100
}

results() { bench/results.py --check; }

# Documents wrap at 120 characters, as wide as a terminal with a margin. Recorded replies (replays, the scripted server)
# are data; rows of tables in prompts that recorded runs hold and of measured tables in bench cannot wrap.
long_lines()
{
    git ls-files '*.md' ':!examples/replays/*/*' ':!tests/e2e/script' | LC_ALL=C.UTF-8 xargs grep -HnE '^.{121,}' |
        grep -vE '^(prompts/(abi|guide)\.md|bench/[^:]*):[0-9]+:\|' | cut -c1-100
}

# A timeout says that a test hangs, not that a machine is slow: every test has a long one (tests/meson.build).
test_timeouts()
{
    local file tests
    for file in tests/*/meson.build; do
        grep -nE 'timeout: ([0-9]|[0-9][0-9]|[1-5][0-9][0-9])\b' "$file" | sed "s|^|$file: below 600 s: |"
        tests=$(grep -cE '(^|[^A-Za-z_])test\(' "$file")
        [ "$tests" = "$(grep -oE 'timeout: ' "$file" | wc -l)" ] || echo "$file: a test without 'timeout: patience'"
    done
}

# The second column of the table of moved files.
moved_files()
{
    local path
    sed -n 's/^| `[^`]*` | `\([^`]*\)`.*/\1/p' docs/moved-files.md | while IFS= read -r path; do
        [ -e "$path" ] || echo "docs/moved-files.md: $path is not there"
    done
}

scripts()
{
    command -v shellcheck >/dev/null || return 0
    git ls-files '*.sh' .ci/run | xargs shellcheck -x -S warning
}

completion()
{
    bash -n data/cutegen.bash
    ! command -v zsh >/dev/null || zsh -n data/cutegen.zsh
    ! command -v fish >/dev/null || fish --no-execute data/cutegen.fish
}

# The pinned tools of setup/versions, in set-up's venv.
venv_tool()
{
    local tool=${CUTEGEN_TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}/venv/bin/$1
    [ -x "$tool" ] || { echo "no $1: run setup/setup.sh test"; return; }
    shift
    "$tool" "$@"
}
python_style() { venv_tool ruff check --quiet --output-format concise --no-cache .; }
python_types() { venv_tool mypy --no-error-summary --cache-dir build/mypy; }

check "the walls between the rooms stand" tests/rooms.sh
check "no banned function is called" banned
check "no writable globals" writable_globals
check "no marks left behind" marks
check "files stay short" long_files
check "functions stay short" long_functions
check "no function is written twice" same_functions
check "struct tags are unique" struct_tags
check "opcodes are compared as numbers" opcode_text
check "nothing is decided by the text of an error" error_text
check "nothing is decided by the words of a finding or a verdict" finding_text
check "every file begins with what it is for" first_lines
check "every file names its licence" licences
check "every source file is named in its room's README" room_readmes missing
check "no README names a file that is gone" room_readmes stale
check "no line of a document is over 120 characters" long_lines
check "documents name files that exist" doc_paths
check "links between documents lead somewhere" doc_links
check "documents use the words of the glossary" plain_words
check "docs/results.md and peaks/reached.json are what bench/results.py writes" results
check "moved files are where the table says" moved_files
check "every test has a long timeout" test_timeouts
check "shell scripts are clean" scripts
check "completion scripts parse" completion
check "ruff finds nothing in Python" python_style
check "mypy finds nothing in Python" python_types
exit $((failed != 0))
