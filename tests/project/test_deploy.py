"""What is deployed names only what exists, and its proxy, role and unit do what the page says."""

import configparser
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import fields

import psycopg
import pytest
import sqlalchemy as sa
import uvicorn
import yaml

from counsel.cli import service as commands
from counsel.service.client import Client
from counsel.service.core.erasure import erase_person
from counsel.service.core.listings import list_people
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import add_key
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.process import ServiceProcess
from counsel.service.settings import ServiceSettings, variable_of
from tests.support import postgres
from tests.support.paths import ROOT
from tests.support.proxies import proxied
from tests.support.required import program
from tests.support.services import answers, free_port, open_desk
from tests.support.waiting import until

DEPLOY = ROOT / "deploy"
VARIABLES = {variable_of(field.name) for field in fields(ServiceSettings)}
VARIABLES |= {"COUNSEL_DB", commands.DATABASE_FILE, "COUNSEL_WAIT"}
VARIABLES |= {"COUNSEL_HOST", "COUNSEL_PORT", "COUNSEL_WORKERS"}
PASSWORDS = {"COUNSEL_PASSWORD_FILE"}  # of deploy/postgres/create-role.sh
PROBES = {"/healthz", "/readyz", "/metrics"}


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def compose():
    return yaml.safe_load(text_of("deploy/compose.yaml"))


def manifests():
    documents = yaml.safe_load_all(text_of("deploy/kubernetes.yaml"))
    return {document["kind"]: document for document in documents}


def container():
    (found,) = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return found


