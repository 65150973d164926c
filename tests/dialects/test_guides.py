import pytest

from surehold.dialects.claude import wire as claude
from surehold.dialects.multi_edit import wire as multi_edit
from surehold.library.families import tools_of
from surehold.tools.export import build_guidance


@pytest.mark.parametrize(("family", "words"), [("claude", claude), ("multi_edit", multi_edit)])
def test_a_family_teaches_its_own_rules_in_full_and_in_a_third_of_the_words(family: str, words: object) -> None:
    full, brief = getattr(words, "GUIDE"), getattr(words, "BRIEF")  # noqa: B009 - two modules of one shape

    assert full in build_guidance(tools_of(family))
    assert brief in build_guidance(tools_of(family), lean=True)
    assert full not in build_guidance(tools_of())
    assert len(brief) * 2 < len(full)


def test_only_the_family_with_absolute_paths_does_not_speak_of_relative_ones() -> None:
    assert "Paths are relative" not in build_guidance(tools_of("multi_edit"))
    assert "Paths are relative" in build_guidance(tools_of("all"))
