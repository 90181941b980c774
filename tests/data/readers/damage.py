"""Damage to valid text files, for the tests that feed readers broken ones."""

from __future__ import annotations

from hypothesis import strategies as st


def damaged_lines(draw: st.DrawFn, content: bytes, separator: bytes, cells: list[bytes]) -> bytes:
    """The content after a few random cuts, insertions and replacements of bytes, lines or cells."""
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["bytes", "drop line", "repeat line", "cut", "word"]))
        at = draw(st.integers(0, max(0, len(content) - 1)))
        lines = content.split(b"\n")
        line = draw(st.integers(0, len(lines) - 1))
        if kind == "bytes":
            new = draw(st.binary(max_size=6) | st.sampled_from([b"\n", b"nan", b"-", b"1e400"]))
            content = content[:at] + new + content[at + draw(st.integers(0, 12)) :]
        elif kind == "drop line":
            content = b"\n".join(lines[:line] + lines[line + 1 :])
        elif kind == "repeat line":
            content = b"\n".join([*lines, lines[line]])
        elif kind == "cut":
            content = content[:at]
        else:
            words = lines[line].split(separator)
            words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(cells))
            lines[line] = separator.join(words)
            content = b"\n".join(lines)
    return content
