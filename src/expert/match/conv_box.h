/* SPDX-License-Identifier: Apache-2.0 */
/* conv_box.h - the box of pixels of a convolution's tile, for channels-last layouts. */
#ifndef EXPERT_CONV_BOX_H
#define EXPERT_CONV_BOX_H

#include <stdbool.h>
#include <stdint.h>

/* Depth, height, width, in this order. */
struct conv_extent {
    int64_t batch, channels, results;
    int64_t out[3], stride[3];
    int64_t taps;              /* of the filter */
    int64_t taps_shared, halo; /* that can read one box; columns that only the last of them need */
    bool several;              /* small images may share a box */
};

/* Pixels that a warpgroup multiplies at a time: some of several rows, or several small images. */
struct conv_box {
    int64_t w, h, n, use; /* use: columns of w that are results */
    bool shared;          /* by taps */
    int64_t wide, tiles;  /* pixels up to the last result, in eights; of all images, by channels */
    double cycles;        /* of the processor with the most tiles, about */
};

/* The box with the fewest cycles; of those the widest. */
struct conv_box conv_box_of(const struct conv_extent *e);

#endif
