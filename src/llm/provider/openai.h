/* SPDX-License-Identifier: Apache-2.0 */
/* openai.h - private: what the two OpenAI dialects share. */
#ifndef LLM_OPENAI_H
#define LLM_OPENAI_H

#include "llm/provider/provider.h"

/* [{"role", "content"}]; adjacent messages of one role are merged. */
json_t *openai_messages(const struct wire *w);
/* Stores {"message", "type", "code"} as the answer's problem. */
void openai_problem(struct answer *a, const json_t *e);

#endif
