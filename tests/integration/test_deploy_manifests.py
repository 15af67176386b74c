#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compose file and the Kubernetes manifests are what their schemas ask for, fit together, and fit weir."""

import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position,import-error
from support import cases, metrics, venv
from support.place import PATIENCE_S, ROOT, free_port, until

venv.enter("manifests")

import jsonschema
import kubernetes_validate
import yaml

COMPOSE = os.path.join(ROOT, "deploy/compose")
KUBERNETES = os.path.join(ROOT, "deploy/kubernetes")
KUBERNETES_VERSIONS = ("1.30", "1.34")
SECRETS = {"store-password": "secret", "api-token": "a-token-of-a-test"}
# Where a container has them.
MOUNTED = {"compose": "/run/secrets", "kubernetes": "/run/secrets/weir"}


def load(path):
    with open(path, encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=10 * PATIENCE_S, **more)


def put_secrets(place, folder, names):
    """A directory that has these alone, as a container has what is mounted into it."""
    for name in names:
        place.write(f"{folder}/{name}", SECRETS[name] + "\n")
    os.makedirs(place.path(folder), exist_ok=True)
    return place.path(folder)


def validate_configuration(place, text, mounted):
    """weir itself says what it thinks of a configuration; the log files it names are not there, nor its servers."""
    moved = text.replace(f'"{mounted}/', f'"{put_secrets(place, "all", SECRETS)}/')
    path = place.write("whole.json", moved)
    done = run(place.weir, "validate", "--offline", "--config", path)
    assert done.returncode == 0 and re.search(r" is valid(\.|, with 1 warning\.)$", done.stdout.strip()), done.stdout
    for name, users in (("store.password", "weir-limiter, weir-archiver"), ("archiver.tokens", "weir-archiver"),
                        ("redis.url", "weir subscribe")):
        assert re.search(rf"^  (secrets)? +{re.escape(name)}: {users}", done.stdout, re.M), done.stdout
    # A machine need not have what its roles do not open, so what lacks is no mistake; but it is told, with who needs it.
    os.remove(place.path("all/api-token"))
    done = run(place.weir, "validate", "--offline", "--config", path)
    assert done.returncode == 0, done.stdout
    assert re.search(r"archiver.tokens\[0\].*all/api-token.*weir-archiver would not start", done.stdout), done.stdout
    whole = json.loads(text)
    assert whole["bus"]["type"] == "kafka" and whole["store"]["type"] == "mysql"
    return whole


def check_archive(whole):
    """It is kept, for a while, and shown to who has the token."""
    archiver = whole["archiver"]
    assert archiver["enabled"] and {"keep_hourly", "keep_decisions", "keep_history"} <= set(archiver)
    assert [os.path.basename(token["file"]) for token in archiver["tokens"]] == ["api-token"]


def starts(place, name, command, config):
    """Starts a role with servers that are not there: the code that it ends with, or None once it asks for one of them."""
    program = os.path.join(os.path.dirname(place.weir), command[0])
    if not os.access(program, os.X_OK):
        raise cases.Skipped(f"{command[0]} is not built")
    words = [{"/etc/weir/weir.json": config, "0.0.0.0:9464": f"127.0.0.1:{free_port()}"}.get(word, word)
             for word in command[1:]]
    words = [place.path(f"state-{name}") if word.startswith("/var/lib/weir/") else word for word in words]
    started = place.start(*words, program=program)
    until(lambda: started.code() is not None or "etrying" in started.said(), f"{name} starts")
    code = started.code()
    started.kill()
    return code, started.said()


def check_secrets(place, text, mounted, roles):
    """A role has the secrets that it opens, and no others: {name: (command, the names of what is mounted)}."""
    closed = free_port()
    whole = json.loads(text)
    whole["bus"]["brokers"] = f"127.0.0.1:{closed}"
    whole["store"].update(host="127.0.0.1", port=closed)
    whole["redis"]["url"] = f"redis://127.0.0.1:{closed}"
    whole["listen"]["http"] = "127.0.0.1:0"
    for name, (command, own) in roles.items():
        for left_out in (None, *sorted(own)):
            folder = put_secrets(place, f"{name}-{left_out}", set(own) - {left_out})
            config = place.write(f"{name}.json", json.dumps(whole).replace(f'"{mounted}/', f'"{folder}/'))
            code, said = starts(place, name, command, config)
            if left_out is None:
                assert code is None, f"{name} opens more than {sorted(own)}: {said}"
            else:
                assert code == 2 and f"{folder}/{left_out}" in said, f"{name} does not open {left_out}: {code} {said}"
    assert set().union(*[own for _, own in roles.values()]) == set(SECRETS)


