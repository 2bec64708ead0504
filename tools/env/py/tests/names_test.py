# SPDX-License-Identifier: MIT OR Apache-2.0
"""A comment says more than the name of what it is about."""

import re
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]
# In the other tools the lint wants a comment also where a name says all.
FOLDERS = ("rust", "tools/opendxg")

# A comment of one line, what may stand between, and the item: with its own name, or a field.
ITEM = re.compile(
    r"(?<!///)(?:^|\n)[ \t]*///[ ]?(?P<doc>[^\n]*)\n(?![ \t]*///)(?:[ \t]*#\[[^\n]*\n)*"
    r"[ \t]*(?:pub(?:\([^)]*\))? )?"
    r"(?:(?:const |async |unsafe |extern \"C\" )*(?:fn|struct|enum|trait|type|mod|const|static|union) "
    r"(?P<name>\w+)(?P<after>[^\n]*)|(?P<field>\w+)(?P<type>:[^\n]*|,|\([^\n]*|[ ]?=[^\n]*|[ ]\{))",
)
# Words that say nothing by themselves, as `words` gives them.
EMPTY = {"a", "an", "the", "it", "thi", "that", "i", "are", "of", "and", "or", "one", "new"}


def words(text):
    """The words of a text or a name, each without an "s" or "es" at its end."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return [re.sub(r"(?:es|s)$", "", word.lower()) for word in re.findall(r"[A-Za-z0-9]+", text)]


def repeats(doc, name):
    """Whether a comment says no more than the name of its item."""
    return set(words(doc)) - EMPTY <= set(words(name.replace("_", " ")))


def complaints(text):
    """Lines and comments that only repeat a name."""
    for found in ITEM.finditer(text):
        name = found["name"] or found["field"]
        before = text[:found.start("doc")].rstrip().splitlines()
        # The last line of a longer comment.
        if len(before) > 1 and before[-2].strip().startswith("///"):
            continue
        if repeats(found["doc"], name):
            yield f"{text.count(chr(10), 0, found.start('doc')) + 1}: {name}: {found['doc']}"


def sources():
    """Sources that people write."""
    found = [path for folder in FOLDERS for path in (TOP / folder).rglob("*.rs")]
    return sorted(path for path in found if path.name != "generated.rs")


class Names(unittest.TestCase):
    """Comments of the module, the crate and the tools."""

    def test_comments_say_more_than_names(self):
        """No comment says only the name of its item again."""
        for path in sources():
            with self.subTest(path=str(path.relative_to(TOP))):
                self.assertEqual(list(complaints(path.read_text())), [])

    def test_the_rule_can_fail(self):
        """What repeats a name is seen, what says more is not."""
        seen = list(complaints("    /// The adapter.\n    pub(crate) adapter: Arc<Adapter>,\n"
                               "    /// Its size.\n    #[inline]\n    fn size(&self) -> u64 {\n"
                               "    /// Bytes.\n    size: u64,\n"
                               "/// A first line,\n/// its size.\nfn size() {}\n"))
        self.assertEqual([line.split(":")[1].strip() for line in seen], ["adapter", "size"])


if __name__ == "__main__":
    unittest.main()
