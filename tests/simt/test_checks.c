/*
 * test_checks.c - what every check remembers, in the cases it has short ways for: lines of global
 * memory written whole and in parts, reads that go without a call (of global and of shared memory),
 * copies that are not entered into the shadow at once; and addresses at the end of everything.
 *
 * Each case is a kernel in PTX, the grid it runs with, and the finding it must or must not have.
 * Blocks run one after the other in their order.
 */
#include "support.h"

enum { WORDS = 256, NONE = -1 };

/* %rd1: in, all written; %rd2: out, nothing written; %r1: thread, %r2: block, %r3: launch;
 * %rd3: 4 * thread, %rd4: in + 4 * thread, %rd5: out + 4 * thread; %r10: s + 16 * thread;
 * %p1 to %p3: block 0, 1, 2. */
static const char head[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".extern .func __assertfail(.param .b64 text);\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 turn)\n{\n"
    ".shared .align 16 .b8 s[4096];\n.reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n"
    "ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nld.param.u32 %r3, [turn];\n"
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd3, %r1, 4;\n"
    "add.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"
    "mov.u32 %r9, s;\nmad.lo.u32 %r10, %r1, 16, %r9;\n"
    "setp.eq.u32 %p1, %r2, 0;\nsetp.eq.u32 %p2, %r2, 1;\nsetp.eq.u32 %p3, %r2, 2;\n";

#define BLOCK(n, text) "setp.ne.u32 %p4, %r2, " #n ";\n@%p4 bra NOT" #n ";\n" text "NOT" #n ":\n"
#define COPY(offset)                                                                               \
    "mad.lo.u32 %r11, %r1, 16, %r9;\nadd.s64 %rd6, %rd4, %rd3;\nadd.s64 %rd6, %rd6, %rd3;\n"       \
    "add.s64 %rd6, %rd6, %rd3;\ncp.async.ca.shared.global [%r11+" #offset "], [%rd6], 16;\n"
#define WAIT "cp.async.wait_all;\n"
#define READ(offset)                                                                               \
    "ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r10+" #offset "];\n"                             \
    "add.u32 %r20, %r20, %r21;\nst.global.u32 [%rd5], %r20;\n"
#define SECOND_WARP "setp.lt.u32 %p5, %r1, 32;\n@%p5 bra END;\n"

/* A word of each thread, and all meet; some loads, after which a block may load without a call.
 * What comes LATER only the second block does: there every load may. */
#define LOADS(label, turns, address, step)                                                         \
    "mov.u32 %r14, 0;\n" label ":\nld.shared.u32 %r15, [" address                                  \
    "];\nadd.u32 %r16, %r16, %r15;\n"                                                              \
    "add.u32 " address ", " address ", " #step ";\nadd.u32 %r14, %r14, 1;\n"                       \
    "setp.lt.u32 %p6, %r14, " #turns ";\n@%p6 bra " label ";\nst.global.u32 [%rd8], %r16;\n"
#define WRITE                                                                                      \
    "mad.lo.u32 %r13, %r1, 4, %r9;\nmov.u32 %r17, %r13;\nmov.u32 %r16, 0;\n"                       \
    "add.u32 %r19, %r9, 128;\nadd.u32 %r26, %r9, 2048;\n"                                          \
    "mul.wide.u32 %rd8, %r2, 1024;\nadd.s64 %rd8, %rd8, %rd5;\n"                                   \
    "st.shared.u32 [%r13], %r1;\nst.shared.u32 [%r13+2048], %r1;\nbar.sync 0;\n"
#define SOME                                                                                       \
    "mov.u32 %r27, 0;\nmov.u32 %r29, 0;\nSOME:\nld.shared.u32 %r28, [%r26];\n"                     \
    "add.u32 %r29, %r29, %r28;\nadd.u32 %r27, %r27, 1;\nsetp.lt.u32 %p6, %r27, 20;\n"              \
    "@%p6 bra SOME;\nst.global.u32 [%rd8], %r29;\n"
#define FILL        WRITE SOME
#define ROWS(turns) LOADS("TURN", turns, "%r13", 0)
#define ONE(turns)  LOADS("TURN", turns, "%r19", 0)
#define ANYWHERE                                                                                   \
    "mul.lo.u32 %r24, %r1, 5;\nand.b32 %r24, %r24, 31;\nmad.lo.u32 %r25, %r24, 4, %r9;\n"
#define SYNC_AND(loads)                                                                            \
    "mov.u32 %r18, 0;\nMORE:\nbar.warp.sync -1;\nadd.u32 %r18, %r18, 1;\n"                         \
    "setp.lt.u32 %p7, %r18, 3;\n" loads "@%p7 bra MORE;\n"
#define OTHERS     "xor.b32 %r17, %r17, 4;\n"                   /* of one's neighbour in the warp */
#define FIRST_WARP "setp.gt.u32 %p5, %r1, 31;\n@%p5 bra END;\n" /* it is the last to go on */
#define SECONDS    "add.u32 %r17, %r17, 128;\n"
#define LATER      "@%p1 bra END;\n"
#define STORE      "st.shared.u32 [%r17], %r1;\n"
#define HALF(address)                                                                              \
    "ld.shared.u16 %r15, [" address "];\nadd.u32 %r16, %r16, %r15;\nst.global.u32 [%rd8], %r16;\n"

/* %rd6: the word of the thread whose number differs by `mask`. */
#define OF_OTHER(mask)                                                                             \
    "xor.b32 %r4, %r1, " #mask ";\nmul.wide.u32 %rd6, %r4, 4;\nadd.s64 %rd6, %rd6, %rd2;\n"
#define OUT      "st.global.u32 [%rd5], %r1;\n"
#define READ_IT  "ld.global.u32 %r5, [%rd6];\nst.global.u32 [%rd5+1024], %r5;\n"
#define HALF_OUT "mul.wide.u32 %rd7, %r1, 2;\nadd.s64 %rd7, %rd7, %rd2;\n"
#define FLAG     "setp.eq.u32 %p5, %r1, 0;\n"
#define MATRIX(from)                                                                               \
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r20, %r21, %r22, %r23, %r24, %r25, "      \
    "%r26, %r27}, [" from "], 16;\nst.global.u32 [%rd5+1024], %r20;\n"
