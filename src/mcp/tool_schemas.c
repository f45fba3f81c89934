/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_schemas.c - input and output of every tool as JSON Schema, with ' for ".
 *
 * No anyOf and the like at the top: some clients hand these to model APIs that
 * refuse them. What a schema cannot express (either a path or a text) is checked by the server.
 */
#include "mcp/tools.h"

#define TASK                                                                                       \
    "'task':{'type':'string','minLength':1,'description':'Path of the task: a Python file with a " \
    "class Model and get_inputs()'},"                                                              \
    "'task_source':{'type':'string','description':'Instead of task: the text of such a file'},"
#define KERNEL                                                                                     \
    "'kernel':{'type':'string','minLength':1,'description':'Path of the kernel: a .cu file to "    \
    "the ABI of cutegen://guide/abi, or a .py file with kernels in Triton or the CuTe DSL and a "  \
    "plan(p) (cutegen://guide/triton-abi, cutedsl-abi)'},"                                         \
    "'source':{'type':'string','description':'Instead of kernel: the text of such a file'},"
#define WHERE                                                                                      \
    "'device':{'type':'string','enum':['auto','simt','cuda:0','cuda:1','cuda:2','cuda:3'],"        \
    "'description':'simt: on the CPU, checked and modelled'},"                                     \
    "'target':{'type':'string','enum':['cute','cuda','triton','cutedsl'],'description':'What "     \
    "the kernel is written in: CuTe (default), CUDA C++ without it, Triton, or the CuTe DSL'},"    \
    "'set':{'type':'object','additionalProperties':{'type':'integer'},'description':'Size "        \
    "constants of the task to override'}"
#define RUN "'run':{'type':'string','minLength':1,'description':'Id of a run, or last'}"
#define INPUT(properties, required)                                                                \
    "{'type':'object','properties':{" properties "},'required':[" required "],"                    \
    "'additionalProperties':false}"
#define OUTPUT(properties, required)                                                               \
    "{'type':'object','properties':{" properties "},'required':[" required "]}"

#define VERDICT                                                                                    \
    "'verdict':{'type':'string'},'pass':{'type':'boolean'},"                                       \
    "'cause':{'type':['string','null'],'description':'What is wrong, in one sentence'},"           \
    "'where':{'type':['string','null'],'description':'File and line it is about'},"                \
    "'line':{'type':['string','null'],'description':'That line'},"                                 \
    "'fix':{'type':['string','null'],'description':'What is known to help'},"                      \
    "'time_us':{'type':['number','null']},"                                                        \
    "'modelled':{'type':'boolean','description':'The time is of a model of a GPU'},"               \
    "'floor_us':{'type':['number','null'],'description':'No kernel can be faster'},"               \
    "'bound':{'type':['string','null']},"                                                          \
    "'speedup':{'type':['number','null'],'description':'Over PyTorch eager, where measured'},"     \
    "'max_rel_error':{'type':['number','null']},"                                                  \
    "'run':{'type':['string','null']},"                                                            \
    "'evidence':{'type':['string','null'],'description':'Resource with the full evidence'}"
#define VERDICT_REQUIRED "'verdict','pass','cause','time_us','modelled','run'"

const char *const schema_describe[2] = {
    INPUT(TASK WHERE, ""),
    OUTPUT("'name':{'type':'string'},'class':{'type':'string'},"
           "'evidence':{'type':['string','null']},"
           "'inputs':{'type':'array','items':{'type':'object'}},"
           "'outputs':{'type':'array','items':{'type':'object'}},"
           "'scalars':{'type':'array','items':{'type':'object'}},"
           "'operators':{'type':'array','items':{'type':'string'}},"
           "'facts':{'type':'array','items':{'type':'string'}},"
           "'bytes_min':{'type':['number','null']},'flops_min':{'type':['number','null']},"
           "'scaled':{'type':['object','null']}",
           "'name','class','inputs','outputs','operators'")};
const char *const schema_evaluate[2] = {
    INPUT(TASK KERNEL WHERE
          ",'accept':{'type':'boolean','description':'Also run every checker before it passes'}",
          ""),
    OUTPUT(VERDICT, VERDICT_REQUIRED)};
