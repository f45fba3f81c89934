/* ask_device.c - prints the name of cuda:0, or why there is none: devices_test.sh starts several.
 */
#include "eval/devices.h"

#include <stdio.h>

int main(void)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct device d;
    bool ok = devices_find("cuda:0", "H200", NULL, a, &d, &err);

    puts(ok ? d.name : err.text);
    arena_free(a);
    return !ok;
}