#define TWO ".shared .align 4 .b8 one[64];\n.shared .align 4 .b8 two[256];\n"

static const struct check_case {
    const char *name, *body;
    unsigned grid, threads, launches;
    int finds;
} cases[] = {
    {"blocks share a line in parts",
     "setp.lt.u32 %p5, %r1, 16;\nmul.wide.u32 %rd6, %r2, 64;\nadd.s64 %rd6, %rd6, %rd5;\n"
     "@%p5 st.global.u32 [%rd6], %r1;\n",
     4, 32, 1, NONE},
    {"a block writes a line, another one word of it",
     "@%p1 st.global.u32 [%rd5], %r1;\nsetp.eq.and.u32 %p5, %r1, 7, %p2;\n"
     "@%p5 st.global.u32 [%rd5], %r2;\n",
     2, 32, 1, SIMT_RACE_GLOBAL},
    {"a block writes a word, another the line around it",
     "setp.eq.and.u32 %p5, %r1, 7, %p1;\n@%p5 st.global.u32 [%rd5], %r2;\n"
     "@%p2 st.global.u32 [%rd5], %r1;\n",
     2, 32, 1, SIMT_RACE_GLOBAL},
    {"a block comes back to its words and its line",
     "setp.eq.u32 %p5, %r1, 7;\n@%p5 st.global.u32 [%rd5], %r1;\nst.global.u32 [%rd5], %r2;\n"
     "@%p5 st.global.u32 [%rd5], %r1;\nld.global.u32 %r4, [%rd5];\n",
     1, 32, 1, NONE},
    {"a row that lies across two lines",
     BLOCK(0, "st.global.u32 [%rd5+64], %r1;\n") BLOCK(1, "st.global.u32 [%rd5+192], %r1;\n"), 2,
     32, 1, NONE},
    {"rows that meet in one word",
     BLOCK(0, "st.global.u32 [%rd5+64], %r1;\n") BLOCK(1, "st.global.u32 [%rd5+188], %r1;\n"), 2,
     32, 1, SIMT_RACE_GLOBAL},
    {"what an earlier launch wrote is no race",
     "setp.eq.u32 %p5, %r3, 0;\nmul.wide.u32 %rd6, %r2, 128;\nadd.s64 %rd6, %rd6, %rd5;\n"
     "@%p5 st.global.u32 [%rd6], %r1;\n@!%p5 ld.global.u32 %r4, [%rd5];\n"
     "@!%p5 ld.global.u32 %r4, [%rd5+128];\n",
     3, 32, 5, NONE},
    {"what an earlier launch read, and no more, is no race",
     "setp.eq.and.u32 %p5, %r3, 0, %p1;\n@%p5 st.global.u32 [%rd5], %r1;\n"
     "@%p5 st.global.u32 [%rd5+128], %r1;\nsetp.eq.and.u32 %p5, %r3, 1, %p1;\n"
     "@%p5 ld.global.u32 %r4, [%rd5];\nsetp.eq.and.u32 %p5, %r3, 2, %p2;\n"
     "@%p5 ld.global.u32 %r4, [%rd5+128];\n@%p5 st.global.u32 [%rd5], %r4;\n",
     2, 32, 3, NONE},
    {"a row that was read without a call is written, then read by another block",
     BLOCK(1, "st.global.u32 [%rd4], %r1;\n") "ld.global.u32 %r4, [%rd4];\nst.global.u32 [%rd5], "
                                              "%r4;\n",
     3, 32, 1, SIMT_RACE_GLOBAL},
    {"one place, likewise",
     "@%p2 st.global.u32 [%rd4], %r1;\nld.global.u32 %r4, [%rd1+8];\nmul.wide.u32 %rd6, %r2, 128;\n"
     "add.s64 %rd6, %rd6, %rd5;\nst.global.u32 [%rd6], %r4;\n",
     3, 32, 1, SIMT_RACE_GLOBAL},
    {"the written half of a line is read",
     "setp.lt.u32 %p5, %r1, 16;\n@%p5 st.global.u32 [%rd5], %r1;\n@%p5 ld.global.u32 %r4, "
     "[%rd5];\n",
     1, 32, 1, NONE},
    {"the other half of a line is read",
     "setp.lt.u32 %p5, %r1, 16;\n@%p5 st.global.u32 [%rd5], %r1;\nld.global.u32 %r4, [%rd5];\n"
     "st.global.u32 [%rd5+128], %r4;\n",
     1, 32, 1, SIMT_UNINITIALISED},
    {"a copy is waited for by all", COPY(0) WAIT "bar.sync 0;\n" READ(0), 1, 64, 1, NONE},
    {"a copy is read before its wait", COPY(0) READ(0) WAIT, 1, 64, 1, SIMT_ASYNC_NOT_WAITED},
    {"one warp reads what the other's wait was for",
     COPY(0) WAIT "xor.b32 %r10, %r10, 512;\n" READ(0), 1, 64, 1, SIMT_RACE_SHARED},
    {"a copy is overwritten under way", COPY(0) "st.shared.u32 [%r10], %r1;\n" WAIT, 1, 64, 1,
     SIMT_ASYNC_OVERWRITE},
    {"two lanes copy to one place",
     "and.b32 %r12, %r1, 15;\nmad.lo.u32 %r11, %r12, 16, %r9;\n"
     "cp.async.ca.shared.global [%r11], [%rd1], 16;\n" WAIT,
     1, 32, 1, SIMT_ASYNC_OVERWRITE},
    {"the next stage is copied while this one is read",
     COPY(0) WAIT "bar.sync 0;\n" COPY(1024) READ(0) WAIT "bar.sync 0;\n" READ(1024), 1, 64, 1,
     NONE},
    {"a stage is refilled while the other warp may read it",
     COPY(0) WAIT "bar.sync 0;\nxor.b32 %r10, %r10, 512;\n" READ(0) COPY(0) WAIT, 1, 64, 1,
     SIMT_RACE_SHARED},
    {"a stage is refilled after all have read it",
     COPY(0) WAIT "bar.sync 0;\nxor.b32 %r10, %r10, 512;\n" READ(0) "bar.sync 0;\n" COPY(0) WAIT, 1,
     64, 1, NONE},
    {"words are read that nobody copied to", COPY(0) WAIT "bar.sync 0;\n" READ(1024), 1, 64, 1,
     SIMT_UNINITIALISED},
    {"rows are read, then the threads write their own", FILL ROWS(4) LATER STORE, 2, 64, 1, NONE},
    {"rows are read, then neighbours write them", FILL ROWS(4) LATER OTHERS STORE, 2, 32, 1,
     SIMT_RACE_SHARED},
    {"rows are read, then neighbours write them after a warp sync",
     FILL ROWS(4) "bar.warp.sync -1;\n" LATER OTHERS STORE, 2, 32, 1, NONE},
    {"rows are read again after a warp sync, then neighbours write them",
     FILL SYNC_AND(ROWS(2)) LATER OTHERS STORE, 2, 32, 1, SIMT_RACE_SHARED},
    {"rows are read first after a warp sync, then neighbours write them",
     WRITE "setp.lt.u32 %p5, %r1, 32;\n@%p5 bra REST;\n" SOME "REST:\nbar.warp.sync -1;\n" ROWS(9)
         LATER FIRST_WARP OTHERS STORE,
     2, 64, 1, SIMT_RACE_SHARED},
    {"words anywhere are read, then written after a warp sync",
     FILL ANYWHERE LOADS("TURN", 3, "%r25", 0) "bar.warp.sync -1;\n" STORE, 1, 32, 1, NONE},
    {"words anywhere are read again after a warp sync, then written",
     FILL ANYWHERE SYNC_AND(LOADS("TURN", 3, "%r25", 0)) STORE, 1, 32, 1, SIMT_RACE_SHARED},
    {"words anywhere are read by both warps, then written by one",
     FILL ANYWHERE LOADS("TURN", 3, "%r25", 0) FIRST_WARP "bar.warp.sync -1;\n" STORE, 1, 64, 1,
     SIMT_RACE_SHARED},
    {"halves anywhere are read by both warps, then written by one",
     FILL ANYWHERE HALF("%r25") FIRST_WARP "bar.warp.sync -1;\nst.shared.u16 [%r17], %r1;\n", 1, 64,
     1, SIMT_RACE_SHARED},
    {"halves anywhere are read by both warps, then the other halves are written",
     FILL ANYWHERE HALF("%r25") FIRST_WARP "bar.warp.sync -1;\nst.shared.u16 [%r17+2], %r1;\n", 1,
     64, 1, NONE},
    {"halves are read, then written by their reader",
     FILL HALF("%r17+2") "st.shared.u16 [%r17+2], %r1;\n", 1, 64, 1, NONE},
    {"halves are read, then written by a neighbour",
     FILL HALF("%r17+2") OTHERS "st.shared.u16 [%r17+2], %r1;\n", 1, 64, 1, SIMT_RACE_SHARED},
    {"bytes are read, then the bytes beside them are written by a neighbour",
     FILL "ld.shared.u8 %r15, [%r17+1];\nst.global.u32 [%rd8], %r15;\n" OTHERS
          "st.shared.u8 [%r17], %r1;\nst.shared.u16 [%r17+2], %r1;\n",
     1, 64, 1, NONE},
    {"halves that were written are read",
     WRITE "st.shared.u16 [%r10+1024], %r1;\nbar.sync 0;\n" HALF("%r10+1024"), 1, 64, 1, NONE},
    {"halves beside those that were written are read",
     WRITE "st.shared.u16 [%r10+1024], %r1;\nbar.sync 0;\n" HALF("%r10+1026"), 1, 64, 1,
     SIMT_UNINITIALISED},
    {"rows are read, then another warp writes them", FILL ROWS(4) LATER FIRST_WARP SECONDS STORE, 2,
     64, 1, SIMT_RACE_SHARED},
    {"rows are read, all meet, another warp writes them",
     FILL ROWS(4) "bar.sync 0;\n" LATER FIRST_WARP SECONDS STORE, 2, 64, 1, NONE},
    {"rows are read more often than a log has room for, then another warp writes them",
     FILL ROWS(513) LATER FIRST_WARP SECONDS STORE, 2, 64, 1, SIMT_RACE_SHARED},
    {"one place is read, then others more often than a log has room for",
     FILL ONE(4) LOADS("NEXT", 600, "%r9", 0) LATER FIRST_WARP SECONDS STORE, 2, 64, 1,
     SIMT_RACE_SHARED},
    {"more often than the list has room for, too", FILL ROWS(20000) LATER FIRST_WARP SECONDS STORE,
     2, 64, 1, SIMT_RACE_SHARED},
    {"one place is read, then another warp writes it", FILL ONE(4) LATER FIRST_WARP SECONDS STORE,
     2, 64, 1, SIMT_RACE_SHARED},
    {"one place is read, then another warp changes it",
     FILL ONE(4) LATER FIRST_WARP SECONDS "red.shared.add.u32 [%r17], 1;\n", 2, 64, 1,
     SIMT_RACE_SHARED},
    {"rows are read, then another warp copies over them",
     FILL ROWS(4) LATER FIRST_WARP SECONDS "cp.async.ca.shared.global [%r17], [%rd4], 4;\n" WAIT, 2,
     64, 1, SIMT_RACE_SHARED},
    {"rows are read, some warps meet, another warp writes them",
     FILL ROWS(4) LATER "bar.arrive 1, 96;\n" FIRST_WARP SECONDS STORE, 2, 64, 1, SIMT_RACE_SHARED},
    {"rows are read past the last that was written", FILL ROWS(2) LOADS("NEXT", 2, "%r13", 128), 1,
     32, 1, SIMT_UNINITIALISED},
    {"one place after the other is read, past the last that was written",
     FILL ONE(2) LOADS("NEXT", 40, "%r9", 4), 1, 32, 1, SIMT_UNINITIALISED},
    {"one place after the other is read", FILL ROWS(2) LOADS("NEXT", 32, "%r9", 4), 1, 32, 1, NONE},
    {"rows are read past what was written, then all meet",
     FILL ROWS(2) LOADS("NEXT", 2, "%r13", 128) "bar.sync 0;\n", 1, 32, 1, SIMT_UNINITIALISED},
    {"rows are read past what was written, then all is written",
     FILL ROWS(2) LOADS("NEXT", 2, "%r13", 128) "st.shared.u32 [%r13+-128], %r1;\n", 1, 32, 1,
     SIMT_UNINITIALISED},
    {"the last addresses there are, by row",
     "ld.global.u32 %r4, [%rd4];\nmov.u64 %rd6, -64;\nadd.s64 %rd6, %rd6, %rd3;\n"
     "ld.global.u32 %r5, [%rd6];\nadd.u32 %r4, %r4, %r5;\nst.global.u32 [%rd5], %r4;\n",
     1, 32, 1, SIMT_OUT_OF_BOUNDS},
    {"the last addresses there are, one for all",
     "mov.u64 %rd6, %rd1;\nmov.u32 %r5, 0;\nAGAIN:\nld.global.u32 %r4, [%rd6];\n"
     "add.u32 %r5, %r5, 1;\nmov.u64 %rd6, -4;\nsetp.lt.u32 %p5, %r5, 2;\n@%p5 bra AGAIN;\n"
     "st.global.u32 [%rd5], %r4;\n",
     1, 32, 1, SIMT_OUT_OF_BOUNDS},
    {"the last addresses there are, a store of 16 bytes",
     "mov.u64 %rd6, -16;\nst.global.v4.u32 [%rd6], {%r1, %r1, %r1, %r1};\n", 1, 32, 1,
     SIMT_OUT_OF_BOUNDS},
    {"the second of two loads from one register is not aligned",
     WRITE ANYWHERE "ld.shared.u32 %r4, [%r25];\nld.shared.u32 %r5, [%r25+6];\n"
                    "add.u32 %r4, %r4, %r5;\nst.global.u32 [%rd5], %r4;\n",
     1, 64, 1, SIMT_MISALIGNED},
    {"the last addresses there are, lanes anywhere",
     "ld.global.u32 %r4, [%rd4];\nmul.wide.u32 %rd6, %r4, 20;\nmov.u64 %rd7, -12;\n"
     "sub.s64 %rd6, %rd7, %rd6;\nld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd6];\n"
     "st.global.u32 [%rd5], %r5;\n",
     1, 32, 1, SIMT_MISALIGNED},
    {"threads of a block meet in global memory", OUT OF_OTHER(32) READ_IT, 1, 64, 1,
     SIMT_RACE_GLOBAL},
    {"threads of a block meet after a barrier", OUT "bar.sync 0;\n" OF_OTHER(32) READ_IT, 1, 64, 1,
     NONE},
    {"lanes of a warp meet in global memory", OUT OF_OTHER(1) READ_IT, 1, 32, 1, SIMT_RACE_GLOBAL},
    {"lanes of a warp meet after a warp sync", OUT "bar.warp.sync -1;\n" OF_OTHER(1) READ_IT, 1, 32,
     1, NONE},
    {"a word of another thread is written after it was read",
     OUT "bar.sync 0;\n" OF_OTHER(32) READ_IT "st.global.u32 [%rd5], %r5;\n", 1, 64, 1,
     SIMT_RACE_GLOBAL},
    {"each thread comes back to its own word",
     OUT "ld.global.u32 %r5, [%rd5];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%rd5], %r5;\n", 1, 64, 1,
     NONE},
    {"threads write the halves of a word", HALF_OUT "st.global.u16 [%rd7], %r1;\n", 1, 64, 1, NONE},
    {"threads write one half",
     HALF_OUT "st.global.u16 [%rd7], %r1;\nxor.b32 %r4, %r1, 33;\nmul.wide.u32 %rd7, %r4, 2;\n"
              "add.s64 %rd7, %rd7, %rd2;\nst.global.u16 [%rd7], %r1;\n",
     1, 64, 1, SIMT_RACE_GLOBAL},
    {"blocks write the halves of a word",
     "mul.wide.u32 %rd7, %r2, 2;\nadd.s64 %rd7, %rd7, %rd5;\nst.global.u16 [%rd7], %r1;\n", 2, 32,
     1, NONE},
    {"blocks write one byte",
     "mul.wide.u32 %rd7, %r1, 1;\nadd.s64 %rd7, %rd7, %rd2;\nst.global.u8 [%rd7], %r2;\n", 2, 32, 1,
     SIMT_RACE_GLOBAL},
    {"a block reads what its threads update atomically",
     "red.global.add.u32 [%rd2], 1;\nld.global.u32 %r4, [%rd2];\n"
     "st.global.u32 [%rd5+1024], %r4;\n",
     1, 64, 1, SIMT_RACE_GLOBAL},
    {"a block reads what others update atomically",
     "@%p1 red.global.add.u32 [%rd2], 1;\n@%p2 ld.global.u32 %r4, [%rd2];\n"
     "@%p2 st.global.u32 [%rd5+1024], %r4;\n",
     2, 32, 1, SIMT_RACE_GLOBAL},
    {"all update atomically", "atom.global.add.u32 %r4, [%rd2], 1;\n", 2, 64, 1, NONE},
    {"each block reads the word that it updates",
     "mul.wide.u32 %rd6, %r2, 4;\nadd.s64 %rd6, %rd6, %rd2;\nred.global.add.u32 [%rd6], 1;\n"
     "bar.sync 0;\nld.global.u32 %r4, [%rd6];\nmul.wide.u32 %rd7, %r2, 512;\n"
     "add.s64 %rd7, %rd7, %rd5;\nst.global.u32 [%rd7+1024], %r4;\n",
     3, 64, 1, NONE},
    {"a flag without a fence",
     FLAG BLOCK(0, OUT "bar.sync 0;\n@%p5 st.volatile.global.u32 [%rd2+2048], 1;\n")
         BLOCK(1, "ld.volatile.global.u32 %r4, [%rd2+2048];\nld.global.u32 %r5, [%rd5];\n"
                  "st.global.u32 [%rd5+1024], %r5;\n"),
     2, 64, 1, SIMT_MISSING_FENCE},
    {"a flag after a fence",
     FLAG BLOCK(0, OUT "bar.sync 0;\nmembar.gl;\n@%p5 st.volatile.global.u32 [%rd2+2048], 1;\n")
         BLOCK(1, "ld.volatile.global.u32 %r4, [%rd2+2048];\nld.global.u32 %r5, [%rd5];\n"
                  "st.global.u32 [%rd5+1024], %r5;\n"),
     2, 64, 1, NONE},
    {"threads store one value to one place", "st.global.u32 [%rd2], 7;\n", 1, 64, 1,
     SIMT_SAME_VALUE},
    {"blocks store one value to one place",
     "setp.eq.u32 %p5, %r1, 0;\n@%p5 st.global.u32 [%rd2], 7;\n", 2, 32, 1, SIMT_SAME_VALUE},
    {"warps store one value to one word of shared memory",
     "and.b32 %r4, %r1, 31;\nsetp.eq.u32 %p5, %r4, 0;\n@%p5 st.shared.u32 [%r9], 7;\n", 1, 64, 1,
     SIMT_SAME_VALUE},
    {"a shuffle from a lane outside its mask",
     "setp.gt.u32 %p5, %r1, 15;\n@%p5 bra END;\nshfl.sync.idx.b32 %r4, %r1, 20, 31, 65535;\n"
     "st.global.u32 [%rd5], %r4;\n",
     1, 32, 1, SIMT_SHUFFLE},
    {"the sum of half a warp",
     "setp.gt.u32 %p5, %r1, 15;\n@%p5 bra END;\nshfl.sync.down.b32 %r4, %r1, 8, 31, 65535;\n"
     "add.u32 %r1, %r1, %r4;\nshfl.sync.down.b32 %r4, %r1, 4, 31, 65535;\n"
     "st.global.u32 [%rd5], %r4;\n",
     1, 32, 1, NONE},
    {"one array of shared memory overruns into the next",
     TWO "mov.u32 %r4, one;\nmad.lo.u32 %r4, %r1, 4, %r4;\nst.shared.u32 [%r4], %r1;\n", 1, 32, 1,
     SIMT_OUT_OF_BOUNDS},
    {"an array of shared memory to its last word",
     TWO "mov.u32 %r4, two;\nmad.lo.u32 %r4, %r1, 4, %r4;\nst.shared.u32 [%r4], %r1;\n"
         "mov.u32 %r5, one;\nand.b32 %r6, %r1, 15;\nmad.lo.u32 %r5, %r6, 4, %r5;\n"
         "setp.lt.u32 %p5, %r1, 16;\n@%p5 st.shared.u32 [%r5], %r1;\n",
     1, 64, 1, NONE},
    {"copies what nothing has written", "add.s64 %rd4, %rd5, 0;\n" COPY(0) WAIT, 1, 16, 1,
     SIMT_UNINITIALISED},
    {"loads a matrix that nothing has written", MATRIX("%rd2"), 1, 32, 1, SIMT_UNINITIALISED},
    {"loads a matrix that was written", MATRIX("%rd1"), 1, 32, 1, NONE},
    {"copies a part of what was written",
     "setp.lt.u32 %p5, %r1, 10;\n@%p5 st.global.u32 [%rd5], %r1;\nbar.sync 0;\n"
     "cp.async.ca.shared.global [%r10], [%rd2], 16, 12;\n"
     "cp.async.ca.shared.global [%r10+2048], [%rd2+32], 16, 8;\n" WAIT,
     1, 32, 1, NONE},
    {"copies what another block writes",
     BLOCK(0, "st.global.u32 [%rd4], %r1;\n") BLOCK(1, COPY(0) WAIT), 2, 16, 1, SIMT_RACE_GLOBAL},
    {"never waits, and need not: no overlap",
     "griddepcontrol.launch_dependents;\nsetp.ne.u32 %p4, %r3, 0;\n@%p4 bra AGAIN;\n"
     "st.global.u32 [%rd5], %r1;\nbra END;\nAGAIN:\nld.global.u32 %r5, [%rd5];\n"
     "st.global.u32 [%rd5+1024], %r5;\n",
     1, 64, 2, NONE},
    {"a trap", "setp.eq.u32 %p5, %r1, 5;\n@%p5 trap;\n", 1, 32, 1, SIMT_TRAP},
    {"an assertion that fails",
     "setp.ne.u32 %p5, %r1, 5;\n@%p5 bra END;\n{\n.param .b64 p0;\nst.param.b64 [p0], %rd1;\n"
     "call.uni __assertfail, (p0);\n}\n",
     1, 32, 1, SIMT_ASSERTION},
    {"a barrier after warps have left", "setp.gt.u32 %p5, %r1, 31;\n@%p5 bra END;\nbar.sync 0;\n",
     1, 64, 1, SIMT_BARRIER_EXIT},
    {"registers that are vectors",
     ".reg .v4 .u32 %v;\n.reg .v2 .u32 %w<2>;\nld.global.v4.u32 %v, [%rd1];\n"
     "ld.global.v2.u32 %w1, [%rd1+16];\nadd.u32 %v.x, %v.w, %w1.y;\nst.global.u32 [%rd5], %v.x;\n",
     1, 32, 1, NONE},
};

