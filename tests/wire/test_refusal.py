import json

import pytest

from ullage.errors import ProtocolError, SourceFailed
from ullage.invisible_characters import has_invisible
from ullage.wire.serve.client_request import refusal


@pytest.mark.requirement("U:poison")
@pytest.mark.parametrize(
    "error",
    [
        ProtocolError("no\u200b", number=-32000, data={"why\u200b": ["because\u2060"]}),
        SourceFailed("server `x` ended; it last said: \x1b[8mhidden\u202e"),
    ],
)
def test_errors_of_servers_reach_a_client_escaped(error: ProtocolError | SourceFailed):
    refused = refusal(error, modern=True)
    assert not has_invisible(refused.message)
    assert not has_invisible(json.dumps(refused.data, ensure_ascii=False))
    assert "\\u" in refused.message