def check_command(place, command):
    """The program is weir's, and knows the options."""
    program = os.path.join(os.path.dirname(place.weir), command[0])
    if not os.access(program, os.X_OK):
        raise cases.Skipped(f"{command[0]} is not built")
    words = command[1:]
    plain = words[:next((i for i, word in enumerate(words) if word.startswith("--")), len(words))]
    told = run(program, *plain[:1], "--help")
    assert told.returncode == 0, command
    assert all(word in told.stdout for word in plain), command
    for option in (word for word in words if word.startswith("--")):
        assert option in told.stdout, f"{option} is no option of {' '.join([command[0], *plain])}"


# ---- compose ----

def compose():
    """The file, with its shared parts put in."""
    (whole,) = load(os.path.join(COMPOSE, "compose.yaml"))
    return whole


def compose_schema():
    """It comes with a package of which no more is used: its own name is found where it lies."""
    (path,) = [path for folder in sys.path
               for path in glob.glob(os.path.join(folder, "compose", "config", "compose_spec.json"))]
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def test_compose_is_valid(_place):
    whole, schema = compose(), compose_schema()
    validator = jsonschema.Draft201909Validator(schema)
    assert not [error.message for error in validator.iter_errors(whole)]
    whole["services"]["limiter"]["comand"] = ["x"]
    assert [error.message for error in validator.iter_errors(whole)], "any file would do"


def test_compose_fits_together(place):
    whole = compose()
    services = whole["services"]
    assert {"kafka", "mariadb", "redis", "policy", "collector", "limiter", "archiver", "subscribe"} <= set(services)
    for name, service in services.items():
        if name != "policy":  # it ends
            assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        for other, condition in service.get("depends_on", {}).items():
            assert "healthcheck" in services[other] and condition["condition"] == "service_healthy", name
        assert set(service["networks"]) <= set(whole["networks"])
        for volume in service.get("volumes", ()):
            source = re.split(r":(?=/)", volume)[0]
            if source.startswith("./"):
                assert os.path.exists(os.path.join(COMPOSE, source)), f"{name}: {volume}"
            elif not source.startswith(("$", "/")):  # a path alone is a volume of the container's own
                assert source in whole["volumes"], f"{name}: {volume}"
        if service["image"] == "weir":
            check_command(place, service["command"])
            assert service["read_only"] and service["cap_drop"] == ["ALL"], name
    example = load_environment(os.path.join(COMPOSE, "env.example"))
    with open(os.path.join(COMPOSE, "compose.yaml"), encoding="utf-8") as file:
        text = re.sub(r"#.*", "", file.read())
    assert set(re.findall(r"\$\{(\w+)", text)) == set(example)


def load_environment(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("=", 1) for line in file if line.strip() and not line.startswith("#"))


def test_compose_configuration_names_its_services(place):
    with open(os.path.join(COMPOSE, "weir.json"), encoding="utf-8") as file:
        whole, services = validate_configuration(place, file.read(), MOUNTED["compose"]), compose()["services"]
    kafka = services["kafka"]["environment"]
    assert kafka["KAFKA_ADVERTISED_LISTENERS"] == f"CLIENTS://{whole['bus']['brokers']}"
    assert whole["bus"]["replication"] == whole["bus"]["min_insync"] == 1
    assert whole["store"]["host"] in services
    assert whole["store"]["password"] == {"file": "/run/secrets/store-password"}
    assert whole["redis"]["url"].split("//")[1].split(":")[0] in services
    maria = services["mariadb"]["environment"]
    assert maria["MARIADB_USER"] == "weir" and maria["MARIADB_DATABASE"] == "weir"
    assert maria["MARIADB_PASSWORD_FILE"] == whole["store"]["password"]["file"]
    assert services["mariadb"]["secrets"] == ["store-password"]
    check_archive(whole)
    host, port = whole["archiver"]["api"].split(":")
    assert host == "0.0.0.0" and services["archiver"]["ports"] == [f"127.0.0.1:{port}:{port}"]


