/*
 * plan.h - the plan half under a plain C compiler: included by kernel.h.
 *
 * Nothing is launched here. Every macro hands what it was given to the
 * planner's function table; the values of launch arguments are copied with
 * their sizes, and the planner finds the pointers among them by value.
 */
#ifndef CUTEGEN_PLAN_H
#define CUTEGEN_PLAN_H

#include <cutegen/each.h>

#define CUTEGEN_PLAN(call)                                                                         \
    int cutegen_plan(struct cutegen_call *call);                                                   \
    const uint32_t cutegen_plan_abi = CUTEGEN_ABI_VERSION;                                         \
    int cutegen_plan(struct cutegen_call *call)

#define CUTEGEN_FAIL(call, text) ((call)->api->fail((call), __LINE__, (text)))

#define CUTEGEN_REQUIRE(call, condition, text)                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return CUTEGEN_FAIL(call, text);                                                       \
    } while (0)

/* Returns from the plan when a step fails. */
#define CUTEGEN_TRY(step)                                                                          \
    do {                                                                                           \
        int cutegen_try_ = (step);                                                                 \
        if (cutegen_try_ != 0)                                                                     \
            return cutegen_try_;                                                                   \
    } while (0)

/* The type is for C++ alone: C need not know cute::half_t. */
#define CUTEGEN_DATA(type, tensor)                                                                 \
    ((void *)((tensor)->data ? (char *)(tensor)->data + (tensor)->byte_offset : (char *)0))
/* The same, `index` elements further on. */
#define CUTEGEN_AT(type, tensor, index)                                                            \
    ((void *)((char *)(tensor)->data + (tensor)->byte_offset +                                     \
              (int64_t)(index) * ((tensor)->dtype.bits / 8)))

#define cutegen_workspace(call, bytes) ((call)->api->workspace((call), __LINE__, (int64_t)(bytes)))
#define cutegen_memset(call, ptr, value, bytes)                                                    \
    ((call)->api->clear((call), __LINE__, (ptr), (value), (int64_t)(bytes)))
#define cutegen_map_tiled(call, spec) (cutegen_map_at((call), __LINE__, (spec)))

static inline struct cutegen_map cutegen_map_at(struct cutegen_call *call, int line,
                                                const struct cutegen_map_spec *spec)
{
    struct cutegen_map m;
    call->api->map(call, line, spec, &m);
    return m;
}

#define CUTEGEN_ARG_KIND(a)                                                                        \
    _Generic((a), float                                                                            \
             : CUTEGEN_ARG_FLOAT, double                                                           \
             : CUTEGEN_ARG_FLOAT, struct cutegen_map                                               \
             : CUTEGEN_ARG_MAP, _Bool                                                              \
             : CUTEGEN_ARG_INT, char                                                               \
             : CUTEGEN_ARG_INT, signed char                                                        \
             : CUTEGEN_ARG_INT, unsigned char                                                      \
             : CUTEGEN_ARG_INT, short                                                              \
             : CUTEGEN_ARG_INT, unsigned short                                                     \
             : CUTEGEN_ARG_INT, int                                                                \
             : CUTEGEN_ARG_INT, unsigned int                                                       \
             : CUTEGEN_ARG_INT, long                                                               \
             : CUTEGEN_ARG_INT, unsigned long                                                      \
             : CUTEGEN_ARG_INT, long long                                                          \
             : CUTEGEN_ARG_INT, unsigned long long                                                 \
             : CUTEGEN_ARG_INT, default                                                            \
             : CUTEGEN_ARG_OTHER)
#define CUTEGEN_ARG(a)     {(__typeof__(a)[1]){a}, sizeof(a), CUTEGEN_ARG_KIND(a)},
#define CUTEGEN_TEXT_(...) #__VA_ARGS__
#define CUTEGEN_TEXT(...)  CUTEGEN_TEXT_(__VA_ARGS__)

#define CUTEGEN_LAUNCH_EX(call, kernel_, grid_, block_, cluster_, smem_, flags_, ...)              \
    ((call)->api->launch((call), &(const struct cutegen_launch){                                   \
                                     .kernel = CUTEGEN_TEXT(kernel_),                              \
                                     .line = __LINE__,                                             \
                                     .flags = (uint32_t)(flags_),                                  \
                                     .grid = (grid_),                                              \
                                     .block = (block_),                                            \
                                     .cluster = (cluster_),                                        \
                                     .smem = (int64_t)(smem_),                                     \
                                     .args = (const struct cutegen_arg[]){CUTEGEN_EACH(            \
                                         CUTEGEN_ARG, ##__VA_ARGS__){0, 0, CUTEGEN_ARG_END}}}))
#define CUTEGEN_LAUNCH_CLUSTER(call, kernel, grid, block, cluster, smem, ...)                      \
    CUTEGEN_LAUNCH_EX(call, kernel, grid, block, cluster, smem, 0, ##__VA_ARGS__)
#define CUTEGEN_LAUNCH(call, kernel, grid, block, smem, ...)                                       \
    CUTEGEN_LAUNCH_EX(call, kernel, grid, block, cutegen_dim3(1, 1, 1), smem, 0, ##__VA_ARGS__)

/* What compilers call on their own for copies and zeroes; hidden, so that
 * nothing of the planner's is replaced. */
#define CUTEGEN_OWN __attribute__((visibility("hidden"), used))
CUTEGEN_OWN void *memset(void *to, int value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = (unsigned char)value;
    return to;
}
CUTEGEN_OWN void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    return to;
}
CUTEGEN_OWN void *memmove(void *to, const void *from, size_t bytes)
{
    size_t i = bytes;
    if ((uintptr_t)to <= (uintptr_t)from)
        return memcpy(to, from, bytes);
    while (i-- > 0)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    return to;
}

#endif
