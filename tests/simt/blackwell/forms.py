#!/usr/bin/env python3
"""Which forms of Blackwell's instructions simt takes: a kernel of each, assembled by ptxas and translated.

    tests/simt/blackwell/forms.py CUTEGEN-SIMTC [PTXAS]

Prints the forms that are refused, by instruction, and their number; docs/simt.md names them. Exit 1: a form is refused that
is not in REFUSED, or one of those is taken, or a refusal does not name its PTX line. 77: no ptxas that knows sm_100a.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

REFUSED = (".b8x16", "mma.sp", "mma.ws", ".ashift", "scale_d", "tile::gather4", "tile::scatter4", "im2col::w", ".cp_mask")
HEAD = """.version 9.0
.target {arch}
.address_size 64
.visible .entry k(.param .u64 pp)
{{
 .reg .pred p; .reg .b32 %t, %a, %s, %u, %i, %c, %sm, %sn; .reg .b64 %d, %e, %ge; .reg .b16 %h; .reg .b32 %r<128>;
 .shared .align 128 .b8 buf[1024];
 ld.param.u64 %ge, [pp]; cvt.u32.u64 %t, %ge; mov.u32 %a, %t; mov.u32 %s, %t; mov.u32 %u, %t; mov.u32 %i, %t;
 mov.u32 %c, 64; mov.u32 %sm, buf; mov.u32 %sn, buf; mov.u64 %d, %ge; mov.u64 %e, %ge; mov.u16 %h, 3; setp.ne.u32 p, %t, 0;
"""
KINDS = ("f16", "tf32", "f8f6f4", "i8")
SCALED = {
    "mxf8f6f4": ("", ".scale_vec::1X", ".block32"),
    "mxf4": ("", ".scale_vec::2X", ".block32"),
    "mxf4nvf4": (".scale_vec::2X", ".scale_vec::4X", ".block16", ".block32"),
}


def listed(name: str, count: int) -> str:
    return "{" + ", ".join([name] * count) + "}"


def life(g: int) -> list[str]:
    made = [f"tcgen05.alloc.cta_group::{g}.sync.aligned{space}.b32 [{at}], {n};" for space, at, n in
            ((".shared::cta", "%sm", "64"), (".shared::cta", "%sm", "%c"), ("", "%ge", "%c"))]  # fmt: skip
    made += [f"tcgen05.dealloc.cta_group::{g}.sync.aligned.b32 %t, 64;", f"tcgen05.relinquish_alloc_permit.cta_group::{g}.sync.aligned;"]
    made += [f"tcgen05.shift.cta_group::{g}.down [%t];"]
    for at, space in (("%sm", ".shared::cluster"), ("%ge", "")):
        made.append(f"tcgen05.commit.cta_group::{g}.mbarrier::arrive::one{space}.b64 [{at}];")
        made.append(f"tcgen05.commit.cta_group::{g}.mbarrier::arrive::one{space}.multicast::cluster.b64 [{at}], %h;")
    for shape in ("128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"):
        made += [f"tcgen05.cp.cta_group::{g}.{shape}{small} [%t], %d;" for small in ("", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64")]
    return made


def products(g: int) -> list[str]:
    made = []
    for kind in KINDS:
        head, mask = f"tcgen05.mma.cta_group::{g}.kind::{kind}", listed("%i", 4 * g)
        made += [f"{head} [%t], %d, %e, %i, p;", f"{head} [%t], [%a], %e, %i, p;", f"{head} [%t], %d, %e, %i, {mask}, p;"]
        made += [f"{head}.collector::a::{use} [%t], %d, %e, %i, p;" for use in ("fill", "use", "lastuse", "discard")]
        made += [f"{head}.ashift [%t], [%a], %e, %i, p;", f"tcgen05.mma.sp.cta_group::{g}.kind::{kind} [%t], %d, %e, [%a], %i, p;"]
        if kind in ("f16", "tf32"):
            made += [f"{head} [%t], %d, %e, %i, {mask}, p, 3; // scale_d", f"{head} [%t], %d, %e, %i, p, 3; // scale_d"]
        if g == 1:
            ws = f"cta_group::1.kind::{kind} [%t], %d, %e,"
            made += [f"tcgen05.mma.ws.{ws} %i, p;", f"tcgen05.mma.ws.{ws} %i, p, %d;", f"tcgen05.mma.ws.sp.{ws} [%a], %i, p;"]
    for kind, vectors in SCALED.items():
        for vector in vectors:
            head = f"cta_group::{g}.kind::{kind}.block_scale{vector} [%t],"
            made += [f"tcgen05.mma.{head} {a}, %e, %i, [%s], [%u], p;" for a in ("%d", "[%a]")]
        made.append(f"tcgen05.mma.sp.{head} %d, %e, [%a], %i, [%s], [%u], p;")
    return made


def loads() -> list[str]:
    made = []
    for shape, each in {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}.items():
        for times in (t for t in (1, 2, 4, 8, 16, 32, 64, 128) if each * t <= 128):
            regs, split = "{" + ", ".join(f"%r{k}" for k in range(each * times)) + "}", ", 8" if shape == "16x32bx2" else ""
            for pack in ("", "pack::16b"):
                one = f"sync.aligned.{shape}.x{times}"
                made.append(f"tcgen05.ld.{one}{'.' + pack if pack else ''}.b32 {regs}, [%t]{split};")
                made.append(f"tcgen05.st.{one}{'.un' + pack if pack else ''}.b32 [%t]{split}, {regs};")
    return made


def barriers() -> list[str]:
    cta, cluster = "shared::cta.b64", "shared::cluster.b64"
    return [
        f"mbarrier.init.{cta} [%sm], 1;", f"mbarrier.inval.{cta} [%sm];", f"mbarrier.arrive.{cta} %d, [%sm];",
        f"mbarrier.arrive.release.cluster.{cluster} _, [%sm];", f"mbarrier.arrive.{cta} %d, [%sm], 2;",
        f"mbarrier.arrive.relaxed.cta.{cta} %d, [%sm];", f"mbarrier.arrive.noComplete.{cta} %d, [%sm], 1;",
        f"mbarrier.arrive_drop.{cta} %d, [%sm];", f"mbarrier.arrive.expect_tx.{cta} %d, [%sm], 128;",
        f"mbarrier.arrive_drop.expect_tx.{cta} %d, [%sm], 128;", f"mbarrier.expect_tx.relaxed.cta.{cta} [%sm], 128;",
        f"mbarrier.expect_tx.relaxed.cluster.{cluster} [%sm], 128;", f"mbarrier.complete_tx.relaxed.cluster.{cluster} [%sm], 128;",
        f"mbarrier.test_wait.{cta} p, [%sm], %d;", f"mbarrier.test_wait.parity.{cta} p, [%sm], 0;", f"mbarrier.try_wait.{cta} p, [%sm], %d;",
        f"mbarrier.try_wait.parity.{cta} p, [%sm], 0, 1000;", f"mbarrier.try_wait.parity.acquire.cluster.{cta} p, [%sm], 0;",
        f"mbarrier.try_wait.parity.relaxed.cta.{cta} p, [%sm], 0;", "mbarrier.pending_count.b64 %i, %d;",
        f"cp.async.mbarrier.arrive.noinc.{cta} [%sm];",
    ]  # fmt: skip


def copies(arch: str) -> list[str]:
    made, bulk, done = [], "cp.async.bulk.tensor", "mbarrier::complete_tx::bytes"
    for d in range(1, 6):
        at, load = f"[%ge, {listed('%i', d)}]", f"{bulk}.{d}d.shared::cluster.global.tile.{done}"
        made += [f"{bulk}.{d}d.shared::cluster.global.{done} [%sm], {at}, [%sn];", f"{load}.L2::cache_hint [%sm], {at}, [%sn], %d;"]
        made += [f"{bulk}.{d}d.shared::cta.global.tile.{done} [%sm], {at}, [%sn];", f"{load}.multicast::cluster [%sm], {at}, [%sn], %h;"]
        made += [f"{bulk}.{d}d.global.shared::cta.tile.bulk_group {at}, [%sm];", f"cp.async.bulk.prefetch.tensor.{d}d.L2.global.tile {at};"]
        made += [f"cp.reduce.async.bulk.tensor.{d}d.global.shared::cta.add.tile.bulk_group {at}, [%sm];"]
        made += [f"{load}.cta_group::{g} [%sm], {at}, [%sn];" for g in (1, 2) if arch == "sm_100a"]
    if arch == "sm_100a":
        made += [f"{bulk}.2d.shared::{where}.global.tile::gather4.{done} [%sm], [%ge, {listed('%i', 5)}], [%sn];" for where in ("cta", "cluster")]
        made += [f"{bulk}.2d.global.shared::cta.tile::scatter4.bulk_group [%ge, {listed('%i', 5)}], [%sm];"]
        made += [f"{bulk}.3d.shared::cluster.global.im2col::w{n}.{done} [%sm], [%ge, {listed('%i', 3)}], [%sn], {{%h, %h}};" for n in ("", "::128")]
        made += ["cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%ge], [%sm], 16, %h;"]
    return made


def cancels() -> list[str]:
    head, query = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes", "clusterlaunchcontrol.query_cancel"
    made = [f"{head}.b128 [%sm], [%sn];", f"{head}.multicast::cluster::all.b128 [%sm], [%sn];"]
    for what in (f"{query}.is_canceled.pred.b128 p, q;", f"{query}.get_first_ctaid::x.b32.b128 %i, q;", f"{query}.get_first_ctaid.v4.b32.b128 {{%r0, %r1, %r2, _}}, q;"):
        made.append(f"{{.reg .b128 q; mov.b128 q, {{%d, %e}}; {what}}}")
    return made


def forms() -> list[tuple[str, str]]:
    made = [*life(1), *life(2), *products(1), *products(2), *loads(), *cancels()]
    made += ["tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::st.sync.aligned;", "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"]
    return [("sm_100a", one) for one in made] + [(arch, one) for arch in ("sm_100a", "sm_120a") for one in barriers() + copies(arch)]


def main() -> int:
    simtc, ptxas = sys.argv[1], (sys.argv[2:] or [shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"])[0]
    refused: Counter[str] = Counter()
    wrong = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        ptx, so = Path(folder) / "k.ptx", Path(folder) / "k.so"
        for arch, body in forms():
            values = "".join(f" mov.u32 %r{k}, %t;" for k in range(128)) if body.startswith("tcgen05.st") else ""
            ptx.write_text(f"{HEAD.format(arch=arch)}{values}\n {body}\n ret;\n}}\n")
            legal = Path(ptxas).exists() and subprocess.run([ptxas, f"-arch={arch}", "-o", so, ptx], capture_output=True, check=False).returncode == 0
            if not legal and tried == 0:
                print("forms: SKIP, no ptxas that knows sm_100a")
                return 77
            tried += 1
            # The C compiler is none: only what comes before it is asked.
            done = subprocess.run([simtc, "--ptx", ptx, "--kernel", "k", "--cc", "/bin/true", "--so", so, "--no-cache"], capture_output=True, text=True, check=False)
            error = json.loads(done.stdout).get("error", {})
            known = next((word for word in REFUSED if word in body), None)
            if error.get("kind") == "kernel":
                refused[known or body] += 1
            if not legal or (error.get("kind") == "kernel") != (known is not None) or (known and "PTX line" not in error["text"]):
                print(f"WRONG: {body} ({arch}): {'taken' if known else error.get('text') if legal else 'ptxas does not know it'}")
                wrong += 1
    for word, count in refused.items():
        print(f"refused: {word}: {count}")
    print(f"{tried} forms, {tried - sum(refused.values())} taken, {sum(refused.values())} refused")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
