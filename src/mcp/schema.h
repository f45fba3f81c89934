/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - check arguments against the JSON Schema that a tool publishes. Private to src/mcp.
 *
 * Supports what our own schemas use: type, properties, required, additionalProperties, items, enum,
 * minimum, maximum, minLength, maxLength.
 */
#ifndef MCP_SCHEMA_H
#define MCP_SCHEMA_H

#include "base/json.h"

/* ERROR_USE names the argument and what it should be. `name` is what messages call the value. */
bool schema_check(const json_t *schema, const json_t *value, const char *name, struct error *err);

#endif
