from __future__ import annotations

import re

from gazediffusion.data.readers.tobii import numbers_in, numbers_stated, stated, without_preamble

TEXT = "## Subject:\tP01\n## Operating System :\t6.1\n##\n\nSize: 1280 x 1024\nTime\tx\n1\t2\n"


def test_a_line_states_what_follows_its_name() -> None:
    assert stated(TEXT, "subject") == "P01"
    assert stated(TEXT, "Operating System") == "6.1"
    assert stated(TEXT, "Description") == ""


def test_numbers_are_read_only_in_the_number_expected() -> None:
    assert numbers_stated(TEXT, "Size", 2) == [1280, 1024]
    assert numbers_stated(TEXT, "Size", 1) is None
    assert numbers_in("0 x 0", 2) is None
    assert numbers_in("9" * 400 + " x 1", 2) is None


def test_lines_above_the_header_are_blank_and_still_counted() -> None:
    below = without_preamble(TEXT, re.compile(r"^Time\b.*$", re.MULTILINE))
    assert below == "\n" * 5 + "Time\tx\n1\t2\n"
