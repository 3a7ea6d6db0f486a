"""Any JSON, as Hypothesis draws it, with the words that our codecs look for."""

from __future__ import annotations

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["up", "", "1", "0001-01-01", "9999-12-31T23:59:59Z", "INSERT", "d", "NaN", "٣", "1e999"])
)


KEYS = st.text(max_size=8) | st.sampled_from(
    [
        *("response_id", "event_id", "value", "occurred_at", "observed_at", "sequence"),
        *("Records", "detail", "payload", "dynamodb", "NewImage", "Keys", "S", "N"),
        *("op", "after", "before", "source", "ts_ms"),
        *("metadata", "trace_id", "input", "feedback_scores", "new_response_id", "elapsed_seconds"),
    ]
)


JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)