/* After as many meetings as the launch has a number, and one: the marks of words, which say when
 * they were stored to and by whom, have then begun anew once or twice. */
#define MEET                                                                                       \
    "mov.u32 %r14, 0;\nMEET:\nbar.sync 0;\nadd.u32 %r14, %r14, 1;\n"                               \
    "setp.le.u32 %p6, %r14, %r3;\n@%p6 bra MEET;\n"
#define MINE      "mad.lo.u32 %r13, %r1, 4, %r9;\n"
#define STORED    "st.shared.u32 [%r13], %r1;\n"
#define NEIGHBOUR "xor.b32 %r13, %r13, 128;\nld.shared.u32 %r4, [%r13];\n"

static const struct check_case long_cases[] = {
    {"stored and met", MINE STORED MEET STORED "bar.sync 0;\n" NEIGHBOUR, 1, 1024, 140, NONE},
    {"stored and not met",
     MINE STORED MEET "setp.gt.u32 %p5, %r1, 1000;\n@%p5 st.shared.u32 [%r13], %r1;\n" NEIGHBOUR, 1,
     1024, 140, SIMT_RACE_SHARED},
    {"stored long ago", MINE STORED MEET NEIGHBOUR, 1, 1024, 140, NONE},
    {"never stored",
     MINE "setp.lt.u32 %p5, %r1, 992;\n@%p5 bra STORE;\nbra MEETING;\nSTORE:\n" STORED
          "MEETING:\n" MEET NEIGHBOUR,
     1, 1024, 140, SIMT_UNINITIALISED},
    {"copied and waited for", COPY(0) WAIT MEET READ(0), 1, 256, 300, NONE},
    {"copied and not waited for", COPY(0) MEET READ(0), 1, 256, 300, SIMT_ASYNC_NOT_WAITED},
};