def unit():
    """Return the sections of the systemd unit; of a key that is given twice the last value."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str
    parser.read_string(text_of("deploy/counsel.service"))
    return parser


def served():
    """Return the commands that serve, as words."""
    image = re.search(r"^CMD (\[.*\])$", text_of("Dockerfile"), re.MULTILINE)
    started = unit()["Service"]["ExecStart"].split()
    return {
        "Dockerfile": json.loads(image.group(1)),
        "compose": compose()["services"]["counsel"]["command"],
        "kubernetes": container()["args"],
        "systemd": ["counsel", *started[1:]],
    }


def options():
    """Return the options of `counsel serve`."""
    import sys

    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    import reference_pages

    return {
        option
        for parameter in reference_pages.commands()["counsel serve"].params
        for option in parameter.opts
    }


# What the files name.


def test_commands_have_only_options_that_exist():
    for where, words in served().items():
        assert words[:2] == ["counsel", "serve"], where
        assert {word for word in words if word.startswith("--")} <= options(), where


def test_variables_are_settings_of_the_service():
    for path in [ROOT / "Dockerfile", *DEPLOY.rglob("*"), ROOT / "docs" / "how-to" / "deploy.md"]:
        if path.is_file():
            named = set(re.findall(r"\bCOUNSEL_[A-Z_]*[A-Z]\b", path.read_text("utf-8")))
            assert named <= VARIABLES | PASSWORDS, path


def test_probes_and_hidden_paths_are_routes(tmp_path):
    app = ServiceProcess(str(tmp_path / "counsel.db")).app()
    routes = {route.path for route in app.routes}
    assert routes >= PROBES
    probes = [container()[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
    assert [probe["httpGet"]["path"] for probe in probes] == ["/healthz", "/healthz", "/readyz"]
    assert "127.0.0.1:8000/healthz" in text_of("Dockerfile")
    assert "127.0.0.1:8000/readyz" in str(compose()["services"]["counsel"]["healthcheck"]["test"])
    hidden = re.search(
        r"location ~ \^/\(([a-z|]+)\) \{\s+return 404;", text_of("deploy/nginx.conf")
    )
    assert {f"/{name}" for name in hidden.group(1).split("|")} == PROBES
    for path in re.findall(r"location (?:= )?(/v1\S*) \{", text_of("deploy/nginx.conf")):
        assert any(route.startswith(path) for route in routes), path


def test_one_port_everywhere():
    for where, words in served().items():
        assert words[words.index("--port") + 1] == "8000", where
    assert container()["ports"] == [{"name": "http", "containerPort": 8000}]
    assert manifests()["Service"]["spec"]["ports"][0]["targetPort"] == "http"
    assert "server counsel:8000;" in text_of("deploy/nginx.conf")
    published = [one.split(":")[1] for one in compose()["services"]["proxy"]["ports"]]
    listening = re.findall(r"^\s+listen (\d+)", text_of("deploy/nginx.conf"), re.MULTILINE)
    assert published == listening
    assert "EXPOSE 8000" in text_of("Dockerfile")


def test_the_image_copies_files_that_exist_and_are_sent_to_the_builder():
    sent = text_of(".dockerignore").splitlines()
    assert sent[0] == "*"
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text_of("Dockerfile"), re.MULTILINE):
        for name in line.split():
            assert (ROOT / name).exists()
            assert f"!{name}" in sent
    assert {line[1:] for line in sent if line.startswith("!")} == set(
        " ".join(
            re.findall(r"^COPY (?!--from)(.+) \S+$", text_of("Dockerfile"), re.MULTILINE)
        ).split()
    )
    packages = re.search(r"pip install .*-r (\S+)", text_of("Dockerfile"))
    assert "--require-hashes" in packages.group()
    assert packages.group(1) == "requirements-service.lock"


def test_the_image_and_the_pods_run_as_nobody_in_particular():
    assert "USER 10001:10001" in text_of("Dockerfile")
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert container()["securityContext"]["readOnlyRootFilesystem"]
    for name, service in compose()["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["restart"] == "unless-stopped", name
        assert {"mem_limit", "cpus", "pids_limit"} <= service.keys(), name


def test_secrets_and_files_of_the_compose_file():
    content = compose()
    used = {secret for service in content["services"].values() for secret in service["secrets"]}
    assert used == content["secrets"].keys()
    for service in content["services"].values():
        for volume in service.get("volumes", []):
            place = volume.split(":")[0]
            assert place in content["volumes"] or (DEPLOY / place).is_file(), volume
        assert set(service["networks"]) <= content["networks"].keys()
        assert service.keys() & {"secrets", "environment"}
    named = re.findall(r"/run/secrets/(\w+)", text_of("deploy/compose.yaml"))
    named += re.findall(r"/run/secrets/(\w+)", text_of("deploy/nginx.conf"))
    named += re.findall(r"/run/secrets/(\w+)", text_of("deploy/postgres/create-role.sh"))
    assert set(named) == used
    assert "wal_recycle=off" in content["services"]["postgres"]["command"]


def test_every_end_leaves_time_to_finish_requests():
    stop = ServiceSettings().stop_seconds
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    sleep = int(container()["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > sleep + stop + 2
    assert int(compose()["services"]["counsel"]["stop_grace_period"].rstrip("s")) > stop + 2
    assert int(unit()["Service"]["TimeoutStopSec"]) > stop + 2


def test_probes_leave_time_to_wait_and_to_write():
    wait = float(container()["args"][container()["args"].index("--wait") + 1])
    startup, ready = container()["startupProbe"], container()["readinessProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] > wait
    assert ready["timeoutSeconds"] > ServiceSettings().lock_seconds


def test_limits_of_the_proxy_are_no_smaller_than_those_of_the_service():
    sizes = re.findall(r"client_max_body_size (\d+)m;", text_of("deploy/nginx.conf"))
    assert [int(size) * 2**20 for size in sizes] == [2**20, 20 * 2**20]
    assert int(sizes[1]) * 2**20 >= ServiceSettings().model_bytes
    waits = re.search(r"proxy_read_timeout (\d+)s;", text_of("deploy/nginx.conf"))
    assert int(waits.group(1)) > ServiceSettings().reading_seconds


def test_the_unit_survives_a_database_that_comes_up_late():
    sections = unit()
    assert sections["Unit"]["StartLimitIntervalSec"] == "0"
    assert sections["Service"]["Restart"] == "always"
    assert "--wait" in sections["Service"]["ExecStart"]
    assert "MemoryDenyWriteExecute" not in sections["Service"], "the planner is compiled"


def test_the_page_names_files_that_exist():
    page = text_of("docs/how-to/deploy.md")
    for name in re.findall(r"`(deploy/[\w./-]+)`", page):
        assert (ROOT / name).exists(), name
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            assert str(path.relative_to(ROOT)) in page, path


def locked(name):
    """Return the hashes of each package and version of a lock, whatever the marker."""
    entry = re.compile(r"^(\S+==\S+)[^\\\n]* \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE)
    return {
        package: sorted(re.findall(r"--hash=(\S+)", hashes))
        for package, hashes in entry.findall(text_of(name))
    }


def test_the_lock_of_the_image_is_a_part_of_the_whole_one():
    part, whole = locked("requirements-service.lock"), locked("requirements.lock")
    assert len(part) > 30
    assert {package: whole.get(package) for package in part} == part
    names = {package.split("==")[0] for package in part}
    assert {"fastapi", "uvicorn", "sqlalchemy", "alembic", "psycopg-binary", "pyarrow"} <= names
    assert not {"pytest", "playwright", "sphinx", "duckdb"} & names
    assert "-o requirements-service.lock" in text_of("Makefile")


# What is run.


@pytest.mark.slow
def test_systemd_accepts_the_unit(tmp_path):
    text = text_of("deploy/counsel.service").replace("/opt/counsel/bin/counsel", "/bin/true")
    path = tmp_path / "counsel.service"
    path.write_text(text)
    done = subprocess.run(
        [program("systemd-analyze"), "verify", "--recursive-errors=no", str(path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "counsel.service" not in done.stderr, done.stderr


def container_commands():
    """Return what the page runs in the container of PostgreSQL: to back up, empty and restore."""
    page = text_of("docs/how-to/deploy.md")
    lines = re.findall(r"^docker compose exec -T postgres ([^<>\n]*)", page, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.mark.slow
def test_the_role_of_the_script_can_erase_everything(server, tmp_path):
    """The script of the compose file, run against a real server: its role may do what it must."""
    psql = shutil.which("psql") or str(postgres.programs() / "psql")
    (tmp_path / "password").write_text("it's a 'secret'\n")
    environment = os.environ | {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "POSTGRES_USER": postgres.OWNER,
        "COUNSEL_PASSWORD_FILE": str(tmp_path / "password"),
        "PATH": f"{os.path.dirname(psql)}:{os.environ['PATH']}",
    }
    script = DEPLOY / "postgres" / "create-role.sh"
    try:
        subprocess.run(["sh", str(script)], env=environment, check=True, timeout=60)
        url = server.url(user="counsel", database="counsel")
        with open_desk(url) as desk:
            settings = AdviserSettings(source="ward", budget=1)
            adviser = desk.create(1, "alerts", settings)
            desk.start(1, adviser, "ann")
            assert erase_person(desk, 1, "ann") == [], "nothing is left to do"
            desk.start(1, adviser, "bea")
            dump, empty, load = container_commands()
            archive = subprocess.run(dump, env=environment, check=True, capture_output=True).stdout
            desk.start(1, adviser, "carl")
            with desk.engine.begin() as connection:
                connection.exec_driver_sql("CREATE TABLE newer (a integer)")
        subprocess.run(empty, env=environment, check=True)
        subprocess.run(load, env=environment, check=True, input=archive)
        with open_desk(url) as desk:
            assert [row["name"] for row in list_people(desk, 1, None, 10)] == ["bea"]
            assert erase_person(desk, 1, "bea") == [], "a restore keeps what the role may do"
            assert not sa.inspect(desk.engine).has_table("newer")
        with server.connect() as connection:
            connection.execute("create role other login")
            query = "select has_database_privilege('other', 'counsel', 'connect')"
            assert connection.execute(query).fetchone() == (False,)
            query = "select rolsuper or rolcreatedb or rolcreaterole from pg_roles where rolname = "
            assert connection.execute(query + "'counsel'").fetchone() == (False,)
    finally:
        with closing(psycopg.connect(server.url(), autocommit=True)) as connection:
            connection.execute("drop database if exists counsel with (force)")
            for role in ("counsel", "other"):
                connection.execute(f"drop role if exists {role}")


@contextmanager
def service_with_key(folder):
    """Serve with keys in a thread; yields the port and a key."""
    database = str(folder / "counsel.db")
    engine = open_engine(database)
    with write_transaction(engine) as connection:
        key = add_key(connection, tenant="local", role="admin", name="first")
    engine.dispose()
    port = free_port()
    app = ServiceProcess(database).app()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: answers(port, "/readyz"))
    try:
        yield port, key
    finally:
        server.should_exit = True
        thread.join()


def ask(proxy, verb, path, body=None, headers=None):
    """Send a request through the proxy; return the status, the headers and the body."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", proxy.port, context=proxy.context(), timeout=60
    )
    with closing(connection):
        # It may be refused while the body is being sent; the answer is there then.
        with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            connection.request(verb, path, body, headers or {})
        answer = connection.getresponse()
        headers = {name.lower(): text for name, text in answer.getheaders()}
        return answer.status, headers, answer.read()


