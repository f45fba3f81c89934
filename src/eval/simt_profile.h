/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_profile.h - simt's counters as ten lines for the model that optimizes.
 *
 *     if (simt_profile(&config, build, test, a, &counters, err)) ...   runs the candidate once
 *     simt_profile_text(&(struct simt_profile_input){...}, &buf);
 *
 * The text is about the launch that takes longest: what bounds it, the time by resource, the time
 * without that bound, how the grid fills the chip, how memory is used, and the three source lines
 * that use most of the limiting resource. All other launches share one line.
 */
#ifndef EVAL_SIMT_PROFILE_H
#define EVAL_SIMT_PROFILE_H

#include "base/buf.h"
#include "eval/judge.h"

struct simt_profile_input {
    const json_t *modelled;  /* measurement.parts */
    const json_t *counters;  /* counters of the same launches; with "lines" if counted by line */
    struct text source;      /* the candidate's source */
    const char *source_name; /* its name in the text */
};

/* Counts by source line; *out is a new reference. False: the run failed. */
bool simt_profile(const struct judge_config *config, const struct build_result *build,
                  const struct test_result *test, struct arena *a, json_t **out, struct error *err);
void simt_profile_text(const struct simt_profile_input *in, struct arena *a, struct buf *out);

#endif
