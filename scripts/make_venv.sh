#!/bin/sh
# make_venv.sh FOLDER - a virtual environment with pip, on $PYTHON or the first fitting Python found.
set -eu
folder=$1
fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'

if [ -x "$folder/bin/python" ] && "$folder/bin/python" -c "$fits" && "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    if [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -c 'import sys; print(sys.version_info[:2])')" = \
        "$("$folder/bin/python" -c 'import sys; print(sys.version_info[:2])')" ]; then
        exit 0
    fi
fi

found=
for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$fits" 2>/dev/null; then
        found=$candidate
        break
    fi
done
if [ -z "$found" ]; then
    echo "setup: no Python 3.11, 3.12 or 3.13 found (looked for: ${PYTHON:-python3.13 python3.12 python3.11 python3})." >&2
    echo "setup: install one, or name it: make setup PYTHON=/path/to/python3.12" >&2
    exit 2
fi
rm -rf "$folder"
if ! "$found" -m venv "$folder"; then
    rm -rf "$folder"
    echo "setup: $found can't make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 2
fi
echo "setup: $("$found" --version) in $folder"
