# The advice service. Build: docker build -t counsel .   Run: see docs/how-to/deploy.md.
#
# A tag may change what it names; a digest cannot. Print the digest of the tag and build with it:
#   docker buildx imagetools inspect python:3.12-slim --format '{{.Manifest.Digest}}'
#   docker build --build-arg PYTHON_IMAGE=python:3.12-slim@sha256:… -t counsel .
ARG PYTHON_IMAGE=python:3.12-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
RUN python -m venv /opt/counsel
# Packages first, each with its hash: they change less often than the code.
COPY requirements-service.lock ./
RUN /opt/counsel/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements-service.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/counsel/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/counsel /opt/counsel
RUN useradd --system --uid 10001 --user-group --no-create-home counsel \
    && mkdir /data && chown counsel:counsel /data
USER 10001:10001
ENV PATH=/opt/counsel/bin:$PATH NUMBA_CACHE_DIR=/data/numba PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
VOLUME /data
WORKDIR /data
EXPOSE 8000
# /healthz, not /readyz: some platforms restart what is unhealthy, and a service that is restarted
# because its database is away is not there when the database comes back. The first start compiles the
# planner; the service is alive meanwhile, but not ready.
HEALTHCHECK --interval=10s --timeout=5s --start-period=180s --retries=6 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["counsel", "serve", "--host", "0.0.0.0", "--port", "8000", "--db", "/data/counsel.db"]