/* Launches that may run side by side. %rd6: out, of the other warp's thread. */
#define TURN(n, text) "setp.ne.u32 %p4, %r3, " #n ";\n@%p4 bra NOT" #n ";\n" text "NOT" #n ":\n"
#define RELEASE       "griddepcontrol.launch_dependents;\n"
#define AWAIT         "griddepcontrol.wait;\n"
#define READS         "ld.global.u32 %r5, [%rd5];\nst.global.u32 [%rd5+1024], %r5;\n"
#define FILLED        "st.global.u32 [%rd5], %r1;\n"

/* One thread's copy of 64 bytes; s+4088 is its mbarrier. */
#define ONE_THREAD "setp.eq.u32 %p5, %r1, 0;\n"
#define TMA_COPY                                                                                   \
    ONE_THREAD "@%p5 mbarrier.init.shared.b64 [%r9+4088], 1;\nfence.proxy.async;\nbar.sync 0;\n"   \
               "@%p5 mbarrier.arrive.expect_tx.shared.b64 %rd7, [%r9+4088], 64;\n"                 \
               "@%p5 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "           \
               "[%r9], [%rd4], 64, [%r9+4088];\n"
#define LANDED                                                                                     \
    "LANDS:\nmbarrier.test_wait.parity.shared.b64 %p6, [%r9+4088], 0;\n@!%p6 bra LANDS;\n"
