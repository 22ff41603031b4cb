# The gateway with its windows, from this repository. Node comes with a wheel and stays in the first stage.
# By digest: a tag may be another image tomorrow. `make images` compares it with the registry.
ARG PYTHON=3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM python:${PYTHON} AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ENV PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never
WORKDIR /source
# What builds and what is installed is what two files name, with its hashes.
COPY tools/build-requirements.txt tools/
RUN python -m venv /build \
 && /build/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement tools/build-requirements.txt
ENV PATH=/build/bin:$PATH
COPY pyproject.toml uv.lock ./
RUN uv venv /opt/observatory \
 && uv export --frozen --no-default-groups --all-extras --no-emit-project --output-file /requirements.txt --quiet \
 && uv pip install --python /opt/observatory --require-hashes --requirement /requirements.txt
COPY hatch_build.py README.md LICENSE .gitignore ./
COPY tools tools
COPY ui ui
COPY src src
RUN uv build --wheel --build-constraint tools/build-requirements.txt --require-hashes --out-dir /dist \
 && uv pip install --python /opt/observatory --no-deps /dist/*.whl

FROM python:${PYTHON}
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/observatory observatory \
 && install -d -m 0700 -o observatory -g observatory /var/lib/observatory /var/lib/observatory-log
COPY --from=build /opt/observatory /opt/observatory
ENV PATH=/opt/observatory/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OBSERVATORY_DATA=/var/lib/observatory \
    OBSERVATORY_HOST=0.0.0.0
USER 10001:10001
VOLUME ["/var/lib/observatory", "/var/lib/observatory-log"]
EXPOSE 4800
ENTRYPOINT ["observatory"]
CMD ["serve"]
