#!/bin/sh
# install.sh VENV ARGUMENT... - `pip install ARGUMENT...` into VENV, by uv where it works (seconds instead of minutes),
# by pip otherwise, both with bytecode: where none can be written, each start would compile all that it imports, which
# takes as long as the imports. uv does not read pip's settings, so an index that is set there is passed on.
set -eu
venv=$1
shift
python=$venv/bin/python
if "$venv/bin/uv" --version >/dev/null 2>&1; then
    if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
        index=${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}
        [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
    fi
    if "$venv/bin/uv" pip install --quiet --compile-bytecode --python "$python" "$@"; then
        exit 0
    fi
    echo "setup: uv did not manage; once more with pip" >&2
fi
exec "$python" -m pip install --quiet --disable-pip-version-check "$@"