#define TMA_OUT(what, how)                                                                         \
    ONE_THREAD "st.shared.u32 [%r10], %r1;\nst.shared.u32 [%r10+4], %r1;\n"                        \
               "st.shared.u32 [%r10+8], %r1;\nst.shared.u32 [%r10+12], %r1;\n"                     \
               "fence.proxy.async;\nbar.sync 0;\n"                                                 \
               "@%p5 " what ".global.shared::cta.bulk_group" how " [%rd4], [%r9], 64;\n"           \
               "@%p5 cp.async.bulk.commit_group;\n"
#define TMA_GONE "@%p5 cp.async.bulk.wait_group 0;\n"

static const struct check_case overlapped[] = {
    {"reads what the launch before writes, and has waited",
     TURN(0, RELEASE FILLED) TURN(1, AWAIT READS), 1, 64, 2, NONE},
    {"reads what the launch before writes, and waits later",
     TURN(0, RELEASE FILLED) TURN(1, READS AWAIT), 1, 64, 2, SIMT_RACE_GLOBAL},
    {"reads it and never waits", TURN(0, FILLED RELEASE) TURN(1, READS), 1, 64, 2,
     SIMT_RACE_GLOBAL},
    {"never waits, and the launch before released nobody", TURN(0, FILLED) TURN(1, READS), 1, 64, 2,
     SIMT_RACE_GLOBAL},
    {"waits, and the launch before released nobody", TURN(0, FILLED) TURN(1, AWAIT READS), 1, 64, 2,
     NONE},
    {"single elements, before the wait",
     TURN(0, RELEASE FILLED)
         TURN(1, "setp.eq.u32 %p5, %r1, 5;\n@%p5 ld.global.u32 %r5, [%rd5];\n" AWAIT),
     1, 64, 2, SIMT_RACE_GLOBAL},
    {"blocks share lines, before the wait",
     TURN(0, RELEASE "mul.wide.u32 %rd6, %r2, 64;\nadd.s64 %rd6, %rd6, %rd5;\n"
                     "setp.lt.u32 %p5, %r1, 16;\n@%p5 st.global.u32 [%rd6], %r1;\n")
         TURN(1, "setp.eq.u32 %p5, %r1, 20;\n@%p5 ld.global.u32 %r5, [%rd5];\n" AWAIT),
     2, 32, 2, SIMT_RACE_GLOBAL},
    {"overwrites what the launch before reads",
     TURN(0, RELEASE "ld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd5], %r5;\n")
         TURN(1, "st.global.u32 [%rd4], %r1;\n" AWAIT),
     1, 64, 2, SIMT_RACE_GLOBAL},
    {"overwrites it after the wait",
     TURN(0, RELEASE "ld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd5], %r5;\n")
         TURN(1, AWAIT "st.global.u32 [%rd4], %r1;\n"),
     1, 64, 2, NONE},
    {"both read",
     TURN(0, RELEASE "ld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd5], %r5;\n")
         TURN(1, "ld.global.u32 %r5, [%rd4];\n" AWAIT "st.global.u32 [%rd5], %r5;\n"),
     1, 64, 2, NONE},
    {"both write", TURN(0, RELEASE FILLED) TURN(1, FILLED AWAIT), 1, 64, 2, SIMT_RACE_GLOBAL},
    {"copies before the wait",
     TURN(0, RELEASE "st.global.u32 [%rd4], %r1;\n") TURN(1, COPY(0) WAIT AWAIT), 1, 16, 2,
     SIMT_RACE_GLOBAL},
    {"reads what the launch before updates",
     TURN(0, FILLED) TURN(1, AWAIT RELEASE "red.global.add.u32 [%rd5], 1;\n") TURN(2, READS AWAIT),
     1, 64, 3, SIMT_RACE_GLOBAL},
    {"both update",
     TURN(0, FILLED) TURN(1, AWAIT RELEASE "red.global.add.u32 [%rd5], 1;\n")
         TURN(2, "red.global.add.u32 [%rd5], 1;\n" AWAIT),
     1, 64, 3, NONE},
    {"another warp waits, and they meet",
     TURN(0, RELEASE FILLED)
         TURN(1, "setp.gt.u32 %p5, %r1, 31;\n@%p5 bra MET;\n" AWAIT "MET:\nbar.sync 0;\n" READS),
     1, 64, 2, NONE},
    {"another warp waits, and they do not meet",
     TURN(0, RELEASE FILLED)
         TURN(1, "setp.gt.u32 %p5, %r1, 31;\n@%p5 bra APART;\n" AWAIT "bra END;\nAPART:\n" READS),
     1, 64, 2, SIMT_RACE_GLOBAL},
    {"the launch before released the next before it waited",
     TURN(0, RELEASE FILLED) TURN(1, RELEASE AWAIT) TURN(2, READS AWAIT), 1, 64, 3,
     SIMT_RACE_GLOBAL},
    {"the launch before waited first",
     TURN(0, RELEASE FILLED) TURN(1, AWAIT RELEASE) TURN(2, READS AWAIT), 1, 64, 3, NONE},
    {"the launch before waited first, but others had not",
     TURN(0, RELEASE FILLED) TURN(1, RELEASE AWAIT) TURN(2, AWAIT RELEASE) TURN(3, READS AWAIT), 1,
     64, 4, NONE},
    {"waits for the launch before, which has not waited for the one before that",
     TURN(0, RELEASE FILLED) TURN(1, RELEASE) TURN(2, AWAIT READS), 1, 64, 3, SIMT_RACE_GLOBAL},
    {"likewise, and that one released nobody", TURN(0, RELEASE FILLED) TURN(2, AWAIT READS), 1, 64,
     3, SIMT_RACE_GLOBAL},
    {"overwrites what the launch before the one before reads, which did not wait",
     TURN(0, RELEASE "ld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd5], %r5;\n")
         TURN(2, AWAIT "st.global.u32 [%rd4], %r1;\n"),
     1, 64, 3, SIMT_RACE_GLOBAL},
    {"the launch before waited at its end",
     TURN(0, RELEASE FILLED) TURN(1, RELEASE AWAIT) TURN(2, AWAIT READS), 1, 64, 3, NONE},
    {"two launches back one did not wait",
     TURN(0, RELEASE FILLED) TURN(2, AWAIT RELEASE) TURN(3, AWAIT READS), 1, 64, 4,
     SIMT_RACE_GLOBAL},
    {"what one wrote that the launch before has waited for",
     TURN(0, RELEASE) TURN(2, RELEASE FILLED) TURN(3, AWAIT READS), 1, 64, 4, NONE},
    {"another block waits, and where blocks may order each other this one has not heard of it",
     TURN(0, RELEASE "@%p1 st.global.u32 [%rd5], %r1;\n")
         TURN(1, "@%p1 " AWAIT "@%p1 bra END;\nld.global.u32 %r5, [%rd5];\nfence.acq_rel.gpu;\n"),
     2, 64, 2, SIMT_RACE_GLOBAL},
    {"another block waits, and this one may have heard of it",
     TURN(0, RELEASE "@%p1 st.global.u32 [%rd5], %r1;\n")
         TURN(1, "@%p1 " AWAIT "fence.acq_rel.gpu;\n@%p1 bra END;\nld.global.u32 %r5, [%rd5];\n"),
     2, 64, 2, NONE},
    {"a copy by TMA is issued before the wait, and lands after it",
     TURN(0, RELEASE "st.global.u32 [%rd4], %r1;\n") TURN(1, TMA_COPY AWAIT LANDED), 1, 32, 2,
     SIMT_RACE_GLOBAL},
    {"a copy by TMA is issued after the wait",
     TURN(0, RELEASE "st.global.u32 [%rd4], %r1;\n") TURN(1, AWAIT TMA_COPY LANDED), 1, 32, 2,
     NONE},
    {"a copy by TMA out of shared memory is issued before the wait",
     TURN(0, RELEASE "ld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd5], %r5;\n")
         TURN(1, TMA_OUT("cp.async.bulk", "") AWAIT TMA_GONE),
     1, 32, 2, SIMT_RACE_GLOBAL},
    {"a reduction by TMA is issued before the wait",
     TURN(0, RELEASE "ld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd5], %r5;\n")
         TURN(1, TMA_OUT("cp.reduce.async.bulk", ".add.u32") AWAIT TMA_GONE),
     1, 32, 2, SIMT_RACE_GLOBAL},
    {"a reduction by TMA is issued after the wait",
     TURN(0, RELEASE "ld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd5], %r5;\n")
         TURN(1, AWAIT TMA_OUT("cp.reduce.async.bulk", ".add.u32") TMA_GONE),
     1, 32, 2, NONE},
};

