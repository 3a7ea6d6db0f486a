#!/usr/bin/env bash
# prepare_kafka.sh - make the topics, users and rights of the compose file's Kafka; what is there already is left or made
# the same again. Runs beside the broker, in its network: the one listener without a password is on the broker's own
# loopback, and whoever comes that way may do anything.
set -euo pipefail
tools=${KAFKA_TOOLS:-/opt/kafka/bin}
broker=${KAFKA_OWN:-127.0.0.1:19092}
secrets=${SECRETS:-/run/secrets}
rights=${RIGHTS:-/etc/rampgate/kafka.acls}

# The source topics keep a day more than the lookback of 7, since the join state is rebuilt from them; verdicts are kept
# by time and never compacted; dead letters hold users' bytes and so are short-lived. Of what checks found of a judge, of
# each triage item and of each week of users, the last record is kept for ever, or a suspension would end by itself. What
# decides by which came last is stamped by the broker, so that a time ahead of its own is refused.
day=86400000
stamped=(--config message.timestamp.type=LogAppendTime)
make() {
    local keep=(--config cleanup.policy=compact)
    [[ $3 == compact ]] || keep=(--config "retention.ms=$(($3 * day))" --config cleanup.policy=delete)
    "$tools/kafka-topics.sh" --bootstrap-server "$broker" --create --if-not-exists --topic "$1" --partitions "$2" \
        --replication-factor 1 "${keep[@]}" "${@:4}" </dev/null
}
for topic in thumbs rerolls traces ramp-steps; do make "rampgate.$topic" 4 8; done
make rampgate.verdicts 4 400
make rampgate.dead-letters 4 14
make rampgate.judge-scores 4 14
make rampgate.ramp-commands 1 30
make rampgate.gate-overrides 1 400 "${stamped[@]}"
make rampgate.judge-standing 1 compact "${stamped[@]}"
make rampgate.triage 1 compact
make rampgate.user-weeks 1 compact
make rampgate.evaluations 1 30 "${stamped[@]}"
make ps5.query_audit 1 30

# A password goes through a file: the machine's users read command lines.
umask 077
credentials=$(mktemp)
trap 'rm -f "$credentials"' EXIT
for user in $(sed -n 's/^\([a-z]*\) .*/\1/p' "$rights" | sort -u); do
    printf 'SCRAM-SHA-512=iterations=8192,password=%s\n' "$(cat "$secrets/kafka_${user}_password")" >"$credentials"
    "$tools/kafka-configs.sh" --bootstrap-server "$broker" --alter --entity-type users --entity-name "$user" \
        --add-config-file "$credentials" </dev/null
done

while read -r user sort names operations; do
    [[ $user =~ ^[a-z]+$ ]] || continue
    pattern=literal
    [[ $names != *\* ]] || pattern=prefixed
    wanted=()
    for name in ${names//,/ }; do wanted+=("--$sort" "${name%\*}"); done
    for operation in ${operations//,/ }; do wanted+=(--operation "$operation"); done
    "$tools/kafka-acls.sh" --bootstrap-server "$broker" --add --allow-principal "User:$user" \
        --resource-pattern-type "$pattern" "${wanted[@]}" </dev/null
done <"$rights"
