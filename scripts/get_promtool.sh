#!/bin/sh
# get_promtool.sh FOLDER - promtool for the tests of the alert rules: from PATH, else Debian's package unpacked into
# FOLDER (nothing is installed), else built with Go. Without any: exit 1 under CI, a word and exit 0 elsewhere.
set -eu
folder=$1
module=github.com/prometheus/prometheus@v0.305.0

if command -v promtool >/dev/null 2>&1 || "$folder/promtool" --version >/dev/null 2>&1; then
    exit 0
fi
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1; then
    fetch() { (cd "$work" && apt-get -qq download prometheus 2>/dev/null); }
    fetch || { [ "$(id -u)" = 0 ] && apt-get -qq update >/dev/null 2>&1 && fetch; } || true
    for package in "$work"/prometheus_*.deb; do
        [ -f "$package" ] && dpkg -x "$package" "$work/unpacked" && cp "$work/unpacked/usr/bin/promtool" "$folder/promtool"
    done
    if "$folder/promtool" --version >/dev/null 2>&1; then
        echo "tools: promtool from Debian's package, in $folder"
        exit 0
    fi
fi
if command -v go >/dev/null 2>&1; then
    echo "tools: building promtool with Go; this takes some minutes, once"
    # In a module of our own: `go install` refuses a module that replaces others.
    target=$(cd "$folder" && pwd)/promtool
    if (cd "$work" && go mod init promtool >/dev/null 2>&1 && go get "${module%@*}/cmd/promtool@${module#*@}" 2>/dev/null &&
        go build -o "$target" "${module%@*}/cmd/promtool"); then
        exit 0
    fi
fi
echo "tools: no promtool: not on PATH, no Debian package, no Go build. Install Prometheus's tools to test the alert rules." >&2
[ -z "${CI:-}" ]