@pytest.mark.slow
def test_the_proxy_passes_on_what_is_for_the_service(tmp_path, monkeypatch):
    with service_with_key(tmp_path) as (port, key), proxied(port, tmp_path) as proxy:
        status, headers, _ = ask(proxy, "GET", "/v1/advisers")
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert headers["strict-transport-security"] == "max-age=31536000"
        assert headers["x-frame-options"] == "DENY", "the service's own headers stay"
        monkeypatch.setenv("SSL_CERT_FILE", str(proxy.certificate))
        with Client(proxy.address, key) as client:
            adviser = client.create_adviser("alerts", "ward", penalty=0.1)["id"]
            assert client.start(adviser, "ann", "again") == client.start(adviser, "ann", "again")
            # More than a batch of the export; not through the proxy, which limits the rate.
            with Client(f"http://127.0.0.1:{port}", key) as direct:
                for caller in (client, *[direct] * 299):
                    episode = caller.start(adviser, "ann / ⚕")
                    decision = caller.advise(episode, 0, "stable")
                    caller.report(decision["id"], "assess", comment="a" * 1000)
                exported = client.log(adviser)
                assert exported.count(b"\n") == 301
                assert direct.log(adviser) == exported
            assert client.person("ann / ⚕")["advisers"][0]["episodes"] == 300
            client.delete_person("ann / ⚕")
        plain = http.client.HTTPConnection("127.0.0.1", proxy.plain, timeout=20)
        with closing(plain):
            plain.request("GET", "/v1/advisers", headers={"Host": "counsel.example"})
            answer = plain.getresponse()
            assert answer.status == 308
            assert answer.getheader("Location") == "https://counsel.example/v1/advisers"