/* each: in every launch; else in one of them. overlap: each may begin before the last has ended. */
static void run_case(const struct check_case *x, enum simt_check check, bool each, bool overlap,
                     struct arena *a)
{
    static uint32_t in[4 * WORDS] __attribute__((aligned(256))),
        out[4 * WORDS] __attribute__((aligned(256)));
    struct error err = {0};
    struct simt *dev;
    struct simt_module *m;
    struct simt_config config = {.threads = 1, .check = check};
    char *so = compile_text(text_of(arena_printf(a, "%s%s\nEND:\nret;\n}\n", head, x->body)), a);
    assert_true(simt_open(&config, &dev, &err));
    simt_alloc_register(dev, in, sizeof in, "in", SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, out, sizeof out, "out", 0);
    if (!simt_load(dev, so, &m, &err))
        fail_msg("%s: %s", x->name, err.text);
    int found = NONE;
    for (uint32_t turn = 0; turn < x->launches; turn++) {
        struct bench_args args = {0};
        struct simt_result res;
        const void *to[2] = {in, out};
        put_arg(&args, &to[0], 8);
        put_arg(&args, &to[1], 8);
        put_arg(&args, &turn, 4);
        struct simt_launch l = {.kernel = "k",
                                .grid = {x->grid, 1, 1},
                                .block = {x->threads, 1, 1},
                                .params = args.data,
                                .param_bytes = args.len,
                                .overlap = overlap && turn > 0,
                                .overlapped = overlap && turn + 1 < x->launches};
        if (!simt_launch(dev, m, &l, a, &res, &err))
            fail_msg("%s: %s", x->name, err.text);
        if (each)
            found = NONE;
        for (size_t i = 0; i < res.finding_count && found != x->finds; i++)
            found = (int)res.findings[i].kind;
        if (x->finds == NONE && res.finding_count)
            fail_msg("%s: %s", x->name, res.findings[0].text);
        if (getenv("SIMT_SHOW"))
            for (size_t i = 0; i < res.finding_count; i++)
                print_message("%s: %s\n", simt_finding_name(res.findings[i].kind),
                              res.findings[i].text);
        if (each && check == SIMT_CHECK_FULL && found != x->finds)
            fail_msg("%s, launch %u: found %d, not %d", x->name, turn, found, x->finds);
    }
    if (check == SIMT_CHECK_FULL && found != x->finds)
        fail_msg("%s: found %d, not %d", x->name, found, x->finds);
    simt_close(dev);
}

