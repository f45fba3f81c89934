/* server.c - the warm server by hand: what it has, and its end. */
#include "server/warm.h"
#include "stage/stage.h"

bool stage_server_status(json_t **out, struct error *err)
{
    return warm_status(out, err);
}

bool stage_server_stop(bool *was_there, struct error *err)
{
    return warm_stop(was_there, err);
}
