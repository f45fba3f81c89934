/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - build tool: writes files as C string constants.  embed OUT NAME FILE [NAME FILE]... */
#include <stdio.h>

static int embed(FILE *out, const char *name, const char *path)
{
    FILE *in = fopen(path, "r");
    if (!in)
        return 0;
    fprintf(out, "const char %s[] =\n\"", name);
    for (int c = getc(in); c != EOF; c = getc(in)) {
        if (c == '\n')
            fputs("\\n\"\n\"", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else
            putc(c, out);
    }
    fputs("\";\n", out);
    fclose(in);
    return 1;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 3 ? fopen(argv[1], "w") : NULL;
    if (!out)
        return 2;
    fputs("/* made by embed.c */\n#include \"simt/emit/embed.h\"\n", out);
    for (int i = 2; i + 1 < argc; i += 2)
        if (!embed(out, argv[i], argv[i + 1]))
            return 1;
    return fclose(out) != 0;
}
