# Writes wgmma.inc: one function per form of wgmma that the kernels use.
#   python3 gen_wgmma.py > wgmma.inc
K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}


def form(n, acc, a, b, rs):
    regs = n // 4 if acc == "f16" else n // 2
    ctype = "float" if acc == "f32" else "uint32_t"
    letter = "f" if acc == "f32" else "r"
    d = ",".join("%%%d" % i for i in range(regs))
    i = regs
    if rs:
        aop = "{%%%d,%%%d,%%%d,%%%d}" % (i, i + 1, i + 2, i + 3)
        ains = '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])'
        asig = "const uint32_t *a"
        i += 4
    else:
        aop, ains, asig = "%%%d" % i, '"l"(a)', "uint64_t a"
        i += 1
    ints = acc == "s32"
    wide = a in ("f16", "bf16")
    tail = "" if ints else ", %d, %d" % (-1 if wide and n == 16 else 1, 1)
    trans = ["ta", "tb"] if wide and not rs else ["tb"] if wide else []
    variants = [[]]
    for _ in trans:
        variants = [v + [x] for v in variants for x in (0, 1)]
    out = ""
    for v in variants:
        name = "wg_n%d_%s_%s_%s_%s%s" % (n, acc, a, b, "rs" if rs else "ss",
                                         "".join("_%d" % x for x in v))
        out += '''__device__ __forceinline__ void %s(%s (&d)[%d], %s, uint64_t b, int s)
{
    asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %%%d, 0;\\n"
                 "wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s {%s}, %s, %%%d, p%s%s;\\n}\\n"
                 : %s : %s, "l"(b), "r"(s));
}
''' % (name, ctype, regs, asig, i + 1, n, K[a], acc, a, b, d, aop, i, tail,
            "".join(", %d" % x for x in v),
            ", ".join('"+%s"(d[%d])' % (letter, q) for q in range(regs)), ains)
    return out


print("// Made by gen_wgmma.py.")
for n, acc, a, b in [(64, "f32", "f16", "f16"), (16, "f32", "f16", "f16"), (8, "f32", "f16", "f16"),
                     (256, "f32", "f16", "f16"), (128, "f32", "f16", "f16"),
                     (64, "f16", "f16", "f16"), (64, "f32", "bf16", "bf16"),
                     (64, "f32", "tf32", "tf32"), (64, "f32", "e4m3", "e4m3"),
                     (64, "f32", "e5m2", "e5m2"), (64, "f32", "e4m3", "e5m2"),
                     (64, "f16", "e4m3", "e4m3"), (64, "s32", "s8", "s8"), (64, "s32", "u8", "u8"),
                     (64, "s32", "s8", "u8")]:
    for rs in (False, True):
        print(form(n, acc, a, b, rs))
