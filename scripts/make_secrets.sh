#!/bin/sh
# make_secrets.sh FOLDER - random secrets for docker-compose.yml; what exists is kept. Compose mounts such files as they
# are, for users of other ids inside, so the files are readable and the folder is closed.
set -eu
folder=$1
mkdir -p "$folder"
chmod 700 "$folder"
for name in rampgate_token redis_password grafana_password kafka_worker_password kafka_feed_password \
    kafka_console_password kafka_events_password kafka_controller_password kafka_ci_password kafka_auditor_password; do
    if [ ! -s "$folder/$name" ]; then
        od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"$folder/$name"
        chmod 644 "$folder/$name"
        echo "secrets: made $folder/$name"
    fi
done
