# The advice service. Build: docker build -t counsel .   Run: see docs/how-to/deploy.md.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY src src
# The versions of the lock without its hashes, which would be asked of Counsel itself too.
RUN sed -e '/--hash=/d' -e 's/ *\\$//' requirements.lock > versions.txt \
    && python -m venv /opt/counsel \
    && /opt/counsel/bin/pip install --no-cache-dir --constraint versions.txt '.[parquet,service]'

FROM python:3.12-slim
COPY --from=build /opt/counsel /opt/counsel
RUN useradd --system --uid 10001 counsel && mkdir /data && chown counsel /data
USER counsel
ENV PATH=/opt/counsel/bin:$PATH NUMBA_CACHE_DIR=/data/.numba
VOLUME /data
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz')"]
CMD ["counsel", "serve", "--host", "0.0.0.0", "--db", "/data/counsel.db"]
