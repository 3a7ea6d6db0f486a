#!/bin/sh
# A kubectl that records in the folder $RECORDING, without a cluster: `objects` has a line for each object that is there,
# kind/namespace/name, and `calls` one for each call. It fails at the call that $FAIL_AT numbers.
set -eu
cd "$RECORDING"
printf '%s\n' "$*" >>calls
if [ "$(wc -l <calls)" -eq "${FAIL_AT:-0}" ]; then
  echo "error: the server could not find what was asked for" >&2
  exit 1
fi
namespace=""
if [ "$1" = -n ]; then
  namespace="$2"
  shift 2
fi
touch objects
case "$1 $2" in
  "apply -f")
    [ "$3" = - ] || exec <"$3"
    awk '/^kind:/ { kind = $2 } /^  name:/ { name = $2 } /^  namespace:/ { space = $2 }
      /^---/ { print kind "/" space "/" name; space = "" } END { print kind "/" space "/" name }' >>objects
    ;;
  "create secret")
    [ "${5##*=}" = /dev/stdin ] || exec <"${5##*=}"
    cat >key
    echo "Secret/$namespace/$4" >>objects
    ;;
  "delete "*)
    [ "$4" = --ignore-not-found ]
    case "$2" in
      namespace) gone="Namespace//$3|[A-Za-z]*/$3/.*" ;;
      secret) gone="Secret/$namespace/$3" ;;
      agents.*) gone="Agent//$3" ;;
      llmproviders.*) gone="LLMProvider//$3" ;;
    esac
    grep -vxE "$gone" objects >left || true
    mv left objects
    ;;
  "wait pod") ;;
  *)
    echo "error: unknown command $*" >&2
    exit 1
    ;;
esac