def bytes_of(text):
    """Of "512MiB" as weir has it, or "16Mi" as Kubernetes does."""
    number, unit = re.fullmatch(r"(\d+)([KMGT]i)B?", text).groups()
    return int(number) << {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}[unit]


def test_a_limiter_has_a_disk_for_evicted_buckets(_place):
    """A file in its state directory, of up to 16 times its memory; each replica has its own."""
    limiter = compose()["services"]["limiter"]
    assert "tmpfs" not in limiter and "/var/lib/weir" in limiter["volumes"], limiter
    config = json.loads(objects()["ConfigMap", "weir"]["data"]["weir.json"])
    for kind, spec, one in workloads():
        if one["metadata"]["name"] == "weir-limiter":
            (state,) = [volume["emptyDir"] for volume in spec["volumes"] if volume["name"] == "state"]
            assert state.get("medium", "") == "", kind
            assert bytes_of(state["sizeLimit"]) > 16 * bytes_of(config["limiter"]["memory"]), state


def test_compose_gives_each_role_its_own_secrets(place):
    whole = compose()
    assert set(whole["secrets"]) == set(SECRETS)
    roles = {name: (service["command"], set(service.get("secrets", ()))) for name, service in
             whole["services"].items() if service["image"] == "weir"}
    for name, service in whole["services"].items():
        for variable in service.get("environment", {}):
            assert not re.search(r"PASSWORD$|TOKEN|SECRET", variable) or variable == "MARIADB_RANDOM_ROOT_PASSWORD", name
    with open(os.path.join(COMPOSE, "weir.json"), encoding="utf-8") as file:
        check_secrets(place, file.read(), MOUNTED["compose"], roles)


def test_the_containers_ask_how_a_daemon_is(place):
    ask, port = os.path.join(COMPOSE, "ask"), free_port()
    assert run(ask, "/readyz", str(port)).returncode == 1  # nobody is there
    log = place.write("access.log", b"")
    config = place.config([{"name": "site", "key": ["ip"],
                            "limits": [{"algorithm": "sliding_window", "rate": 3, "window": "1m"}]}],
                          [{"type": "file", "path": log, "format": "combined", "follow": True}],
                          listen={"http": f"127.0.0.1:{port}"})
    weir = place.start("run", "--config", config, "--state", place.path("state"),
                       "--decisions", place.path("decisions"))
    until(lambda: (metrics.get(port, "/readyz") or [0])[0] == 200, "it is ready", running=weir)
    done = run(ask, "/readyz", str(port))
    assert done.returncode == 0, done.stdout
    assert run(ask, "/nothing", str(port)).returncode == 1
    assert weir.stop() == 0


def dockerfile():
    """The instructions, in one line each."""
    with open(os.path.join(COMPOSE, "Dockerfile"), encoding="utf-8") as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.M)
    return re.sub(r"\\\n\s*", " ", text).strip().split("\n")


def test_the_image_has_what_weir_needs(place):
    lines = [line for line in dockerfile() if line.strip()]
    for line in lines:
        assert re.match(r"(FROM|WORKDIR|COPY|RUN|USER|VOLUME|CMD) ", line), line
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert os.path.exists(os.path.join(ROOT, source)), line
    assert any(line.startswith("COPY ") and line.endswith(" /usr/share/doc/weir/RUNBOOK.md") for line in lines), lines
    (installs,) = [line for line in lines if "--no-install-recommends" in line]
    packages = set(re.search(r"--no-install-recommends (.*?)&&", installs)[1].split())
    assert "curl" in packages, "weir-ask needs it"
    wanted = set()
    for name in ("weir", "weir-collector", "weir-limiter", "weir-archiver"):
        path = os.path.join(os.path.dirname(place.weir), name)
        if not os.access(path, os.X_OK):
            raise cases.Skipped(f"{name} is not built")
        listed = run("readelf", "-d", path)
        if listed.returncode != 0:
            raise cases.Skipped("no readelf here")
        wanted |= set(re.findall(r"\(NEEDED\).*\[(.*?)\]", listed.stdout))
    wanted -= {name for name in wanted if re.match(r"lib(c|m|resolv|asan|ubsan|tsan)\.so|ld-", name)}
    assert wanted
    with open("/etc/os-release", encoding="utf-8") as file:
        if 'VERSION_ID="12"' not in file.read():
            raise cases.Skipped("the image's packages are Debian 12's; this is another system")
    owners = run("dpkg-query", "--search", *[f"*/{library}" for library in sorted(wanted)]).stdout
    for library in sorted(wanted):
        of = set(re.findall(rf"^([^:]+):.*/{re.escape(library)}$", owners, re.M))
        assert of & packages, f"{library} is of {of}, which the image does not have"


