/* SPDX-License-Identifier: Apache-2.0 */
/* list_models.c - the configured models, for `cutegen models`: everything except keys. */
#include "llm/llm.h"

#include "base/vault.h"
#include "llm/price.h"
#include "llm/provider/provider.h"

#include <stdlib.h>

static json_t *string_or_null(const char *s)
{
    return s && *s ? json_string(s) : json_null();
}

static void describe_key(json_t *o, const struct llm_config *c, const struct dialect *d)
{
    struct secret key = {0};
    struct error err = {0};
    bool ok = secret_load(c, d, &key, &err);
    json_t *k = json_object();

    json_object_set_new(k, "from", json_string(key.from));
    json_object_set_new(k, "present", json_boolean(ok && key.value));
    json_object_set_new(o, "key", k);
    if (!ok)
        json_object_set_new(o, "problem", json_string(err.text));
    secret_release(&key);
}

static void describe_price(json_t *o, const struct llm_config *c, const struct provider *p,
                           const char *model, struct arena *a)
{
    struct error err = {0};
    struct price_book *book;
    bool official = p->dialect && http_is_official(c, p->dialect);

    if (price_open(c->price_file, a, &book, &err))
        json_object_set_new(o, "price", price_json(price_find(book, p->scheme, model, official)));
    else
        json_object_set_new(o, "problem", json_string(err.text));
}

json_t *llm_describe(const struct llm_config *c)
{
    json_t *o = json_object();
    const char *model = "";
    const struct provider *p = c->model ? llm_provider_of(c->model, &model) : NULL;
    struct arena *a = arena_new();

    json_object_set_new(o, "model", string_or_null(c->model));
    if (!p) {
        json_object_set_new(o, "problem", json_string("unknown model"));
        arena_free(a);
        return o;
    }
    json_object_set_new(o, "provider", json_string(p->scheme));
    json_object_set_new(o, "dialect", json_string(p->title));
    json_object_set_new(o, "name", json_string(model));
    if (p->dialect) {
        json_object_set_new(o, "url", json_string(http_url(c, p->dialect, a)));
        describe_key(o, c, p->dialect);
    }
    describe_price(o, c, p, model, a);
    json_object_set_new(o, "effort", string_or_null(c->effort));
    json_object_set_new(o, "temperature",
                        c->temperature < 0 ? json_null() : json_real(c->temperature));
    json_object_set_new(o, "max_output_tokens", json_integer(c->max_output_tokens));
    json_object_set_new(o, "connect_ms", json_integer(c->connect_ms));
    json_object_set_new(o, "stall_ms", json_integer(c->stall_ms));
    json_object_set_new(o, "total_ms", json_integer(c->total_ms));
    json_object_set_new(o, "retries", json_integer(c->max_retries));
    json_object_set_new(o, "record", string_or_null(c->record_file));
    arena_free(a);
    return o;
}

json_t *llm_providers(void)
{
    json_t *list = json_array();
    const struct provider *p;

    for (size_t i = 0; (p = llm_provider_at(i)) != NULL; i++) {
        json_t *o = json_object();
        const char *value;

        json_object_set_new(o, "provider", json_string(p->scheme));
        json_object_set_new(o, "title", json_string(p->title));
        if (p->dialect) {
            value = vault_get(p->dialect->key_env);
            json_object_set_new(o, "base_url", json_string(p->dialect->base_url));
            json_object_set_new(o, "key_env", json_string(p->dialect->key_env));
            json_object_set_new(o, "key_present", json_boolean(value && *value));
        }
        json_array_append_new(list, o);
    }
    return list;
}
