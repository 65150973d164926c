"""What a text costs is estimated quickly, and as if every character had been looked at."""

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from surehold.text.measure import DENSE_QUARTERS, count_quarter_tokens
from surehold.tools.call import AnswerBudget

WORDS = st.one_of(
    st.text(alphabet="abcDEF019+/=_-", min_size=30, max_size=90), st.text(max_size=12), st.sampled_from(["=" * 60, "é"])
)
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", "\n", ".", "\t", "", "\x1c"]))).map(
    lambda parts: "".join(word + end for word, end in parts)
)


@given(TEXTS)
def test_dense_runs_are_found_wherever_they_are(text: str) -> None:
    dense = [run for run in re.findall(r"[A-Za-z0-9+/=_-]{40,}", text) if len(set(run)) >= 12]
    extra = math.ceil(sum(map(len, dense)) * (DENSE_QUARTERS - 1))
    without = re.sub(r"[A-Za-z0-9+/=_-]", "a", text)

    assert count_quarter_tokens(text) == count_quarter_tokens(without) + extra


@given(TEXTS, st.integers(20, 400), st.integers(10, 400), st.sampled_from(["characters", "bytes", "json"]))
def test_a_text_is_delivered_if_its_size_fits(text: str, answer: int, tokens: int, unit: str) -> None:
    budget = AnswerBudget(answer=answer, tokens=tokens, unit=unit)  # type: ignore[arg-type]

    assert budget.delivers(text) == (budget.size_of(text) <= answer)
