"""One page of an answer: some entries are passed over, and the rest is taken as long as there is room."""

from surehold.search.values import Row, Sought

_SIGNS = 3
"""What stands between path, line and text, and behind them."""


class Page:
    """Takes files or rows, one after the other, until it is full."""

    def __init__(self, sought: Sought) -> None:
        self.to_pass = sought.offset
        self.further = False
        """Whether something did not fit any more."""
        self.rows = list[Row]()
        self.names = list[str]()
        self._limit = sought.limit
        self._room = sought.room

    def takes_name(self, name: str) -> bool:
        """Take a file; False when the page is full."""
        if not self._fits(len(name) + _SIGNS, len(self.names)):
            return False
        if not self.to_pass:
            self.names.append(name)
        self.to_pass = max(0, self.to_pass - 1)
        return True

    def takes_row(self, row: Row) -> bool:
        """Take a row; False when the page is full."""
        if not self._fits(len(row.path) + len(row.text) + len(str(row.line)) + _SIGNS, len(self.rows)):
            return False
        if not self.to_pass:
            self.rows.append(row)
        self.to_pass = max(0, self.to_pass - 1)
        return True

    def _fits(self, size: int, count: int) -> bool:
        if self.to_pass:
            return True
        if (self._limit is not None and count >= self._limit) or (size > self._room and count):
            self.further = True
            return False
        self._room -= size
        return True
