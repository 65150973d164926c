"""The contract's codes where the protocol forbids one of them."""

from pathlib import Path

import pytest

from front.mcp.client import MODERN, RpcFailed, StdioClient, surehold
from spec.marks import requirement


@requirement("multi_edit:error:contract_plane")
def test_a_code_that_the_stateless_era_forbids_stands_in_the_data(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    command = surehold(
        "mcp", tmp_path / "root", "--state-dir", tmp_path / "state", "--tools", "multi_edit", "--contract-errors"
    )

    with StdioClient(command, version=MODERN) as client:
        with pytest.raises(RpcFailed) as outside:
            client.call("read_text_file", {"path": "/etc/passwd"})
        with pytest.raises(RpcFailed) as missing:
            client.call("read_text_file", {"path": str(tmp_path / "root" / "none")})

    assert (outside.value.code, outside.value.data["code"]) == (-32602, -32002)
    assert outside.value.message == "Permission denied: /etc/passwd"
    assert (missing.value.code, missing.value.data["code"]) == (-32001, -32001)