static void every_check_finds_it_or_has_nothing_to_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena *a = arena_new();
        run_case(&cases[i], SIMT_CHECK_FULL, false, false, a);
        run_case(&cases[i], SIMT_CHECK_MEMORY, false, false, a); /* the same code must not crash */
        arena_free(a);
    }
}

static void launches_that_overlap_are_ordered_by_their_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof overlapped / sizeof overlapped[0]; i++) {
        struct arena *a = arena_new();
        run_case(&overlapped[i], SIMT_CHECK_FULL, false, true, a);
        run_case(&overlapped[i], SIMT_CHECK_MEMORY, false, true, a);
        if (overlapped[i].finds == SIMT_RACE_GLOBAL) { /* which comes of the overlap alone */
            struct check_case apart = overlapped[i];
            apart.finds = NONE;
            run_case(&apart, SIMT_CHECK_FULL, false, false, a);
        }
        arena_free(a);
    }
}

static void nothing_is_forgotten_or_made_up_over_many_barriers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof long_cases / sizeof long_cases[0]; i++) {
        struct arena *a = arena_new();
        run_case(&long_cases[i], SIMT_CHECK_FULL, true, false, a);
        arena_free(a);
    }
}

/* A kernel that is wrong in every turn of a loop still runs to its end, and has one finding. */
static void a_cause_is_one_finding_with_a_count_and_ends_nothing(void **state)
{
    static uint32_t in[WORDS], out[WORDS];
    enum { TURNS = 8000, GRID = 2 };
    struct arena *a = arena_new();
    struct error err = {0};
    struct simt *dev;
    struct simt_module *m;
    struct simt_result res;
    struct simt_config config = {.threads = 2, .check = SIMT_CHECK_FULL};
    struct bench_args args = {0};
    const void *to[2] = {in, out};
    uint32_t turn = 0;
    char *so =
        compile_text(text_of(arena_printf(
                         a,
                         "%smov.u32 %%r4, 0;\nTURN:\nst.global.u32 [%%rd5+%d], %%r1;\n"
                         "add.u32 %%r4, %%r4, 1;\nsetp.lt.u32 %%p5, %%r4, %d;\n@%%p5 bra TURN;\n"
                         "mul.wide.u32 %%rd6, %%r2, 128;\nadd.s64 %%rd6, %%rd6, %%rd5;\n"
                         "st.global.u32 [%%rd6], 5;\nret;\n}\n",
                         head, 1 << 20, TURNS)),
                     a);
    (void)state;
    assert_true(simt_open(&config, &dev, &err));
    simt_alloc_register(dev, in, sizeof in, "in", SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, out, sizeof out, "out", 0);
    put_arg(&args, &to[0], 8);
    put_arg(&args, &to[1], 8);
    put_arg(&args, &turn, 4);
    struct simt_launch l = {.kernel = "k",
                            .grid = {GRID, 1, 1},
                            .block = {32, 1, 1},
                            .params = args.data,
                            .param_bytes = args.len};
    if (!simt_load(dev, so, &m, &err) || !simt_launch(dev, m, &l, a, &res, &err))
        fail_msg("%s", err.text);
    assert_int_equal(res.outcome, SIMT_FAULT);
    assert_false(res.stopped);
    assert_int_equal(res.finding_count, 1);
    assert_int_equal(res.findings[0].times, TURNS * GRID * 32);
    for (int i = 0; i < GRID * 32; i++)
        assert_int_equal(out[i], 5);
    simt_close(dev);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_check_finds_it_or_has_nothing_to_say),
        cmocka_unit_test(launches_that_overlap_are_ordered_by_their_wait),
        cmocka_unit_test(nothing_is_forgotten_or_made_up_over_many_barriers),
        cmocka_unit_test(a_cause_is_one_finding_with_a_count_and_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
