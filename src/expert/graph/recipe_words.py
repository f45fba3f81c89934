# SPDX-License-Identifier: Apache-2.0
"""recipe_words.py OUT DEPFILE RECIPES : every word of the recipes that may be a name there, sorted, as the lines of a C array."""
import pathlib
import re
import sys

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|\$\{\w+\}|\$\w+|(?:->|::|\.)\w+', re.S)


def words_of(text):
    return set(re.findall(r"(?<!\w)[A-Za-z]\w*", NOT_CODE.sub(" ", text)))


out, depfile, folder = map(pathlib.Path, sys.argv[1:])
recipes = sorted(folder.glob("*.cu*"))
found = set().union(*(words_of(recipe.read_text()) for recipe in recipes))
out.write_text("".join(f'"{word}",\n' for word in sorted(found)))
depfile.write_text(f"{out}: {' '.join(map(str, [folder, *recipes]))}\n")