# ---- Kubernetes ----

def manifests():
    """File name to documents."""
    return {os.path.basename(path): load(path) for path in sorted(glob.glob(os.path.join(KUBERNETES, "*.yaml")))}


def objects():
    """(kind, name) to document, without the kustomization."""
    return {(one["kind"], one["metadata"]["name"]): one for name, documents in manifests().items()
            if name != "kustomization.yaml" for one in documents}


def workloads():
    """What has a pod template: (kind, its template's spec, the document)."""
    return [(kind, one["spec"]["template"]["spec"], one) for (kind, _), one in objects().items()
            if "template" in one.get("spec", {})]


def mounted_secrets(spec):
    """The keys of the secret that a pod has, each as a file of its name."""
    (container,) = spec["containers"]
    sources = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
    assert all(source["secretName"] == "weir" and source["defaultMode"] == 0o440 for source in sources)
    places = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "secrets"]
    assert places == [MOUNTED["kubernetes"]] * len(sources)
    assert all(item["key"] == item["path"] for source in sources for item in source["items"])
    return {item["key"] for source in sources for item in source["items"]}


def test_kubernetes_gives_each_role_its_own_secrets(place):
    roles = {one["metadata"]["name"]: (spec["containers"][0]["command"], mounted_secrets(spec))
             for _, spec, one in workloads()}
    check_secrets(place, objects()["ConfigMap", "weir"]["data"]["weir.json"], MOUNTED["kubernetes"], roles)


def test_kubernetes_objects_are_valid(_place):
    for (kind, name), one in objects().items():
        for version in KUBERNETES_VERSIONS:
            kubernetes_validate.validate(one, version, strict=True)
        assert kind == "Namespace" or one["metadata"]["namespace"] == "weir", name
    limiter = objects()["StatefulSet", "weir-limiter"]
    limiter["spec"]["template"]["spec"]["containers"][0]["redinessProbe"] = {}
    try:
        kubernetes_validate.validate(limiter, KUBERNETES_VERSIONS[0], strict=True)
    except kubernetes_validate.ValidationError:
        pass
    else:
        raise AssertionError("any object would do")


