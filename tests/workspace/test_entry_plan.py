"""Which steps turn some entries into others, and in which order."""

from dataclasses import replace

from surehold.workspace.runs.entry_plan import WantedEntry
from workspace.entry_scenes import (
    A_TWICE,
    APART,
    BOTH,
    A,
    B,
    C,
    Case,
    each_of,
    fifo,
    file,
    folder,
    link,
    steps_of,
    want,
    without_facts,
)

CONTENTS: dict[str, Case] = {
    "other content is put over a file": (
        {"x": A},
        {"x": want(B)},
        "put file x b over file; set file x 644; set directory . 755",
    ),
    "what is as wanted takes no step": ({"x": A, "d": folder()}, {"x": want(A), "d": want(folder()), "y": None}, ""),
    "a file goes": ({"x": A}, {"x": None}, "take file x beside x; set directory . 755"),
    "a link becomes a file": (
        {"x": link(b"t")},
        {"x": want(A)},
        "put file x a over link; set file x 644; set directory . 755",
    ),
    "a FIFO becomes a link": (
        {"x": fifo()},
        {"x": want(link(b"t"))},
        "put link x t over fifo; set link x 644; set directory . 755",
    ),
    "other modes alone": (
        {"x": A, "d": folder()},
        {"x": want(file(b"a", mode=0o600)), "d": want(folder(mode=0o700))},
        "set file x 644 -> 600; set directory d 755 -> 700",
    ),
    "another mode and other content": (
        {"x": A},
        {"x": want(file(b"b", mode=0o600))},
        "put file x b over file; set file x 644 -> 600; set directory . 755",
    ),
    "facts that are not known stay": (
        {"x": A},
        {"x": WantedEntry(version=replace(B.version, meta=None), data=b"b")},
        "put file x b over file; set directory . 755",
    ),
    "a link with two names becomes a file with them": (
        {"x": replace(link(b"t"), links=2), "y": replace(link(b"t"), links=2)},
        {"x": want(B, "y"), "y": want(B, "x")},
        "put file x b over link; put file y b as x over link; set file y 644; set file x 644; set directory . 755",
    ),
    "a directory that an edit has made stays the same": (
        {"d": folder()},
        {"d": WantedEntry(version=replace(folder().version, sha256=""), data=b"")},
        "set directory d 755; set directory . 755",
    ),
    "where directories have no facts": ({".": without_facts(folder("x")), "x": A}, {"x": None}, "take file x beside x"),
    "the mode of the root": ({".": folder()}, {".": want(folder(mode=0o700))}, "set directory . 755 -> 700"),
}


@each_of(CONTENTS)
def test_content_is_put_over_what_is_there_and_the_times_above_come_back(case: Case) -> None:
    assert steps_of(case) == case[-1]


TREES: dict[str, Case] = {
    "a tree goes from the deepest up": (
        {"d": folder("e", "x"), "d/e": folder("y"), "d/e/y": A, "d/x": B},
        {"d": None, "d/e": None, "d/e/y": None, "d/x": None},
        (
            "take file d/e/y beside d; take file d/x beside d; take directory d/e beside d; "
            "take directory d beside d; set directory . 755"
        ),
    ),
    "a tree comes from the top down": (
        {},
        {"d/e/y": want(A), "d": want(folder(mode=0o700)), "d/x": want(B), "d/e": want(folder())},
        (
            "put directory d; put directory d/e; put file d/e/y a; put file d/x b; set directory d/e 755; "
            "set directory d 700; set directory . 755"
        ),
    ),
    "directories that are not recorded are made like the next one above": (
        {"d": folder(mode=0o750, xattrs=(("user.a", b"1"),))},
        {"d/e/f/x": want(A)},
        (
            "put directory d/e; put directory d/e/f; put file d/e/f/x a; set directory d/e/f 750 at 0; "
            "set directory d/e 750 at 0; set directory d 750"
        ),
    ),
    "below the root of all": (
        {"/": folder()},
        {"/q/x": want(A)},
        "put directory /q; put file /q/x a; set directory /q 755 at 0; set directory / 755",
    ),
    "a directory is made like one without facts": (
        {".": without_facts(folder())},
        {"d/x": want(A)},
        "put directory d; put file d/x a; set directory d 755 at 0",
    ),
    "nothing is made for what is not to be": ({}, {"d/x": None}, ""),
    "a file becomes a directory": (
        {"x": A},
        {"x": want(folder()), "x/y": want(B)},
        "take file x beside x; put directory x; put file x/y b; set directory x 755; set directory . 755",
    ),
    "a directory becomes a file": (
        {"x": folder("y"), "x/y": B},
        {"x": want(A), "x/y": None},
        "take file x/y beside x; take directory x beside x; put file x a; set directory . 755",
    ),
    "a directory becomes a link": (
        {"x": folder("y"), "x/y": A},
        {"x": want(link(b"t")), "x/y": None},
        "take file x/y beside x; take directory x beside x; put link x t; set directory . 755",
    ),
    "a directory stays and loses its entry": (
        {"d": folder("x"), "d/x": A},
        {"d": want(folder(mode=0o700)), "d/x": None},
        "take file d/x beside d/x; set directory d 755 -> 700",
    ),
}


