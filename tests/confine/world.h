/* world.h - things worth stealing, and somebody who holds them. */
#ifndef TESTS_CONFINE_WORLD_H
#define TESTS_CONFINE_WORLD_H

#include "attempts.h"

void world_make(struct world *w); /* aborts when the machine does not let it */
void world_end(struct world *w);
int world_victim(void); /* what the test program does when started with --victim */

#endif
