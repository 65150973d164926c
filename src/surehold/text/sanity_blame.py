"""Which of several spans broke the text."""

from collections.abc import Callable

from surehold.text.sanity_finding import Subject

_SUSPECTS = 6
_PARSED = 4 << 20
"""So many bytes may be parsed to find the culprit; beyond that, the nearest span is named."""


def culprit(subject: Subject, line: int, broken: Callable[[bytes], bool]) -> int:
    """Return the span without which the text would be sound, else the one after which it is broken for the first time."""
    spans = subject.spans
    nearest = subject.span_at(line)
    if len(spans) == 1:
        return 0
    affordable = _PARSED // (len(subject.after) + 1)
    suspects = sorted(range(len(spans)), key=lambda index: (abs(index - nearest), index > nearest))
    for suspect in suspects[: min(_SUSPECTS, affordable)]:
        if not broken(subject.with_spans((*spans[:suspect], *spans[suspect + 1 :]))):
            return suspect
    if affordable < _SUSPECTS + len(spans).bit_length():
        return nearest
    return _first_break(subject, broken)


def _first_break(subject: Subject, broken: Callable[[bytes], bool]) -> int:
    """Halve the spans: none of them leaves a sound text, all of them a broken one."""
    sound, damaged = 0, len(subject.spans)
    while damaged - sound > 1:
        middle = (sound + damaged) // 2
        if broken(subject.with_spans(subject.spans[:middle])):
            damaged = middle
        else:
            sound = middle
    return damaged - 1