@each_of(TREES)
def test_what_is_in_the_way_goes_first_and_directories_are_there_before_their_entries(case: Case) -> None:
    assert steps_of(case) == case[-1]


USED: dict[str, Case] = {
    "another file is in it": (
        {"d": folder("x", "z"), "d/x": A},
        {"d": None, "d/x": None},
        "keep d; take file d/x beside d/x; set directory d 755",
    ),
    "a file in it stays": ({"d": folder("x"), "d/x": A}, {"d": None, "d/x": want(A)}, "keep d"),
    "a directory in it stays": ({"d": folder("e"), "d/e": folder("z")}, {"d": None, "d/e": None}, "keep d/e; keep d"),
    "the root": (
        {".": folder("x"), "x": A},
        {".": None, "x": None},
        "keep .; take file x beside x; set directory . 755",
    ),
    "the root with nothing in it": ({".": folder()}, {".": None}, "keep ."),
}


@each_of(USED)
def test_a_directory_that_has_other_entries_stays_and_so_does_the_root(case: Case) -> None:
    assert steps_of(case) == case[-1]


LOCKED: dict[str, Case] = {
    "around a file that goes": (
        {"d": folder("x", mode=0o500), "d/x": A},
        {"d/x": None},
        "set directory d 500 -> 700; take file d/x beside d/x; set directory d 500",
    ),
    "further up, without the right to pass": (
        {"d": folder("e", mode=0o600), "d/e": folder("x"), "d/e/x": A},
        {"d/e/x": None},
        "set directory d 600 -> 700; take file d/e/x beside d/e/x; set directory d/e 755; set directory d 600",
    ),
    "which goes itself": (
        {"d": folder("x", mode=0o500), "d/x": A},
        {"d": None, "d/x": None},
        "set directory d 500 -> 700; take file d/x beside d; take directory d beside d; set directory . 755",
    ),
    "the root alone": ({".": folder(mode=0o500)}, {".": want(folder())}, "set directory . 500 -> 755"),
    "around a file that stays": (
        {"d": folder("x", mode=0o500), "d/x": A},
        {"d/x": want(A)},
        "set directory d 500 -> 700; set directory d 500",
    ),
}


@each_of(LOCKED)
def test_a_directory_that_keeps_us_out_is_opened_for_the_change(case: Case) -> None:
    assert steps_of(case) == case[-1]


