#!/bin/sh
# make_secrets.sh FOLDER - random secrets for docker-compose.yml, and the settings file for the keys that others give you;
# what exists is kept. Compose mounts such files as they are, for users of other ids inside, so the files are readable
# and the folder is closed.
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
if [ ! -s "$folder/rampgate.toml" ]; then
    cat >"$folder/rampgate.toml" <<EOF
# Settings of docker-compose.yml's own processes (\`rampgate settings\` lists all), secrets among them. Take away the # of
# what you have, then \`docker compose up\`. Without a model no gate passes and no live trace is judged.
#model_url = "https://api.openai.com/v1"
#model_key = "sk-..."
#opik_api_key = "..."
#slack_webhook = "https://hooks.slack.com/services/..."
#pagerduty_key = "..."
#grafana_url = "http://grafana:3000"
#grafana_token = "glsa_..."
# Seals what workers keep: the same for all of them.
seal_key = "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')"
EOF
    chmod 644 "$folder/rampgate.toml"
    echo "secrets: made $folder/rampgate.toml: name the judges' model in it, and whom to tell"
fi