def test_kubernetes_objects_fit_together(place):
    whole = objects()
    (kustomization,) = manifests()["kustomization.yaml"]
    assert sorted(kustomization["resources"]) == sorted(set(manifests()) - {"kustomization.yaml"})
    secret = whole["Secret", "weir"]
    for kind, spec, one in workloads():
        (container,) = spec["containers"]
        name = one["metadata"]["name"]
        check_command(place, container["command"])
        assert container["image"] == "weir" and container["securityContext"]["readOnlyRootFilesystem"], name
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"], name
        assert not container["securityContext"]["allowPrivilegeEscalation"], name
        assert "memory" in container["resources"]["limits"], name
        assert "env" not in container, f"{name}: an environment is shown with the pod"
        assert set(mounted_secrets(spec)) <= set(secret["stringData"]), name
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes), name
        assert ("ConfigMap", volumes["config"]["configMap"]["name"]) in whole
        if kind == "Job":
            continue
        labels = one["spec"]["selector"]["matchLabels"]
        assert labels.items() <= one["spec"]["template"]["metadata"]["labels"].items(), name
        port = container["ports"][0]
        # Of partitions that wait for a person /healthz says no: that must not start a pod again.
        alive = "/metrics" if name in ("weir-limiter", "weir-archiver") else "/healthz"
        for probe, path in (("livenessProbe", alive), ("readinessProbe", "/readyz"), ("startupProbe", alive)):
            assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}, f"{name}: {probe}"
        assert one["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])
    assert {(kind, one["metadata"]["name"]) for kind, _, one in workloads()} == {
        ("StatefulSet", "weir-limiter"), ("DaemonSet", "weir-collector"), ("Deployment", "weir-subscribe"),
        ("Deployment", "weir-archiver"), ("Job", "weir-policy")}


def test_the_archive_is_reached_by_its_service(_place):
    whole = objects()
    archiver, service = whole["Deployment", "weir-archiver"], whole["Service", "weir-archiver"]
    labels = archiver["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (container,) = archiver["spec"]["template"]["spec"]["containers"]
    (port,) = service["spec"]["ports"]
    api = next(one for one in container["ports"] if one["name"] == port["targetPort"])
    section = json.loads(whole["ConfigMap", "weir"]["data"]["weir.json"])["archiver"]
    assert section["api"] == f"0.0.0.0:{api['containerPort']}" and port["port"] == api["containerPort"]
    assert section["memory"] == "256MiB" and container["resources"]["limits"]["memory"] == "1Gi"
    check_archive({"archiver": section})
    budget = whole["PodDisruptionBudget", "weir-archiver"]["spec"]
    assert budget["selector"] == archiver["spec"]["selector"] and budget["maxUnavailable"] == 1


def test_the_limiters_are_disrupted_one_at_a_time(_place):
    whole = objects()
    limiter, budget = whole["StatefulSet", "weir-limiter"], whole["PodDisruptionBudget", "weir-limiter"]
    assert budget["spec"]["selector"] == limiter["spec"]["selector"] and budget["spec"]["maxUnavailable"] == 1
    service = whole["Service", limiter["spec"]["serviceName"]]
    assert service["spec"]["selector"] == limiter["spec"]["selector"]["matchLabels"]
    assert service["spec"]["clusterIP"] == "None"


def test_kubernetes_configuration_is_good(place):
    text = objects()["ConfigMap", "weir"]["data"]["weir.json"]
    whole = validate_configuration(place, text, MOUNTED["kubernetes"])
    for _, spec, _ in workloads():
        (container,) = spec["containers"]
        if "ports" in container:
            assert whole["listen"]["http"] == f"0.0.0.0:{container['ports'][0]['containerPort']}"
    (limiter,) = objects()["StatefulSet", "weir-limiter"]["spec"]["template"]["spec"]["containers"]
    assert whole["limiter"]["memory"] == "2GiB" and limiter["resources"]["limits"]["memory"] == "3Gi"
    # The format reads a line as a container runtime writes it, whatever its client has sent.
    agent = "\\x22" * 4200
    lines = ['stdout F 192.0.2.1 - - [21/Nov/2026:07:20:00 +0000] "GET /a?b HTTP/1.1" 200 5 "-" "curl" 9 0.1 [a] [] - - - - 1f',
             'stderr F 2001:db8::1 - an na [21/Nov/2026:07:20:01 +0000] "-" 400 0 "-" "-" 0 0.1 [] [] - - - - 2f',
             'stdout F 192.0.2.2 - x [: [21/Nov/2026:07:20:02 +0000] "GET / HTTP/1.1" 401 5 "-" "curl" 9 0.1 [a] [] - - - - 3f',
             f'stdout P 192.0.2.3 - - [21/Nov/2026:07:20:03 +0000] "GET / HTTP/1.1" 200 5 "-" "{agent[:16200]}',
             f'stdout F {agent[16200:]}" 9 0.1 [a] [] - - - - 4f']
    line = "".join(f"2026-11-21T07:20:0{n}.123456789Z {line}\n" for n, line in enumerate(lines))
    whole["sources"][0].update(path=place.write("pod.log", line), follow=False)
    config = {name: whole[name] for name in ("zones", "sources")}
    path = place.write("once.json", json.dumps(config))
    done = place.good("run", "--once", "--config", path, "--summary", "json", "--decisions", place.path("decisions"))
    summary = done.summary()
    assert summary["events"] == 4 and not summary["malformed"], summary


if __name__ == "__main__":
    cases.main(globals())
