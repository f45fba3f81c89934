/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the warm server for commands: its status, its end, and one server for a whole
 * suite. */
#include "server/warm.h"
#include "stage/settings.h"
#include "stage/stage.h"

bool stage_server_status(json_t **out, struct error *err)
{
    return warm_status(out, err);
}

bool stage_server_stop(bool *was_there, struct error *err)
{
    return warm_stop(was_there, err);
}

int stage_server_hold(const struct settings *settings)
{
    struct warm *w;
    int fd;

    if (!settings->server)
        return -1;
    w = warm_open(&(struct warm_config){.idle_s = settings->server_idle_s});
    fd = warm_hold(w);
    warm_close(w);
    return fd;
}