@pytest.mark.slow
def test_the_proxy_hides_what_needs_no_key(tmp_path):
    with service_with_key(tmp_path) as (port, _), proxied(port, tmp_path) as proxy:
        for path in sorted(PROBES):
            direct = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            with closing(direct):
                direct.request("GET", path)
                assert direct.getresponse().status == 200
            name = path[1:]
            ways = [path, f"/{path}", f"{path}/", f"{path}?x", f"/./{name}", f"/x/../{name}"]
            ways += [f"/%{ord(name[0]):x}{name[1:]}", f"{path}%2f", f"{path};x"]
            for way in ways:
                status, _, body = ask(proxy, "GET", way)
                assert status == 404, way
                assert b"counsel_" not in body
        assert ask(proxy, "GET", "/")[0] == 200


@pytest.mark.slow
def test_the_proxy_refuses_what_is_too_large_or_too_slow(tmp_path):
    with service_with_key(tmp_path) as (port, key), proxied(port, tmp_path) as proxy:
        allowed = {"Authorization": f"Bearer {key}"}
        assert ask(proxy, "POST", "/v1/advisers", b" " * 2_000_000, allowed)[0] == 413
        status, _, body = ask(proxy, "POST", "/v1/models", b" " * 2_000_000, allowed)
        assert status == 400
        assert b"application/problem" in body or b"detail" in body, "the service refuses it itself"
        assert ask(proxy, "POST", "/v1/models", b" " * 22_000_000, allowed)[0] == 413
        large = allowed | {"X-Large": "a" * 40_000}
        assert ask(proxy, "GET", "/v1/advisers", headers=large)[0] in (400, 431)
        raw = socket.create_connection(("127.0.0.1", proxy.port), timeout=30)
        with raw, proxy.context().wrap_socket(raw, server_hostname="127.0.0.1") as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow:")
            answer = b"".join(iter(lambda: slow.recv(1000), b""))  # until the proxy ends it
            assert answer == b"" or answer.startswith(b"HTTP/1.1 408")
        assert ask(proxy, "GET", "/v1/advisers", headers=allowed)[0] == 200