MOVES: dict[str, Case] = {
    "to a free name": ({"x": A}, {"x": None, "y": want(A, moved_from="x")}, "rename x y; set directory . 755"),
    "of which nothing is there": ({}, {"x": None, "y": want(A, moved_from="x")}, "put file y a; set directory . 755"),
    "with other content": (
        {"x": A},
        {"x": None, "y": want(B, moved_from="x")},
        "take file x beside x; put file y b; set directory . 755",
    ),
    "a link": (
        {"x": link(b"t")},
        {"x": None, "y": want(link(b"t"), moved_from="x")},
        "take link x beside x; put link y t; set directory . 755",
    ),
    "with other holes": (
        {"x": A},
        {"x": None, "y": want(A, moved_from="x", refits=True)},
        "take file x beside x; put file y a; set directory . 755",
    ),
    "the old name is used again": (
        {"x": A},
        {"x": want(B), "y": want(A, moved_from="x")},
        "put file x b over file; put file y a; set file x 644; set directory . 755",
    ),
    "the new name was used": (
        {"x": A, "y": B},
        {"x": None, "y": want(A, moved_from="x")},
        "take file x beside x; put file y a over file; set file y 644; set directory . 755",
    ),
    "with another mode": (
        {"x": A},
        {"x": None, "y": want(file(b"a", mode=0o600), moved_from="x")},
        "rename x y; set file y 644 -> 600; set directory . 755",
    ),
    "with another name that is not part of the plan": (
        {"x": A_TWICE},
        {"x": None, "y": want(A, moved_from="x", names_now=("z",))},
        "rename x y; set directory . 755",
    ),
    "into a directory that is made": (
        {"x": A},
        {"x": None, "d": want(folder()), "d/x": want(A, moved_from="x")},
        "put directory d; rename x d/x; set directory d 755; set directory . 755",
    ),
    "out of a directory that goes": (
        {"d": folder("x"), "d/x": A},
        {"d/x": None, "d": None, "x": want(A, moved_from="d/x")},
        "rename d/x x; take directory d beside d; set directory . 755",
    ),
}


@each_of(MOVES)
def test_a_file_is_renamed_only_where_both_names_allow_it(case: Case) -> None:
    assert steps_of(case) == case[-1]


NAMES: dict[str, Case] = {
    "under both names": (
        BOTH,
        {"x": want(B, "y"), "y": want(B, "x")},
        "overwrite x b; set file y 644; set file x 644; set directory . 755",
    ),
    "with holes": (
        BOTH,
        {"x": want(file(b"b", holes=((0, 1),)), "y"), "y": want(file(b"b", holes=((0, 1),)), "x")},
        "overwrite x b with holes; set file y 644; set file x 644; set directory . 755",
    ),
    "names that part": (
        BOTH,
        {"x": want(B), "y": want(B)},
        "put file x b over file; put file y b over file; set file y 644; set file x 644; set directory . 755",
    ),
    "the other name gets something else": (
        BOTH,
        {"x": want(B, "y"), "y": want(C)},
        "put file x b over file; put file y c over file; set file y 644; set file x 644; set directory . 755",
    ),
    "beside another file that is written": (
        {"x": A_TWICE, "y": A_TWICE, "z": file(b"a", links=2, inode=4)},
        {"x": want(B, "y"), "y": want(B, "x"), "z": want(C)},
        ("overwrite x b; put file z c over file; set file z 644; set file y 644; set file x 644; set directory . 755"),
    ),
    "a name outside of the plan would change too": (
        {"x": A_TWICE},
        {"x": want(B, "y", names_now=("y",))},
        "put file x b over file; set file x 644; set directory . 755",
    ),
    "all names are in the plan": (
        BOTH,
        {"x": want(B, "y", names_now=("y",)), "y": want(B, "x", names_now=("x",))},
        "overwrite x b; set file y 644; set file x 644; set directory . 755",
    ),
    "one name goes and another comes": (
        BOTH,
        {"x": want(B, "z"), "y": None, "z": want(B, "x")},
        "take file y beside y; overwrite x b; put file z b as x; set file x 644; set directory . 755",
    ),
    "we may not write it": (
        {"x": file(b"a", links=2, inode=3, mode=0o400), "y": file(b"a", links=2, inode=3, mode=0o400)},
        {"x": want(B, "y"), "y": want(B, "x")},
        (
            "put file x b over file; put file y b as x over file; set file y 400 -> 644; set file x 400 -> 644; "
            "set directory . 755"
        ),
    ),
    "its mode is not known": (
        {"x": without_facts(A_TWICE), "y": without_facts(A_TWICE)},
        {"x": want(B, "y"), "y": want(B, "x")},
        "overwrite x b; set directory . 755",
    ),
    "it is empty": (
        {"x": file(b"", links=2, inode=3), "y": file(b"", links=2, inode=3)},
        {"x": want(B, "y"), "y": want(B, "x")},
        "put file x b over file; put file y b as x over file; set file y 644; set file x 644; set directory . 755",
    ),
    "it has one name so far": (
        {"x": file(b"a", inode=3)},
        {"x": want(B, "y")},
        "put file x b over file; set file x 644; set directory . 755",
    ),
    "the same content with other holes": (
        BOTH,
        {"x": want(A, "y", refits=True), "y": want(A, "x", refits=True)},
        "put file x a over file; put file y a as x over file; set file y 644; set file x 644; set directory . 755",
    ),
    "it becomes a file of its own": (
        {"x": A_TWICE},
        {"x": want(A, parts=True)},
        "put file x a over file; set directory . 755",
    ),
    "it is a file of its own already": ({"x": file(b"a", inode=3)}, {"x": want(A, parts=True)}, "set directory . 755"),
}