const char *const schema_compare[2] = {
    INPUT(TASK "'kernel_a':{'type':'string','minLength':1},'source_a':{'type':'string'},"
               "'kernel_b':{'type':'string','minLength':1},'source_b':{'type':'string'},"
               "'rounds':{'type':'integer','minimum':1,'maximum':9,'description':'Judgements of "
               "each, in turn; a modelled time needs one'}," WHERE,
          ""),
    OUTPUT("'faster':{'type':'string','enum':['a','b','none']},"
           "'ratio':{'type':['number','null'],'description':'Time of a over time of b'},"
           "'a_us':{'type':['number','null']},'b_us':{'type':['number','null']},"
           "'spread':{'type':['number','null']},'rounds':{'type':'integer'},"
           "'modelled':{'type':'boolean'},'a':{'type':'object'},'b':{'type':'object'}",
           "'faster','ratio','rounds','a','b'")};
const char *const schema_profile[2] = {INPUT(TASK KERNEL WHERE, ""),
                                       OUTPUT(VERDICT ",'profile':{'type':['string','null']},"
                                                      "'profiler':{'type':['string','null']}",
                                              VERDICT_REQUIRED ",'profile'")};
const char *const schema_start[2] = {
    INPUT(TASK "'which':{'type':'string','enum':['first','best'],'description':'first: correct and "
               "simple; best: after all its steps, which takes longer'}," WHERE,
          ""),
    OUTPUT("'source':{'type':'string'},'run':{'type':'string'},"
           "'time_us':{'type':['number','null']},'modelled':{'type':'boolean'}",
           "'source','run'")};
const char *const schema_search[2] = {
    INPUT("'query':{'type':'string','minLength':1,'maxLength':8000,'description':'Names, words, or "
          "a compile error as it is'},"
          "'max':{'type':'integer','minimum':1,'maximum':10}",
          "'query'"),
    OUTPUT("'passages':{'type':'array','items':{'type':'object','properties':{"
           "'where':{'type':'string'},'text':{'type':'string'}},'required':['where','text']}}",
           "'passages'")};
const char *const schema_run[2] = {
    INPUT(TASK
          "'model':{'type':'string','minLength':1,'maxLength':200,'description':'builtin, or a "
          "model that this machine has a key for'},"
          "'depth':{'type':'integer','minimum':0,'maximum':100},"
          "'budget_usd':{'type':'number','minimum':0,'description':'US dollars that may be spent'},"
          "'budget_minutes':{'type':'integer','minimum':1}," WHERE,
          ""),
    OUTPUT("'run':{'type':'string'},'state':{'type':'string'},"
           "'best_us':{'type':['number','null']},'attempts':{'type':['integer','null']}",
           "'run','state'")};
const char *const schema_status[2] = {
    INPUT(RUN ",'stop':{'type':'boolean','description':'End this run; what it found stays'}",
          "'run'"),
    OUTPUT("'run':{'type':'string'},'state':{'type':'string'},'task':{'type':['string','null']},"
           "'attempts':{'type':'integer'},'best_attempt':{'type':['integer','null']},"
           "'first_us':{'type':['number','null']},'best_us':{'type':['number','null']},"
           "'modelled':{'type':'boolean'},'reason':{'type':['string','null']},"
           "'last_verdict':{'type':['string','null']},'parts':{'type':['object','null'],"
           "'description':'Of the best kernel, if it has several: share of the time by part'}",
           "'run','state','attempts'")};
const char *const schema_export[2] = {
    INPUT(RUN ",'output':{'type':'string','minLength':1,'description':'Folder to write'},"
              "'layout':{'type':'string','enum':['folder','wheel','hf']}",
          "'run'"),
    OUTPUT("'run':{'type':'string'},'dir':{'type':['string','null']},"
           "'module':{'type':['string','null']},'source':{'type':['string','null']},"
           "'wheel':{'type':['string','null']},'scaled':{'type':['string','null']},"
           "'code':{'type':['string','null']}",
           "'run','dir'")};