@pytest.mark.slow
def test_the_proxy_limits_the_rate_and_the_connections_of_an_address(tmp_path):
    changes = {
        "rate=200r/s": "rate=1r/s",
        "burst=400": "burst=8",
        "connections 200": "connections 2",
        "worker_processes 2": "worker_processes 1",  # which takes connections in their order
    }
    with (
        service_with_key(tmp_path) as (port, _),
        proxied(port, tmp_path, changes) as proxy,
    ):
        request = b"POST /v1/outcomes HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"
        waiting = []
        for _ in range(3):
            raw = socket.create_connection(("127.0.0.1", proxy.port), timeout=30)
            waiting.append(proxy.context().wrap_socket(raw, server_hostname="127.0.0.1"))
            waiting[-1].sendall(request)
        assert waiting[-1].recv(1000).startswith(b"HTTP/1.1 429")
        for connection in waiting:
            connection.close()
        statuses = [ask(proxy, "GET", "/v1/advisers")[0] for _ in range(40)]
        assert 429 in statuses
        assert 401 in statuses


@pytest.mark.slow
def test_the_proxy_passes_on_the_id_of_a_request(tmp_path):
    with service_with_key(tmp_path) as (port, _), proxied(port, tmp_path) as proxy:
        headers = {"X-Request-Id": "visit-7"}
        assert ask(proxy, "GET", "/v1/advisers", headers=headers)[1]["x-request-id"] == "visit-7"
        given = ask(proxy, "GET", "/v1/advisers")[1]["x-request-id"]
        assert re.fullmatch("[0-9a-f]{32}", given)


@pytest.mark.slow
def test_the_proxy_logs_no_address_that_has_a_name(tmp_path):
    """Nobody answers behind it, which is logged with the address of the request."""
    with proxied(free_port(), tmp_path) as proxy:
        for path in (
            "/v1/people/Ann%20Smith",
            "/v1//people/Ann%20Smith",
            "/v1/play/players/Ann%20Smith/log",
            "/v1/advisers/a/episodes?person=Ann%20Smith",
            "/v1/advisers",
        ):
            assert ask(proxy, "GET", path)[0] == 502, path
    log = (tmp_path / "nginx.log").read_text()
    assert "GET /v1/advisers HTTP" in log, "other faults are there"
    assert "Ann" not in log