@each_of(NAMES)
def test_a_file_with_several_names_is_written_once_if_it_keeps_all_of_them(case: Case) -> None:
    assert steps_of(case) == case[-1]


JOINS: dict[str, Case] = {
    "two files become one": (
        APART,
        {"x": want(A, "y"), "y": want(A, "x")},
        "put file x a as y over file; put file y a as x over file; set directory . 755",
    ),
    "they are one already": (BOTH, {"x": want(A, "y"), "y": want(A, "x")}, "set directory . 755"),
    "the other is not part of the plan": (
        APART,
        {"x": want(A, "y")},
        "put file x a as y over file; set directory . 755",
    ),
    "the other has other content": (
        {"x": file(b"a", inode=3), "y": file(b"b", inode=4)},
        {"x": want(A, "y")},
        "set directory . 755",
    ),
    "it is one with a file outside of the plan": (
        {"x": file(b"a", inode=3), "y": file(b"a", inode=3)},
        {"x": want(A, "y")},
        "set directory . 755",
    ),
    "the other is not there": ({"x": file(b"a", inode=3)}, {"x": want(A, "y")}, "set directory . 755"),
    "the other is a link": ({"x": file(b"a", inode=3), "y": link(b"a")}, {"x": want(A, "y")}, "set directory . 755"),
    "both are new": (
        {},
        {"x": want(A, "y"), "y": want(A, "x")},
        "put file x a; put file y a as x; set directory . 755",
    ),
    "the other stays as it is": (
        {"x": A},
        {"x": want(A, "y"), "y": want(A, "x")},
        "put file y a as x; set directory . 755",
    ),
    "the other has got the content by then": (
        {"x": A},
        {"x": want(B, "y"), "y": want(B, "x")},
        "put file x b over file; put file y b as x; set file x 644; set directory . 755",
    ),
    "the other gets something else": (
        {"x": A},
        {"x": want(C, "y"), "y": want(B, "x")},
        "put file x c over file; put file y b; set file x 644; set directory . 755",
    ),
    "the other goes": (
        {"x": A},
        {"x": None, "y": want(A, "x")},
        "take file x beside x; put file y a; set directory . 755",
    ),
    "the content of the other fits": ({"z": A}, {"y": want(A, "z")}, "put file y a as z; set directory . 755"),
    "links that are one have no content to share": (
        {},
        {"x": want(link(b"t"), "y"), "y": want(link(b"t"), "x")},
        "put link x t; put link y t; set directory . 755",
    ),
    "links have no other names": ({"z": link(b"a")}, {"y": want(link(b"a"), "z")}, "put link y a; set directory . 755"),
}


@each_of(JOINS)
def test_another_name_of_a_file_is_made_from_one_that_has_its_content(case: Case) -> None:
    assert steps_of(case) == case[-1]
