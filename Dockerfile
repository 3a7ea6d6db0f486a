# Two stages: the first installs from the locks with their hashes, the second has no compiler, installer or shell habits.
FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7 AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python -m venv /tools && python -m venv --without-pip /opt/rampgate
COPY requirements-build.lock requirements.lock ./
RUN /tools/bin/pip install --require-hashes -r requirements-build.lock \
 && /tools/bin/uv pip install --no-cache --compile-bytecode --python /opt/rampgate/bin/python --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY schemas schemas
COPY evalcore evalcore
COPY agents agents
COPY streams streams
COPY rampgate rampgate
RUN /tools/bin/uv build --no-build-isolation --python /tools/bin/python --wheel --out-dir /dist \
 && /tools/bin/uv pip install --no-cache --python /opt/rampgate/bin/python --no-deps --compile-bytecode /dist/*.whl

FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rampgate" \
      org.opencontainers.image.description="Decides, with evidence, whether an LLM agent may take the next step of its rollout" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN groupadd --gid 10001 rampgate && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin rampgate \
 && install -d -o rampgate -g rampgate /var/lib/rampgate
COPY --from=build /opt/rampgate /opt/rampgate
COPY configs /app/configs
COPY specs /app/specs
COPY prompts /app/prompts
WORKDIR /app
ENV PATH=/opt/rampgate/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
EXPOSE 8350
STOPSIGNAL SIGTERM
# Exec form, so signals arrive; run with --init (compose: init: true) to have children reaped.
ENTRYPOINT ["rampgate"]
CMD ["worker"]
